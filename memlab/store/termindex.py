"""The term index: what :mod:`memlab.store.analysis` makes of each live memory, kept in step with the memories.

The schema's triggers say which memories have to be analysed; the functions here do it, inside their caller's write
transaction. Until then a memory waits in ``memory_terms_pending``, which is committed with the change itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator

from memlab.store import schema
from memlab.store.analysis import ANALYSIS_VERSION, joined_tokens

BATCH = 2000

# As blobs: a foreign program may have stored what is no UTF-8, and that must not stop every later write.
_TEXTS = """
    CAST(m.content AS BLOB), CAST(m.category AS BLOB), CAST(m.project AS BLOB),
    CASE WHEN m.tags <> '[]' THEN CAST((SELECT group_concat(value, ' ') FROM json_each(m.tags)) AS BLOB) END,
    CASE WHEN m.related_files <> '[]'
        THEN CAST((SELECT group_concat(value, ' ') FROM json_each(m.related_files)) AS BLOB) END"""
_PENDING = f"""
SELECT p.number, {_TEXTS} FROM memory_terms_pending p
LEFT JOIN memory_numbers n ON n.number = p.number
LEFT JOIN memories m ON m.id = n.id AND m.trashed_at IS NULL ORDER BY p.number LIMIT ?"""
_INSERT = "INSERT INTO memory_terms (rowid, content, labels) VALUES (?, ?, ?)"
_STORED = f"""
SELECT n.id, t.content, t.labels, {_TEXTS} FROM memory_terms t
JOIN memory_numbers n ON n.number = t.rowid JOIN memories m ON m.id = n.id WHERE m.trashed_at IS NULL"""


def exists(connection: sqlite3.Connection) -> bool:
    """Whether the file, as the transaction sees it, has a term index at all."""
    row = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'memory_terms_pending'").fetchone()
    return row is not None


def ready(connection: sqlite3.Connection) -> bool:
    """Whether the term index is there, made by this version's rules, and has every live memory."""
    if not of_this_version(connection):
        return False
    return connection.execute("SELECT 1 FROM memory_terms_pending LIMIT 1").fetchone() is None


def of_this_version(connection: sqlite3.Connection) -> bool:
    """Whether there is an index, made by this version's rules."""
    row = connection.execute("SELECT value FROM store_settings WHERE key = 'analysis_version'").fetchone()
    return row is not None and row[0] == str(ANALYSIS_VERSION)


def many_pending(connection: sqlite3.Connection) -> bool:
    """Whether more is to do than should be done in one transaction."""
    if not of_this_version(connection):
        return True
    count = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM memory_terms_pending LIMIT {BATCH + 1})")
    return bool(count.fetchone()[0] > BATCH)


def start_anew(connection: sqlite3.Connection) -> None:
    """Empty the index and let every live memory wait for its terms."""
    connection.execute("DROP TABLE memory_terms")
    connection.execute(schema.TERMS_TABLE)
    connection.execute(schema.gather("memory_terms"))
    connection.execute(schema.ALL_TERMS_PENDING)
    connection.execute(
        "INSERT INTO store_settings (key, value) VALUES ('analysis_version', :version) "
        "ON CONFLICT (key) DO UPDATE SET value = :version",
        {"version": str(ANALYSIS_VERSION)},
    )


def update(connection: sqlite3.Connection, batches: int | None = None) -> int:
    """Index what is pending and return how many memories that were.

    Parameters
    ----------
    batches : int, optional
        At most so many times :data:`BATCH` memories; all by default.
    """
    if not of_this_version(connection):
        start_anew(connection)
    done = 0
    while batches is None or batches > 0:
        rows = connection.execute(_PENDING, (BATCH,)).fetchall()
        if not rows:
            break
        last = rows[-1][0]
        connection.execute(
            "DELETE FROM memory_terms WHERE rowid IN (SELECT number FROM memory_terms_pending WHERE number <= ?)",
            (last,),
        )
        connection.executemany(
            _INSERT,
            ((number, *_terms(texts)) for number, *texts in rows if texts[0] is not None),
        )
        connection.execute("DELETE FROM memory_terms_pending WHERE number <= ?", (last,))
        done += len(rows)
        batches = None if batches is None else batches - 1
    return done


def rows(memories: Iterable[tuple[int, str, tuple[str | None, str | None, str, str]]]) -> list[tuple[int, str, str]]:
    """What :func:`add` takes, of live memories.

    Parameters
    ----------
    memories : iterable of (number, content, labels)
        Labels: category and project; tags and files as the JSON that the columns hold.
    """
    known: dict[tuple[str | None, str | None, str, str], str] = {}  # few differ among many memories
    found = []
    for number, content, labels in memories:
        if labels not in known:
            category, project, *lists = labels
            listed = [" ".join(json.loads(texts)) for texts in lists]
            known[labels] = _joined([category or "", project or "", *listed])
        found.append((number, joined_tokens(content), known[labels]))
    return found


def add(connection: sqlite3.Connection, terms: Iterable[tuple[int, str, str]]) -> None:
    """Index memories that are neither in the index nor waiting for it, given as number, content and labels."""
    connection.executemany(_INSERT, terms)


def _terms(texts: list[bytes | None]) -> tuple[str, str]:
    """The columns ``content`` and ``labels`` of a memory."""
    content, *labels = map(_text, texts)
    return joined_tokens(content), _joined(labels)


def _joined(texts: Iterable[str]) -> str:
    return " ".join(filter(None, map(joined_tokens, texts)))


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")


def differing(connection: sqlite3.Connection) -> Iterator[str]:
    """Ids of live memories whose terms are not what their texts give."""
    for memory_id, content, labels, *texts in connection.execute(_STORED):
        if (content, labels) != _terms(texts):
            yield memory_id
