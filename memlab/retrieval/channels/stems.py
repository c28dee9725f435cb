"""The keyword channel over stems: what the index proposes cheaply is scored from the tokens that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np

from memlab import checks
from memlab.retrieval.channels.base import ChannelHit, ChannelResult, Query, Scores, nothing
from memlab.retrieval.channels.keyword import KeywordChannel
from memlab.retrieval.channels.matches import Matches, Settings
from memlab.retrieval.terms import Terms, terms
from memlab.store.analysis import QueryTokens, query_tokens
from memlab.store.blocks import member
from memlab.store.reading import ReadView


@dataclass(frozen=True)
class StemChannel:
    """The keyword channel over stems, parts of identifiers and character bigrams; words and neighbours give a bonus.

    Texts and queries are cut into tokens as :func:`memlab.store.analysis.analyse` tells. The raw score is the sum of

    - bm25 over the tokens: ``idf * 2.2 * tf / (tf + K)``, ``K = 1.2 * (0.25 + 0.75 * length / mean length)``,
      ``idf = ln((N - n + 0.5) / (n + 0.5))`` and at least 1e-6 (Robertson et al., 1994; with SQLite's constants);
    - ``words * idf * 2.2 / (1 + K)`` for every word of the query that stands in the memory as it stands in the query;
    - ``pairs * idf * 2.2 / (1 + K)`` for every pair of neighbouring tokens of the query that are neighbours in the
      memory too (a sequential dependence as in Metzler and Croft, "A Markov Random Field Model for Term
      Dependencies", SIGIR 2005).

    Words, and pairs of two tokens, that more than ``common`` memories have (or a hundredth of the store, if that is
    more) give no bonus. Memories without any of the tokens take no part, whatever else they have.

    A search scores the most promising memories only: those that have the most of the query by its rarer tokens, its
    words and pairs, without regard to how often and in how long a text. In a store of thousands the best ten are those
    of a look at everything in 99 % of the places; up to ``candidates`` memories that match, all are scored. A memory's
    score does not depend on how it was come upon, and filters act before candidates are chosen.

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
    candidates : int
        How many memories a search scores; one and a half times the depth if that is more.
    common : int
        A token that more memories have, and more than a hundredth of the store, brings no candidate in by itself where
        rarer ones bring enough.

    Raises
    ------
    InvalidValue
        If a number is outside its bounds.
    """

    pairs: float = 0.5
    words: float = 0.2
    max_terms: int = 32
    candidates: int = 100
    common: int = 5000
    name: ClassVar[str] = "keyword"
    needs_vector: ClassVar[bool] = False
    looks_at_found: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", checks.number(self.pairs, "pairs"))
        object.__setattr__(self, "words", checks.number(self.words, "words"))
        object.__setattr__(self, "max_terms", checks.whole(self.max_terms, "max_terms", least=1, most=200))
        object.__setattr__(self, "candidates", checks.whole(self.candidates, "candidates", least=1))
        object.__setattr__(self, "common", checks.whole(self.common, "common", least=1))

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        started = perf_counter()
        wanted, note = self._wanted(query, view)
        if wanted is None:
            plain = self._plain.search(query, view, depth, found)
            return replace(plain, note="; ".join(filter(None, (note, plain.note))))
        matches = self._matches(query.text, wanted, view)
        best = view.best(matches.search(max(self.candidates, depth + depth // 2)), depth)
        hits = tuple(ChannelHit(row.number, row.memory_id, rank, row.score) for rank, row in enumerate(best, 1))
        view.hold_postings(perf_counter() - started)
        shown = Terms(wanted.used, terms(query.text).stop_words, stemmed=True)
        return ChannelResult(self.name, hits, "" if hits else nothing(view, "has any of the terms"), terms=shown)

    @property
    def _plain(self) -> KeywordChannel:
        return KeywordChannel(max_terms=self.max_terms)

    def _wanted(self, query: Query, view: ReadView) -> tuple[QueryTokens | None, str]:
        """The query's tokens, or ``None`` and why words are looked for instead."""
        if not view.terms_ready:
            return None, "words were looked for as they are: the index of stems is out of date and cannot be written"
        wanted = view.once(("tokens", query.text, self.max_terms), lambda: query_tokens(query.text, self.max_terms))
        return (wanted, "") if wanted.used else (None, "")

    def _matches(self, text: str, wanted: QueryTokens, view: ReadView) -> Matches:
        settings = Settings(self.pairs, self.words, self.max_terms, self.common)
        return view.once(("matches", text, settings), lambda: Matches.of(settings, text, wanted, view))

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.score(query, view, numbers)
        found = self._matches(query.text, wanted, view).scores_of(np.unique(np.array(numbers, np.int64)))
        return {n: (score, None) for n, score in zip(found.numbers.tolist(), found.scores.tolist(), strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`; the rank is the one among all that match, whether a search looks at them or not."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.locate(query, view, number, found)
        matches = self._matches(query.text, wanted, view)
        own = matches.scores_of(np.array([number], np.int64))
        if not len(own.numbers):
            return "it has none of the terms " + ", ".join(wanted.used)
        if (allowed := view.allowed()) is not None and not member(own.numbers, allowed).all():
            return "it does not pass the filters"
        rivals = matches.that_may_reach(float(own.scores[0]))
        before = view.best(rivals, int(np.count_nonzero(rivals.scores >= own.scores[0])))
        rank = next(rank for rank, row in enumerate(before, 1) if row.number == number)
        return rank, float(own.scores[0])
