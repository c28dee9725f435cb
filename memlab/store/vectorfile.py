"""Reading vectors from a store's file: all of them in pieces, those of some memories, those of some rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import Enum
from typing import Any

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
_COLUMNS = {DOCUMENTS: "n.number, 0, m.vector", PASSAGES: "n.number, p.position, p.vector"}
_MORE = {DOCUMENTS: "", PASSAGES: "CROSS JOIN memory_passages p ON p.memory_id = m.id"}
_ORDER = {DOCUMENTS: "n.number", PASSAGES: "n.number, p.position"}
# CROSS JOIN keeps the order of the tables: by number, one look-up of an id each.
_ALL = "memory_numbers n CROSS JOIN memories m ON m.id = n.id"
_AMONG = "json_each(:among) j CROSS JOIN memory_numbers n ON n.number = j.value CROSS JOIN memories m ON m.id = n.id"
_PASSAGE = """
SELECT j.key, p.vector FROM json_each(?) j
CROSS JOIN memory_numbers n ON n.number = json_extract(j.value, '$[0]')
CROSS JOIN memory_passages p ON p.memory_id = n.id AND p.position = json_extract(j.value, '$[1]')"""
_DOCUMENT = """
SELECT j.key, m.vector FROM json_each(?) j
CROSS JOIN memory_numbers n ON n.number = j.value CROSS JOIN memories m ON m.id = n.id"""


def select_vectors(
    connection: sqlite3.Connection,
    kind: Kind,
    encoder_id: int | None,
    dimension: int,
    *,
    among: str | None = None,
    since: int = 0,
    before: int | None = None,
) -> sqlite3.Cursor:
    """Memory number, label and vector of each live row, by number and label.

    Parameters
    ----------
    among : str, optional
        The memories to look at, ascending, as :func:`number_list` writes them.
    since, before : int, optional
        The first number, and the first that is no longer looked at.
    """
    where = f"{_LIVE[kind]} AND n.number >= :since" + ("" if before is None else " AND n.number < :before")
    source = f"{_ALL if among is None else _AMONG} {_MORE[kind]}"
    return connection.execute(
        f"SELECT {_COLUMNS[kind]} FROM {source} WHERE {where} ORDER BY {_ORDER[kind]}",
        {"encoder": encoder_id, "bytes": 4 * dimension, "among": among, "since": since, "before": before},
    )


def read_vectors(
    connection: sqlite3.Connection, kind: Kind, encoder_id: int | None, dimension: int, **which: Any
) -> tuple[IntArray, IntArray, FloatMatrix]:
    """Memory numbers, labels and unit vectors, see :func:`select_vectors`."""
    parts = list(pieces(select_vectors(connection, kind, encoder_id, dimension, **which), dimension))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, dimension), np.float32)
    owners, labels, matrix = (np.concatenate(part) for part in zip(*parts, strict=True))
    return owners, labels, matrix


def pieces(
    cursor: sqlite3.Cursor, dimension: int, size: int = 4096
) -> Iterator[tuple[IntArray, IntArray, FloatMatrix]]:
    """Memory numbers, labels and unit vectors of a cursor's rows, some thousand at a time."""
    for rows in chunks(cursor, size):
        numbers, labels, vectors = zip(*rows, strict=True)
        matrix = np.frombuffer(b"".join(vectors), "<f4").reshape(len(rows), dimension).astype(np.float32, copy=False)
        usable, matrix = unit_rows(matrix)
        owners, places = np.array(numbers, np.int64), np.array(labels, np.int64)
        yield (owners, places, matrix) if usable is None else (owners[usable], places[usable], matrix[usable])


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
    connection: sqlite3.Connection, kind: Kind, owners: IntArray, labels: IntArray, dimension: int
) -> FloatMatrix:
    """The unit vectors of rows, float32, shape (len(owners), dimension); NaN for one that is not in the file."""
    if kind is DOCUMENTS:
        rows = connection.execute(_DOCUMENT, (number_list(owners),)).fetchall()
    else:
        pairs = ",".join(f"[{owner},{label}]" for owner, label in zip(owners.tolist(), labels.tolist(), strict=True))
        rows = connection.execute(_PASSAGE, (f"[{pairs}]",)).fetchall()
    if len(rows) == len(owners) and all(isinstance(row[1], bytes) and len(row[1]) == 4 * dimension for row in rows):
        matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(owners), dimension)
    else:  # a program that knows nothing of the change log was here
        matrix = np.full((len(owners), dimension), np.nan, np.float32)
        for key, vector in rows:
            if isinstance(vector, bytes) and len(vector) == 4 * dimension:
                matrix[key] = np.frombuffer(vector, "<f4")
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
