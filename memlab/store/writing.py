"""The SQL that adds and changes memories; each function runs inside its caller's write transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.errors import DuplicateIdError, IdempotencyError, UnknownMemory
from memlab.store import bulk
from memlab.store.encoding import Encoded
from memlab.store.records import Draft, is_storable, shorten

_INSERT_PASSAGE = (
    "INSERT INTO {table} (memory_id, position, start_offset, end_offset, vector{more}) VALUES (?, ?, ?, ?, ?{marks})"
)


def content_hash(content: str) -> str:
    """SHA-256 of the content, hexadecimal."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


@dataclass
class Present:
    """What the store has under the ids and idempotency keys of memories on their way in.

    Attributes
    ----------
    contents : dict of str to str
        Memory id to content.
    keys : dict of str to (memory_id, content_hash)
    """

    contents: dict[str, str]
    keys: dict[str, tuple[str, str]]

    def find(self, new: Draft) -> str | None:
        """The id under which ``new`` is there already, by its idempotency key or its id.

        Raises
        ------
        IdempotencyError
            If the key was used for other content.
        DuplicateIdError
            If the id is taken by a memory with other content.
        """
        if new.key is not None and (stands_for := self.keys.get(new.key)) is not None:
            memory_id, hashed = stands_for
            if hashed != content_hash(new.content):
                raise IdempotencyError(
                    f"the idempotency key {new.key!r} stands for memory {memory_id}, which was stored with other "
                    f"content than {shorten(new.content, 60)!r}; use a new key, or update({memory_id!r}, ...)"
                )
            return memory_id
        content = self.contents.get(new.memory_id)
        if content is None:
            return None
        if content != new.content:
            raise DuplicateIdError(
                f"memory {new.memory_id} exists with other content ({shorten(content, 60)!r}); choose another id, "
                f"or update({new.memory_id!r}, ...)"
            )
        return new.memory_id


def present(connection: sqlite3.Connection, ids: Iterable[str], keys: Iterable[str]) -> Present:
    """Look up ids and idempotency keys."""
    contents = connection.execute(
        "SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))", (_json(ids),)
    )
    found = Present(dict(contents.fetchall()), {})
    if wanted := list(keys):
        rows = connection.execute(
            "SELECT key, memory_id, content_hash FROM idempotency_keys WHERE key IN (SELECT value FROM json_each(?))",
            (_json(wanted),),
        )
        found.keys.update((key, (memory_id, hashed)) for key, memory_id, hashed in rows)
    return found


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def keep_key(connection: sqlite3.Connection, new: Draft, memory_id: str) -> None:
    """Let the key of a draft that was found in the store by its id stand for that memory from now on."""
    if new.key is not None:
        connection.execute(
            "INSERT INTO idempotency_keys (key, memory_id, content_hash) "
            "SELECT :key, :id, :hash WHERE NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE key = :key)",
            {"key": new.key, "id": memory_id, "hash": content_hash(new.content)},
        )


def same_content(connection: sqlite3.Connection, contents: Sequence[str]) -> dict[str, list[str]]:
    """Content to the ids, ascending, of the live memories that have it to the letter; without those nobody has."""
    found: dict[str, list[str]] = {}
    wanted = dict.fromkeys(contents)
    plain = [content for content in wanted if "\x00" not in content]  # where SQLite's JSON functions end a text
    # The plus: from `content = value` SQLite would work out the substr() and then not see that an index has it.
    rows = connection.execute(
        "SELECT w.key, m.id FROM json_each(?) w CROSS JOIN memories m "
        "ON substr(content, 1, 48) = substr(w.value, 1, 48) AND length(content) = length(w.value) "
        "AND +content = w.value WHERE m.trashed_at IS NULL ORDER BY m.id",
        (_json(plain),),
    ).fetchall()
    rows = [(plain[at], memory_id) for at, memory_id in rows]
    for content in (content for content in wanted if "\x00" in content):
        odd = connection.execute(
            "SELECT id FROM memories WHERE substr(content, 1, 48) = substr(:text, 1, 48) "
            "AND length(content) = length(:text) AND +content = :text AND trashed_at IS NULL ORDER BY id",
            {"text": content},
        )
        rows += [(content, memory_id) for (memory_id,) in odd]
    for content, memory_id in rows:
        found.setdefault(content, []).append(memory_id)
    return found


