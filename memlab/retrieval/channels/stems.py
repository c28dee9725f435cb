"""The keyword channel over stems: what the index proposes cheaply is scored from the tokens that are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from memlab import checks
from memlab.retrieval.channels.base import ChannelHit, ChannelResult, Query, Scores, nothing
from memlab.retrieval.channels.keyword import KeywordChannel
from memlab.retrieval.terms import Terms, terms
from memlab.store import postings
from memlab.store.analysis import QueryTokens, query_tokens
from memlab.store.blocks import FloatArray, IntArray, member
from memlab.store.reading import ReadView, Scored

_K1, _B = 1.2, 0.75  # as in SQLite's bm25
_SHARE = 100
_BITS = 48  # places in a set that a float64 holds exactly
_MANY = 10  # times as many as are scored
_CHUNK = 2000  # memories whose tokens are in memory at once


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
        wanted, note = self._wanted(query, view)
        if wanted is None:
            plain = self._plain.search(query, view, depth, found)
            return replace(plain, note="; ".join(filter(None, (note, plain.note))))
        matches = self._matches(query.text, wanted, view)
        best = view.best(matches.scores(matches.proposed(max(self.candidates, depth + depth // 2))), depth)
        hits = tuple(ChannelHit(row.number, row.memory_id, rank, row.score) for rank, row in enumerate(best, 1))
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
        key = ("matches", text, self.pairs, self.words, self.max_terms, self.common)
        return view.once(key, lambda: Matches.of(self, text, wanted, view))

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.score(query, view, numbers)
        found = self._matches(query.text, wanted, view).scores(np.unique(np.array(numbers, np.int64)))
        return {n: (score, None) for n, score in zip(found.numbers.tolist(), found.scores.tolist(), strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`; the rank is the one among all that match, whether a search looks at them or not."""
        wanted, _ = self._wanted(query, view)
        if wanted is None:
            return self._plain.locate(query, view, number, found)
        matches = self._matches(query.text, wanted, view)
        own = matches.scores(np.array([number], np.int64))
        if not len(own.numbers):
            return "it has none of the terms " + ", ".join(wanted.used)
        if (allowed := view.allowed()) is not None and not member(own.numbers, allowed).all():
            return "it does not pass the filters"
        rivals = matches.scores(matches.that_may_reach(float(own.scores[0])))
        before = view.best(rivals, int(np.count_nonzero(rivals.scores >= own.scores[0])))
        rank = next(rank for rank, row in enumerate(before, 1) if row.number == number)
        return rank, float(own.scores[0])


