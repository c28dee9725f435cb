"""Which memories have a phrase, as arrays of their numbers, and what bm25 needs to know besides.

Walking an FTS5 index costs a tenth of what its ``bm25()`` does a row: so the index is asked who has what, and those
that may matter are scored from their tokens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Literal

import numpy as np

from memlab.store.blocks import FloatArray, IntArray

Table = Literal["memory_terms", "memory_search"]

# One row instead of thousands that Python would have to take apart.
_ALL = {
    table: f"SELECT group_concat(rowid) FROM {table} WHERE {table} MATCH ?"
    for table in ("memory_terms", "memory_search")
}
_FIRST = {
    table: f"SELECT group_concat(rowid) FROM (SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?)"
    for table in ("memory_terms", "memory_search")
}
# The rows of memory_terms themselves; through the virtual table each costs twice as much.
_TEXTS = "SELECT id, c0, c1 FROM memory_terms_content WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
_LENGTHS = "SELECT id, sz FROM memory_terms_docsize WHERE id IN (SELECT value FROM json_each(?))"
_FREQUENCY = "SELECT doc FROM memory_terms_vocabulary WHERE term = ?"


def numbers_with(connection: sqlite3.Connection, table: Table, phrase: str, most: int | None = None) -> IntArray | None:
    """Numbers of the live memories that have a phrase, ascending; ``None`` if these are more than ``most``.

    Parameters
    ----------
    table : {"memory_terms", "memory_search"}
    phrase : str
        Text; its tokens have to follow one another.
    most : int, optional
    """
    match = quoted(phrase)
    if most is None:
        found = connection.execute(_ALL[table], (match,)).fetchone()[0]
    else:
        found = connection.execute(_FIRST[table], (match, most + 1)).fetchone()[0]
    numbers: IntArray = np.fromstring(found or "", np.int64, sep=",")
    return None if most is not None and len(numbers) > most else numbers


def numbers_with_one_of(connection: sqlite3.Connection, token: str, others: Sequence[str]) -> IntArray:
    """Numbers of the live memories that have a token and at least one of the others, which are rarer, ascending."""
    match = f"{quoted(token)} AND ({' OR '.join(map(quoted, others))})"
    found = connection.execute(_ALL["memory_terms"], (match,)).fetchone()[0]
    numbers: IntArray = np.fromstring(found or "", np.int64, sep=",")
    return numbers


def quoted(phrase: str) -> str:
    """A phrase as FTS5 takes it, whatever is in it."""
    return '"' + phrase.replace('"', '""') + '"'


def frequency(connection: sqlite3.Connection, token: str) -> int:
    """In how many memories a token stands."""
    row = connection.execute(_FREQUENCY, (token,)).fetchone()
    return 0 if row is None else int(row[0])


def size(connection: sqlite3.Connection) -> tuple[int, float]:
    """How many memories the term index has, and their mean length in tokens."""
    row = connection.execute("SELECT block FROM memory_terms_data WHERE id = 1").fetchone()
    rows, *tokens = _varints(row[0] if row is not None else b"") or [0]
    return rows, sum(tokens) / rows if rows else 0.0


def texts(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[tuple[int, str, str]]:
    """By number, ascending: the tokens of content and labels, each joined by single spaces."""
    return connection.execute(_TEXTS, (f"[{','.join(map(str, numbers))}]",)).fetchall()


def lengths(connection: sqlite3.Connection, numbers: Sequence[int]) -> FloatArray:
    """How many tokens each of these memories has, 0 for one that is not in the term index; shape (len(numbers),)."""
    rows = connection.execute(_LENGTHS, (f"[{','.join(map(str, numbers))}]",))
    known = {number: _length(sizes) for number, sizes in rows}
    return np.array([known.get(number, 0) for number in numbers], np.float64)


def _length(sizes: bytes) -> int:
    """The sum of the two sizes in a row of FTS5's."""
    if len(sizes) == 2:
        return sizes[0] + sizes[1]
    if len(sizes) == 3 and sizes[0] > 0x7F:
        return ((sizes[0] & 0x7F) << 7) + sizes[1] + sizes[2]
    return sum(_varints(sizes))


def _varints(block: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, high ones first (all eight of a ninth)."""
    values: list[int] = []
    value = count = 0
    for byte in block:
        count += 1
        if count == 9:
            values.append(value << 8 | byte)
            value = count = 0
        elif byte & 0x80:
            value = value << 7 | byte & 0x7F
        else:
            values.append(value << 7 | byte)
            value = count = 0
    return values
