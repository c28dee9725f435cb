"""The vectors of a store side by side: who is near whom, exactly, in the space that recall searches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.errors import InvalidValue
from memlab.progress import Progress, Show
from memlab.store import MemoryStore
from memlab.store.blocks import IntArray
from memlab.store.reading import ReadView

_BLOCK_BYTES = 48 << 20  # of similarities that are looked at together


class Neighbours(NamedTuple):
    """The nearest others of every memory, nearest first.

    Attributes
    ----------
    rows : ndarray of int64, shape (n, k)
    cosines : ndarray of float32, shape (n, k)
    """

    rows: IntArray
    cosines: FloatMatrix


@dataclass(frozen=True)
class VectorSpace:
    """Unit vectors with the ids of their memories.

    Attributes
    ----------
    ids : tuple of str, length n
    vectors : ndarray of float32, shape (n, dimension)
        Unit rows, so that products are cosines.
    """

    ids: tuple[str, ...]
    vectors: FloatMatrix
    _known: dict[int, Neighbours] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, store: MemoryStore) -> VectorSpace:
        """The document vectors of the live memories of a store, by memory number."""
        with store.view() as view:
            return cls.seen(view)[1]

    @classmethod
    def seen(cls, view: ReadView) -> tuple[IntArray, VectorSpace]:
        """The same of an open view, with the memories' numbers, ascending."""
        numbers, _, matrix = view.documents.matrix()
        if len(numbers) > 1 and (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, matrix = numbers[order], matrix[order]
        names = view.ids(numbers.tolist())
        return numbers, cls(tuple(names[number] for number in numbers.tolist()), matrix)

    def __len__(self) -> int:
        return len(self.ids)

    def neighbours(self, k: int, progress: Show = None) -> Neighbours:
        """The ``k`` nearest others of every memory by cosine, exactly; all others if there are fewer.

        Every vector is compared with every other: the time grows with the square of their number.

        Parameters
        ----------
        k : int
        progress : bool or callable, optional
            See :class:`memlab.progress.Progress`.
        """
        if k < 1:
            raise InvalidValue(f"k: expected a number of neighbours of at least 1, found {k!r}")
        k = max(0, min(k, len(self) - 1))
        for known, found in self._known.items():
            if known >= k:
                return Neighbours(found.rows[:, :k], found.cosines[:, :k])
        rows, cosines = np.empty((len(self), k), np.int64), np.empty((len(self), k), np.float32)
        for start, block in self.similarities(progress):
            here = np.arange(len(block))
            block[here, start + here] = -np.inf  # nobody is a neighbour of itself
            picked = np.argpartition(block, len(self) - k - 1, axis=1)[:, len(self) - k :]
            values = np.take_along_axis(block, picked, axis=1)
            order = np.lexsort((picked, -values), axis=1)
            rows[start : start + len(block)] = np.take_along_axis(picked, order, axis=1)
            cosines[start : start + len(block)] = np.take_along_axis(values, order, axis=1)
        self._known[k] = Neighbours(rows, cosines)
        return self._known[k]

    def similarities(self, progress: Show = None, *, above: bool = False) -> Iterator[tuple[int, FloatMatrix]]:
        """The cosines of all with all, some rows at a time: the first row's index, and cosines, shape (rows, n).

        Parameters
        ----------
        progress : bool or callable, optional
        above : bool
            Only with memories from the block's first row on, shape (rows, n - first): each pair is there once at least.
        """
        size = max(1, _BLOCK_BYTES // (4 * max(1, len(self))))
        with Progress("comparing memories", len(self), progress) as shown:
            for start in range(0, len(self), size):
                part = self.vectors[start : start + size]
                yield start, part @ (self.vectors[start:] if above else self.vectors).T
                shown.advance(len(part))
