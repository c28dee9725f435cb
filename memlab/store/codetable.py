"""The codes of a large store's vectors, kept in the file: a reader loads 96 bytes a vector instead of 1,536.

They follow the change log of the schema's triggers: a setting says up to which change they are complete. Whoever
writes through memlab brings them up to date in the same transaction; what other programs changed since then a reader
takes from the vectors. Small stores have none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from memlab.store.blocks import CodedBlock, IntArray, member, put
from memlab.store.codes import CODES_VERSION, Bytes, code_bytes, encode
from memlab.store.vectorfile import (
    DOCUMENTS,
    PASSAGES,
    Kind,
    chunks,
    last_change,
    log_reaches,
    number_list,
    pieces,
    read_vectors,
    select_vectors,
)

LARGE = 20_000
"""Vectors, of documents and passages together, beyond which a store has codes."""
SMALL = 12_000
"""Vectors below which it has none any more."""
BATCH = 16_384
"""Memories that are coded in one transaction where all are."""
PER_BLOCK = 64
"""Memory numbers whose codes are in one row of the tables."""

SETTING = "vector_codes"
_TABLES = {DOCUMENTS: "document_codes", PASSAGES: "passage_codes"}
# As blobs, whatever somebody has put there.
_COLUMNS = "block, CAST(owners AS BLOB), CAST(labels AS BLOB), CAST(places AS BLOB), CAST(codes AS BLOB)"


@dataclass(frozen=True)
class State:
    """What the file says about its codes.

    Attributes
    ----------
    version : int
        :data:`memlab.store.codes.CODES_VERSION` of whoever made them.
    encoder_id, dimension : int
        Whose vectors were coded.
    change : int
        The last change that is in them.
    documents, passages : int
        How many there are.
    reached : int or None
        While they are being made: memories with this number and later ones are still to do. ``None`` when all are done.
    """

    version: int
    encoder_id: int
    dimension: int
    change: int
    documents: int = 0
    passages: int = 0
    reached: int | None = 0

    def fits(self, encoder_id: int | None, dimension: int) -> bool:
        """Whether these are codes of this encoder's vectors, by this version's rules."""
        return (self.version, self.encoder_id, self.dimension) == (CODES_VERSION, encoder_id, dimension)


def state(connection: sqlite3.Connection) -> State | None:
    """What the file says, or ``None`` if it has no codes."""
    row = connection.execute("SELECT value FROM store_settings WHERE key = ?", (SETTING,)).fetchone()
    if row is None:
        return None
    try:
        found = State(**json.loads(row[0]))
    except (TypeError, ValueError):
        return None
    numbers = {name: value for name, value in asdict(found).items() if (name, value) != ("reached", None)}
    return found if all(type(value) is int for value in numbers.values()) else None


def _record(connection: sqlite3.Connection, found: State) -> None:
    connection.execute(
        "INSERT INTO store_settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (SETTING, json.dumps(asdict(found))),
    )


def exist(connection: sqlite3.Connection) -> bool:
    """Whether the file's schema has a place for codes."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'document_codes'").fetchone() is not None


def large(connection: sqlite3.Connection, limit: int) -> bool:
    """Whether there are more memories and passages than ``limit``; counts no further than that."""
    total = 0
    for table, key in (("memory_numbers", "number"), ("memory_passages", "id")):
        most = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] or 0
        if total + most > limit:
            most = connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?)", (limit + 1,)).fetchone()[
                0
            ]
        total += most
    return bool(total > limit)


def drop(connection: sqlite3.Connection) -> None:
    """Take all codes out."""
    for table in _TABLES.values():
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM store_settings WHERE key = ?", (SETTING,))


def many_to_do(connection: sqlite3.Connection) -> bool:
    """Whether a large store has no codes, or not all of them: more than should be made in somebody's transaction."""
    found, (encoder_id, dimension) = state(connection), _encoder(connection)
    if encoder_id is None:
        return False
    if found is None or not found.fits(encoder_id, dimension):
        return large(connection, LARGE)
    return found.reached is not None or not log_reaches(connection, found.change)


