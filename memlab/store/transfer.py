"""Whole memories out of a store and into one: everything that is kept of each, as an export needs it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memlab.encoders.base import EncoderStamp
from memlab.errors import IdempotencyError, MemlabError
from memlab.store import writing
from memlab.store.encoding import Encoded, recorded_encoder
from memlab.store.filters import Filters
from memlab.store.records import SELECT_COLUMNS, Draft, Memory

if TYPE_CHECKING:
    from memlab.store.store import MemoryStore


@dataclass(frozen=True)
class WholeMemory:
    """A memory and all that hangs on it.

    Attributes
    ----------
    memory : Memory
    revisions : tuple of (content, replaced_at)
        Former contents, oldest first.
    keys : mapping of str to str
        Idempotency keys to the hash of the content that they stand for.
    encoded : Encoded or None
        Vectors, if there are any and they were asked for.
    encoder : EncoderStamp or None
        Whose vectors these are.
    """

    memory: Memory
    revisions: tuple[tuple[str, str], ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    encoded: Encoded | None = None
    encoder: EncoderStamp | None = None


@dataclass(frozen=True)
class Arrival:
    """A checked memory on its way in, with what it brings along.

    Attributes
    ----------
    draft : Draft
    label : str
        Where it comes from, for messages.
    revisions, keys
        As in :class:`WholeMemory`.
    encoded : Encoded or None
        Vectors of the encoder given to :func:`take_in`.
    """

    draft: Draft
    label: str
    revisions: tuple[tuple[str, str], ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    encoded: Encoded | None = None


@dataclass(frozen=True)
class Taken:
    """What :func:`take_in` did: how many were new, how many were there; new ids that have vectors; exact duplicates."""

    created: int
    existing: int
    with_vector: int
    duplicates: Mapping[str, tuple[str, ...]]


@contextlib.contextmanager
def whole_memories(
    store: MemoryStore, filters: Filters, *, trashed: bool | None, vectors: bool
) -> Iterator[Iterator[WholeMemory]]:
    """The memories that pass the filters, oldest first, then by id; all as of one commit.

    Parameters
    ----------
    trashed : bool or None
        ``True`` for the trash alone, ``None`` for all.
    vectors : bool
        Read vectors too.
    """
    with store._file.read() as connection:
        yield _whole(connection, filters, trashed, vectors)


def _whole(
    connection: sqlite3.Connection, filters: Filters, trashed: bool | None, vectors: bool
) -> Iterator[WholeMemory]:
    where, values = filters.sql()
    if trashed is not None:
        where += f" AND m.trashed_at IS {'NOT ' if trashed else ''}NULL"
    encoder_id, encoder = recorded_encoder(connection)
    sql = f"SELECT {SELECT_COLUMNS}, m.vector IS NULL, m.vector, m.encoder_id FROM memories m WHERE {where}"
    for row in connection.execute(f"{sql} ORDER BY m.created_at, m.id", values):
        *plain, vector, made_by = row
        one = (row[0],)
        encoded = None
        if vectors and vector is not None and made_by == encoder_id:
            passages = connection.execute(
                "SELECT start_offset, end_offset, vector FROM memory_passages WHERE memory_id = ? ORDER BY position",
                one,
            )
            encoded = Encoded(vector, tuple(passages.fetchall()))
        yield WholeMemory(
            memory=Memory.from_row(tuple(plain)),
            revisions=tuple(
                connection.execute(
                    "SELECT content, replaced_at FROM memory_revisions WHERE memory_id = ? ORDER BY revision", one
                ).fetchall()
            ),
            keys=dict(
                connection.execute(
                    "SELECT key, content_hash FROM idempotency_keys WHERE memory_id = ? ORDER BY key", one
                ).fetchall()
            ),
            encoded=encoded,
            encoder=encoder if encoded else None,
        )


def take_in(store: MemoryStore, arrivals: Sequence[Arrival], made_by: EncoderStamp | None) -> Taken:
    """Store memories with what they bring along, all in one transaction; those without vectors wait for them.

    Parameters
    ----------
    made_by : EncoderStamp or None
        Whose vectors the arrivals carry. If the store's encoder is another one they are left out.

    Raises
    ------
    DuplicateIdError, IdempotencyError
        If an id or a key stands for other content; nothing is stored then.
    """
    existing = 0
    fresh: list[Arrival] = []
    with store._file.write() as connection:
        encoder_id: int | None = None
        if made_by is not None and any(new.encoded for new in arrivals):
            encoder_id, _ = store._writer.encoder_for(connection, made_by, "")
        present = writing.present(
            connection,
            (new.draft.memory_id for new in arrivals),
            (key for new in arrivals for key in (*new.keys, new.draft.key) if key is not None),
        )
        for new in arrivals:
            try:
                known = _already_there(present, new)
            except MemlabError as error:
                error.args = (f"{new.label}: {error}", *error.args[1:])
                raise
            if known is not None:
                existing += 1
                continue
            fresh.append(new)
            present.contents[new.draft.memory_id] = new.draft.content
            for key, hashed in _keys(new).items():
                present.keys[key] = (new.draft.memory_id, hashed)
        drafts = [new.draft for new in fresh]
        same = writing.same_content(connection, [new.content for new in drafts])
        encoded = [new.encoded if encoder_id is not None else None for new in fresh]
        writing.insert(connection, drafts, encoded, encoder_id)
        _insert_rest(connection, fresh)
    duplicates: dict[str, tuple[str, ...]] = {}
    for new_draft in drafts:
        of = same.setdefault(new_draft.content, [])
        if of:
            duplicates[new_draft.memory_id] = tuple(sorted(of))
        if new_draft.live:
            of.append(new_draft.memory_id)
    return Taken(len(fresh), existing, sum(has is not None for has in encoded), duplicates)


def _keys(new: Arrival) -> dict[str, str]:
    """Idempotency keys to the hash of their content, that of the draft included."""
    own = {} if new.draft.key is None else {new.draft.key: writing.content_hash(new.draft.content)}
    return {**own, **new.keys}


def _already_there(present: writing.Present, new: Arrival) -> str | None:
    for key, hashed in new.keys.items():
        stands_for = present.keys.get(key)
        if stands_for is None or stands_for[0] == new.draft.memory_id:
            continue
        memory_id, found = stands_for
        if found != hashed:
            raise IdempotencyError(
                f"the idempotency key {key!r} of memory {new.draft.memory_id} stands for memory {memory_id} in this "
                "store, which was stored with other content; take the key out of the line, or purge the memory"
            )
        return memory_id
    return present.find(new.draft)


def _insert_rest(connection: sqlite3.Connection, fresh: Sequence[Arrival]) -> None:
    connection.executemany(
        "INSERT INTO memory_revisions (memory_id, revision, content, replaced_at) VALUES (?, ?, ?, ?)",
        [(new.draft.memory_id, number, *revision) for new in fresh for number, revision in enumerate(new.revisions, 1)],
    )
    connection.executemany(
        "INSERT INTO idempotency_keys (key, memory_id, content_hash) VALUES (?, ?, ?)",
        [(key, new.draft.memory_id, hashed) for new in fresh for key, hashed in new.keys.items()],
    )