def insert(
    connection: sqlite3.Connection, drafts: Sequence[Draft], encoded: Sequence[Encoded | None], encoder_id: int | None
) -> None:
    """Add new memories; one without an ``Encoded`` is kept as pending."""
    bulk.insert(connection, drafts, [_vector(has, encoder_id) for has in encoded])
    _insert_passages(
        connection,
        ((new.memory_id, has) for new, has in zip(drafts, encoded, strict=True) if has and has.passages),
        encoder_id,
    )
    connection.executemany(
        "INSERT INTO idempotency_keys (key, memory_id, content_hash) VALUES (?, ?, ?)",
        [(new.key, new.memory_id, content_hash(new.content)) for new in drafts if new.key is not None],
    )


def _vector(encoded: Encoded | None, encoder_id: int | None) -> tuple[bytes | None, int | None]:
    return (None, None) if encoded is None else (encoded.vector, encoder_id)


def _insert_passages(connection: sqlite3.Connection, of: Iterable[tuple[str, Encoded]], encoder_id: int | None) -> None:
    connection.executemany(
        _INSERT_PASSAGE.format(table="memory_passages", more=", encoder_id", marks=", ?"),
        (
            (memory_id, position, start, end, vector, encoder_id)
            for memory_id, encoded in of
            for position, (start, end, vector) in enumerate(encoded.passages)
        ),
    )


def set_vectors(connection: sqlite3.Connection, of: Iterable[tuple[str, str, Encoded]], encoder_id: int) -> int:
    """Give vectors to memories, of which each still has the content that was encoded; returns how many had.

    Parameters
    ----------
    of : iterable of (memory_id, content, Encoded)
    """
    done = 0
    for memory_id, content, encoded in of:
        changed = connection.execute(
            "UPDATE memories SET vector = ?, encoder_id = ? WHERE id = ? AND content = ?",
            (encoded.vector, encoder_id, memory_id, content),
        ).rowcount
        if changed:
            connection.execute("DELETE FROM memory_passages WHERE memory_id = ?", (memory_id,))
            _insert_passages(connection, [(memory_id, encoded)], encoder_id)
            done += 1
    return done


def stage(connection: sqlite3.Connection, of: Iterable[tuple[str, str, Encoded]]) -> None:
    """Put aside vectors for the end of a re-embedding, of those memories that still have the content."""
    for memory_id, content, encoded in of:
        if connection.execute("SELECT 1 FROM memories WHERE id = ? AND content = ?", (memory_id, content)).fetchone():
            connection.execute("DELETE FROM staged_vectors WHERE memory_id = ?", (memory_id,))
            connection.execute("DELETE FROM staged_passages WHERE memory_id = ?", (memory_id,))
            connection.execute(
                "INSERT INTO staged_vectors (memory_id, vector) VALUES (?, ?)", (memory_id, encoded.vector)
            )
            connection.executemany(
                _INSERT_PASSAGE.format(table="staged_passages", more="", marks=""),
                [(memory_id, at, start, end, vector) for at, (start, end, vector) in enumerate(encoded.passages)],
            )


def change_columns(connection: sqlite3.Connection, memory_id: str, columns: dict[str, Any]) -> None:
    """Set columns of one memory; triggers see to the search index, the revisions and the vectors."""
    names = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE memories SET {names} WHERE id = ?", [*columns.values(), memory_id])


def with_tags(connection: sqlite3.Connection, memory_id: str, more: str, tags: str | None = None) -> str:
    """The tags, by default those that a memory has, with ``more`` behind them; all of them JSON lists."""
    if tags is None:
        (tags,) = connection.execute("SELECT tags FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return _json(dict.fromkeys([*json.loads(tags or "[]"), *json.loads(more)]))


def require(connection: sqlite3.Connection, memory_id: str, *, live: bool = False) -> None:
    """Raise :class:`UnknownMemory` unless the memory exists (and is not in the trash)."""
    row = None
    if is_storable(memory_id):
        row = connection.execute("SELECT trashed_at FROM memories WHERE id = ?", (memory_id,)).fetchone()
    if row is None:
        raise UnknownMemory(f"no memory has the id {memory_id!r}; `memlab list` shows the ids, in Python memories()")
    if live and row[0] is not None:
        raise UnknownMemory(f"memory {memory_id} is in the trash since {row[0]}; restore({memory_id!r}) brings it back")