def update(connection: sqlite3.Connection) -> bool:
    """Bring the codes up to date; a store that has become large begins to have some, :data:`BATCH` memories a call.

    Returns
    -------
    bool
        Whether memories are left to do.
    """
    encoder_id, dimension = _encoder(connection)
    found = state(connection)
    if encoder_id is None or (found is not None and not found.fits(encoder_id, dimension)):
        drop(connection)
        found = None
    if encoder_id is None or (found is None and not large(connection, LARGE)):
        return False
    change = last_change(connection)
    if found is None or not log_reaches(connection, found.change):
        drop(connection)
        found = State(CODES_VERSION, encoder_id, dimension, change)
    elif found.change < change:
        try:
            found = replace(_follow(connection, found), change=change)
        except DamagedCodes:
            drop(connection)
            found = State(CODES_VERSION, encoder_id, dimension, change)
    if found.reached is not None:
        found = _go_on(connection, found)
    elif found.documents + found.passages < SMALL and not large(connection, LARGE):
        drop(connection)
        return False
    _record(connection, found)
    return found.reached is not None


def _encoder(connection: sqlite3.Connection) -> tuple[int | None, int]:
    row = connection.execute(
        "SELECT e.id, e.dimension FROM store_settings s JOIN encoders e ON e.id = CAST(s.value AS INTEGER) "
        "WHERE s.key = 'encoder_id'"
    ).fetchone()
    return (None, 0) if row is None else (row[0], row[1])


def _follow(connection: sqlite3.Connection, found: State) -> State:
    """Make the codes of what changed anew, of those memories that have had their turn."""
    end = "" if found.reached is None else f" AND number < {found.reached}"
    rows = connection.execute(
        f"SELECT DISTINCT number FROM memory_changes WHERE change > ?{end} ORDER BY number", (found.change,)
    )
    numbers = np.fromiter((row[0] for row in rows), np.int64)
    counts = {DOCUMENTS: found.documents, PASSAGES: found.passages}
    for start in range(0, len(numbers), BATCH):
        part = numbers[start : start + BATCH]
        for kind in counts:
            *keys, matrix = read_vectors(connection, kind, found.encoder_id, found.dimension, among=number_list(part))
            counts[kind] += _replace(connection, kind, part, np.stack(keys), encode(matrix))
    return replace(found, documents=counts[DOCUMENTS], passages=counts[PASSAGES])


