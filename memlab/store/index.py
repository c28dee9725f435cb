"""The vectors of a store in memory: immutable snapshots that follow every process's writes.

A snapshot belongs to one change number of the store. Bringing it up to date reads the change log and then only the
memories named there. Rows are appended and marked dead, never overwritten, so a snapshot in use stays as it is.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix
from memlab.store.connection import on_fork

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# float32 products of unit vectors of 384 components differ from exact ones by less than this.
_SCAN_ERROR = 1e-5
_REBUILD_SHARE = 0.25


@dataclass(frozen=True)
class Block:
    """Vectors with the numbers of the memories they belong to.

    Attributes
    ----------
    owners : ndarray of int64, shape (n,)
        Memory numbers.
    labels : ndarray of int64, shape (n,)
        0 for a document vector; the position of the passage for a passage vector.
    matrix : ndarray of float32, shape (n, dimension)
        Unit rows.
    alive : ndarray of bool, shape (n,)
        False for rows that were replaced or taken out.
    """

    owners: IntArray
    labels: IntArray
    matrix: FloatMatrix
    alive: BoolArray
    _spare: tuple[IntArray, IntArray, FloatMatrix] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def build(cls, owners: IntArray, labels: IntArray, matrix: FloatMatrix) -> Block:
        """A block of live rows."""
        return cls(owners, labels, matrix, np.ones(len(owners), dtype=bool))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.alive))

    def changed(self, numbers: IntArray, owners: IntArray, labels: IntArray, matrix: FloatMatrix) -> Block:
        """A block in which the rows of ``numbers`` are gone and the given rows are added."""
        alive = self.alive & ~np.isin(self.owners, numbers)
        kept = np.count_nonzero(alive)
        if kept < (1 - _REBUILD_SHARE) * len(alive):
            return Block.build(
                np.concatenate([self.owners[alive], owners]),
                np.concatenate([self.labels[alive], labels]),
                np.concatenate([self.matrix[alive], matrix]),
            )
        used, total = len(self.owners), len(self.owners) + len(owners)
        buffers = self._spare
        # The spare room behind a snapshot belongs to its newest successor only; the index grows one chain of them.
        if buffers is None or len(buffers[0]) < total:
            room = max(1024, total + total // 2)
            grown_owners, grown_labels = np.empty(room, np.int64), np.empty(room, np.int64)
            grown_matrix = np.empty((room, matrix.shape[1] if used == 0 else self.matrix.shape[1]), np.float32)
            grown_owners[:used], grown_labels[:used], grown_matrix[:used] = self.owners, self.labels, self.matrix
            buffers = (grown_owners, grown_labels, grown_matrix)
        buffers[0][used:total], buffers[1][used:total], buffers[2][used:total] = owners, labels, matrix
        return Block(
            buffers[0][:total],
            buffers[1][:total],
            buffers[2][:total],
            np.concatenate([alive, np.ones(len(owners), dtype=bool)]),
            buffers,
        )

    def rows(self, allowed: IntArray | None = None, without: IntArray | None = None) -> IntArray | None:
        """Indices of live rows, by their owners; ``None`` for "every row".

        Parameters
        ----------
        allowed, without : ndarray of int64, ascending, optional
            Memory numbers that may take part; that may not.
        """
        mask = self.alive
        if allowed is not None:
            mask = mask & _member(self.owners, allowed)
        if without is not None and len(without):
            mask = mask & ~_member(self.owners, without)
        return None if mask.all() else np.flatnonzero(mask)

    def scores(self, query: FloatMatrix, rows: IntArray | None) -> FloatMatrix:
        """Cosines in float32.

        Parameters
        ----------
        query : ndarray of float32, shape (dimension,)
        rows : ndarray of int64, shape (m,), or None
            Which rows; ``None`` for all n.

        Returns
        -------
        ndarray of float32, shape (m,) or (n,)
        """
        if rows is None:
            return self.matrix @ query
        return self.matrix[rows] @ query

    def exact(self, query: FloatMatrix, rows: IntArray) -> FloatArray:
        """Cosines in float64, shape (len(rows),), the same to the last bit for equal vectors wherever they lie."""
        gathered = self.matrix[rows].astype(np.float64) * query.astype(np.float64)
        total: FloatArray = gathered.sum(axis=1)
        return total


def _member(values: IntArray, ascending: IntArray) -> BoolArray:
    if not len(ascending):
        return np.zeros(len(values), dtype=bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: BoolArray = ascending[places] == values
    return found


@dataclass(frozen=True)
class Snapshot:
    """All vectors of the live memories of a store as of one change.

    Attributes
    ----------
    change : int
        The last change that is in it.
    encoder_id : int or None
        Whose vectors these are.
    documents, passages : Block
        One vector a memory; and one a passage, of the memories that have two passages or more.
    live : int
        Memories that are not in the trash, with a vector or without.
    """

    change: int
    encoder_id: int | None
    documents: Block
    passages: Block
    live: int

    @cached_property
    def several_passages(self) -> IntArray:
        """Numbers of the memories that have two passages or more, ascending."""
        return np.unique(self.passages.owners[self.passages.alive])

    def document_vectors(self) -> tuple[IntArray, FloatMatrix]:
        """Memory numbers, shape (n,), and document vectors, float32, shape (n, dimension), of all live rows."""
        alive = self.documents.alive
        return self.documents.owners[alive], self.documents.matrix[alive]


def nearest(
    block: Block, query: FloatMatrix, depth: int, rows: IntArray | None = None, coarse: FloatMatrix | None = None
) -> tuple[IntArray, IntArray, FloatArray]:
    """The rows of ``block`` that are nearest to ``query``, by exact cosine.

    A float32 scan proposes candidates with a margin for its rounding, and those are scored in float64, so that
    equal vectors get equal scores. Rows that tie with the last place are all returned: the caller breaks ties.

    Parameters
    ----------
    query : ndarray of float32, shape (dimension,)
    depth : int
        How many are wanted.
    rows : ndarray of int64, optional
        Indices of the rows that take part, see :meth:`Block.rows`; all by default.
    coarse : ndarray of float32, shape (len(rows),), optional
        Their scores from :meth:`Block.scores`, where they are known.

    Returns
    -------
    owners, labels : ndarray of int64
    cosines : ndarray of float64, descending
    """
    count = len(block.owners) if rows is None else len(rows)
    if depth <= 0 or count == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    if coarse is None:
        coarse = block.scores(query, rows)
    if count > depth:
        bound = np.partition(coarse, count - depth)[count - depth] - _SCAN_ERROR
        picked = np.flatnonzero(coarse >= bound)
    else:
        picked = np.arange(count)
    picked = picked if rows is None else rows[picked]
    cosines = block.exact(query, picked)
    if len(picked) > depth:
        exact_bound = np.partition(cosines, len(picked) - depth)[len(picked) - depth]
        keep = cosines >= exact_bound
        picked, cosines = picked[keep], cosines[keep]
    order = np.argsort(-cosines, kind="stable")
    return block.owners[picked][order], block.labels[picked][order], cosines[order]


_DOCUMENTS = """
SELECT n.number, m.vector FROM memories m JOIN memory_numbers n ON n.id = m.id
WHERE m.trashed_at IS NULL AND m.encoder_id = :encoder AND length(m.vector) = :bytes"""
_PASSAGES = """
SELECT n.number, p.position, p.vector FROM memory_passages p
JOIN memories m ON m.id = p.memory_id JOIN memory_numbers n ON n.id = m.id
WHERE m.trashed_at IS NULL AND m.vector IS NOT NULL AND p.encoder_id = :encoder AND m.encoder_id = :encoder
    AND length(p.vector) = :bytes"""
_CHANGED = " AND n.number IN (SELECT value FROM json_each(:numbers))"


class VectorIndex:
    """Hands out the snapshot that belongs to what a connection sees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        on_fork(self)
        self._current: Snapshot | None = None
        self.loads = 0  # whole reads of all vectors, for tests and `stats`
        self.refreshes = 0

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread that held it does not exist in the child

    def snapshot(
        self, connection: sqlite3.Connection, encoder_id: int | None, dimension: int, *, keep: bool = True
    ) -> Snapshot | None:
        """The snapshot for the read transaction that is open on ``connection``.

        Parameters
        ----------
        keep : bool
            Whether others may use it too; not where the transaction has changes that may still be rolled back.

        Returns
        -------
        Snapshot or None
            ``None`` when another thread has already moved on to a later commit than this transaction sees:
            begin a new one and ask again.
        """
        change = last_change(connection)
        if not keep:
            self.loads += 1
            return self._load(connection, encoder_id, change, dimension)
        with self._lock:
            current = self._current
            if current is not None and current.encoder_id == encoder_id:
                if current.change == change:
                    return current
                if current.change > change:
                    return None
                refreshed = self._refresh(connection, current, change, dimension)
                if refreshed is not None:
                    self.refreshes += 1
                    self._current = refreshed
                    return refreshed
            self.loads += 1
            self._current = self._load(connection, encoder_id, change, dimension)
            return self._current

    @staticmethod
    def _load(connection: sqlite3.Connection, encoder_id: int | None, change: int, dimension: int) -> Snapshot:
        wanted = {"encoder": encoder_id, "bytes": 4 * dimension}
        documents = _read(connection.execute(_DOCUMENTS, wanted), dimension, labelled=False)
        passages = _read(connection.execute(_PASSAGES, wanted), dimension, labelled=True)
        return Snapshot(change, encoder_id, Block.build(*documents), Block.build(*passages), _live(connection))

    @staticmethod
    def _refresh(connection: sqlite3.Connection, old: Snapshot, change: int, dimension: int) -> Snapshot | None:
        """The next snapshot from what changed; ``None`` if the log does not reach back or too much changed."""
        first = connection.execute("SELECT min(change) FROM memory_changes").fetchone()[0]
        if first is None or first > old.change + 1:
            return None
        changed = [
            number
            for (number,) in connection.execute(
                "SELECT DISTINCT number FROM memory_changes WHERE change > ?", (old.change,)
            )
        ]
        if len(changed) > 1000 + _REBUILD_SHARE * len(old.documents.owners):
            return None
        wanted = {"encoder": old.encoder_id, "bytes": 4 * dimension, "numbers": f"[{','.join(map(str, changed))}]"}
        numbers = np.array(changed, dtype=np.int64)
        documents = _read(connection.execute(_DOCUMENTS + _CHANGED, wanted), dimension, labelled=False)
        passages = _read(connection.execute(_PASSAGES + _CHANGED, wanted), dimension, labelled=True)
        passage_block = old.passages
        if len(passages[0]) or np.isin(numbers, old.passages.owners).any():
            passage_block = old.passages.changed(numbers, *passages)
        document_block = old.documents.changed(numbers, *documents)
        return Snapshot(change, old.encoder_id, document_block, passage_block, _live(connection))


