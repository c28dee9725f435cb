"""What a keyword search asks of a store, and how the search indexes in the file answer it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from memlab.store import postings
from memlab.store.blocks import FloatArray, IntArray, member

_BITS = 48  # places in a set that a float64 holds exactly
_APART = 8  # numbers a memory, from which on a table by number is too large


class Lookup(Protocol):
    """Who has what. Memories are meant by places: small integers, ascending as the memories' numbers do."""

    @property
    def total(self) -> int:
        """How many memories."""
        ...

    @property
    def mean(self) -> float:
        """Their mean length in tokens."""
        ...

    @property
    def quick(self) -> bool:
        """Whether asking twice costs less than remembering."""
        ...

    def places(self, numbers: IntArray) -> IntArray:
        """Of memories by their numbers (ascending), those that are here."""
        ...

    def numbers(self, places: IntArray) -> IntArray:
        """The numbers of memories."""
        ...

    def with_token(self, token: str, most: int) -> tuple[IntArray | None, int]:
        """Who has a token, ``None`` if more than ``most`` have it; and how many."""
        ...

    def every_with(self, token: str) -> IntArray:
        """Who has a token."""
        ...

    def with_pair(self, first: str, second: str) -> IntArray:
        """Who has two tokens that follow one another."""
        ...

    def with_word(self, word: str, most: int) -> IntArray | None:
        """Who has a word, or words that follow one another, in the search index; ``None`` for more than ``most``."""
        ...

    def with_one_of(self, token: str, others: Sequence[str]) -> IntArray:
        """Who has a token and at least one of the others, which are rarer."""
        ...

    def lengths(self, places: IntArray) -> FloatArray:
        """In tokens."""
        ...

    def counts(
        self, tokens: Sequence[str], lists: Sequence[IntArray | None], places: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Those of some memories that are in the term index, their lengths, and how often they have tokens.

        Parameters
        ----------
        tokens : sequence of str
        lists : sequence of (ndarray of int64 or None)
            Who has each token, where that is known.
        places : ndarray of int64

        Returns
        -------
        places : ndarray of int64, shape (n,)
        lengths : ndarray of float64, shape (n,)
        counts : ndarray of float64, shape (len(tokens), n)
        """
        ...


class InFile:
    """Asks FTS5, a statement a question.

    Parameters
    ----------
    connection : sqlite3.Connection
        With a read transaction open.
    frequencies : dict of str to int
        In how many memories common tokens stand, as far as that is known; added to.
    """

    quick = False

    def __init__(self, connection: sqlite3.Connection, frequencies: dict[str, int]) -> None:
        self._connection, self._frequencies = connection, frequencies
        self.total, self.mean = postings.size(connection)
        self._sets: dict[int, FloatArray] = {}

    @cached_property
    def _known(self) -> IntArray | None:
        """The numbers of all memories, where they lie so far apart that they cannot be places themselves."""
        least, most = self._connection.execute("SELECT min(id), max(id) FROM memory_terms_docsize").fetchone()
        if least is None or (least >= 0 and most <= _APART * self.total + 1_000_000):
            return None
        rows = self._connection.execute("SELECT id FROM memory_terms_docsize ORDER BY id")
        return np.fromiter((number for (number,) in rows), np.int64)

    def places(self, numbers: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        if self._known is None:
            return numbers
        found: IntArray = np.searchsorted(self._known, numbers[member(numbers, self._known)])
        return found

    def numbers(self, places: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        return places if self._known is None else self._known[places]

    def with_token(self, token: str, most: int) -> tuple[IntArray | None, int]:
        """See :class:`Lookup`."""
        if self._frequencies.get(token, 0) <= most:
            found = postings.numbers_with(self._connection, "memory_terms", token, most)
            if found is not None:
                return self.places(found), len(found)
            self._frequencies[token] = postings.frequency(self._connection, token)
        return None, self._frequencies[token]

    def every_with(self, token: str) -> IntArray:
        """See :class:`Lookup`."""
        return self._all(token)

    def with_pair(self, first: str, second: str) -> IntArray:
        """See :class:`Lookup`."""
        return self._all(f"{first} {second}")

    def _all(self, phrase: str) -> IntArray:
        found = postings.numbers_with(self._connection, "memory_terms", phrase)
        return self.places(np.empty(0, np.int64) if found is None else found)

    def with_word(self, word: str, most: int) -> IntArray | None:
        """See :class:`Lookup`."""
        found = postings.numbers_with(self._connection, "memory_search", word, most)
        return None if found is None else self.places(found)

    def with_one_of(self, token: str, others: Sequence[str]) -> IntArray:
        """See :class:`Lookup`."""
        return self.places(postings.numbers_with_one_of(self._connection, token, others))

    def lengths(self, places: IntArray) -> FloatArray:
        """See :class:`Lookup`."""
        return postings.lengths(self._connection, self.numbers(places).tolist())

    def counts(
        self, tokens: Sequence[str], lists: Sequence[IntArray | None], places: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """See :class:`Lookup`."""
        rows = postings.texts(self._connection, self.numbers(places).tolist())
        present = self.places(np.array([row[0] for row in rows], np.int64))
        lengths = np.array([_length(content) + _length(labels) for _, content, labels in rows], np.float64)
        counts = np.zeros((len(tokens), len(rows)))
        looked = [f" {token} " for token in tokens]
        for at, ((_, content, labels), having) in enumerate(zip(rows, self._having(lists, present), strict=True)):
            # Two spaces between tokens, so that neighbours share none and each is counted.
            text = f" {content} {labels} ".replace(" ", "  ")
            for place in having:
                counts[place, at] = text.count(looked[place])
        return present, lengths, counts

    def _having(self, lists: Sequence[IntArray | None], places: IntArray) -> list[list[int]]:
        """By memory: which tokens it has, and those of which that is not known."""
        unknown = [place for place, who in enumerate(lists) if who is None]
        found = [list(unknown) for _ in range(len(places))]
        for start in range(0, len(lists), _BITS):
            part = lists[start : start + _BITS]
            if start not in self._sets:
                parts = [(float(1 << bit), who) for bit, who in enumerate(part) if who is not None]
                self._sets[start] = by_place(parts)
            sets = at(self._sets[start], places).astype(np.int64).tolist()
            for having, bits in zip(found, sets, strict=True):
                while bits:
                    having.append(start + (bits & -bits).bit_length() - 1)
                    bits &= bits - 1
        return found


def by_place(parts: Sequence[tuple[float, IntArray]]) -> FloatArray:
    """By place: the sum of the values of all parts that a memory is in, added up in the order of the parts."""
    if not parts:
        return np.zeros(0)
    places = np.concatenate([who for _, who in parts])
    weights = np.repeat([value for value, _ in parts], [len(who) for _, who in parts])
    return np.bincount(places, weights).astype(np.float64, copy=False)


def at(values: FloatArray, places: IntArray) -> FloatArray:
    """The values of these places; 0 beyond the end."""
    found = np.zeros(len(places))
    inside = places < len(values)
    found[inside] = values[places[inside]]
    return found


def _length(tokens: str) -> int:
    return tokens.count(" ") + 1 if tokens else 0
