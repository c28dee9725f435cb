"""The inspector as an object: what it shows can be read from it and set on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidValue
from memlab.retrieval import Hit, HybridRetriever, Recall
from memlab.store import Filters, MemoryStore
from memlab.widgets.base import Message, Widget
from memlab.widgets.inspector import picture as pictures
from memlab.widgets.inspector.facets import facets
from memlab.widgets.inspector.settings import Settings, defaults
from memlab.widgets.inspector.views import opened, palette, side
from memlab.widgets.inspector.whynot import why
from memlab.widgets.inspector.workbench import Workbench

if TYPE_CHECKING:
    import pandas as pd

Sides = dict[str, Settings]


class Inspector(Widget):
    """One query, its hits and what made them so, with a knob for every setting; made by :func:`inspect`.

    As the last line of a cell it is live: hits follow the query as it is typed and the knobs as they move. What it
    shows is there in Python too, and what is set in Python it shows::

        inspector.query = "how do we back off failing webhooks?"
        inspector.update(fusion="rrf", k=10, weights={"keyword": 2})
        inspector.recall, inspector.settings, inspector.selected

    Attributes
    ----------
    base : HybridRetriever
        What it was made with.
    """

    scripts = tuple(
        f"inspector/{name}.js" for name in ("bars", "knobs", "filters", "detail", "hits", "compare", "why", "main")
    )
    styles = ("inspector/inspector.css", "inspector/results.css")

    def __init__(
        self, retriever: HybridRetriever, query: str, settings: Settings, recorded: Recall | None = None
    ) -> None:
        super().__init__()
        self.base = retriever
        self._bench = Workbench(retriever, recorded)
        self._query = query
        self._sides: Sides = {"a": settings}
        self._recalls: dict[str, tuple[Recall, float]] = {}
        self._selected: str | None = None

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def query(self) -> str:
        """The query's text; may be set."""
        return self._query

    @query.setter
    def query(self, text: str) -> None:
        self.update(query=text)

    @property
    def settings(self) -> Settings:
        """What the recall is made with; may be set, see also :meth:`update`."""
        return self._sides["a"]

    @settings.setter
    def settings(self, value: Settings | Mapping[str, Any]) -> None:
        self._turn(self._query, {**self._sides, "a": _settings(value, self.settings)})

    @property
    def settings_b(self) -> Settings | None:
        """Those of the other side when two are compared; set it to compare, to ``None`` to end that."""
        return self._sides.get("b")

    @settings_b.setter
    def settings_b(self, value: Settings | Mapping[str, Any] | None) -> None:
        sides = {"a": self.settings}
        if value is not None:
            sides["b"] = _settings(value, self._sides.get("b", self.settings))
        self._turn(self._query, sides)

    def update(self, *, query: str | None = None, **changes: Any) -> None:
        """Change the query or settings by name or knob, see :meth:`Settings.replace`.

        Raises
        ------
        InvalidValue
            If there is no such setting, or the value is of the wrong kind; nothing has changed then.
        """
        if query is not None and not isinstance(query, str):
            raise InvalidValue(f"query: expected text, found {type(query).__name__}")
        settings = self.settings.replace(**changes) if changes else self.settings
        self._turn(self._query if query is None else query, {**self._sides, "a": settings})

    @property
    def recall(self) -> Recall:
        """The recall that is shown, with its trace."""
        return self._recalled("a")[0]

    @property
    def recall_b(self) -> Recall | None:
        """The other side's when two settings are compared."""
        return self._recalled("b")[0] if "b" in self._sides else None

    @property
    def selected(self) -> str | None:
        """The id of the memory that is opened; may be set."""
        return self._selected

    @selected.setter
    def selected(self, memory_id: str | None) -> None:
        if memory_id is not None and memory_id not in self.base.store:
            self.base.store.get(memory_id)  # raises UnknownMemory
        self._selected = memory_id
        self.push("state", self._state())

    @property
    def hit(self) -> Hit | None:
        """The hit that is opened; ``None`` if nothing is, or it is none of the hits."""
        return next((hit for hit in self.recall if hit.memory_id == self._selected), None)

    @property
    def retriever(self) -> HybridRetriever:
        """A retriever with the settings as they stand."""
        return self.settings.on(self.base)

    @property
    def code(self) -> str:
        """The recall as a line of Python over ``retriever``."""
        return self.settings.code(self.base, self._query)

    @property
    def moves(self) -> pd.DataFrame:
        """Where each hit of either side stands in both.

        Returns
        -------
        DataFrame
            ``memory_id, rank_a, rank_b``; a rank is missing where a side does not have the memory at all.

        Raises
        ------
        InvalidValue
            If no second side is set.
        """
        import pandas as pd

        other = self.recall_b
        if other is None:
            raise InvalidValue("moves: there is no side B; set inspector.settings_b, or press Compare")
        frame = pd.DataFrame(pictures.moves(self.recall, other), columns=["memory_id", "rank_a", "rank_b"])
        return frame.astype({"rank_a": "Int64", "rank_b": "Int64"})

    def __repr__(self) -> str:
        return pictures.text(self)

    def picture(self) -> dict[str, Any]:
        """See :class:`Widget`."""
        return {"text/plain": pictures.text(self), "text/html": pictures.picture(self)}

    # -- making recalls ----------------------------------------------------------------------------------------------

    def _recalled(self, name: str) -> tuple[Recall, float]:
        if name not in self._recalls:
            started = perf_counter()
            recall = self._bench.recall(self._query, self._sides[name])
            self._recalls[name] = recall, 1000 * (perf_counter() - started)
        return self._recalls[name]

    def _turn(self, query: str, sides: Sides, *, tell: bool = True) -> None:
        """Take over a query and settings; if their recall fails, all stays as it was."""
        before = self._query, self._sides, self._recalls
        self._query, self._sides, self._recalls = query, sides, {}
        try:
            for name in sides:
                self._recalled(name)
        except Exception:
            self._query, self._sides, self._recalls = before
            raise
        if tell:
            self.push("state", self._state())

    def _results(self) -> dict[str, Any]:
        found: dict[str, Any] = {"code": self.code, "blank": not self._query.strip()}
        for name, settings in self._sides.items():
            recall, milliseconds = self._recalled(name)
            found[name] = side(recall, milliseconds, self._bench.is_recorded(self._query, settings))
        if "b" in self._sides:
            found["moves"] = pictures.moves(self._recalled("a")[0], self._recalled("b")[0])
            found["differences"] = pictures.differences(self)
        return found

    def _state(self) -> dict[str, Any]:
        channels = self._bench.channels
        return {
            "query": self._query,
            "selected": self._selected,
            "knobs": {name: settings.knobs(channels) for name, settings in self._sides.items()},
            "results": self._results(),
        }

    # -- questions of the view ---------------------------------------------------------------------------------------

    def on_hello(self, _message: Message) -> dict[str, Any]:
        """All that a view begins with."""
        channels = self._bench.channels
        return {
            "palette": palette(channels),
            "channels": channels,
            "defaults": defaults(channels),
            "given": Settings.of(self.base, limit=self.settings.limit).knobs(channels),
            "fusion": repr(self.base.fusion),
            "facets": facets(self.base.store),
            "store": self.base.store.path.name,
            "state": self._state(),
        }

    def on_recall(self, message: Message) -> dict[str, Any]:
        """The hits for the query and the knobs as they stand in the view."""
        channels = self._bench.channels
        sides = {"a": self.settings.with_knobs(message["knobs"]["a"], channels)}
        if "b" in message["knobs"]:
            sides["b"] = self._sides.get("b", self.settings).with_knobs(message["knobs"]["b"], channels)
        self._turn(str(message["query"]), sides, tell=False)
        return self._results()

    def on_facets(self, _message: Message) -> dict[str, Any]:
        """What filters can be chosen from now; asked when the number of memories has changed."""
        return facets(self.base.store)

    def on_open(self, message: Message) -> dict[str, Any]:
        """All about one memory, which is the selected one from now on."""
        recall = self._recalled("b" if message.get("side") == "b" and "b" in self._sides else "a")[0]
        found = opened(self._bench, recall, str(message["id"]))
        self._selected = found["id"]
        return found

    def on_close(self, _message: Message) -> None:
        """Nothing is opened any more."""
        self._selected = None

    def on_why(self, message: Message) -> dict[str, Any]:
        """Why a memory is not among the hits of side A."""
        return why(self._bench, self.recall, str(message["text"]))


