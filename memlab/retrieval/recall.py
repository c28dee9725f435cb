"""The answer to a query: ranked hits, and every view of how they came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memlab.errors import UnknownMemory
from memlab.retrieval.explain import Text, WhyNot, explain, why_not
from memlab.retrieval.trace import RankedMemory, Trace
from memlab.store import Memory, MemoryStore
from memlab.timestamps import format_time

if TYPE_CHECKING:
    import pandas as pd

    from memlab.retrieval.candidates import Candidates
    from memlab.retrieval.retriever import HybridRetriever
    from memlab.retrieval.slope import Slope

_FRAME_COLUMNS = (
    "rank",
    "memory_id",
    "score",
    "content",
    "project",
    "category",
    "tags",
    "importance",
    "created_at",
    "age_days",
    "fused",
    "recency_factor",
)


@dataclass(frozen=True)
class Hit:
    """One memory in the answer.

    Attributes
    ----------
    memory : Memory
    place : RankedMemory
        Rank, score and contributions.
    passage : tuple of int or None
        Character offsets of the passage that the passage channel matched.
    """

    memory: Memory
    place: RankedMemory
    passage: tuple[int, int] | None = None

    @property
    def memory_id(self) -> str:
        """The memory's id."""
        return self.memory.memory_id

    @property
    def content(self) -> str:
        """The memory's content."""
        return self.memory.content

    @property
    def rank(self) -> int:
        """Place in the answer, from 1."""
        return self.place.rank

    @property
    def score(self) -> float:
        """The sum of the contributions times the recency factor."""
        return self.place.score

    def as_dict(self) -> dict[str, Any]:
        """The hit as plain JSON values."""
        return {
            "rank": self.rank,
            "score": self.score,
            "fused": self.place.fused,
            "recency_factor": self.place.recency_factor,
            "age_days": self.place.age_days,
            "contributions": [
                {
                    "channel": part.channel,
                    "rank": part.rank,
                    "raw_score": part.raw_score,
                    "contribution": part.contribution,
                    "formula": part.formula,
                }
                for part in self.place.contributions
            ],
            "passage": list(self.passage) if self.passage else None,
            "memory": {k: v for k, v in self.memory.as_dict().items() if k not in ("duplicate_of", "created")},
        }


