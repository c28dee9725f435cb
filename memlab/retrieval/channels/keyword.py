"""The keyword channels: bm25 over words as they stand, and over stems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from memlab import checks
from memlab.errors import InvalidValue
from memlab.retrieval.channels.base import ChannelHit, ChannelResult, Query, Scores, nothing
from memlab.retrieval.terms import Terms, terms
from memlab.store.analysis import QueryTokens, query_tokens
from memlab.store.reading import SEARCH_COLUMNS, ReadView, Scored


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
        return ChannelResult(self.name, hits, "" if hits else nothing(view, "has any of the terms"), terms=wanted)

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
        return ChannelResult(self.name, hits, "" if hits else nothing(view, "has any of the terms"), terms=shown)

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
