"""The channels: each ranks the memories of a store for one query, in its own way.

A channel sees the store through a :class:`~memlab.store.reading.ReadView` and knows nothing of the other channels'
scores. Ranks start at 1; memories that tie are ordered by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from memlab import checks
from memlab.encoders.base import EncoderStamp, FloatMatrix
from memlab.errors import InvalidValue
from memlab.retrieval.terms import Terms, terms
from memlab.store.analysis import QueryTokens, query_tokens
from memlab.store.index import Block, IntArray, nearest
from memlab.store.reading import SEARCH_COLUMNS, ReadView, Scored


@dataclass(frozen=True)
class Query:
    """A query in the forms that channels need.

    Attributes
    ----------
    text : str
    vector : ndarray of float32, shape (dimension,), or None
        ``None`` when no encoder could be had.
    note : str
        Why there is no vector.
    made_by : EncoderStamp or None
        Whose vector it is, where that is known.
    """

    text: str
    vector: FloatMatrix | None = None
    note: str = ""
    made_by: EncoderStamp | None = None


@dataclass(frozen=True)
class ChannelHit:
    """One memory in a channel's list.

    Attributes
    ----------
    number : int
        The memory's number in the store.
    memory_id : str
    rank : int or None
        From 1. Ranks may have gaps: see :class:`PassageChannel`. ``None`` where the memory lies beyond the depth and
        was scored only because another channel found it.
    raw_score : float
        In the channel's own unit, larger is better: bm25 with its sign turned round, or a cosine.
    passage : int or None
        Position of the passage that gave the score.
    """

    number: int
    memory_id: str
    rank: int | None
    raw_score: float
    passage: int | None = None


@dataclass(frozen=True)
class ChannelResult:
    """What one channel found.

    Attributes
    ----------
    channel : str
    hits : tuple of ChannelHit
        By rank.
    looked_up : tuple of ChannelHit
        Memories beyond the depth that another channel found, for a fusion that weighs scores; their rank is ``None``.
    note : str
        Why it found nothing or did not run; empty otherwise.
    ran : bool
        Whether the channel could do its work.
    milliseconds : float
    terms : Terms or None
        What the keyword channel looked for.
    """

    channel: str
    hits: tuple[ChannelHit, ...] = ()
    note: str = ""
    ran: bool = True
    milliseconds: float = 0.0
    terms: Terms | None = None
    looked_up: tuple[ChannelHit, ...] = ()

    @property
    def rows(self) -> tuple[ChannelHit, ...]:
        """The hits, and after them what was looked up."""
        return self.hits + self.looked_up


Scores = dict[int, tuple[float, int | None]]
"""Memory number to raw score and position of the passage that gave it."""


class Channel(Protocol):
    """One way of ranking memories for a query."""

    @property
    def name(self) -> str:
        """What the channel is called in traces and weights."""
        ...

    @property
    def needs_vector(self) -> bool:
        """Whether the channel needs the query's vector."""
        ...

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """The best ``depth`` memories; ``found`` has the numbers that earlier channels found."""
        ...

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """Raw scores of these memories, wherever they rank; those that the channel has nothing to say of are absent."""
        ...

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """Rank and raw score of one memory however deep it lies, or in words why it has none."""
        ...


