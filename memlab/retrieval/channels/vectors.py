"""The channels that compare vectors: whole memories, and their passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix
from memlab.errors import InvalidValue
from memlab.retrieval.channels.base import ChannelHit, ChannelResult, Query, Scores, nothing
from memlab.store.blocks import IntArray
from memlab.store.reading import ReadView


@dataclass(frozen=True)
class VectorChannel:
    """Cosine between the query's vector and every document vector.

    Scores are exact. A search of a large store goes over codes first (:mod:`memlab.store.nearest`) and may miss a
    memory, seldom one of the first; :meth:`locate` compares every vector.
    """

    name: ClassVar[str] = "vector"
    needs_vector: ClassVar[bool] = True
    looks_at_found: ClassVar[bool] = False

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        if query.vector is None:
            return ChannelResult(self.name, note=query.note, ran=False)
        documents = view.documents
        numbers, _, cosines = documents.nearest(query.vector, depth, documents.part(view.allowed()))
        hits = _ranked(view, numbers, cosines, [None] * len(numbers), depth)
        return ChannelResult(self.name, hits, "" if hits else nothing(view, "has a vector to compare"))

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        if query.vector is None:
            return {}
        owners, _, cosines = view.documents.of(query.vector, np.array(sorted(numbers), np.int64))
        return {number: (cosine, None) for number, cosine in zip(owners.tolist(), cosines.tolist(), strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        if query.vector is None:
            return query.note
        return _place(view, query.vector, number)


@dataclass(frozen=True)
class PassageChannel:
    """The cosine of a memory's best passage, for memories of two passages or more.

    Ranks count memories, not passages, and all of them: a memory that is its own passage takes part with its document
    vector and holds its place in the order, but casts no vote here, because that same vector votes in the vector
    channel. The ranks of the hits have gaps where such memories stand.

    Parameters
    ----------
    scope : {"all", "candidates"}
        Compare every memory, or as the studied system does only those that earlier channels found.
    single_passages : bool
        Let memories of one passage vote here too, as the studied system does: one vector then has two votes, unless
        the fusion counts only the better of them.

    Raises
    ------
    InvalidValue
        If the scope is another word.
    """

    scope: Literal["all", "candidates"] = "all"
    single_passages: bool = False
    name: ClassVar[str] = "passage"
    needs_vector: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scope not in ("all", "candidates"):
            raise InvalidValue(f"scope: expected 'all' or 'candidates', found {self.scope!r}")

    @property
    def looks_at_found(self) -> bool:
        """Whether the answer depends on what earlier channels found."""
        return self.scope == "candidates"

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        if query.vector is None:
            return ChannelResult(self.name, note=query.note, ran=False)
        order = self._order(query.vector, view, depth, found) if self._any(view) else ()
        hits = tuple(hit for hit in order if self.single_passages or hit.passage is not None)
        note = ""
        if not hits:
            several = len(view.snapshot.several_passages)
            note = "no memory of several passages is near enough" if several else nothing(view, "has several passages")
        return ChannelResult(self.name, hits, note)

    def _any(self, view: ReadView) -> bool:
        return self.single_passages or len(view.passages) > 0

    def _order(
        self, vector: FloatMatrix, view: ReadView, depth: int | None, found: frozenset[int]
    ) -> tuple[ChannelHit, ...]:
        """The best ``depth`` memories (all for ``None``) by best passage; ``passage`` is None for those of one."""
        documents, passages, allowed = view.documents, view.passages, self._allowed(view, found)
        singles, part = documents.part(allowed, without=view.snapshot.several_passages), passages.part(allowed)
        if depth is None:
            numbers, _, cosines = documents.all(vector, singles)
            owners, labels, of_passages = passages.all(vector, part)
            order = np.argsort(-of_passages, kind="stable")
            owners, labels, of_passages = owners[order], labels[order], of_passages[order]
        else:
            # No more than `depth` memories of either kind can be among the best `depth` of both.
            numbers, _, cosines = documents.nearest(vector, depth, singles)
            take = 4 * depth
            while True:
                owners, labels, of_passages = passages.nearest(vector, take, part)
                if len(owners) < take or len(np.unique(owners)) > depth:
                    break
                take *= 4
        best: dict[int, tuple[float, int | None]] = {
            number: (cosine, None) for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        }
        for number, label, cosine in zip(owners.tolist(), labels.tolist(), of_passages.tolist(), strict=True):
            # Descending, so the first passage of a memory is its best; of equal ones the earlier wins.
            known = best.get(number)
            if known is None or (known[0] == cosine and label < (known[1] or 0)):
                best[number] = (cosine, label)
        return _ranked(
            view,
            np.fromiter(best, np.int64, len(best)),
            np.array([cosine for cosine, _ in best.values()]),
            [label for _, label in best.values()],
            depth,
        )

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        if query.vector is None:
            return {}
        best: Scores = {}
        rows = view.passages.of(query.vector, np.array(sorted(numbers), np.int64))
        for number, label, cosine in zip(*(part.tolist() for part in rows), strict=True):
            known = best.get(number)
            if known is None or (-cosine, label) < (-known[0], known[1] or 0):
                best[number] = (cosine, label)
        if self.single_passages:
            documents = VectorChannel().score(query, view, [number for number in numbers if number not in best])
            best.update(documents)
        return best

    def _allowed(self, view: ReadView, found: frozenset[int]) -> IntArray | None:
        allowed = view.allowed()
        if self.scope == "all":
            return allowed
        candidates = np.array(sorted(found), np.int64)
        return candidates if allowed is None else np.intersect1d(candidates, allowed)

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        if query.vector is None:
            return query.note
        if not self.single_passages and number not in view.snapshot.several_passages:
            return "it is a single passage, whose vector votes in the vector channel"
        if self.scope == "candidates" and number not in found:
            return "no other channel found it, and this one looks only at what they found (scope='candidates')"
        for hit in self._order(query.vector, view, None, found):
            if hit.number == number and hit.rank is not None:
                return hit.rank, hit.raw_score
        return "it is not among the memories that may take part"


def _ranked(
    view: ReadView, numbers: IntArray, scores: npt.NDArray[np.float64], passages: list[int | None], depth: int | None
) -> tuple[ChannelHit, ...]:
    """Order by score and then id, cut at ``depth`` and number from 1."""
    ids = view.ids(numbers.tolist())
    rows = [
        (-score, ids[number], number, passage)
        for number, score, passage in zip(numbers.tolist(), scores.tolist(), passages, strict=True)
        if number in ids
    ]
    rows.sort(key=lambda row: row[:2])
    return tuple(
        ChannelHit(number, memory_id, rank, -negative, passage)
        for rank, (negative, memory_id, number, passage) in enumerate(rows[:depth], 1)
    )


def _place(view: ReadView, vector: FloatMatrix, number: int) -> tuple[int, float] | str:
    """Rank and cosine of one memory among the document vectors that take part."""
    numbers, _, cosines = view.documents.all(vector, view.documents.part(view.allowed()))
    at = np.flatnonzero(numbers == number)
    if not len(at):
        return "it has no vector yet"
    own = cosines[at[0]]
    ties = numbers[cosines == own].tolist()
    ids = view.ids(ties)
    before = sum(1 for tie in ties if (ids[tie], tie) < (ids[number], number))
    return int(np.count_nonzero(cosines > own)) + before + 1, float(own)
