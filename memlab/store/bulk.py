"""New memories into all tables at once: what the triggers of an insertion do for each, done once for all of them.

The triggers look at the table ``bulk_write`` and stand aside while it has a row. The row is put in and taken out inside
one write transaction: no other connection sees it, and after an exception or a crash it is rolled back with the rest.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from itertools import chain, count
from operator import itemgetter
from typing import Any

from memlab.store import schema, termindex
from memlab.store.records import DRAFT_COLUMNS, Draft

_COLUMNS = ("id", "content", "vector", "encoder_id", *DRAFT_COLUMNS)
_INSERT = f"INSERT INTO memories ({', '.join(_COLUMNS)}) VALUES "
_ROW = f"({', '.join('?' * len(_COLUMNS))})"
# A table with triggers makes SQLite copy every page that a statement changes, lest it has to undo the statement alone:
# half the time of an insertion, if every row is a statement. Older builds of SQLite take 999 values in one.
_AT_ONCE = 999 // len(_COLUMNS)
_INSERT_SEARCH = (
    "INSERT INTO memory_search (rowid, id, content, category, project, tags, files) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_LABELS = itemgetter(*map(DRAFT_COLUMNS.index, ("category", "project", "tags", "related_files")))


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
    if _has_numbers(connection, [new.memory_id for new in drafts]):
        # Left behind by a program that had the triggers switched off; they know what to do about it.
        connection.executemany(_INSERT + _ROW, rows)
        return
    connection.execute("INSERT INTO bulk_write (active) VALUES (1)")
    whole = len(rows) - len(rows) % _AT_ONCE
    connection.executemany(
        _INSERT + ", ".join([_ROW] * _AT_ONCE),
        (list(chain.from_iterable(rows[at : at + _AT_ONCE])) for at in range(0, whole, _AT_ONCE)),
    )
    connection.executemany(_INSERT + _ROW, rows[whole:])
    connection.executemany("INSERT INTO memory_numbers (id) VALUES (?)", [(new.memory_id,) for new in drafts])
    (last,) = connection.execute("SELECT max(number) FROM memory_numbers").fetchone()
    first = last - len(drafts) + 1
    live = [(number, new) for number, new in zip(count(first), drafts) if new.live]
    labels = [_LABELS(new.columns) for _, new in live]
    columns = {key: _search_columns(*key) for key in set(labels)}  # few differ among many memories
    connection.executemany(
        _INSERT_SEARCH,
        [(number, new.memory_id, new.content, *columns[key]) for (number, new), key in zip(live, labels, strict=True)],
    )
    termindex.add(
        connection, [(number, new.content, columns[key]) for (number, new), key in zip(live, labels, strict=True)]
    )
    connection.execute(
        "INSERT INTO memory_changes (number) SELECT number FROM memory_numbers WHERE number >= ? ORDER BY number",
        (first,),
    )
    connection.execute(schema.PRUNE_CHANGES)
    connection.execute("DELETE FROM bulk_write")


def _has_numbers(connection: sqlite3.Connection, ids: list[str]) -> bool:
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM memory_numbers WHERE id IN (SELECT value FROM json_each(?)))", (json.dumps(ids),)
    )
    return bool(found.fetchone()[0])


def _search_columns(category: str, project: str | None, tags: str, files: str) -> tuple[str | None, ...]:
    """The columns of ``memory_search`` besides the content."""
    return category, project, _joined(tags), _joined(files)


def _joined(texts: str) -> str | None:
    return " ".join(json.loads(texts)) if texts != "[]" else None
