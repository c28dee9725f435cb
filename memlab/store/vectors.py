"""The vectors of a store as one view sees them: what the channels ask, whether vectors are in memory or only codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import Block, BoolArray, CodedBlock, FloatArray, IntArray, exact_cosines
from memlab.store.nearest import CodedSearch, Found, nearest, nothing
from memlab.store.vectorfile import Kind, Piece, pieces, select_vectors, vectors_of

Part = IntArray | BoolArray | None
"""Rows that take part: their indices, or a mask of them; ``None`` for all that are alive."""


@dataclass
class Vectors:
    """The document vectors, or the passages', of one snapshot, within the transaction that it belongs to.

    What is found out for one query is kept for the next question about it: channels ask much the same.

    Attributes
    ----------
    block : Block or CodedBlock
    """

    block: Block | CodedBlock
    connection: sqlite3.Connection
    kind: Kind
    encoder_id: int | None
    dimension: int
    _query: FloatMatrix | None = None
    _scores: FloatMatrix | None = None
    _search: CodedSearch | None = None
    _known: tuple[IntArray, FloatArray] = field(default_factory=lambda: (np.empty(0, np.int64), np.empty(0)))

    def __len__(self) -> int:
        return len(self.block)

    def part(self, allowed: IntArray | None = None, without: IntArray | None = None) -> Part:
        """The live rows of some memories.

        Parameters
        ----------
        allowed, without : ndarray of int64, ascending, optional
            Memory numbers that may take part; that may not.
        """
        many = allowed is not None and len(allowed) * 8 > len(self.block.owners)
        if many or (without is not None and len(without)):
            return self.block.mask(allowed, without)
        return None if allowed is None else self.block.rows_of(allowed)

    def nearest(self, query: FloatMatrix, depth: int, part: Part = None) -> Found:
        """The ``depth`` rows nearest to a query and all that tie with the last.

        Returns
        -------
        owners, labels : ndarray of int64
        cosines : ndarray of float64, descending
        """
        if not len(self.block):
            return nothing()
        self._turn_to(query)
        if isinstance(self.block, CodedBlock):
            if self._search is None:
                self._search = CodedSearch(self.block, query, self._exact)
            return self._search.nearest(depth, part)
        rows = self._rows(part)
        # Gathering most of a matrix costs more than scanning it.
        if rows is not None and len(rows) * 4 <= len(self.block.owners):
            return nearest(self.block, query, depth, rows)
        if self._scores is None:
            self._scores = self.block.scores(query, None)
        return nearest(self.block, query, depth, rows, self._scores if rows is None else self._scores[rows])

    def of(self, query: FloatMatrix, numbers: IntArray) -> Found:
        """Owners, labels and exact cosines of the rows of some memories (ascending), by row."""
        self._turn_to(query)
        rows = self.block.rows_of(numbers)
        cosines = self._exact(rows)
        there = cosines > -np.inf
        return self.block.owners[rows][there], self.block.labels[rows][there], cosines[there]

    def all(self, query: FloatMatrix, part: Part = None) -> Found:
        """The same of all rows that take part; over codes this reads the whole file."""
        if not len(self.block):
            return nothing()
        if isinstance(self.block, Block):
            self._turn_to(query)
            rows = self._rows(part)
            rows = np.arange(len(self.block.owners)) if rows is None else rows
            return self.block.owners[rows], self.block.labels[rows], self.block.exact(query, rows)
        owners, labels, cosines = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        taking_part = None
        if part is not None:
            taking_part = np.unique(self.block.owners[part])
        for piece in self._pieces():
            kept = slice(None) if taking_part is None else np.isin(piece.owners, taking_part)
            owners.append(piece.owners[kept])
            labels.append(piece.labels[kept])
            cosines.append(exact_cosines(piece.matrix[kept], query))
        return np.concatenate(owners), np.concatenate(labels), np.concatenate(cosines)

    def matrix(self) -> tuple[IntArray, IntArray, FloatMatrix]:
        """Memory numbers and labels, shape (n,), and vectors, float32, shape (n, dimension), of all live rows."""
        if isinstance(self.block, Block):
            alive = self.block.alive
            return self.block.owners[alive], self.block.labels[alive], self.block.matrix[alive]
        owners, labels = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        matrix, at = np.empty((len(self), self.dimension), np.float32), 0
        for piece in self._pieces():
            end = at + len(piece.owners)
            owners[at:end], labels[at:end], matrix[at:end] = piece.owners, piece.labels, piece.matrix
            at = end
        return owners[:at], labels[:at], matrix[:at]

    def _pieces(self) -> Iterator[Piece]:
        rows = select_vectors(self.connection, self.kind, self.encoder_id, self.dimension, ordered=False)
        return pieces(rows, self.dimension)

    def _turn_to(self, query: FloatMatrix) -> None:
        if self._query is not query:
            self._query, self._scores, self._search = query, None, None
            self._known = (np.empty(0, np.int64), np.empty(0))

    def _rows(self, part: Part) -> IntArray | None:
        """Indices of the live rows that take part; ``None`` if that is every row."""
        mask: BoolArray = self.block.alive
        if part is not None:
            if part.dtype != np.bool_:
                return part  # type: ignore[return-value]
            mask = part  # type: ignore[assignment]
        return None if mask.all() else np.flatnonzero(mask)

    def _exact(self, rows: IntArray) -> FloatArray:
        """Exact cosines of rows with the present query; over codes each is read once."""
        assert self._query is not None
        if isinstance(self.block, Block):
            return self.block.exact(self._query, rows)
        known, cosines = self._known
        missing = np.setdiff1d(rows, known) if len(known) else np.sort(rows)
        if len(missing):
            owners, labels, places = self.block.owners[missing], self.block.labels[missing], self.block.places[missing]
            matrix = vectors_of(self.connection, self.kind, owners, labels, places, self.dimension)
            known = np.concatenate([known, missing])
            found = exact_cosines(matrix, self._query)
            cosines = np.concatenate([cosines, np.where(np.isnan(found), -np.inf, found)])
            order = np.argsort(known)
            known, cosines = known[order], cosines[order]
            self._known = known, cosines
        return cosines[np.searchsorted(known, rows)]