class Recall:
    """The answer to one query: a sequence of :class:`Hit`.

    Attributes
    ----------
    trace : Trace
        All that the recall did.
    hits : tuple of Hit
        Best first.
    """

    def __init__(
        self,
        trace: Trace,
        hits: tuple[Hit, ...],
        store: MemoryStore | None = None,
        retriever: HybridRetriever | None = None,
        candidates: Candidates | None = None,
    ) -> None:
        self.trace = trace
        self.hits = hits
        self._store = store
        self._retriever = retriever
        self._candidates = candidates

    @classmethod
    def of(
        cls,
        trace: Trace,
        store: MemoryStore,
        retriever: HybridRetriever | None = None,
        candidates: Candidates | None = None,
    ) -> Recall:
        """Fetch the content of the first ``limit`` of the ranked memories.

        What was forgotten or purged between the search and this look takes no place: the others move up.
        """
        started = perf_counter()
        ranked = trace.ranked
        while True:
            top = ranked[: trace.limit]
            matched = {row.memory_id: part.passage if (part := row.of("passage")) else None for row in top}
            found = store.read_hits(matched)
            gone = {row.memory_id for row in top if row.memory_id not in found}
            if not gone:
                break
            left = (row for row in ranked if row.memory_id not in gone)
            ranked = tuple(replace(row, rank=rank) for rank, row in enumerate(left, 1))
        timings = {**trace.timings, "fetch": 1000 * (perf_counter() - started)}
        hits = tuple(Hit(found[row.memory_id][0], row, found[row.memory_id][1]) for row in top)
        return cls(replace(trace, ranked=ranked, timings=timings), hits, store, retriever, candidates)

    # -- a sequence of hits ----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def __bool__(self) -> bool:
        return bool(self.hits)

    @property
    def ids(self) -> tuple[str, ...]:
        """The memory ids of the hits, best first."""
        return tuple(hit.memory_id for hit in self.hits)

    @property
    def query(self) -> str:
        """The query's text."""
        return self.trace.query

    # -- frames ----------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> pd.DataFrame:
        """The hits, best first.

        Returns
        -------
        DataFrame
            ``rank, memory_id, score, content, project, category, tags, importance, created_at, age_days, fused,
            recency_factor``; ``score = fused * recency_factor``.
        """
        import pandas as pd

        rows = [
            (
                hit.rank,
                hit.memory_id,
                hit.score,
                hit.content,
                hit.memory.project,
                hit.memory.category,
                hit.memory.tags,
                hit.memory.importance,
                hit.memory.created_at,
                hit.place.age_days,
                hit.place.fused,
                hit.place.recency_factor,
            )
            for hit in self.hits
        ]
        frame = pd.DataFrame(rows, columns=list(_FRAME_COLUMNS))
        frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True)
        return frame

    @property
    def contributions(self) -> pd.DataFrame:
        """What each channel gave to each hit, tidy.

        Returns
        -------
        DataFrame
            ``memory_id, channel, rank, raw_score, contribution``: the rank is the place in the channel's own list, and
            missing where the memory lies beyond the depth. For each memory ``math.fsum`` of its contributions is its
            ``fused`` score.
        """
        import pandas as pd

        rows = [
            (hit.memory_id, part.channel, part.rank, part.raw_score, part.contribution)
            for hit in self.hits
            for part in hit.place.contributions
        ]
        frame = pd.DataFrame(rows, columns=["memory_id", "channel", "rank", "raw_score", "contribution"])
        return frame.astype({"rank": "Int64"})

    # -- words -----------------------------------------------------------------------------------------------------

    def explain(self, memory_id: str | None = None) -> Text:
        """The sum behind a hit's score, in one sentence; of all hits if no id is given.

        Raises
        ------
        UnknownMemory
            If the memory is not among the hits; :meth:`why_not` says why.
        """
        if memory_id is None:
            return Text(
                "\n".join(explain(self.trace, hit.place) for hit in self.hits) or "There are no hits to explain."
            )
        if memory_id not in self.ids:
            raise UnknownMemory(
                f"{memory_id!r} is not among the {len(self)} hits of this recall; why_not({memory_id!r}) says why"
            )
        return explain(self.trace, self.hits[self.ids.index(memory_id)].place)

    def why_not(self, memory_id: str) -> WhyNot:
        """Where a memory dropped out of this recall, and what would bring it back.

        The store is looked at as it is now; ranks beyond the depth are worked out afresh.

        Raises
        ------
        UnknownMemory
            If no memory has this id.
        """
        return why_not(self.trace, memory_id, self._store, self._retriever, self._candidates)

    def as_dict(self) -> dict[str, Any]:
        """Query, settings and hits as plain JSON values."""
        trace = self.trace
        return {
            "query": trace.query,
            "mode": trace.mode,
            "note": trace.note,
            "now": format_time(trace.now),
            "filters": {k: _plain(v) for k, v in trace.filters.given().items()},
            "fusion": trace.fusion,
            "recency": trace.recency or None,
            "encoder": trace.encoder,
            "searched": trace.searched,
            "hits": [hit.as_dict() for hit in self.hits],
        }

    # -- pictures --------------------------------------------------------------------------------------------------

    def slope(self) -> Slope:
        """The slope chart from each channel's ranks to the final ones; as text, a table of ranks."""
        from memlab.retrieval.slope import Slope

        return Slope(self)

    def __repr__(self) -> str:
        from memlab.retrieval.render import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from memlab.retrieval.render import as_html

        return as_html(self)


def _plain(value: Any) -> Any:
    from datetime import datetime

    return format_time(value) if isinstance(value, datetime) else list(value) if isinstance(value, tuple) else value