@dataclass(frozen=True)
class KeywordChannel:
    """FTS5 with bm25 (Robertson et al., 1994; k1 = 1.2, b = 0.75 in SQLite).

    Parameters
    ----------
    weights : mapping of str to float, optional
        bm25 weights of the columns content, category, project, tags and files; 1 by default.
    max_terms : int
        Most terms of a query that are looked for, 1 to 200.

    Raises
    ------
    InvalidValue
        If a column is unknown, or a number outside its bounds.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    max_terms: int = 32
    name: ClassVar[str] = "keyword"
    needs_vector: ClassVar[bool] = False
    looks_at_found: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for column in self.weights:
            if column not in SEARCH_COLUMNS:
                raise InvalidValue(f"weights: {column!r} is no searched column; these are {', '.join(SEARCH_COLUMNS)}")
        weights = {column: checks.number(weight, f"weights: {column}") for column, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "max_terms", checks.whole(self.max_terms, "max_terms", least=1, most=200))

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        wanted = terms(query.text, limit=self.max_terms)
        if not wanted.used:
            return ChannelResult(self.name, note="the query has no letters or digits to look for", terms=wanted)
        rows = view.keyword(wanted.match, depth, self.weights)
        hits = tuple(ChannelHit(row.number, row.memory_id, rank, row.score) for rank, row in enumerate(rows, 1))
        return ChannelResult(self.name, hits, "" if hits else _nothing(view, "has any of the terms"), terms=wanted)

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        wanted = terms(query.text, limit=self.max_terms)
        if not wanted.used or not numbers:
            return {}
        rows = view.keyword(wanted.match, len(numbers), self.weights, among=numbers)
        return {row.number: (row.score, None) for row in rows}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        wanted = terms(query.text, limit=self.max_terms)
        if not wanted.used:
            return "the query has no letters or digits to look for"
        own = view.keyword(wanted.match, 1, self.weights, only=number)
        if not own:
            return "it has none of the terms " + ", ".join(wanted.used)
        # Everything at or above its score, in the same order as the search.
        depth = 64
        while True:
            rows = view.keyword(wanted.match, depth, self.weights)
            for rank, row in enumerate(rows, 1):
                if row.number == number:
                    return rank, row.score
            if len(rows) < depth:
                return "it is not among the memories that match"  # pragma: no cover - `own` says it is
            depth *= 4


@dataclass(frozen=True)
class StemChannel:
    """The keyword channel over stems, parts of identifiers and character bigrams, with a bonus for neighbours.

    Texts and queries are cut into tokens as :func:`memlab.store.analysis.analyse` tells. The raw score is bm25 over the
    tokens, plus ``words`` times bm25 over the words as they stand (the score of :class:`KeywordChannel`), plus
    ``pairs`` times bm25 over pairs of neighbouring tokens of the query that are neighbours in the memory too (a
    sequential dependence as in Metzler and Croft, "A Markov Random Field Model for Term Dependencies", SIGIR 2005).

    Memories without any of the tokens take no part, whatever else they have.

    A query of stop words alone is looked for word by word, as :class:`KeywordChannel` does; so is every query in a
    store whose index of stems is out of date and cannot be written.

    Parameters
    ----------
    pairs : float
        Weight of the neighbours; 0 leaves them out.
    words : float
        Weight of the words as they stand; 0 leaves them out.
    max_terms : int
        Most tokens of a query that are looked for, 1 to 200.

    Raises
    ------
    InvalidValue
        If a number is outside its bounds.
    """

    pairs: float = 0.5
    words: float = 0.2
    max_terms: int = 32
    name: ClassVar[str] = "keyword"
    needs_vector: ClassVar[bool] = False
    looks_at_found: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", checks.number(self.pairs, "pairs"))
        object.__setattr__(self, "words", checks.number(self.words, "words"))
        object.__setattr__(self, "max_terms", checks.whole(self.max_terms, "max_terms", least=1, most=200))

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        wanted, note = self._wanted(query, view)
        if wanted is None:
            plain = self._plain.search(query, view, depth, found)
            return replace(plain, note="; ".join(filter(None, (note, plain.note))))
        shown = Terms(wanted.used, terms(query.text).stop_words, stemmed=True)
        hits = tuple(
            ChannelHit(row.number, row.memory_id, rank, row.score)
            for rank, row in enumerate(view.best(self._all(query.text, wanted, view), depth), 1)
        )
        return ChannelResult(self.name, hits, "" if hits else _nothing(view, "has any of the terms"), terms=shown)

    @property
    def _plain(self) -> KeywordChannel:
        return KeywordChannel(max_terms=self.max_terms)

    def _wanted(self, query: Query, view: ReadView) -> tuple[QueryTokens | None, str]:
        """The query's tokens, or ``None`` and why words are looked for instead."""
        if not view.terms_ready:
            return None, "words were looked for as they are: the index of stems is out of date and cannot be written"
        wanted = query_tokens(query.text, limit=self.max_terms)
        return (wanted, "") if wanted.used else (None, "")

    def _all(self, text: str, wanted: QueryTokens, view: ReadView) -> Scored:
        """The raw score of every memory that has a token."""
        scored = view.all_terms(wanted.used)
        if self.words and (plain := terms(text, limit=self.max_terms)).used:
            scored = scored.plus(view.all_words(plain.match), self.words)
        return scored.plus(view.all_pairs(wanted.pairs), self.pairs) if self.pairs else scored

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.score(query, view, numbers)
        found = self._all(query.text, wanted, view).of(numbers)
        return {n: (score, None) for n, score in zip(found.numbers.tolist(), found.scores.tolist(), strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.locate(query, view, number, found)
        scored = self._all(query.text, wanted, view)
        own = scored.of([number])
        if not len(own.numbers):
            return "it has none of the terms " + ", ".join(wanted.used)
        before = view.best(scored, int(np.count_nonzero(scored.scores >= own.scores[0])))
        rank = next(rank for rank, row in enumerate(before, 1) if row.number == number)
        return rank, float(own.scores[0])


@dataclass(frozen=True)
class VectorChannel:
    """Exact cosine between the query's vector and every document vector."""

    name: ClassVar[str] = "vector"
    needs_vector: ClassVar[bool] = True
    looks_at_found: ClassVar[bool] = False

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        if query.vector is None:
            return ChannelResult(self.name, note=query.note, ran=False)
        documents = view.snapshot.documents
        rows = documents.rows(view.allowed())
        numbers, _, cosines = nearest(documents, query.vector, depth, rows, view.document_scores(query.vector, rows))
        hits = _ranked(view, numbers, cosines, [None] * len(numbers), depth)
        return ChannelResult(self.name, hits, "" if hits else _nothing(view, "has a vector to compare"))

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        if query.vector is None:
            return {}
        documents = view.snapshot.documents
        rows = _rows_of(documents, numbers)
        cosines = documents.exact(query.vector, rows).tolist()
        return {number: (cosine, None) for number, cosine in zip(documents.owners[rows].tolist(), cosines, strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        if query.vector is None:
            return query.note
        documents = view.snapshot.documents
        return _place(view, query.vector, number, documents.rows(view.allowed()))


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
        order = self._order(query.vector, view, depth, found)
        hits = tuple(hit for hit in order if self.single_passages or hit.passage is not None)
        note = ""
        if not hits:
            several = len(view.snapshot.several_passages)
            note = "no memory of several passages is near enough" if several else _nothing(view, "has several passages")
        return ChannelResult(self.name, hits, note)

    def _order(self, vector: FloatMatrix, view: ReadView, depth: int, found: frozenset[int]) -> tuple[ChannelHit, ...]:
        """The best ``depth`` memories by best passage; ``passage`` is None for those of one passage."""
        snapshot = view.snapshot
        several = snapshot.several_passages
        if not len(several) and not self.single_passages:
            return ()
        allowed = self._allowed(view, found)
        # No more than `depth` memories of either kind can be among the best `depth` of both.
        single_rows = snapshot.documents.rows(allowed, without=several)
        coarse = view.document_scores(vector, single_rows)
        numbers, _, cosines = nearest(snapshot.documents, vector, depth, single_rows, coarse)
        best: dict[int, tuple[float, int | None]] = {
            number: (cosine, None) for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        }
        rows = snapshot.passages.rows(allowed)
        available = len(snapshot.passages.owners) if rows is None else len(rows)
        take = 4 * depth
        while True:
            owners, labels, cosines = nearest(snapshot.passages, vector, take, rows)
            if take >= available or len(np.unique(owners)) > depth:
                break
            take *= 4
        for number, label, cosine in zip(owners.tolist(), labels.tolist(), cosines.tolist(), strict=True):
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
        passages = view.snapshot.passages
        rows = _rows_of(passages, numbers)
        best: Scores = {}
        owners, labels = passages.owners[rows].tolist(), passages.labels[rows].tolist()
        for number, label, cosine in zip(owners, labels, passages.exact(query.vector, rows).tolist(), strict=True):
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
        for hit in self._order(query.vector, view, len(view.snapshot.documents.owners), found):
            if hit.number == number and hit.rank is not None:
                return hit.rank, hit.raw_score
        return "it is not among the memories that may take part"


def _rows_of(block: Block, numbers: Sequence[int]) -> IntArray:
    rows = block.rows(np.array(sorted(numbers), np.int64))
    return np.arange(len(block.owners)) if rows is None else rows


def _nothing(view: ReadView, what: str) -> str:
    return f"no memory {'that passes the filters ' if view.filters else ''}{what}"


def _ranked(
    view: ReadView, numbers: IntArray, scores: npt.NDArray[np.float64], passages: list[int | None], depth: int
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


def _place(view: ReadView, vector: FloatMatrix, number: int, rows: IntArray | None) -> tuple[int, float] | str:
    """Rank and cosine of one memory among the document vectors of ``rows``."""
    documents = view.snapshot.documents
    every = np.arange(len(documents.owners)) if rows is None else rows
    at = np.flatnonzero(documents.owners[every] == number)
    if not len(at):
        return "it has no vector yet"
    cosines = documents.exact(vector, every)
    own = cosines[at[0]]
    ties = documents.owners[every[cosines == own]].tolist()
    ids = view.ids(ties)
    before = sum(1 for tie in ties if (ids[tie], tie) < (ids[number], number))
    return int(np.count_nonzero(cosines > own)) + before + 1, float(own)


def timed(channel: Channel, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
    """Run a channel and note how long it took."""
    started = perf_counter()
    result = channel.search(query, view, depth, found)
    return replace(result, milliseconds=1000 * (perf_counter() - started))
