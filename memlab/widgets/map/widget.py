"""The map as an object: what it shows can be read from it and set on it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.errors import InvalidValue
from memlab.progress import Show
from memlab.projection import Faithfulness, Landing, Projection, VectorSpace, clusters, land, project
from memlab.projection import duplicates as find_duplicates
from memlab.projection import outliers as find_outliers
from memlab.projection.columns import COLUMNS, Column, check_column, cluster_column, columns
from memlab.projection.landing import passages
from memlab.retrieval import HybridRetriever, OlderRetriever, Recall
from memlab.retrieval.render import look, visible
from memlab.store import Memory, MemoryStore
from memlab.store.records import shorten
from memlab.widgets.base import Answer, Message, Widget
from memlab.widgets.map.picture import draw

if TYPE_CHECKING:
    import pandas as pd

_LISTED = 200  # rows of a list beside the map
_SHOWN_TEXT = 700  # characters of a memory under the pointer
_LARGEST_PICTURE = 8 << 20
_PNG = b"\x89PNG\r\n\x1a\n"


class MemoryMap(Widget):
    """All memories of a store as points; made by :func:`map`.

    It shows the memories that were there when it was made; for those that came since, make another one.

    Attributes
    ----------
    projection : Projection
        Where they lie.
    """

    scripts = tuple(f"map/{name}.js" for name in ("grid", "points", "overlay", "side", "main"))
    styles = ("map/map.css",)

    def __init__(
        self,
        projection: Projection,
        recall: Recall | None,
        retriever: HybridRetriever | OlderRetriever | None,
        colour: str,
    ) -> None:
        super().__init__()
        self.projection = projection
        self._retriever = retriever
        self._rows = {memory_id: at for at, memory_id in enumerate(projection.ids)}
        self._columns = columns(projection.store, projection.ids)
        self._space: VectorSpace | None = None
        self._faithfulness: Faithfulness | None = None
        self._lists: dict[str, pd.DataFrame] = {}
        self._selected = np.zeros(len(projection), dtype=bool)
        self._drawn: bytes | None = None
        self._recall: Recall | None = None
        self._landing: Landing | None = None
        self._colour = colour
        self._need_column(colour)
        if recall is not None:
            self._land(recall)

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def store(self) -> MemoryStore:
        """The store whose map it is."""
        return self.projection.store

    @property
    def selected(self) -> pd.DataFrame:
        """The memories that were clicked or encircled, as :meth:`MemoryStore.memories` has them, with ``x`` and ``y``.

        May be set: to ids, to a frame with a column ``memory_id``, or to ``None``.
        """
        import pandas as pd

        ids = [self.projection.ids[row] for row in np.flatnonzero(self._selected).tolist()]
        found = [memory for memory in self.store.get_many(ids) if memory.trashed_at is None]
        fields = ("memory_id", "content", "project", "category", "tags", "importance", "created_at", "source")
        frame = pd.DataFrame([[getattr(m, name) for name in fields] for m in found], columns=list(fields))
        frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True)
        frame[["x", "y"]] = self.projection.of(frame["memory_id"].tolist())
        return frame

    @selected.setter
    def selected(self, wanted: pd.DataFrame | Iterable[str] | str | None) -> None:
        ids = self._ids_of(wanted)
        missing = [memory_id for memory_id in ids if memory_id not in self._rows]
        if missing:
            raise InvalidValue(f"selected: {missing[0]!r} is not on the map; it has the memories that have a vector")
        self._selected = np.zeros(len(self.projection), dtype=bool)
        self._selected[[self._rows[memory_id] for memory_id in ids]] = True
        self.push("selected", self._selection(), [np.packbits(self._selected).tobytes()])
        self._stale()

    @staticmethod
    def _ids_of(wanted: Any) -> list[str]:
        if wanted is None:
            return []
        if isinstance(wanted, str):
            return [wanted]
        if hasattr(wanted, "columns"):
            if "memory_id" not in wanted.columns:
                raise InvalidValue("selected: expected a frame with a column memory_id")
            wanted = wanted["memory_id"]
        ids = list(wanted) if isinstance(wanted, Iterable) else [wanted]
        if not all(isinstance(memory_id, str) for memory_id in ids):
            raise InvalidValue("selected: expected ids of memories, a frame with a column memory_id, or None")
        return ids

    @property
    def colour(self) -> str:
        """What colours and shapes tell: project, category, age, importance, source or cluster; may be set."""
        return self._colour

    @colour.setter
    def colour(self, name: str) -> None:
        self._need_column(check_column(name))
        self._colour = name
        column = self._columns[name]
        self.push("column", {**_told(column), "chosen": True}, [column.codes.tobytes()])
        self._stale()

    @property
    def recall(self) -> Recall | None:
        """The recall whose query and hits are shown; may be set."""
        return self._recall

    @recall.setter
    def recall(self, recall: Recall | None) -> None:
        if recall is None:
            self._recall = self._landing = None
        else:
            self._land(_checked(recall))
        self.push("landing", self._landed())
        self._stale()

    @property
    def faithfulness(self) -> Faithfulness:
        """How far the picture can be believed."""
        if self._faithfulness is None:
            self._faithfulness = self.projection.faithfulness(space=self._vectors())
        return self._faithfulness

    @property
    def duplicates(self) -> pd.DataFrame:
        """Pairs that say nearly the same, see :func:`memlab.projection.duplicates`."""
        if "duplicates" not in self._lists:
            self._lists["duplicates"] = find_duplicates(self.store, space=self._vectors())
        return self._lists["duplicates"]

    @property
    def outliers(self) -> pd.DataFrame:
        """The memories least like any other, see :func:`memlab.projection.outliers`."""
        if "outliers" not in self._lists:
            self._lists["outliers"] = find_outliers(self.store, space=self._vectors())
        return self._lists["outliers"]

    def __repr__(self) -> str:
        return f"<MemoryMap of {self.projection!r}>"

    # -- the picture -------------------------------------------------------------------------------------------------

    def picture(self) -> dict[str, Any]:
        """The last view as a PNG, or before there was one the whole map; and what it shows in words."""
        image = self._drawn
        if image is None:
            landing, column = self._landing, self._columns[self._colour]
            hits = None
            if landing is not None:
                frame = landing.frame
                hits = frame.loc[frame["list"] == "hits", ["x", "y"]].to_numpy(float)
            image = draw(
                self.projection.coordinates,
                column.codes,
                ordered=column.ordered,
                query=None if landing is None else landing.place,
                hits=hits,
            )
        return {"text/plain": self._words(), "image/png": image}

    def _words(self) -> str:
        how = {"umap": "UMAP", "pca": "PCA"}[self.projection.method]
        column = self._columns[self._colour]
        parts = [f"{value} {count:,}" for value, count in zip(column.values, column.counts, strict=True)]
        if not len(self.projection):
            return "Map of a memory: no memory has a vector yet."
        count = len(self.projection)
        what = f"{count:,} {'memory' if count == 1 else 'memories'}"
        text = f"Map of {what} by {how}, coloured by {column.name}: {', '.join(parts)}."
        if self._landing is not None:
            first = [row.memory_id for row in _tuples(self._landing.frame) if row.list == "hits"]
            text += f" The query {shorten(self._landing.query, 120)!r} with its hits {', '.join(first) or '(none)'}."
        return visible(text)

    def _stale(self) -> None:
        """What is shown was changed from Python: the picture of the last view is no longer right."""
        self._drawn = None
        if not self.shown:
            self.refresh_picture()

    # -- answers to the view -----------------------------------------------------------------------------------------

    def on_hello(self, message: Message) -> Answer:
        """Where all points lie and what their codes mean."""
        names = list(self._columns)
        body = {
            "count": len(self.projection),
            "method": self.projection.method,
            "note": visible(self.projection.note),
            "placed": int(self.projection.placed.sum()),
            "colour": self._colour,
            "colours": list(COLUMNS),
            "columns": [_told(self._columns[name]) for name in names],
            "asks": self._retriever is not None,
            "landing": self._landed(),
            "selection": self._selection(),
            "looks": {name: look(name).colour for name in ("keyword", "vector", "passage")},
        }
        # float32 is more than a screen can show, and half of what is sent.
        points = np.ascontiguousarray(self.projection.coordinates, "<f4").tobytes()
        codes = b"".join(self._columns[name].codes.tobytes() for name in names)
        return Answer(body, [points, codes, np.packbits(self._selected).tobytes()])

    def on_text(self, message: Message) -> dict[str, Any] | None:
        """What one memory says."""
        return self._row(self._at(message))

    def on_faith(self, message: Message) -> dict[str, Any]:
        """How far the picture can be believed."""
        found = self.faithfulness
        return {
            "sentence": str(found),
            "trust": found.trustworthiness,
            "continuity": found.continuity,
            "kept": found.kept,
            "k": found.k,
            "sampled": found.sampled if found.sampled < found.memories else 0,
        }

    def on_find(self, message: Message) -> Answer:
        """Which memories have a text in them."""
        text = str(message.get("text", "")).strip()
        mask = np.zeros(len(self.projection), dtype=bool)
        if text:
            with self.store.view() as view:
                found = view.containing(text)
            mask[[self._rows[memory_id] for memory_id in found if memory_id in self._rows]] = True
        return Answer({"text": text, "count": int(mask.sum())}, [np.packbits(mask).tobytes()])

    def on_select(self, message: Message) -> dict[str, Any]:
        """Take over what was clicked or encircled."""
        try:
            packed = np.frombuffer(base64.b64decode(str(message.get("mask", "")), validate=True), np.uint8)
        except (binascii.Error, ValueError) as error:
            raise InvalidValue(f"select: expected bits in base 64, found {error}") from error
        count = len(self.projection)
        if len(packed) != (count + 7) // 8:
            raise InvalidValue(f"select: expected {count} bits, found {8 * len(packed)}")
        self._selected = np.unpackbits(packed, count=count).astype(bool)
        return self._selection()

    def on_query(self, message: Message) -> dict[str, Any] | None:
        """Recall, and say where it lands."""
        text = str(message.get("text", "")).strip()
        if self._retriever is None:
            raise InvalidValue("query: this map was made without a retriever; use memlab.map(retriever)")
        if not text:
            self._recall = self._landing = None
        else:
            self._land(self._retriever.recall(text))
        return self._landed()

    def on_column(self, message: Message) -> Answer:
        """One column's codes; groups are made when they are first asked for."""
        name = check_column(message.get("name"))
        self._need_column(name)
        self._colour = name
        column = self._columns[name]
        return Answer(_told(column), [column.codes.tobytes()])

    def on_duplicates(self, message: Message) -> dict[str, Any]:
        """Pairs beside the map."""
        frame = self.duplicates
        rows = [
            {
                "rows": [self._rows.get(row.memory_id), self._rows.get(row.other_id)],
                "ids": [visible(row.memory_id), visible(row.other_id)],
                "texts": [_line(row.content), _line(row.other_content)],
                "cosine": None if row.cosine != row.cosine else row.cosine,
                "same": bool(row.same_text),
            }
            for row in _tuples(frame.head(_LISTED))
        ]
        return {"rows": rows, "found": frame.attrs.get("found", len(frame))}

    def on_outliers(self, message: Message) -> dict[str, Any]:
        """The loneliest memories beside the map."""
        rows = [
            {
                "row": self._rows.get(row.memory_id),
                "id": visible(row.memory_id),
                "text": _line(row.content),
                "mean": row.mean_cosine,
                "nearest": visible(row.nearest_id),
            }
            for row in _tuples(self.outliers)
        ]
        return {"rows": rows}

    def on_passages(self, message: Message) -> dict[str, Any]:
        """The passages of one memory and where they lie."""
        at = self._at(message)
        if at is None:
            return {"passages": []}
        found, places = passages(self.projection, self.projection.ids[at], space=self._vectors())
        told = [
            {"x": float(x), "y": float(y), "text": _line(passage.text), "position": passage.position}
            for passage, (x, y) in zip(found, places.tolist(), strict=True)
        ]
        return {"row": at, "passages": told}

    def on_drawn(self, message: Message) -> None:
        """Keep the view as it is drawn now."""
        data = str(message.get("png", ""))
        if len(data) > _LARGEST_PICTURE:
            return
        try:
            image = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return
        if image.startswith(_PNG):
            self._drawn = image
            self.refresh_picture()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _vectors(self) -> VectorSpace:
        if self._space is None:
            self._space = self.projection.space()
        return self._space

    def _need_column(self, name: str) -> None:
        if name not in self._columns:
            found = clusters(self.store, space=self._vectors())
            self._columns[name] = cluster_column(found, self.projection.ids)

    def _land(self, recall: Recall) -> None:
        landing = land(self.projection, recall, space=self._vectors())
        self._recall, self._landing = recall, landing

    def _landed(self) -> dict[str, Any] | None:
        landing = self._landing
        if landing is None:
            return None
        lists: dict[str, list[dict[str, Any]]] = {}
        texts = {hit.memory_id: hit.content for hit in self._recall or ()}
        others = [row.memory_id for row in _tuples(landing.frame) if row.memory_id not in texts]
        texts.update({memory.memory_id: memory.content for memory in self.store.get_many(others)})
        for row in _tuples(landing.frame):
            lists.setdefault(row.list, []).append(
                {
                    "row": self._rows[row.memory_id],
                    "rank": int(row.rank),
                    "id": visible(row.memory_id),
                    "text": _line(texts.get(row.memory_id, "")),
                }
            )
        return {"query": visible(landing.query), "place": landing.place, "note": visible(landing.note), "lists": lists}

    def _selection(self) -> dict[str, Any]:
        chosen = np.flatnonzero(self._selected)
        rows = [row for at in chosen[:_LISTED].tolist() if (row := self._row(at)) is not None]
        return {"count": len(chosen), "rows": rows}

    def _row(self, at: int | None) -> dict[str, Any] | None:
        if at is None:
            return None
        found = self.store.get_many([self.projection.ids[at]])
        if not found or found[0].trashed_at is not None:
            return {"row": at, "id": visible(self.projection.ids[at]), "text": "(forgotten since)", "facts": ""}
        memory = found[0]
        text = visible(memory.content)
        return {
            "row": at,
            "id": visible(memory.memory_id),
            "text": text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…",
            "facts": visible(" · ".join(_facts(memory))),
        }

    def _at(self, message: Message) -> int | None:
        at = message.get("row")
        return at if type(at) is int and 0 <= at < len(self.projection) else None