class Matches:
    """Who has what of a query, and what that is worth; of one view.

    Parameters
    ----------
    view : ReadView
    tokens : sequence of str
    lists : list of (ndarray of int64 or None)
        Who has each token; ``None`` for one that too many have.
    idf : list of float
        Of each token.
    bonuses : list of (float, ndarray of int64)
        What a word or a pair is worth in a text of mean length, and who has it.
    mean : float
        Tokens of a memory on average.
    """

    def __init__(
        self,
        view: ReadView,
        tokens: Sequence[str],
        lists: list[IntArray | None],
        idf: list[float],
        bonuses: list[tuple[float, IntArray]],
        mean: float,
    ) -> None:
        self._view, self._tokens, self._lists, self._idf, self._bonuses = view, tokens, lists, idf, bonuses
        self._mean = mean
        self._looked = [f" {token} " for token in tokens]
        self._bonus = _by_number(bonuses)
        self._bits: dict[int, FloatArray] = {}
        self._known = Scored.none()  # what the search has scored
        self._seen = np.empty(0, np.int64)

    @classmethod
    def of(cls, channel: StemChannel, text: str, wanted: QueryTokens, view: ReadView) -> Matches:
        """Ask the index."""
        connection = view.connection
        total, mean = postings.size(connection)
        most = max(channel.common, total // _SHARE)
        frequencies = view.frequencies()
        lists: dict[str, IntArray | None] = {}
        counts: dict[str, int] = {}
        for token in wanted.used:
            if frequencies.get(token, 0) <= most:
                lists[token] = found = postings.numbers_with(connection, "memory_terms", token, most)
                if found is not None:
                    counts[token] = len(found)
                    continue
                frequencies[token] = postings.frequency(connection, token)
            lists[token], counts[token] = None, frequencies[token]
        bonuses: list[tuple[float, IntArray]] = []
        if channel.words:
            for word in terms(text, limit=channel.max_terms).used:
                found = postings.numbers_with(connection, "memory_search", word, most)
                if found is not None and len(found):
                    bonuses.append((channel.words * _idf(total, len(found)), found))
        if channel.pairs:
            for first, second in wanted.pairs:
                if lists[first] is None and lists[second] is None:
                    continue
                if counts[first] and counts[second]:
                    found = postings.numbers_with(connection, "memory_terms", f"{first} {second}")
                    if found is not None and len(found):
                        bonuses.append((channel.pairs * _idf(total, len(found)), found))
        idf = [_idf(total, counts[token]) for token in wanted.used]
        return cls(view, wanted.used, [lists[token] for token in wanted.used], idf, bonuses, mean)

    def proposed(self, most: int) -> IntArray:
        """Numbers of the most promising memories, ascending: ``most``, or all there are; some more where many tie."""
        allowed = self._view.allowed()
        lists = list(self._lists)
        promise = self._promise(lists)
        numbers = _positive(promise, allowed)
        common = [place for place, who in enumerate(lists) if who is None]
        # Where few have anything rarer, what is common to thousands brings in somebody too.
        for place in sorted(common, key=lambda at: (-self._idf[at], self._tokens[at])):
            if len(numbers) >= most:
                break
            lists[place] = self._all(place)
            numbers = _positive(promise := self._promise(lists), allowed)
        if len(numbers) <= most:
            return numbers
        rarer = [token for token, who in zip(self._tokens, lists, strict=True) if who is not None and len(who)]
        for place, who in enumerate(lists):
            if who is None and rarer:
                also = postings.numbers_with_one_of(self._view.connection, self._tokens[place], rarer)
                promise[also[also < len(promise)]] += self._idf[place]
        promised = promise[numbers]
        bound = _bound(promised, 2 * most)
        kept, clear = numbers[promised >= bound], numbers[promised > bound]
        if len(kept) > _MANY * most:
            if len(clear) < most:
                return self._distinguished(clear, rarer, most)
            kept = clear
        # Then the lengths, which cost less to read than the tokens.
        promised = promise[kept] / (1 + self._norm(postings.lengths(self._view.connection, kept.tolist())))
        return kept[promised >= _bound(promised, most)]

    def _distinguished(self, clear: IntArray, tokens: Sequence[str], most: int) -> IntArray:
        """Where too many promise the same, as for a query of one word: the best by bm25, which costs more."""
        where, values = "memory_terms MATCH ?", [" OR ".join(map(postings.quoted, tokens))]
        if (allowed := self._view.allowed()) is not None:
            where += " AND +rowid IN (SELECT value FROM json_each(?))"
            values.append(f"[{','.join(map(str, allowed.tolist()))}]")
        rows = self._view.connection.execute(
            f"SELECT rowid FROM memory_terms WHERE {where} ORDER BY bm25(memory_terms) LIMIT ?", [*values, most]
        )
        return np.union1d(clear, np.array([number for (number,) in rows], np.int64))

    def _all(self, place: int) -> IntArray:
        found = postings.numbers_with(self._view.connection, "memory_terms", self._tokens[place])
        return np.empty(0, np.int64) if found is None else found

    def _norm(self, lengths: FloatArray) -> FloatArray:
        norm: FloatArray = _K1 * (1 - _B + _B * lengths / self._mean)
        return norm

    def _promise(self, lists: Sequence[IntArray | None]) -> FloatArray:
        """By number: what a memory scores if it has each token once, in a text of mean length."""
        tokens = [(idf, who) for idf, who in zip(self._idf, lists, strict=True) if who is not None]
        return _by_number(tokens + self._bonuses)

    def that_may_reach(self, score: float) -> IntArray:
        """Numbers of all memories whose score may be ``score`` or more, ascending."""
        promise = self._promise([self._all(place) if who is None else who for place, who in enumerate(self._lists)])
        numbers = _positive(promise, self._view.allowed())
        # No token is worth more than (k1 + 1) * idf, however often it stands there; the margin is for rounding.
        return numbers[promise[numbers] * (_K1 + 1) >= score * (1 - 1e-9)]

    def scores(self, numbers: IntArray) -> Scored:
        """The raw scores of those of these memories (ascending) that have a token."""
        fresh = numbers[~member(numbers, self._seen)]
        if self._all_known:  # then nobody else has a token
            fresh = fresh[_at(self._having, fresh) > 0]
        if len(fresh):
            parts = [self._known, *(self._score(fresh[at : at + _CHUNK]) for at in range(0, len(fresh), _CHUNK))]
            every, scores = np.concatenate([p.numbers for p in parts]), np.concatenate([p.scores for p in parts])
            order = np.argsort(every, kind="stable")
            self._known = Scored(every[order], scores[order])
            self._seen = np.union1d(self._seen, fresh)
        return self._known.of(numbers.tolist())

    @cached_property
    def _all_known(self) -> bool:
        return all(who is not None for who in self._lists)

    @cached_property
    def _having(self) -> FloatArray:
        """By number: more than 0 for who has a token of those of which it is known."""
        return _by_number([(1.0, who) for who in self._lists if who is not None])

    def _score(self, numbers: IntArray) -> Scored:
        rows = postings.texts(self._view.connection, numbers.tolist())
        if not rows:
            return Scored.none()
        present = np.array([row[0] for row in rows], np.int64)
        norm = self._norm(np.array([_length(content) + _length(labels) for _, content, labels in rows], np.float64))
        counts = np.zeros((len(self._tokens), len(rows)))
        for at, ((_, content, labels), places) in enumerate(zip(rows, self._places(present), strict=True)):
            # Two spaces between tokens, so that neighbours share none and each is counted.
            text = f" {content} {labels} ".replace(" ", "  ")
            for place in places:
                counts[place, at] = text.count(self._looked[place])
        total = np.zeros(len(rows))
        for idf, count in zip(self._idf, counts, strict=True):
            total += idf * (_K1 + 1) * count / (count + norm)
        total += _at(self._bonus, present) * (_K1 + 1) / (1 + norm)
        matched = counts.any(axis=0)
        return Scored(present[matched], total[matched])

    def _places(self, numbers: IntArray) -> list[list[int]]:
        """By memory: places of the tokens that it has, and of those of which that is not known."""
        unknown = [place for place, who in enumerate(self._lists) if who is None]
        places = [list(unknown) for _ in range(len(numbers))]
        for start in range(0, len(self._lists), _BITS):
            sets = _at(self._sets(start), numbers).astype(np.int64).tolist()
            for having, bits in zip(places, sets, strict=True):
                while bits:
                    having.append(start + (bits & -bits).bit_length() - 1)
                    bits &= bits - 1
        return places

    def _sets(self, start: int) -> FloatArray:
        """By number: which tokens a memory has, as bits from place ``start`` on."""
        if start not in self._bits:
            part = self._lists[start : start + _BITS]
            self._bits[start] = _by_number([(float(1 << bit), who) for bit, who in enumerate(part) if who is not None])
        return self._bits[start]


def _idf(total: int, having: int) -> float:
    return max(math.log((total - having + 0.5) / (having + 0.5)), 1e-6) if having < total else 1e-6


def _by_number(parts: Sequence[tuple[float, IntArray]]) -> FloatArray:
    """By number: the sum of the values of all parts that a memory is in, added up in the order of the parts."""
    if not parts:
        return np.zeros(0)
    numbers = np.concatenate([who for _, who in parts])
    weights = np.repeat([value for value, _ in parts], [len(who) for _, who in parts])
    return np.bincount(numbers, weights).astype(np.float64, copy=False)


def _at(values: FloatArray, numbers: IntArray) -> FloatArray:
    """The values of these numbers; 0 beyond the end."""
    found = np.zeros(len(numbers))
    inside = numbers < len(values)
    found[inside] = values[numbers[inside]]
    return found


def _bound(values: FloatArray, most: int) -> float:
    """The smallest of the ``most`` largest values."""
    return float(np.partition(values, len(values) - most)[len(values) - most]) if most < len(values) else -math.inf


def _length(tokens: str) -> int:
    return tokens.count(" ") + 1 if tokens else 0


def _positive(promise: FloatArray, allowed: IntArray | None) -> IntArray:
    if allowed is None:
        return np.flatnonzero(promise)
    inside = allowed[allowed < len(promise)]
    return inside[promise[inside] > 0]
