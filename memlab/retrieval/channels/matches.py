"""Who has what of a query, and what that is worth: the arithmetic of the keyword channel over stems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memlab.retrieval.terms import terms
from memlab.store import postings
from memlab.store.analysis import QueryTokens
from memlab.store.blocks import FloatArray, IntArray, member
from memlab.store.lookup import Lookup, at, by_place
from memlab.store.reading import ReadView, Scored

_K1, _B = 1.2, 0.75  # as in SQLite's bm25
_SHARE = 100
_MANY = 10  # times as many as are scored
_CHUNK = 2000  # memories whose tokens are in memory at once


class Settings(NamedTuple):
    """Those of :class:`StemChannel` that scores depend on."""

    pairs: float
    words: float
    max_terms: int
    common: int


class Matches:
    """Who has what of a query, and what that is worth; of one view.

    Memories are meant by the places that the look-up gives them.

    Parameters
    ----------
    view : ReadView
    lookup : Lookup
    tokens : sequence of str
    lists : list of (ndarray of int64 or None)
        Who has each token; ``None`` for one that too many have.
    idf : list of float
        Of each token.
    bonuses : list of (float, ndarray of int64)
        What a word or a pair is worth in a text of mean length, and who has it.
    """

    def __init__(
        self,
        view: ReadView,
        lookup: Lookup,
        tokens: Sequence[str],
        lists: list[IntArray | None],
        idf: list[float],
        bonuses: list[tuple[float, IntArray]],
    ) -> None:
        self._view, self._lookup = view, lookup
        self._tokens, self._lists, self._idf, self._bonuses = tokens, lists, idf, bonuses
        self._known = Scored.none()  # what the search has scored
        self._seen = np.empty(0, np.int64)

    @classmethod
    def of(cls, settings: Settings, text: str, wanted: QueryTokens, view: ReadView) -> Matches:
        """Ask the index."""
        lookup = view.lookup()
        total = lookup.total
        most = max(settings.common, total // _SHARE)
        found = {token: lookup.with_token(token, most) for token in wanted.used}
        bonuses: list[tuple[float, IntArray]] = []
        if settings.words:
            for word in terms(text, limit=settings.max_terms).used:
                who = lookup.with_word(word, most)
                if who is not None and len(who):
                    bonuses.append((settings.words * _idf(total, len(who)), who))
        if settings.pairs:
            for first, second in wanted.pairs:
                (one, having_one), (other, having_other) = found[first], found[second]
                if (one is None and other is None) or not (having_one and having_other):
                    continue
                if len(who := lookup.with_pair(first, second)):
                    bonuses.append((settings.pairs * _idf(total, len(who)), who))
        idf = [_idf(total, found[token][1]) for token in wanted.used]
        return cls(view, lookup, wanted.used, [found[token][0] for token in wanted.used], idf, bonuses)

    @cached_property
    def _allowed(self) -> IntArray | None:
        allowed = self._view.allowed()
        return None if allowed is None else self._lookup.places(allowed)

    def search(self, most: int) -> Scored:
        """Numbers and scores of the ``most`` most promising memories, or all there are; some more where many tie."""
        return self._numbered(self._scores(self._proposed(most)))

    def scores_of(self, numbers: IntArray) -> Scored:
        """Numbers and scores of those of these memories (ascending) that have a token."""
        return self._numbered(self._scores(self._lookup.places(numbers)))

    def that_may_reach(self, score: float) -> Scored:
        """Numbers and scores of all memories whose score may be ``score`` or more."""
        promise = self._promise([self._all(place) if who is None else who for place, who in enumerate(self._lists)])
        places = _positive(promise, self._allowed)
        # No token is worth more than (k1 + 1) * idf, however often it stands there; the margin is for rounding.
        return self._numbered(self._scores(places[promise[places] * (_K1 + 1) >= score * (1 - 1e-9)]))

    def _numbered(self, scored: Scored) -> Scored:
        return Scored(self._lookup.numbers(scored.numbers), scored.scores)

    def _proposed(self, most: int) -> IntArray:
        """The most promising memories, ascending."""
        lists = list(self._lists)
        promise = self._promise(lists)
        places = _positive(promise, self._allowed)
        common = [place for place, who in enumerate(lists) if who is None]
        # Where few have anything rarer, what is common to thousands brings in somebody too.
        for place in sorted(common, key=lambda place: (-self._idf[place], self._tokens[place])):
            # At least one list of a token: where there is none, nothing tells those apart who have the same words.
            if len(places) >= most and any(who is not None and len(who) for who in lists):
                break
            lists[place] = self._all(place)
            places = _positive(promise := self._promise(lists), self._allowed)
        if len(places) <= most:
            return places
        rarer = [token for token, who in zip(self._tokens, lists, strict=True) if who is not None and len(who)]
        for place, who in enumerate(lists):
            if who is None and rarer:
                also = self._lookup.with_one_of(self._tokens[place], rarer)
                promise[also[also < len(promise)]] += self._idf[place]
        promised = promise[places]
        bound = _bound(promised, 2 * most)
        kept, clear = places[promised >= bound], places[promised > bound]
        if len(kept) > _MANY * most:
            if len(clear) < most:
                return self._distinguished(clear, kept, rarer, most)
            kept = clear
        # Then the lengths, which cost less to read than the tokens.
        promised = promise[kept] / (1 + self._norm(self._lookup.lengths(kept)))
        return kept[promised >= _bound(promised, most)]

    def _distinguished(self, clear: IntArray, kept: IntArray, tokens: Sequence[str], most: int) -> IntArray:
        """Where too many of ``kept`` promise the same, as for a query of one word: the best by bm25."""
        if not tokens:  # nobody has a token, so nobody has a score
            return clear
        # The plus keeps FTS5 from running the MATCH once for every rowid.
        numbers = f"[{','.join(map(str, self._lookup.numbers(kept).tolist()))}]"
        rows = self._view.connection.execute(
            "SELECT rowid FROM memory_terms WHERE memory_terms MATCH ? AND +rowid IN (SELECT value FROM json_each(?)) "
            "ORDER BY bm25(memory_terms) LIMIT ?",
            [" OR ".join(map(postings.quoted, tokens)), numbers, most],
        )
        best = np.sort(np.array([number for (number,) in rows], np.int64))
        return np.union1d(clear, self._lookup.places(best))

    def _all(self, place: int) -> IntArray:
        return self._lookup.every_with(self._tokens[place])

    def _norm(self, lengths: FloatArray) -> FloatArray:
        norm: FloatArray = _K1 * (1 - _B + _B * lengths / self._lookup.mean)
        return norm

    def _promise(self, lists: Sequence[IntArray | None]) -> FloatArray:
        """By place: what a memory scores if it has each token once, in a text of mean length."""
        tokens = [(idf, who) for idf, who in zip(self._idf, lists, strict=True) if who is not None]
        return by_place(tokens + self._bonuses)

    def _scores(self, places: IntArray) -> Scored:
        """The raw scores of those of these memories (ascending) that have a token."""
        if self._lookup.quick:
            return self._score(places)
        fresh = places[~member(places, self._seen)]
        if self._all_known:  # then nobody else has a token
            fresh = fresh[at(self._having, fresh) > 0]
        if len(fresh):
            parts = [
                self._known,
                *(self._score(fresh[start : start + _CHUNK]) for start in range(0, len(fresh), _CHUNK)),
            ]
            every, scores = np.concatenate([p.numbers for p in parts]), np.concatenate([p.scores for p in parts])
            order = np.argsort(every, kind="stable")
            self._known = Scored(every[order], scores[order])
            self._seen = np.union1d(self._seen, fresh)
        return self._known.of(places.tolist())

    @cached_property
    def _all_known(self) -> bool:
        return all(who is not None for who in self._lists)

    @cached_property
    def _having(self) -> FloatArray:
        """By place: more than 0 for who has a token of those of which it is known."""
        return by_place([(1.0, who) for who in self._lists if who is not None])

    @cached_property
    def _bonus(self) -> FloatArray:
        return by_place(self._bonuses)

    def _score(self, places: IntArray) -> Scored:
        present, lengths, counts = self._lookup.counts(self._tokens, self._lists, places)
        if not len(present):
            return Scored.none()
        norm = self._norm(lengths)
        total = np.zeros(len(present))
        for idf, count in zip(self._idf, counts, strict=True):
            total += idf * (_K1 + 1) * count / (count + norm)
        total += at(self._bonus, present) * (_K1 + 1) / (1 + norm)
        matched = counts.any(axis=0)
        return Scored(present[matched], total[matched])


def _idf(total: int, having: int) -> float:
    return max(math.log((total - having + 0.5) / (having + 0.5)), 1e-6) if having < total else 1e-6


def _bound(values: FloatArray, most: int) -> float:
    """The smallest of the ``most`` largest values."""
    return float(np.partition(values, len(values) - most)[len(values) - most]) if most < len(values) else -math.inf


def _positive(promise: FloatArray, allowed: IntArray | None) -> IntArray:
    if allowed is None:
        return np.flatnonzero(promise)
    inside = allowed[allowed < len(promise)]
    found: IntArray = inside[promise[inside] > 0]
    return found
