"""New memories into all tables at once: what the triggers of an insertion do for each, done once for all of them.

The triggers look at the table ``bulk_write`` and stand aside while it has a row. The row is put in and taken out inside
one write transaction: no other connection sees it, and after an exception or a crash it is rolled back with the rest.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from memlab.store import schema, termindex
from memlab.store.records import DRAFT_COLUMNS, Draft

_COLUMNS = ("id", "content", "vector", "encoder_id", *DRAFT_COLUMNS)
_INSERT = f"INSERT INTO memories ({', '.join(_COLUMNS)}) VALUES "
_ROW = f"({', '.join('?' * len(_COLUMNS))})"
# A table with triggers makes SQLite copy every page that a statement changes, lest it has to undo the statement alone:
# half the time of an insertion, if every row is a statement.
_AT_ONCE = (500, 50)
# The new rows are the last of their table, and their numbers the last numbers, in the same order.
_INSERT_NUMBERS = "INSERT INTO memory_numbers (id) SELECT id FROM memories WHERE rowid > ? ORDER BY rowid"
_INSERT_SEARCH = """
INSERT INTO memory_search (rowid, id, content, category, project, tags, files)
SELECT rowid + :shift, id, content, category, project,
    CASE WHEN tags <> '[]' THEN (SELECT group_concat(value, ' ') FROM json_each(tags)) END,
    CASE WHEN related_files <> '[]' THEN (SELECT group_concat(value, ' ') FROM json_each(related_files)) END
FROM memories WHERE rowid > :before AND trashed_at IS NULL ORDER BY rowid"""
_INSERT_CHANGES = (
    "INSERT INTO memory_changes (number) SELECT number FROM memory_numbers WHERE number > ? ORDER BY number"
)
_LABELS = itemgetter(*map(DRAFT_COLUMNS.index, ("category", "project", "tags", "related_files")))
_WORTH_A_THREAD = 1000
_LAST_ROW = 1 << 62  # beyond it SQLite may run out of numbers for rows and pick any that is free


def insert(connection: sqlite3.Connection, drafts: Sequence[Draft], vectors: Sequence[tuple[Any, Any]]) -> None:
    """Add memories that are not in the store, inside the caller's write transaction.

    An exception leaves the work half done and the triggers standing aside: the transaction must be rolled back then.

    Parameters
    ----------
    vectors : sequence of (bytes or None, int or None)
        Vector and encoder id of each.
    """
    rows = [(new.memory_id, new.content, *vector, *new.columns) for new, vector in zip(drafts, vectors, strict=True)]
    if not rows:
        return
    before = _last(connection, "SELECT max(rowid) FROM memories")
    if before > _LAST_ROW or _has_numbers(connection, [new.memory_id for new in drafts]):
        # Left behind by a program that had the triggers switched off; they know what to do about it.
        connection.executemany(_INSERT + _ROW, rows)
        return
    connection.execute("INSERT INTO bulk_write (active) VALUES (1)")
    live = [(place, new.content, _LABELS(new.columns)) for place, new in enumerate(drafts) if new.live]
    fill = partial(_fill, connection, rows, before)
    if len(rows) < _WORTH_A_THREAD:
        last, terms = fill(), termindex.rows(live)
    else:
        # SQLite needs little of Python for the one, and Python no SQLite for the other.
        with ThreadPoolExecutor(1, "memlab-rows") as pool:
            done = pool.submit(fill)
            terms = termindex.rows(live)
            last = done.result()
    termindex.add(connection, ((last + place + 1, content, labels) for place, content, labels in terms))
    connection.execute("DELETE FROM bulk_write")


def _fill(connection: sqlite3.Connection, rows: list[tuple[Any, ...]], before: int) -> int:
    """Add the rows, their numbers, and what is looked for by words; returns the last number before theirs."""
    # Few long statements: between two this thread may have to wait for the one that is at work in Python.
    most, start = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(_COLUMNS), 0
    for at_once in (*(min(size, most) for size in _AT_ONCE), 1):
        end = len(rows) - (len(rows) - start) % at_once
        if end > start:
            connection.executemany(
                _INSERT + ", ".join([_ROW] * at_once),
                (list(chain.from_iterable(rows[at : at + at_once])) for at in range(start, end, at_once)),
            )
        start = end
    connection.execute(_INSERT_NUMBERS, (before,))
    last = _last(connection, "SELECT max(number) FROM memory_numbers") - len(rows)
    connection.execute(_INSERT_CHANGES, (last,))
    connection.execute(schema.PRUNE_CHANGES)
    connection.execute(_INSERT_SEARCH, {"shift": last - before, "before": before})
    return last


def _last(connection: sqlite3.Connection, look: str) -> int:
    return int(connection.execute(look).fetchone()[0] or 0)


def _has_numbers(connection: sqlite3.Connection, ids: list[str]) -> bool:
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM memory_numbers WHERE id IN (SELECT value FROM json_each(?)))", (json.dumps(ids),)
    )
    return bool(found.fetchone()[0])