def _live(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM memories WHERE trashed_at IS NULL").fetchone()[0])


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the newest change that the transaction of ``connection`` sees.

    Unlike ``PRAGMA data_version`` it is the same on every connection, and a checkpoint does not move it; it costs one
    look-up at the end of a B-tree.
    """
    return connection.execute("SELECT max(change) FROM memory_changes").fetchone()[0] or 0


def _read(cursor: sqlite3.Cursor, dimension: int, *, labelled: bool) -> tuple[IntArray, IntArray, FloatMatrix]:
    owners: list[int] = []
    labels: list[int] = []
    parts: list[FloatMatrix] = []
    for chunk in _chunks(cursor):
        owners.extend(row[0] for row in chunk)
        labels.extend(row[1] if labelled else 0 for row in chunk)
        parts.append(np.frombuffer(b"".join(row[-1] for row in chunk), dtype="<f4").reshape(len(chunk), dimension))
    matrix = (np.concatenate(parts) if parts else np.empty((0, dimension), "<f4")).astype(np.float32, copy=False)
    # Another program may have written what is no unit vector: NaN or zero would spoil every comparison, another length
    # would pass for a cosine. `check` reports all of them.
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    odd = ~(np.abs(norms - 1.0) < 1e-3)
    if odd.any():
        usable = np.isfinite(norms) & (norms > 0)
        scaled = matrix[usable] / np.where(odd, norms, np.float32(1.0))[usable, None]
        return np.array(owners, np.int64)[usable], np.array(labels, np.int64)[usable], scaled.astype(np.float32)
    return np.array(owners, np.int64), np.array(labels, np.int64), matrix


def _chunks(cursor: sqlite3.Cursor, size: int = 5000) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := cursor.fetchmany(size):
        yield chunk
