"""Reading vectors from a store's file: all of them in pieces, those of some memories, those of some rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import IntArray


class Kind(Enum):
    """Which vectors."""

    DOCUMENTS = "documents"
    PASSAGES = "passages"


DOCUMENTS, PASSAGES = Kind.DOCUMENTS, Kind.PASSAGES

_LIVE = {
    DOCUMENTS: "m.trashed_at IS NULL AND m.encoder_id = :encoder AND length(m.vector) = :bytes",
    PASSAGES: "m.trashed_at IS NULL AND m.vector IS NOT NULL AND p.encoder_id = :encoder "
    "AND m.encoder_id = :encoder AND length(p.vector) = :bytes",
}
_COLUMNS = {DOCUMENTS: "n.number, 0, m.rowid, m.vector", PASSAGES: "n.number, p.position, p.id, p.vector"}
_MORE = {DOCUMENTS: "", PASSAGES: "CROSS JOIN memory_passages p ON p.memory_id = m.id"}
_ORDER = {DOCUMENTS: "n.number", PASSAGES: "n.number, p.position"}
# CROSS JOIN keeps the order of the tables: by number, one look-up of an id each.
_ALL = "memory_numbers n CROSS JOIN memories m ON m.id = n.id"
_AMONG = "json_each(:among) j CROSS JOIN memory_numbers n ON n.number = j.value CROSS JOIN memories m ON m.id = n.id"
_IDS = "SELECT j.key, n.id FROM json_each(?) j CROSS JOIN memory_numbers n ON n.number = j.value"
_AT_PLACE = {
    DOCUMENTS: "SELECT j.key, m.id, 0, m.vector FROM json_each(?) j CROSS JOIN memories m ON m.rowid = j.value",
    PASSAGES: "SELECT j.key, p.memory_id, p.position, p.vector FROM json_each(?) j "
    "CROSS JOIN memory_passages p ON p.id = j.value",
}
_BY_ID = {
    DOCUMENTS: "SELECT vector FROM memories WHERE id = ?",
    PASSAGES: "SELECT vector FROM memory_passages WHERE memory_id = ? AND position = ?",
}


def select_vectors(
    connection: sqlite3.Connection,
    kind: Kind,
    encoder_id: int | None,
    dimension: int,
    *,
    among: str | None = None,
    since: int = 0,
    before: int | None = None,
    ordered: bool = True,
) -> sqlite3.Cursor:
    """Memory number, label, rowid and vector of each live row.

    Parameters
    ----------
    among : str, optional
        The memories to look at, ascending, as :func:`number_list` writes them.
    since, before : int, optional
        The first number, and the first that is no longer looked at.
    ordered : bool
        By number and label; or else in the order of the file, which is quicker where all documents are read.
    """
    where = f"{_LIVE[kind]} AND n.number >= :since" + ("" if before is None else " AND n.number < :before")
    source = f"{_ALL if among is None else _AMONG} {_MORE[kind]} WHERE {where} ORDER BY {_ORDER[kind]}"
    if not ordered and kind is DOCUMENTS:
        source = f"memories m CROSS JOIN memory_numbers n ON n.id = m.id WHERE {where}"
    return connection.execute(
        f"SELECT {_COLUMNS[kind]} FROM {source}",
        {"encoder": encoder_id, "bytes": 4 * dimension, "among": among, "since": since, "before": before},
    )


class Piece(NamedTuple):
    """Rows of vectors.

    Attributes
    ----------
    owners, labels, places : ndarray of int64, shape (n,)
        Memory numbers; positions of passages, 0 for documents; rowids of ``memories`` or ``memory_passages``.
    matrix : ndarray of float32, shape (n, dimension)
        Unit vectors.
    """

    owners: IntArray
    labels: IntArray
    places: IntArray
    matrix: FloatMatrix


def read_vectors(
    connection: sqlite3.Connection, kind: Kind, encoder_id: int | None, dimension: int, **which: Any
) -> Piece:
    """All at once, by number and label; see :func:`select_vectors`."""
    parts = list(pieces(select_vectors(connection, kind, encoder_id, dimension, **which), dimension))
    if not parts:
        none = np.empty(0, np.int64)
        return Piece(none, none, none, np.empty((0, dimension), np.float32))
    owners, labels, places, matrix = (np.concatenate(part) for part in zip(*parts, strict=True))
    if (owners[1:] < owners[:-1]).any():  # documents have one row each, so that labels need no order
        order = np.argsort(owners)
        return Piece(owners[order], labels[order], places[order], matrix[order])
    return Piece(owners, labels, places, matrix)


def pieces(cursor: sqlite3.Cursor, dimension: int, size: int = 4096) -> Iterator[Piece]:
    """What is in a cursor's rows, some thousand at a time, without those that cannot be used."""
    for rows in chunks(cursor, size):
        *keys, vectors = zip(*rows, strict=True)
        matrix = np.frombuffer(b"".join(vectors), "<f4").reshape(len(rows), dimension).astype(np.float32, copy=False)
        usable, matrix = unit_rows(matrix)
        owners, labels, places = (np.array(key, np.int64) for key in keys)
        if usable is not None:
            owners, labels, places, matrix = owners[usable], labels[usable], places[usable], matrix[usable]
        yield Piece(owners, labels, places, matrix)


