"""The search indexes of a store in memory, made while recalls go on, for the recalls that come after.

A process that asks once is answered from the file. One that goes on asking makes the index beside its answers, a slice
after each, so that no answer has to wait for it; from then on a query costs no statement. It follows every process's
writes by the change log. Where a change is not in the log, because another program wrote to the search indexes
themselves or the file is of an older schema, the index is given up and the file answers until there is a new one.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from memlab.store import postings, schema
from memlab.store.blocks import BoolArray, FloatArray, IntArray, member
from memlab.store.connection import on_fork
from memlab.store.inverted import Builder, Part, Row, counts
from memlab.store.vectorfile import last_change, log_reaches, number_list
from memlab.store.words import cut

MOST = 200_000
"""Memories of a store that has an index in memory..."""
MOST_TOKENS = 10_000_000
"""... and tokens of all of them: they take about 12 bytes each, words and names included."""
_SLICE = 128  # memories read at a time
_SHARE, _LEAST = 2, 0.02  # work after an answer: so many times what the answer took, and at least so many seconds
_MOST_PATIENCE = 255

_MOST_CHANGED = 2000  # memories that are read anew at once; where more changed, so did too much

_TOKENS = "SELECT id, c0, c1 FROM memory_terms_content WHERE id "
_TEXTS = (
    "SELECT id, c1 || ' ' || coalesce(c2, '') || ' ' || coalesce(c3, '') || ' ' || coalesce(c4, '') || ' ' || "
    "coalesce(c5, '') FROM memory_search_content WHERE id "
)
_AFTER = "> ? ORDER BY id LIMIT ?"
_AMONG = "IN (SELECT value FROM json_each(?)) ORDER BY id"
_CHANGED = "SELECT DISTINCT number FROM memory_changes WHERE change > ? ORDER BY number LIMIT ?"
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
    """The postings of all live memories at one state of the file.

    Attributes
    ----------
    state : State
    parts : tuple of (Part, ndarray of bool)
        With what is still so in each; the later ones have what changed since the earlier ones were made.
    total, mean : int, float
        How many memories, and their mean length in tokens.
    """

    state: State
    parts: tuple[tuple[Part, BoolArray], ...]
    total: int
    mean: float

    @cached_property
    def bases(self) -> list[int]:
        """The place of the first memory of each part, and after the last."""
        return np.cumsum([0, *(len(part) for part, _ in self.parts)]).tolist()  # type: ignore[no-any-return]

    @cached_property
    def numbers(self) -> IntArray:
        """The number of the memory at each place."""
        if len(self.parts) == 1:
            return self.parts[0][0].numbers
        return np.concatenate([part.numbers for part, _ in self.parts])

    @cached_property
    def lengths(self) -> FloatArray:
        """In tokens, by place."""
        return np.concatenate([part.lengths for part, _ in self.parts]).astype(np.float64)

    @cached_property
    def changed(self) -> bool:
        """Whether anything is no longer so."""
        return any(not alive.all() for _, alive in self.parts)


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
        self._held, self._connection = held, connection
        self._one = held.parts[0][0] if len(held.parts) == 1 and not held.changed else None
        self.total, self.mean = held.total, held.mean

    def _together(self, lists: Sequence[IntArray]) -> IntArray:
        """Places from those in each part."""
        held = self._held
        found = [
            who[alive[who]] + base for who, (_, alive), base in zip(lists, held.parts, held.bases[:-1], strict=True)
        ]
        return np.concatenate(found)

    def places(self, numbers: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        parts = [part for part, _ in self._held.parts]
        found = [np.searchsorted(part.numbers, numbers[member(numbers, part.numbers)]) for part in parts]
        return self._together(found) if self._one is None else found[0]

    def numbers(self, places: IntArray) -> IntArray:
        """See :class:`Lookup`."""
        return self._held.numbers[places]

    def with_token(self, token: str, most: int) -> tuple[IntArray | None, int]:
        """See :class:`Lookup`."""
        who = self.every_with(token)
        return (who if len(who) <= most else None), len(who)

    def every_with(self, token: str) -> IntArray:
        """See :class:`Lookup`."""
        if self._one is not None:
            return self._one.token(token)[0]
        return self._together([part.token(token)[0] for part, _ in self._held.parts])

    def with_pair(self, first: str, second: str) -> IntArray:
        """See :class:`Lookup`."""
        if self._one is not None:
            return self._one.pair(first, second)
        return self._together([part.pair(first, second) for part, _ in self._held.parts])

    def with_word(self, word: str, most: int) -> IntArray | None:
        """See :class:`Lookup`."""
        words = (word.lower(),) if word.isascii() and word.isalnum() else cut(word)
        found = [self._with_one_word(one) for one in words]
        if not found or not all(map(len, found)):
            return np.empty(0, np.int64)
        if len(found) == 1:
            return found[0] if len(found[0]) <= most else None
        numbers = postings.numbers_with(self._connection, "memory_search", word, most)
        return None if numbers is None else self.places(numbers)

    def _with_one_word(self, word: str) -> IntArray:
        if self._one is not None:
            return self._one.word(word)
        return self._together([part.word(word) for part, _ in self._held.parts])

    def with_one_of(self, token: str, others: Sequence[str]) -> IntArray:
        """See :class:`Lookup`."""
        who, having = self.every_with(token), np.zeros(self._held.bases[-1], dtype=bool)
        for other in others:
            having[self.every_with(other)] = True
        found: IntArray = who[having[who]]
        return found

    def lengths(self, places: IntArray) -> FloatArray:
        """See :class:`Lookup`."""
        return self._held.lengths[places]

    def counts(
        self, tokens: Sequence[str], lists: Sequence[IntArray | None], places: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """See :class:`Lookup`."""
        if self._one is not None:
            return places, self.lengths(places), counts(self._one, tokens, places)
        found = np.zeros((len(tokens), len(places)))
        for (part, _), base in zip(self._held.parts, self._held.bases[:-1], strict=True):
            here = np.flatnonzero((places >= base) & (places < base + len(part)))
            if len(here):
                found[:, here] = counts(part, tokens, places[here] - base)
        return places, self.lengths(places), found


class KeywordIndex:
    """Hands out the index that belongs to what a connection sees, once there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        on_fork(self)
        self._held: Held | None = None
        self._builder: Builder | None = None
        self._state: State | None = None  # at which the building began, or of what cannot be built
        self._refused = False
        self._patience, self._waited = 1, 0  # recalls to let pass before the work begins; one may be all there are
        self.builds = self.follows = 0  # for tests

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._builder = self._state = None  # may be half done

    def held(self, connection: sqlite3.Connection) -> Held | None:
        """The index of what the read transaction that is open on ``connection`` sees, if it is made.

        That must be committed, and no memory wait for its terms.
        """
        if self._held is None:
            return None
        state = state_of(connection)
        with self._lock:
            held: Held | None = self._held
            if held is not None and held.state != state and held.state[0] <= state[0]:
                followed = _followed(connection, held, state)
                self.follows += followed is not None
                held = self._held = followed
            return held if held is not None and held.state == state else None

    def advance(self, connection: sqlite3.Connection, seconds: float) -> None:
        """Go on with the index, if there is none, after an answer that took so long; of what is seen the same holds."""
        if self._held is not None or not self._lock.acquire(blocking=False):
            return  # it is there, or another thread is at it
        try:
            state = state_of(connection)
            old = self._state
            begun = old is not None and self._builder is not None and _continues(connection, old, state)
            if old != state and not begun:
                if old is not None and state[0] < old[0]:
                    return  # another thread has seen more
                if self._builder is not None and len(self._builder):
                    # Written to before it was done: that will happen again, so wait and see for longer.
                    self._patience = min(2 * self._patience + 1, _MOST_PATIENCE)
                total, mean = postings.size(connection)
                self._refused = not 0 < total <= MOST or total * mean > MOST_TOKENS
                self._state, self._builder, self._waited = state, None if self._refused else Builder(), 0
            self._waited += 1
            if not self._refused and self._waited > self._patience:
                self._go_on(connection, state, perf_counter() + max(_SHARE * seconds, _LEAST))
        finally:
            self._lock.release()

    def _go_on(self, connection: sqlite3.Connection, state: State, until: float) -> None:
        assert self._builder is not None
        assert self._state is not None
        more = True
        while more:
            read = _read(connection, _AFTER, self._builder.last, _SLICE)
            if read is None:
                self._refused, self._builder = True, None
                return
            if read[0]:
                try:
                    self._builder.add(*read)
                except BaseException:
                    self._builder = self._state = None  # half added
                    raise
                more = perf_counter() < until
                continue
            part, began = self._builder.part(), self._state
            self._builder = self._state = None
            held = Held(began, ((part, np.ones(len(part), dtype=bool)),), *postings.size(connection))
            # What was written meanwhile is in it or not; read anew it is right.
            self._held = held if began == state else _followed(connection, held, state)
            if self._held is None or not _complete(self._held):
                self._held, self._state, self._refused = None, state, True
            else:
                self._patience = 0
                self.builds += 1
            return