def _settings(value: Settings | Mapping[str, Any], old: Settings) -> Settings:
    if isinstance(value, Settings):
        return value
    if not isinstance(value, Mapping):
        raise InvalidValue(f"settings: expected Settings or {{name: value}}, found {type(value).__name__}")
    return old.replace(**value)


def inspect(
    retriever: HybridRetriever | MemoryStore | Recall,
    query: str = "",
    *,
    now: datetime | str | None = None,
    limit: int = 10,
    filters: Filters | Mapping[str, Any] | None = None,
    recency_boost: bool | None = None,
    recall: Recall | None = None,
) -> Inspector:
    """Look into a recall while its query is typed and its knobs are moved.

    Parameters
    ----------
    retriever : HybridRetriever
        Or a store, for ``HybridRetriever(store)``; or a recall, which is then taken up where it was made.
    query : str
        To begin with.
    now : datetime or str, optional
        The moment that ages are counted from, with a zone; the present by default.
    limit : int
        Hits that are shown.
    filters : Filters or mapping, optional
    recency_boost : bool, optional
        The retriever's own by default.
    recall : Recall, optional
        A recall to begin with: its query, settings and ``now``. If it still has what its channels found, that is ranked
        until the query, the filters or the depth change: as it was then, whatever has become of the store.

    Returns
    -------
    Inspector

    Raises
    ------
    InvalidValue
        If an argument is of the wrong kind.

    Examples
    --------
    >>> inspector = memlab.inspect(retriever, "how do we back off failing webhooks?")
    >>> inspector
    """
    if isinstance(retriever, Recall):
        recall = recall or retriever
        if recall._retriever is None:
            raise InvalidValue("recall: it does not say which retriever made it; give that as the first argument")
        retriever = recall._retriever
    if isinstance(retriever, MemoryStore):
        retriever = HybridRetriever(retriever)
    if not isinstance(retriever, HybridRetriever):
        raise InvalidValue(
            f"retriever: expected a memlab.HybridRetriever, found {type(retriever).__name__} {retriever!r}; "
            "what has no channels and no fusion has no knobs to turn"
        )
    if not isinstance(query, str):
        raise InvalidValue(f"query: expected text, found {type(query).__name__}")
    if recall is not None:
        return Inspector(retriever, query or recall.query, Settings.of_recall(recall), recorded=recall)
    chosen = None if filters is None else Filters.of(filters)
    settings = Settings.of(retriever, limit=limit, now=now, filters=chosen, recency_boost=recency_boost)
    return Inspector(retriever, query, settings)
