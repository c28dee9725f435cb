"""The labeller: a widget around a :class:`~memlab.evaluation.labelling.LabellingSession`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memlab.errors import InvalidValue
from memlab.evaluation.labelling import LabellingSession, Progress
from memlab.evaluation.queries import LabelledQuery
from memlab.retrieval.render import visible
from memlab.timestamps import utc_now
from memlab.widgets.base import Message, Widget
from memlab.widgets.labelling import picture

if TYPE_CHECKING:
    import os

    import pandas as pd

    from memlab.evaluation.judgments import Qrels
    from memlab.retrieval import HybridRetriever

_LONGEST = 20_000  # characters of a memory that are shown


class Labeller(Widget):
    """Queries one after the other, each with its candidates to mark; made by :func:`label`.

    Parameters
    ----------
    session : LabellingSession
        What is marked here is marked there, and the other way round.
    """

    scripts: ClassVar[tuple[str, ...]] = ("labelling/labelling.js",)
    styles: ClassVar[tuple[str, ...]] = ("labelling/labelling.css",)

    def __init__(self, session: LabellingSession) -> None:
        super().__init__()
        self.session = session
        self._current = session.first_unfinished() or session.queries[0].query_id

    # -- to read and to set ------------------------------------------------------------------------------------------

    @property
    def qrels(self) -> Qrels:
        """The judgments so far, as evaluation takes them."""
        return self.session.qrels

    @property
    def frame(self) -> pd.DataFrame:
        """One row a judgment: ``query_id, query, memory_id, relevance, grade, by, at``."""
        return self.session.frame

    @property
    def progress(self) -> Progress:
        """Queries finished and in all, memories judged and relevant."""
        return self.session.progress

    @property
    def queries(self) -> tuple[LabelledQuery, ...]:
        """All queries, with those added here: what evaluation takes beside :attr:`qrels`."""
        return self.session.queries

    @property
    def path(self) -> Path | None:
        """The file that judgments go to."""
        return self.session.path

    @property
    def current(self) -> str:
        """The id of the query that is shown; may be set."""
        return self._current

    @current.setter
    def current(self, query_id: str) -> None:
        self.session.query(query_id)
        self._current = query_id
        self._changed()

    @property
    def candidates(self) -> tuple[str, ...]:
        """Ids of the memories that are shown for the current query, in the order shown."""
        return self.session.candidates(self._current)

    def mark(self, memory_id: str, relevance: int | None = 1, query_id: str | None = None) -> None:
        """Judge a memory for the current query or another one; ``None`` takes the judgment back."""
        self.session.mark(self._current if query_id is None else query_id, memory_id, relevance)
        self._changed()

    def finish(self, query_id: str | None = None) -> None:
        """Judge what is left of a query's candidates "not relevant" and go to the next query that is not finished."""
        self._leave(self.session.finish, query_id)

    def none_relevant(self, query_id: str | None = None) -> None:
        """Judge all candidates of a query "not relevant" and go to the next query that is not finished."""
        self._leave(self.session.none_relevant, query_id)

    def add_query(self, text: str, query_id: str | None = None) -> str:
        """Add a query at the end and show it; its id."""
        self._current = self.session.add_query(text, query_id)
        self._changed()
        return self._current

    def _leave(self, act: Callable[[str], None], query_id: str | None) -> None:
        name = self._current if query_id is None else query_id
        act(name)
        self._current = self.session.after(name) or name
        self._changed()

    def _changed(self) -> None:
        """Python changed something: the view and the picture follow."""
        self.push("state", self._state())
        self.refresh_picture()

    # -- what the view asks ------------------------------------------------------------------------------------------

    def on_hello(self, message: Message) -> dict[str, Any]:
        """The grades, and the state."""
        return {"grades": list(self.session.grades), "by": self.session.by, "state": self._state()}

    def on_go(self, message: Message) -> dict[str, Any]:
        """Another query."""
        query_id = self._named(message)
        self._current = query_id
        return self._state()

    def on_mark(self, message: Message) -> dict[str, Any]:
        """A judgment, or one taken back."""
        self.session.mark(self._named(message), str(message.get("memory")), message.get("relevance"))
        return self._state()

    def on_finish(self, message: Message) -> dict[str, Any]:
        """The rest is not relevant."""
        return self._left(self.session.finish, message)

    def on_none(self, message: Message) -> dict[str, Any]:
        """Nothing is relevant."""
        return self._left(self.session.none_relevant, message)

    def on_clear(self, message: Message) -> dict[str, Any]:
        """All judgments of a query are taken back."""
        self.session.clear(self._named(message))
        return self._state()

    def on_add(self, message: Message) -> dict[str, Any]:
        """A query more."""
        self._current = self.session.add_query(str(message.get("text", "")))
        return self._state()

    def _left(self, act: Callable[[str], None], message: Message) -> dict[str, Any]:
        name = self._named(message)
        act(name)
        self._current = self.session.after(name) or name
        return self._state()

    def _named(self, message: Message) -> str:
        """The query that a message is about; a view may be slower than Python."""
        query_id = message.get("query")
        if not isinstance(query_id, str):
            raise InvalidValue(f"query: expected a query id, found {query_id!r}")
        return self.session.query(query_id).query_id

    def _state(self) -> dict[str, Any]:
        """All that is shown."""
        session, name = self.session, self._current
        ids = session.candidates(name)
        memories = {memory.memory_id: memory for memory in session.retriever.store.get_many(ids)}
        states = [session.state(query.query_id) for query in session.queries]
        query = session.query(name)
        return {
            "current": name,
            "text": visible(query.text),
            "filters": repr(query.filters).removeprefix("Filters(").removesuffix(")"),
            "finished": session.finished(name),
            "queries": [
                {
                    "id": state.query.query_id,
                    "shown_id": visible(state.query.query_id),
                    "text": visible(state.query.text),
                    "judged": state.judged,
                    "state": picture.state_words(state),
                }
                for state in states
            ],
            "candidates": [
                {
                    "id": memory_id,
                    "shown_id": visible(memory_id),
                    "text": visible(memory.content[:_LONGEST]),
                    "more": max(0, len(memory.content) - _LONGEST),
                    "facts": [visible(fact) for fact in (memory.project, memory.category) if fact]
                    + [f"{memory.created_at:%Y-%m-%d}"]
                    + [visible(f"#{tag}") for tag in memory.tags],
                    "relevance": session.grade(name, memory_id),
                }
                for memory_id in ids
                if (memory := memories.get(memory_id)) is not None
            ],
            "progress": session.progress._asdict(),
            "saved": "" if session.path is None else session.path.name,
        }

    # -- the picture -------------------------------------------------------------------------------------------------

    def picture(self) -> dict[str, Any]:
        """How far it is, query by query."""
        return {"text/plain": picture.as_text(self.session), "text/html": picture.as_html(self.session)}

    def __repr__(self) -> str:
        return f"<Labeller {picture.headline(self.session)}>"