def _complete(held: Held) -> bool:
    return sum(int(np.count_nonzero(alive)) for _, alive in held.parts) == held.total > 0


def _continues(connection: sqlite3.Connection, old: State, new: State) -> bool:
    """Whether the change log tells all that makes the new state of the search indexes another one than the old."""
    if old[1:] == new[1:]:
        return old[0] <= new[0]
    if old[0] >= new[0] or connection.execute("PRAGMA user_version").fetchone()[0] < schema.LABELS_LOGGED_SINCE:
        return False
    return log_reaches(connection, old[0])


def _read(connection: sqlite3.Connection, which: str, *values: object) -> tuple[list[Row], list[str]] | None:
    """Tokens and texts of some memories; ``None`` if they are not of the same memories, or no UTF-8."""
    try:
        rows = connection.execute(_TOKENS + which, values).fetchall()
        numbers = f"[{','.join(str(row[0]) for row in rows)}]"
        texts = connection.execute(_TEXTS + _AMONG, (numbers,)).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
        return None  # SQLite knows what to make of it
    if [row[0] for row in rows] != [row[0] for row in texts]:
        return None
    return rows, [text for _, text in texts]


def _followed(connection: sqlite3.Connection, held: Held, state: State) -> Held | None:
    """The index at a later state; ``None`` if the log does not tell what changed, or it is too much."""
    if not _continues(connection, held.state, state):
        return None
    if held.state[1:] == state[1:]:  # vectors came or went
        return Held(state, held.parts, held.total, held.mean)
    rows = connection.execute(_CHANGED, (held.state[0], _MOST_CHANGED + 1))
    numbers = np.fromiter((number for (number,) in rows), np.int64)
    if len(numbers) > _MOST_CHANGED:
        return None
    parts = [(part, _without(part, alive, numbers)) for part, alive in held.parts]
    # As long as the last is not small beside the one before, both are read into one.
    while len(parts) > 1 and np.count_nonzero(parts[-1][1]) <= 2 * len(numbers):
        part, alive = parts.pop()
        numbers = np.union1d(numbers, part.numbers[alive])
    read = _read(connection, _AMONG, number_list(numbers))
    if read is None:
        return None
    if read[0]:
        builder = Builder()
        builder.add(*read)
        made = builder.part()
        parts.append((made, np.ones(len(made), dtype=bool)))
    followed = Held(state, tuple(parts), *postings.size(connection))
    if len(followed.numbers) > 2 * followed.total + 1000 or sum(map(len, (p for p, _ in parts[1:]))) > _MOST_CHANGED:
        return None  # made anew it is smaller and quicker
    return followed if _complete(followed) else None


def _without(part: Part, alive: BoolArray, numbers: IntArray) -> BoolArray:
    gone = member(part.numbers, numbers)
    return alive & ~gone if gone.any() else alive