def _go_on(connection: sqlite3.Connection, found: State) -> State:
    """Code the next memories that have had none yet."""
    assert found.reached is not None
    row = connection.execute(
        "SELECT number FROM memory_numbers WHERE number >= ? ORDER BY number LIMIT 1 OFFSET ?", (found.reached, BATCH)
    ).fetchone()
    # Whole rows of the tables, so that none is written twice.
    end = None if row is None else max(row[0] // PER_BLOCK, found.reached // PER_BLOCK + 1) * PER_BLOCK
    counts = {DOCUMENTS: found.documents, PASSAGES: found.passages}
    for kind in counts:
        *keys, matrix = read_vectors(
            connection, kind, found.encoder_id, found.dimension, since=found.reached, before=end
        )
        _write(connection, kind, np.stack(keys), encode(matrix))
        counts[kind] += len(matrix)
    if end is None:
        return replace(found, documents=counts[DOCUMENTS], passages=counts[PASSAGES], reached=None)
    return replace(found, documents=counts[DOCUMENTS], passages=counts[PASSAGES], reached=end)


def _replace(connection: sqlite3.Connection, kind: Kind, numbers: IntArray, keys: IntArray, codes: Bytes) -> int:
    """Put codes in the place of all that these memories (ascending) have; returns how many more there are now.

    ``keys`` are owners, labels and places, int64, shape (3, n).
    """
    table = _TABLES[kind]
    touched = np.unique(numbers // PER_BLOCK)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM {table} WHERE block IN (SELECT value FROM json_each(?)) ORDER BY block",
        (number_list(touched),),
    ).fetchall()
    former = 0
    all_keys, all_codes = [keys], [codes]
    if rows:
        old_keys, old_codes = _unpacked(rows, codes.shape[1])
        former = len(old_codes)
        kept = ~member(old_keys[0], numbers)
        all_keys.append(old_keys[:, kept])
        all_codes.append(old_codes[kept])
    keys, codes = np.concatenate(all_keys, axis=1), np.concatenate(all_codes)
    connection.executemany(f"DELETE FROM {table} WHERE block = ?", ((block,) for block in touched.tolist()))
    order = np.lexsort((keys[1], keys[0]))
    _write(connection, kind, keys[:, order], codes[order])
    return len(codes) - former


def _write(connection: sqlite3.Connection, kind: Kind, keys: IntArray, codes: Bytes) -> None:
    """Add rows of codes; owners ascending."""
    if not len(codes):
        return
    owners, labels, places = keys
    blocks = owners // PER_BLOCK
    starts = np.flatnonzero(np.diff(blocks, prepend=-1)).tolist()
    small_owners, labels, places = (owners % PER_BLOCK).astype(np.uint8), labels.astype("<i8"), places.astype("<i8")
    connection.executemany(
        f"INSERT INTO {_TABLES[kind]} (block, owners, labels, places, codes) VALUES (?, ?, ?, ?, ?)",
        (
            (
                int(blocks[start]),
                small_owners[start:end].tobytes(),
                labels[start:end].tobytes() if kind is PASSAGES else b"",
                places[start:end].tobytes(),
                codes[start:end].tobytes(),
            )
            for start, end in zip(starts, [*starts[1:], len(owners)], strict=True)
        ),
    )


class DamagedCodes(Exception):
    """The tables hold what cannot be codes."""


def _unpacked(rows: Sequence[tuple[Any, ...]], width: int) -> tuple[IntArray, Bytes]:
    """Owners, labels and places, shape (3, n), and codes of rows of the tables; raises :class:`DamagedCodes`."""
    for _, owners, _, places, codes in rows:
        right = len(codes) == len(owners) * width and len(places) == 8 * len(owners)
        if not right or max(owners, default=0) >= PER_BLOCK:
            raise DamagedCodes
    counts = [len(row[1]) for row in rows]
    blocks = np.repeat(np.array([row[0] for row in rows], np.int64), counts)
    numbers = blocks * PER_BLOCK + np.frombuffer(b"".join(row[1] for row in rows), np.uint8)
    labels, places, codes = (b"".join(row[column] for row in rows) for column in (2, 3, 4))
    if len(labels) not in (0, len(places)):
        raise DamagedCodes
    keys = np.zeros((3, len(numbers)), np.int64)
    keys[0], keys[2] = numbers, np.frombuffer(places, "<i8")
    if labels:
        keys[1] = np.frombuffer(labels, "<i8")
    return keys, np.frombuffer(codes, np.uint8).reshape(len(numbers), width)


def load(connection: sqlite3.Connection, found: State) -> tuple[CodedBlock, CodedBlock] | None:
    """The codes of documents and of passages as of ``found.change``; ``None`` if they are damaged or not complete."""
    if found.reached is not None or not exist(connection):
        return None
    try:
        documents = _load(connection, DOCUMENTS, found.documents, code_bytes(found.dimension))
        passages = _load(connection, PASSAGES, found.passages, code_bytes(found.dimension))
    except DamagedCodes:
        return None
    return documents, passages


def faults(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the codes, compared with the vectors; those that wait to be made are not."""
    found, (encoder_id, dimension) = state(connection), _encoder(connection)
    if found is None or not found.fits(encoder_id, dimension) or found.reached is not None:
        return []
    if not log_reaches(connection, found.change):
        return []
    blocks = load(connection, found)
    if blocks is None:
        return ["the codes of the vectors are damaged; reindex() makes them anew"]
    rows = connection.execute(
        "SELECT DISTINCT number FROM memory_changes WHERE change > ? ORDER BY number", (found.change,)
    )
    changed = np.fromiter((row[0] for row in rows), np.int64)  # readers take these from the vectors
    wrong = 0
    for kind, block in zip((DOCUMENTS, PASSAGES), blocks, strict=True):
        at, kept = 0, np.flatnonzero(~member(block.owners, changed))
        for owners, labels, _, matrix in pieces(select_vectors(connection, kind, encoder_id, dimension), dimension):
            settled = ~member(owners, changed)
            rows_here = kept[at : at + int(settled.sum())]
            at += int(settled.sum())
            same = len(rows_here) == settled.sum() and all(
                np.array_equal(ours[rows_here], theirs[settled])
                for ours, theirs in ((block.owners, owners), (block.labels, labels), (block.codes, encode(matrix)))
            )
            wrong += not same
        wrong += at != len(kept)
    return ["the codes of the vectors are not those of the vectors; reindex() makes them anew"] if wrong else []


def _load(connection: sqlite3.Connection, kind: Kind, count: int, width: int) -> CodedBlock:
    if not 0 <= count <= 2**40:
        raise DamagedCodes
    arrays = CodedBlock.room(count, width)
    at = 0
    for rows in chunks(connection.execute(f"SELECT {_COLUMNS} FROM {_TABLES[kind]} ORDER BY block"), 128):
        (owners, labels, places), codes = _unpacked(rows, width)
        if at + len(codes) > count:
            raise DamagedCodes
        at = put(arrays, at, owners, labels if kind is PASSAGES else None, places, codes)
    if at != count:
        raise DamagedCodes
    return CodedBlock.of(arrays, count)
