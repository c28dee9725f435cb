"""Who has which token and word, as arrays in memory: the search indexes of a store, made for many questions.

A posting list from FTS5 costs a statement, and a query has dozens of them; a slice of an array costs a microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.store.blocks import FloatArray, IntArray, member
from memlab.store.words import BORDER, Cutter, is_plain, plain_words

Small = npt.NDArray[np.int32]
Row = tuple[int, str, str]
"""Number, tokens of the content, tokens of the labels, each joined by single spaces."""
_NOBODY: IntArray = np.empty(0, np.int64)
_MOST_KEPT = 1_000_000  # entries of lists that are remembered


class _Ids(dict[str, int]):
    """Texts to numbers from 0 in the order in which they come."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


@dataclass(frozen=True, eq=False)
class Lists:
    """By text, an ascending list of integers.

    Attributes
    ----------
    ids : dict of str to int
    starts : ndarray of int64, shape (len(ids) + 1,)
    values : ndarray of int32, shape (n,)
    """

    ids: dict[str, int]
    starts: IntArray
    values: Small

    def span(self, text: str) -> slice:
        """Where the list of a text is."""
        at = self.ids.get(text)
        return slice(0, 0) if at is None else slice(self.starts[at], self.starts[at + 1])


def _lists(ids: dict[str, int], keys: Small, values: IntArray, *, once: bool = False) -> Lists:
    """Lists of values by key, without what is there twice if ``once``."""
    pairs = (keys.astype(np.int64) << 32) | values
    pairs.sort()
    if once and len(pairs):
        pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
    starts = np.searchsorted(pairs, np.arange(len(ids) + 1, dtype=np.int64) << 32)
    return Lists(dict(ids), starts, (pairs & 0xFFFFFFFF).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Part:
    """The postings of some memories, which places from 0 stand for.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,), ascending
    lengths : ndarray of int32, shape (n,)
        In tokens.
    tokens : Lists
        By token, every place in the stream of all tokens where it stands; neighbours in a column have neighbouring
        places, and no others.
    holders : ndarray of int32
        Which memory each of these places is in.
    words : Lists
        By word, which memories have it.
    """

    numbers: IntArray
    lengths: Small
    tokens: Lists
    holders: Small
    words: Lists
    _kept: dict[str, tuple[IntArray, IntArray]] = field(default_factory=dict, repr=False)
    _room: list[int] = field(default_factory=lambda: [_MOST_KEPT], repr=False)

    def __len__(self) -> int:
        return len(self.numbers)

    def token(self, token: str) -> tuple[IntArray, IntArray]:
        """Who has a token, ascending, and how often."""
        known = self._kept.get(token)
        if known is None:
            holders = self.holders[self.tokens.span(token)]
            if len(holders):
                first = np.flatnonzero(np.concatenate([[True], holders[1:] != holders[:-1]]))
                known = holders[first].astype(np.int64), np.diff(first, append=len(holders))
            else:
                known = _NOBODY, _NOBODY
            self._room[0] -= len(known[0]) + 1
            if self._room[0] < 0:
                self._kept.clear()
                self._room[0] = _MOST_KEPT
            self._kept[token] = known
        return known

    def pair(self, first: str, second: str) -> IntArray:
        """Who has two tokens one after the other, ascending."""
        before, after = self.tokens.span(first), self.tokens.span(second)
        one, other = self.tokens.values[before], self.tokens.values[after]
        if len(one) <= len(other):
            holders = self.holders[before][member(one + 1, other)]
        else:
            holders = self.holders[after][member(other - 1, one)]
        if len(holders) > 1:
            holders = holders[np.concatenate([[True], holders[1:] != holders[:-1]])]
        return holders.astype(np.int64)

    def word(self, word: str) -> IntArray:
        """Who has a word of the search index, ascending."""
        return self.words.values[self.words.span(word)].astype(np.int64)


class Builder:
    """Makes a :class:`Part`, some memories at a time."""

    def __init__(self) -> None:
        self._tokens, self._words = _Ids(), _Ids({BORDER: 0})
        self._cutter = Cutter()
        self._numbers: list[int] = []
        self._streams: list[Small] = []
        self._columns: list[IntArray] = []  # lengths of the columns, two a memory
        self._found: list[Small] = []
        self._finders: list[IntArray] = []  # who has these words

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def last(self) -> int:
        """The number of the last memory, 0 before the first."""
        return self._numbers[-1] if self._numbers else 0

    def add(self, rows: Sequence[Row], texts: Sequence[str]) -> None:
        """Add memories with higher numbers than those before.

        Parameters
        ----------
        rows : sequence of (number, tokens of the content, tokens of the labels)
        texts : sequence of str
            All that the search index has of each.
        """
        columns = [column for _, content, labels in rows for column in (content, labels)]
        stream = " ".join(filter(None, columns))
        tokens = stream.split(" ") if stream else []
        self._streams.append(np.fromiter(map(self._tokens.__getitem__, tokens), np.int32, len(tokens)))
        self._columns.append(np.array([column.count(" ") + 1 if column else 0 for column in columns], np.int64))
        before = len(self._numbers)
        self._numbers += [number for number, _, _ in rows]
        plain = [at for at, text in enumerate(texts) if is_plain(text)]
        if plain:
            words = plain_words([texts[at] for at in plain])
            found = np.fromiter(map(self._words.__getitem__, words), np.int32, len(words))
            whose = np.cumsum(found == 0)
            self._put(found[found > 0], np.array(plain, np.int64)[whose[found > 0]] + before)
        if len(plain) < len(texts):
            odd = sorted(set(range(len(texts))) - set(plain))
            lists = self._cutter.words([texts[at] for at in odd])
            words = [word for each in lists for word in each]
            whose = np.repeat(np.array(odd, np.int64), [len(each) for each in lists]) + before
            self._put(np.fromiter(map(self._words.__getitem__, words), np.int32, len(words)), whose)

    def _put(self, words: Small, whose: IntArray) -> None:
        self._found.append(words)
        self._finders.append(whose)

    def part(self) -> Part:
        """The part of all that was added."""
        stream, columns = _joined(self._streams, np.int32), _joined(self._columns, np.int64)
        # A place is left out after every column.
        places = np.arange(len(stream)) + np.repeat(np.arange(len(columns)), columns)
        tokens = _lists(self._tokens, stream, places)
        ends = np.cumsum(columns + 1)[1::2]
        holders = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
        words = _lists(self._words, _joined(self._found, np.int32), _joined(self._finders, np.int64), once=True)
        return Part(
            np.array(self._numbers, np.int64),
            (columns[0::2] + columns[1::2]).astype(np.int32),
            tokens,
            holders[tokens.values],
            words,
        )


def _joined(parts: Sequence[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *parts])


def counts(part: Part, tokens: Sequence[str], places: IntArray) -> FloatArray:
    """How often memories have tokens, float64, shape (len(tokens), len(places))."""
    found = np.zeros((len(tokens), len(places)))
    for row, token in zip(found, tokens, strict=True):
        who, often = part.token(token)
        if len(who):
            at = np.minimum(np.searchsorted(who, places), len(who) - 1)
            np.multiply(often[at], who[at] == places, out=row)
    return found