def unit_rows(matrix: FloatMatrix) -> tuple[Any, FloatMatrix]:
    """Which rows can be used (``None`` for all), and the rows with those that were no unit vectors scaled.

    Another program may have written them: NaN or zero would spoil every comparison, another length would pass for a
    cosine. `check` reports all of them.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    odd = ~(np.abs(norms - 1.0) < 1e-3)
    if not odd.any():
        return None, matrix
    usable = np.isfinite(norms) & (norms > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = matrix / np.where(odd, norms, np.float32(1.0))[:, None]
    return usable, scaled.astype(np.float32)


def vectors_of(
    connection: sqlite3.Connection, kind: Kind, owners: IntArray, labels: IntArray, places: IntArray, dimension: int
) -> FloatMatrix:
    """The unit vectors of rows, float32, shape (len(owners), dimension); NaN for one that is not in the file.

    A VACUUM may give the rows of ``memories`` new rowids, so ids are compared, and what is elsewhere is looked up.
    """
    ids: list[Any] = [None] * len(owners)
    for key, memory_id in connection.execute(_IDS, (number_list(owners),)):
        ids[key] = memory_id
    positions = labels.tolist()
    vectors: list[Any] = [None] * len(owners)
    for key, memory_id, position, vector in connection.execute(_AT_PLACE[kind], (number_list(places),)):
        if memory_id == ids[key] and position == positions[key]:
            vectors[key] = vector
    for key in (key for key, vector in enumerate(vectors) if vector is None):
        values = (ids[key],) if kind is DOCUMENTS else (ids[key], positions[key])
        row = connection.execute(_BY_ID[kind], values).fetchone()
        vectors[key] = None if row is None else row[0]
    size = 4 * dimension
    # A program that knows nothing of the change log may have been here.
    nothing = np.full(dimension, np.nan, "<f4").tobytes()
    sound = (vector if isinstance(vector, bytes) and len(vector) == size else nothing for vector in vectors)
    matrix = np.frombuffer(b"".join(sound), "<f4").reshape(len(owners), dimension)
    return unit_rows(matrix.astype(np.float32, copy=False))[1]


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the newest change that the transaction of ``connection`` sees.

    Unlike ``PRAGMA data_version`` it is the same on every connection, and a checkpoint does not move it; it costs one
    look-up at the end of a B-tree.
    """
    return connection.execute("SELECT max(change) FROM memory_changes").fetchone()[0] or 0


def log_reaches(connection: sqlite3.Connection, change: int) -> bool:
    """Whether the change log has all that came after a change."""
    first = connection.execute("SELECT min(change) FROM memory_changes").fetchone()[0]
    return (first is not None and first <= change + 1) or last_change(connection) == change


def number_list(numbers: IntArray) -> str:
    """Numbers as SQL's json_each takes them."""
    return f"[{','.join(map(str, numbers.tolist()))}]"


def chunks(cursor: sqlite3.Cursor, size: int) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a cursor, so many at a time."""
    while chunk := cursor.fetchmany(size):
        yield chunk