def _tuples(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame, whose columns have the types that their makers say."""
    return iter(frame.itertuples())


def _told(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "ordered": column.ordered,
        "values": [visible(shorten(value, 60)) for value in column.values],
        "counts": list(column.counts),
    }


def _facts(memory: Memory) -> list[str]:
    known = [memory.project, memory.category, f"{memory.created_at:%Y-%m-%d}", f"importance {memory.importance}"]
    return [*(item for item in known if item), " ".join(f"#{tag}" for tag in memory.tags)][: 5 if memory.tags else 4]


def _line(text: str) -> str:
    return visible(shorten(text, 160))


def _checked(recall: object) -> Recall:
    if not isinstance(recall, Recall):
        raise InvalidValue(f"recall: expected a memlab.Recall, found {type(recall).__name__}")
    return recall


def map(
    store: MemoryStore | HybridRetriever | OlderRetriever | Recall,
    recall: Recall | str | None = None,
    *,
    method: str = "auto",
    colour: str = "project",
    projection: Projection | None = None,
    progress: Show = None,
    **options: Any,
) -> MemoryMap:
    """A map of all memories: near means related, far means little.

    As the last line of a cell it is live. Drag to move, wheel to zoom, hold Shift and drag to encircle; what is
    encircled or clicked is a frame in ``selected``. The keyboard does all of it too.

    Parameters
    ----------
    store : MemoryStore, or a retriever
        With a retriever queries can be asked on the map.
    recall : Recall or str, optional
        Its query and hits are marked, and what each channel found; text is recalled first.
    method : {"auto", "umap", "pca"}
        See :func:`memlab.project`, which also has the further ``options``.
    colour : {"project", "category", "age", "importance", "source", "cluster"}
        What colours and shapes tell.
    projection : Projection, optional
        One that is at hand.
    progress : bool or callable, optional

    Returns
    -------
    MemoryMap

    Raises
    ------
    InvalidValue
        If an argument is of the wrong kind.

    Examples
    --------
    >>> recall = retriever.recall("how do we back off failing webhooks?")
    >>> view = memlab.map(store, recall)
    >>> view
    >>> view.selected
    """
    if isinstance(store, Recall):
        recall = recall if recall is not None else store
        if store._store is None:
            raise InvalidValue("recall: it does not say which store it is of; use memlab.map(store, recall)")
        store = store._retriever or store._store
    retriever = None if isinstance(store, MemoryStore) else store
    if retriever is not None and not isinstance(retriever, HybridRetriever | OlderRetriever):
        raise InvalidValue(f"store: expected a memlab.MemoryStore or a retriever, found {type(store).__name__}")
    where = store if isinstance(store, MemoryStore) else store.store
    check_column(colour)
    if isinstance(recall, str):
        recall = (retriever or HybridRetriever(where)).recall(recall)
    elif recall is not None:
        recall = _checked(recall)
        retriever = retriever or recall._retriever
    # A plain store can be asked as well, by the retriever that anybody would make of it.
    retriever = retriever or (HybridRetriever(where) if where.wants_encoder else None)
    if projection is None:
        projection = project(where, method, progress=progress, **options)
    return MemoryMap(projection, recall, retriever, colour)


__all__ = ["MemoryMap", "map"]
