"""The vectors of a store in memory: immutable snapshots that follow every process's writes.

A snapshot belongs to one change number of the store. Bringing it up to date reads the change log and then only the
memories named there. Of a small store it holds the vectors, of a large one their codes (:mod:`memlab.store.codes`).
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass

import numpy as np

from memlab.store import codetable
from memlab.store.blocks import Block, CodedBlock, IntArray
from memlab.store.codes import code_bytes, encode
from memlab.store.connection import on_fork
from memlab.store.nearest import nearest
from memlab.store.vectorfile import (
    DOCUMENTS,
    PASSAGES,
    Kind,
    last_change,
    log_reaches,
    number_list,
    pieces,
    read_vectors,
    select_vectors,
)

_REBUILD_SHARE = 0.25


@dataclass(frozen=True)
class Snapshot:
    """All vectors of the live memories of a store as of one change.

    Attributes
    ----------
    change : int
        The last change that is in it.
    encoder_id : int or None
        Whose vectors these are.
    dimension : int
    documents, passages : Block or CodedBlock
        One vector a memory; and one a passage, of the memories that have two passages or more.
    live : int
        Memories that are not in the trash, with a vector or without.
    """

    change: int
    encoder_id: int | None
    dimension: int
    documents: Block | CodedBlock
    passages: Block | CodedBlock
    live: int

    @property
    def coded(self) -> bool:
        """Whether it has codes instead of vectors."""
        return isinstance(self.documents, CodedBlock)

    @property
    def several_passages(self) -> IntArray:
        """Numbers of the memories that have two passages or more, ascending."""
        return self.passages.different_owners


class VectorIndex:
    """Hands out the snapshot that belongs to what a connection sees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        on_fork(self)
        self._current: Snapshot | None = None
        self.loads = 0  # whole reads of all vectors, for tests and `stats`
        self.refreshes = 0
        self.damaged = False  # whether the file's codes were found to be none

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread that held it does not exist in the child

    def wants_codes(self, connection: sqlite3.Connection, encoder_id: int | None) -> bool:
        """Whether codes in the file would spare the next snapshot work; no promise, others are at work too."""
        if self.damaged:
            return True
        current = self._current
        if current is not None and current.encoder_id == encoder_id and log_reaches(connection, current.change):
            return False
        return codetable.many_to_do(connection)

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
            return self._load(connection, encoder_id, change, dimension, settled=False)[0]
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
            self._current, self.damaged = self._load(connection, encoder_id, change, dimension)
            return self._current

    @staticmethod
    def _load(
        connection: sqlite3.Connection, encoder_id: int | None, change: int, dimension: int, *, settled: bool = True
    ) -> tuple[Snapshot, bool]:
        """A snapshot from the file's codes or from its vectors; and whether it has codes that are damaged."""
        live = _live(connection) if settled else _counted(connection)
        found, damaged = codetable.state(connection), False
        if found is not None and found.fits(encoder_id, dimension) and found.reached is None:
            blocks = codetable.load(connection, found)
            damaged = blocks is None
            if blocks is not None:
                # Other programs may have written since; what the log no longer tells is read anew below.
                coded = Snapshot(found.change, encoder_id, dimension, *blocks, live)
                followed = VectorIndex._refresh(connection, coded, change, dimension)
                if followed is not None:
                    return followed, False
        source = _coded if codetable.large(connection, codetable.LARGE) else _exact
        documents, passages = (source(connection, kind, encoder_id, dimension) for kind in (DOCUMENTS, PASSAGES))
        return Snapshot(change, encoder_id, dimension, documents, passages, live), damaged

    @staticmethod
    def _refresh(connection: sqlite3.Connection, old: Snapshot, change: int, dimension: int) -> Snapshot | None:
        """The next snapshot from what changed; ``None`` if the log does not reach back or too much changed."""
        if change == old.change:
            return old
        outgrown = not old.coded and len(old.documents) + len(old.passages) > 2 * codetable.LARGE
        if outgrown or not log_reaches(connection, old.change):
            return None
        rows = connection.execute(
            "SELECT DISTINCT number FROM memory_changes WHERE change > ? ORDER BY number", (old.change,)
        )
        numbers = np.fromiter((row[0] for row in rows), np.int64)
        if len(numbers) > 1000 + _REBUILD_SHARE * len(old.documents.owners):
            return None
        among = number_list(numbers)
        documents = _changed(connection, DOCUMENTS, old, numbers, among)
        passages = _changed(connection, PASSAGES, old, numbers, among)
        return Snapshot(change, old.encoder_id, dimension, documents, passages, _live(connection))


def _exact(connection: sqlite3.Connection, kind: Kind, encoder_id: int | None, dimension: int) -> Block:
    piece = read_vectors(connection, kind, encoder_id, dimension, ordered=False)
    return Block.build(piece.owners, piece.labels, piece.matrix)


def _coded(connection: sqlite3.Connection, kind: Kind, encoder_id: int | None, dimension: int) -> CodedBlock:
    """Codes of all vectors in the file, made now: it has none of its own, or none that can be used."""
    keys, codes = [np.empty((3, 0), np.int64)], [np.empty((0, code_bytes(dimension)), np.uint8)]
    for *key, matrix in pieces(select_vectors(connection, kind, encoder_id, dimension, ordered=False), dimension):
        keys.append(np.stack(key))
        codes.append(encode(matrix))
    (owners, labels, places), packed = np.concatenate(keys, axis=1), np.concatenate(codes)
    order = np.lexsort((labels, owners))
    return CodedBlock.build(owners[order], labels[order], places[order], packed[order])


def _changed(
    connection: sqlite3.Connection, kind: Kind, old: Snapshot, numbers: IntArray, among: str
) -> Block | CodedBlock:
    """The block of this kind with the vectors that these memories (ascending) have now."""
    block = old.documents if kind is DOCUMENTS else old.passages
    owners, labels, places, matrix = read_vectors(connection, kind, old.encoder_id, old.dimension, among=among)
    if not len(owners) and not len(block.rows_of(numbers)):
        return block
    if isinstance(block, CodedBlock):
        return block.changed(numbers, owners, labels, places, encode(matrix))
    return block.changed(numbers, owners, labels, matrix)


def _live(connection: sqlite3.Connection) -> int:
    """How many memories are not in the trash, in what is committed.

    They are the rows of the search index, of which FTS5 keeps the number: the first varint of its averages record.
    Counting takes tens of milliseconds where there are a million.
    """
    row = connection.execute("SELECT block FROM memory_search_data WHERE id = 1").fetchone()
    value = 0
    for byte in row[0][:8] if row is not None and isinstance(row[0], bytes) else b"":
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value
    return _counted(connection)


def _counted(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM memories WHERE trashed_at IS NULL").fetchone()[0])


__all__ = ["Block", "Snapshot", "VectorIndex", "last_change", "nearest"]
