"""The search indexes of a store in memory, made while recalls go on, for the recalls that come after.

A process that asks once is answered from the file. One that goes on asking makes the index beside its answers, a slice
after each, so that no answer has to wait for it; from then on a query costs no statement. What is in the index is what
the file has at one state of its two search indexes; at another state the file answers again.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from memlab.store import postings
from memlab.store.blocks import FloatArray, IntArray, member
from memlab.store.connection import on_fork
from memlab.store.inverted import Builder, Part, counts
from memlab.store.vectorfile import last_change
from memlab.store.words import cut

MOST = 200_000
"""Memories of a store that has an index in memory..."""
MOST_TOKENS = 10_000_000
"""... and tokens of all of them: they take about 12 bytes each, words and names included."""
_SLICE = 128  # memories read at a time
_LEAST = 0.002  # seconds of work after an answer
_MOST_PATIENCE = 255

_TOKENS = "SELECT id, c0, c1 FROM memory_terms_content WHERE id > ? ORDER BY id LIMIT ?"
_TEXTS = (
    "SELECT id, c1 || ' ' || coalesce(c2, '') || ' ' || coalesce(c3, '') || ' ' || coalesce(c4, '') || ' ' || "
    "coalesce(c5, '') FROM memory_search_content WHERE id > ? AND id <= ? ORDER BY id"
)
# FTS5's record of its segments changes with every write, for it counts the pages that were written.
_STATE = (
    "SELECT (SELECT block FROM memory_terms_data WHERE id = 10), (SELECT block FROM memory_search_data WHERE id = 10), "
    "(SELECT block FROM memory_terms_data WHERE id = 1)"
)

State = tuple[int, bytes, bytes, bytes]


def state_of(connection: sqlite3.Connection) -> State:
    """What tells the state of both search indexes, as a read transaction sees them, from every other one."""
    return (last_change(connection), *connection.execute(_STATE).fetchone())


@dataclass(frozen=True, eq=False)
class Held:
    """The postings of all live memories at one state of the file."""

    state: State
    part: Part
    total: int
    mean: float


class InMemory:
    """Asks an index in memory; a :class:`~memlab.store.lookup.Lookup`.

    Parameters
    ----------
    held : Held
    connection : sqlite3.Connection
        That sees the state which the index is of; asked for phrases of the search index, whose order is not held.
    """

    quick = True

    def __init__(self, held: Held, connection: sqlite3.Connection) -> None:
        self._part, self._connection = held.part, connection
        self.total, self.mean = held.total, held.mean

    def places(self, numbers: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        mine = self._part.numbers
        found: IntArray = np.searchsorted(mine, numbers[member(numbers, mine)])
        return found

    def numbers(self, places: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        return self._part.numbers[places]

    def with_token(self, token: str, most: int) -> tuple[IntArray | None, int]:
        """See :class:`Lookup`."""
        who, _ = self._part.token(token)
        return (who if len(who) <= most else None), len(who)

    def every_with(self, token: str) -> IntArray:
        """See :class:`Lookup`."""
        return self._part.token(token)[0]

    def with_pair(self, first: str, second: str) -> IntArray:
        """See :class:`Lookup`."""
        return self._part.pair(first, second)

    def with_word(self, word: str, most: int) -> IntArray | None:
        """See :class:`Lookup`."""
        words = (word.lower(),) if word.isascii() and word.isalnum() else cut(word)
        found = [self._part.word(word) for word in words]
        if not found or not all(map(len, found)):
            return np.empty(0, np.int64)
        if len(found) == 1:
            return found[0] if len(found[0]) <= most else None
        numbers = postings.numbers_with(self._connection, "memory_search", word, most)
        return None if numbers is None else self.places(numbers)

    def with_one_of(self, token: str, others: Sequence[str]) -> IntArray:
        """See :class:`Lookup`."""
        who, having = self.every_with(token), np.zeros(len(self._part), dtype=bool)
        for other in others:
            having[self.every_with(other)] = True
        found: IntArray = who[having[who]]
        return found

    def lengths(self, places: IntArray) -> FloatArray:
        """See :class:`Lookup`."""
        return self._part.lengths[places].astype(np.float64)

    def counts(
        self, tokens: Sequence[str], lists: Sequence[IntArray | None], places: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """See :class:`Lookup`."""
        return places, self.lengths(places), counts(self._part, tokens, places)


class KeywordIndex:
    """Hands out the index that belongs to what a connection sees, once there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        on_fork(self)
        self._held: Held | None = None
        self._builder: Builder | None = None
        self._state: State | None = None  # of what is being built, or of what cannot be
        self._refused = False
        self._patience = self._waited = 0  # recalls to let pass before the work begins
        self.builds = 0  # for tests

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._builder = self._state = None  # may be half done

    def held(self, connection: sqlite3.Connection) -> Held | None:
        """The index of what the read transaction that is open on ``connection`` sees, if it is made."""
        held = self._held
        return held if held is not None and held.state == state_of(connection) else None

    def advance(self, connection: sqlite3.Connection, seconds: float) -> None:
        """Spend about so long on making the index; what is seen must be committed, and no memory wait for its terms."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            state = state_of(connection)
            if self._held is not None and self._held.state == state:
                return
            if state != self._state:
                if self._builder is not None and len(self._builder):
                    # Written to before it was done: that will happen again, so wait and see for longer.
                    self._patience = min(2 * self._patience + 1, _MOST_PATIENCE)
                total, mean = postings.size(connection)
                self._state, self._builder, self._waited = state, Builder(), 0
                self._refused = not 0 < total <= MOST or total * mean > MOST_TOKENS
            self._waited += 1
            if self._refused or self._waited <= self._patience:
                return
            self._go_on(connection, state, perf_counter() + max(seconds, _LEAST))
        finally:
            self._lock.release()

    def _go_on(self, connection: sqlite3.Connection, state: State, until: float) -> None:
        assert self._builder is not None
        while perf_counter() < until:
            try:
                rows = connection.execute(_TOKENS, (self._builder.last, _SLICE)).fetchall()
                texts = connection.execute(_TEXTS, (self._builder.last, rows[-1][0])).fetchall() if rows else []
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                rows, texts = [(0, "", "")], []  # text that is no UTF-8: SQLite knows what to make of it
            if not rows:
                total, mean = postings.size(connection)
                part = self._builder.part()
                self._builder = None
                self._refused = len(part) != total
                if not self._refused:
                    self._held = Held(state, part, total, mean)
                    self._patience = 0
                    self.builds += 1
                return
            if [row[0] for row in rows] != [row[0] for row in texts]:
                self._refused, self._builder = True, None
                return
            try:
                self._builder.add(rows, [text for _, text in texts])
            except BaseException:
                self._builder = self._state = None  # half added
                raise
