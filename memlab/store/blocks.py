"""Rows of vectors in memory, whole or as codes: immutable, brought up to date by appending and marking dead."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix
from memlab.store.codes import Bytes, Words, signs

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_REBUILD_SHARE = 0.25


@dataclass(frozen=True)
class Rows:
    """Whose rows these are.

    Attributes
    ----------
    owners : ndarray of int64, shape (n,)
        Memory numbers.
    labels : ndarray of int64, shape (n,)
        0 for a document vector; the position of the passage for a passage vector.
    alive : ndarray of bool, shape (n,)
        False for rows that were replaced or taken out.
    ascending : int
        So many rows from the first on have ascending owners.
    starts : ndarray of uint32 or None
        By memory number, the first of those rows that belongs to it or to a later one: a look-up in place of a search.
        ``None`` where the numbers are too far apart for that.
    """

    owners: IntArray
    labels: IntArray
    alive: BoolArray
    ascending: int = field(default=0, kw_only=True)
    starts: npt.NDArray[np.uint32] | None = field(default=None, kw_only=True, repr=False)

    def __len__(self) -> int:
        return self._live

    @cached_property
    def _live(self) -> int:
        return int(np.count_nonzero(self.alive))

    @cached_property
    def different_owners(self) -> IntArray:
        """Numbers of the memories that have a live row, ascending."""
        return np.unique(self.owners[self.alive])

    def rows_of(self, numbers: IntArray) -> IntArray:
        """Indices of the live rows of some memories; costs no look at the others.

        Parameters
        ----------
        numbers : ndarray of int64, ascending
        """
        sorted_part, rest = self.owners[: self.ascending], self.owners[self.ascending :]
        if self.starts is not None:
            within = numbers[(numbers >= 0) & (numbers < len(self.starts) - 1)]
            first = self.starts[within].astype(np.int64)
            counts = self.starts[within + 1] - first
        else:
            first = np.searchsorted(sorted_part, numbers, "left")
            counts = np.searchsorted(sorted_part, numbers, "right") - first
        rows = first[counts > 0]
        if len(counts) and counts.max() > 1:
            rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        if len(rest):
            rows = np.concatenate([rows, np.flatnonzero(member(rest, numbers)) + self.ascending])
        live: IntArray = rows[self.alive[rows]]
        return live

    def mask(self, allowed: IntArray | None = None, without: IntArray | None = None) -> BoolArray:
        """Which rows are live and belong to the right memories, bool, shape (n,); see :meth:`rows`."""
        mask = self.alive
        if allowed is not None:
            mask = self._belonging(allowed)
        if without is not None and len(without):
            mask = mask & ~self._belonging(without)
        return mask

    def _belonging(self, numbers: IntArray) -> BoolArray:
        """Which rows are live and belong to these memories (ascending)."""
        if len(numbers) * 8 > len(self.owners) and self._compact(numbers):
            # Of most rows: asking each is quicker than finding them.
            known = np.zeros(max(int(self.owners.max(initial=0)), int(numbers[-1])) + 1, dtype=bool)
            known[numbers] = True
            belonging: BoolArray = known[self.owners] & self.alive
            return belonging
        mask = np.zeros(len(self.alive), dtype=bool)
        mask[self.rows_of(numbers)] = True
        return mask

    def _compact(self, numbers: IntArray) -> bool:
        """Whether a table of all memory numbers is small beside the rows."""
        least, most = min(int(self.owners.min(initial=0)), int(numbers[0])), int(self.owners.max(initial=numbers[-1]))
        return least >= 0 and most <= 8 * len(self.owners) + 1024

    def rows(self, allowed: IntArray | None = None, without: IntArray | None = None) -> IntArray | None:
        """Indices of live rows, by their owners; ``None`` for "every row".

        Parameters
        ----------
        allowed, without : ndarray of int64, ascending, optional
            Memory numbers that may take part; that may not.
        """
        mask = self.mask(allowed, without)
        return None if mask.all() else np.flatnonzero(mask)


def member(values: npt.NDArray[np.signedinteger], ascending: npt.NDArray[np.signedinteger]) -> BoolArray:
    """Which values are among those of an ascending array."""
    if not len(ascending):
        return np.zeros(len(values), dtype=bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: BoolArray = ascending[places] == values
    return found


def _ascending_length(owners: IntArray) -> int:
    falls = np.flatnonzero(owners[1:] < owners[:-1])
    return int(falls[0]) + 1 if len(falls) else len(owners)


def _starts(owners: IntArray) -> npt.NDArray[np.uint32] | None:
    if (
        not len(owners)
        or owners[0] < 0
        or owners[-1] > 4 * len(owners) + 1024
        or _ascending_length(owners) < len(owners)
    ):
        return None
    starts = np.zeros(int(owners[-1]) + 2, np.uint32)
    np.cumsum(np.bincount(owners), out=starts[1:], dtype=np.uint32)
    return starts


@dataclass(frozen=True)
class Block(Rows):
    """Vectors with the numbers of the memories they belong to.

    Attributes
    ----------
    matrix : ndarray of float32, shape (n, dimension)
        Unit rows.
    """

    matrix: FloatMatrix
    _spare: tuple[IntArray, IntArray, FloatMatrix] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def build(cls, owners: IntArray, labels: IntArray, matrix: FloatMatrix) -> Block:
        """A block of live rows."""
        alive = np.ones(len(owners), dtype=bool)
        return cls(owners, labels, alive, matrix, ascending=_ascending_length(owners), starts=_starts(owners))

    def changed(self, numbers: IntArray, owners: IntArray, labels: IntArray, matrix: FloatMatrix) -> Block:
        """A block in which the rows of ``numbers`` (ascending) are gone and the given rows are added."""
        alive = self.alive.copy()
        alive[self.rows_of(numbers)] = False
        if np.count_nonzero(alive) < (1 - _REBUILD_SHARE) * len(alive):
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
            np.concatenate([alive, np.ones(len(owners), dtype=bool)]),
            buffers[2][:total],
            buffers,
            ascending=self.ascending,
            starts=self.starts,
        )

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
        return exact_cosines(self.matrix[rows], query)


def exact_cosines(matrix: FloatMatrix, query: FloatMatrix) -> FloatArray:
    """Cosines of unit rows in float64: for equal vectors the same to the last bit, wherever they lie."""
    total: FloatArray = (matrix.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return total


Arrays = tuple[IntArray, IntArray, IntArray, Bytes, Words]
"""Owners, labels, places, codes and signs."""


@dataclass(frozen=True)
class CodedBlock(Rows):
    """Codes of vectors, see :mod:`memlab.store.codes`; the vectors themselves stay in the file.

    Attributes
    ----------
    places : ndarray of int64, shape (n,)
        Where in the file each vector was when it was coded: a rowid, which is where to look first.
    codes : ndarray of uint8, shape (n, bytes)
    signs : ndarray of uint64, shape (words, n)
        The signs that are in the codes, as columns, which a scan reads one after the other.
    """

    places: IntArray
    codes: Bytes
    signs: Words
    _spare: Arrays | None = field(default=None, repr=False, compare=False)

    @classmethod
    def room(cls, count: int, width: int) -> Arrays:
        """Arrays for so many rows and some more, to be filled by :func:`put` and handed to :meth:`of`."""
        room = count + max(1024, count // 16)
        return (
            np.empty(room, np.int64),
            np.zeros(room, np.int64),  # of documents never touched, so they take no memory
            np.empty(room, np.int64),
            np.empty((room, width), np.uint8),
            np.empty((width // 16, room), np.uint64),
        )

    @classmethod
    def of(cls, arrays: Arrays, count: int, alive: BoolArray | None = None, former: Rows | None = None) -> CodedBlock:
        """The first ``count`` rows of filled arrays, by default all alive, that may begin with those of a block."""
        owners, labels, places, codes, words = arrays
        return cls(
            owners[:count],
            labels[:count],
            np.ones(count, dtype=bool) if alive is None else alive,
            places[:count],
            codes[:count],
            words[:, :count],
            arrays,
            ascending=_ascending_length(owners[:count]) if former is None else former.ascending,
            starts=_starts(owners[:count]) if former is None else former.starts,
        )

    @classmethod
    def build(cls, owners: IntArray, labels: IntArray, places: IntArray, codes: Bytes) -> CodedBlock:
        """A block of live rows."""
        arrays = cls.room(len(owners), codes.shape[1])
        return cls.of(arrays, put(arrays, 0, owners, labels, places, codes))

    def changed(
        self, numbers: IntArray, owners: IntArray, labels: IntArray, places: IntArray, codes: Bytes
    ) -> CodedBlock:
        """A block in which the rows of ``numbers`` (ascending) are gone and the given rows are added."""
        alive = self.alive.copy()
        alive[self.rows_of(numbers)] = False
        if np.count_nonzero(alive) < (1 - _REBUILD_SHARE) * len(alive):
            return CodedBlock.build(
                np.concatenate([self.owners[alive], owners]),
                np.concatenate([self.labels[alive], labels]),
                np.concatenate([self.places[alive], places]),
                np.concatenate([self.codes[alive], codes]),
            )
        used, total = len(self.owners), len(self.owners) + len(owners)
        arrays = self._spare
        # As in Block: the spare room belongs to the newest successor.
        if arrays is None or len(arrays[0]) < total:
            arrays = self.room(total, self.codes.shape[1])
            arrays[0][:used], arrays[1][:used], arrays[2][:used] = self.owners, self.labels, self.places
            arrays[3][:used], arrays[4][:, :used] = self.codes, self.signs
        put(arrays, used, owners, labels, places, codes)
        alive = np.concatenate([alive, np.ones(len(owners), dtype=bool)])
        return CodedBlock.of(arrays, total, alive, self)


def put(arrays: Arrays, at: int, owners: IntArray, labels: IntArray | None, places: IntArray, codes: Bytes) -> int:
    """Fill arrays of :meth:`CodedBlock.room` from ``at`` on; returns where the next rows go."""
    end = at + len(owners)
    arrays[0][at:end], arrays[2][at:end] = owners, places
    if labels is not None:
        arrays[1][at:end] = labels
    arrays[3][at:end], arrays[4][:, at:end] = codes, signs(codes)
    return end