def label(
    retriever: HybridRetriever,
    queries: Any,
    path: str | os.PathLike[str] | None = "qrels.tsv",
    *,
    grades: int | Sequence[str] = 1,
    depth: int = 10,
    seed: int = 0,
    by: str = "",
    clock: Callable[[], datetime] = utc_now,
) -> Labeller:
    """Go through queries and mark the memories that answer them.

    For each query the first ``depth`` memories of every channel are pooled and shown in an order that says nothing
    of their ranks. Every mark is written at once; called again with the same file it goes on at the first query that
    is not finished.

    Parameters
    ----------
    retriever : HybridRetriever
        Whose channels make the pools. The more different the channels, the fewer answers are never looked at.
    queries : mapping, iterable, DataFrame, str or Path
        ``{query_id: text}``, :class:`LabelledQuery` objects, a frame with ``query_id`` and ``text``, or a BEIR
        ``queries.jsonl``.
    path : str, Path or None
        Where the judgments go, and where those made before are. A ``.tsv`` becomes BEIR's form, any other name TREC's;
        both are read by :func:`memlab.evaluate`, :func:`memlab.compare` and :meth:`Qrels.of`. Queries that are added
        go to ``NAME.queries.jsonl`` beside it. ``None`` writes nothing.
    grades : int or sequence of str
        The highest grade (1 is yes or no), or a name for each grade from 0, "not relevant", up.
    depth : int
        Memories from each channel.
    seed : int
        Of the order in which they are shown.
    by : str
        Who judges; noted with each judgment in a ``.tsv``.
    clock : callable
        Gives the present as an aware datetime.

    Returns
    -------
    Labeller
        ``.qrels``, ``.progress``, ``.frame`` and ``.queries`` to read; ``.current`` to set; ``.mark()``, ``.finish()``,
        ``.none_relevant()`` and ``.add_query()`` do from Python what the buttons do.

    Raises
    ------
    InvalidValue
        If an argument is of the wrong kind, or the file has a relevance above the highest grade.
    FormatError
        If the file cannot be read.

    Examples
    --------
    >>> labeller = memlab.label(retriever, {"q1": "how do we back off failing webhooks?"}, by="Ada")
    >>> labeller
    >>> memlab.evaluate(retriever, labeller.queries, labeller.qrels)
    """
    session = LabellingSession(retriever, queries, path, grades=grades, depth=depth, seed=seed, by=by, clock=clock)
    return Labeller(session)
