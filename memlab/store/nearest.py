"""The rows that are nearest to a query: exact where the vectors are in memory, in three steps where only codes are.

Over codes, the Hamming distance of the signs gives a first choice, the codes against the query in full precision a
second one, and the vectors of the few that are left are read from the file and compared exactly. How many are kept at
each step follows from what the step before found and from how much it may be off, so an easy query costs little and a
hard one is still answered well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import Block, BoolArray, CodedBlock, FloatArray, IntArray
from memlab.store.codes import CodedQuery, deviation, farthest

# float32 products of unit vectors of 384 components differ from exact ones by less than this.
_SCAN_ERROR = 1e-5

FIRST = 768
"""Rows of which cosines are estimated before it is known how far to look; and below which no signs are looked at."""
HAMMING_DEVIATIONS = 2.5
"""How far beyond the last place the first step looks, in standard deviations of what it may be off."""
ESTIMATE_DEVIATIONS = 2.75
"""The same of the second step."""
MOST_SHARE = 0.02
"""Share of the rows whose cosines are estimated at most, however flat the neighbourhood of the query is..."""
MOST_ROWS = 20_000
"""... if that is more than this."""
_CHUNK = 16_384  # rows a step of the scan: they stay in the cache

Found = tuple[IntArray, IntArray, FloatArray]


def nearest(
    block: Block, query: FloatMatrix, depth: int, rows: IntArray | None = None, coarse: FloatMatrix | None = None
) -> Found:
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
        return nothing()
    if coarse is None:
        coarse = block.scores(query, rows)
    if count > depth:
        bound = np.partition(coarse, count - depth)[count - depth] - _SCAN_ERROR
        picked = np.flatnonzero(coarse >= bound)
    else:
        picked = np.arange(count)
    picked = picked if rows is None else rows[picked]
    return best(block, picked, block.exact(query, picked), depth)


def nothing() -> Found:
    """No rows."""
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def best(block: Block | CodedBlock, rows: IntArray, cosines: FloatArray, depth: int) -> Found:
    """The ``depth`` best of some rows and all that tie with the last; owners, labels and cosines, descending."""
    if not (usable := cosines > -np.inf).all():
        rows, cosines = rows[usable], cosines[usable]
    if len(rows) > depth:
        keep = cosines >= kth_largest(cosines, depth)
        rows, cosines = rows[keep], cosines[keep]
    order = np.argsort(-cosines, kind="stable")
    return block.owners[rows][order], block.labels[rows][order], cosines[order]


def kth_largest(values: npt.NDArray[Any], k: int) -> Any:
    """The ``k``-th largest value, from 1."""
    return np.partition(values, len(values) - k)[len(values) - k]


@dataclass
class CodedSearch:
    """One query against a coded block; keeps what it found out for the next question about the same query.

    Parameters
    ----------
    block : CodedBlock
    vector : ndarray of float32, shape (dimension,)
    exact : callable
        Gives the exact cosines of rows: (n,) int64 to (n,) float64.
    """

    block: CodedBlock
    vector: FloatMatrix
    exact: Callable[[IntArray], FloatArray]
    _query: CodedQuery = field(init=False)
    _distances: npt.NDArray[Any] | None = None
    _reached: int = -1
    _rows: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    _estimates: FloatMatrix = field(default_factory=lambda: np.empty(0, np.float32))

    def __post_init__(self) -> None:
        self._query = CodedQuery.of(self.vector)

    def nearest(self, depth: int, rows: IntArray | BoolArray | None) -> Found:
        """The ``depth`` nearest rows and those that tie with the last; owners, labels and cosines, descending.

        Parameters
        ----------
        rows : ndarray of int64 or of bool, or None
            Indices of the rows that take part, or a mask of them; ``None`` for all that are alive.
        """
        chosen = _indices(rows)
        mask = None if chosen is not None or rows is None else rows.astype(bool, copy=False)
        if chosen is None:
            count = len(self.block) if mask is None else int(np.count_nonzero(mask))
            if count * 8 <= len(self.block.owners) or count <= max(FIRST, 2 * depth):
                chosen = np.flatnonzero(self.block.alive if mask is None else mask)
        if depth <= 0 or (chosen is not None and not len(chosen)):
            return nothing()
        if chosen is None:
            return self._finish(depth, *self._of_all(depth, mask))
        if len(chosen) <= 2 * depth:
            return best(self.block, chosen, self.exact(chosen), depth)
        if len(chosen) <= 4 * FIRST:
            return self._finish(depth, chosen, self._query.estimates(self.block.codes, chosen))
        return self._finish(depth, *self._of_some(depth, chosen))

    def _finish(self, depth: int, rows: IntArray, estimates: FloatMatrix) -> Found:
        """Read and compare those that may be among the best by their estimates."""
        if len(rows) <= depth:
            return best(self.block, rows, self.exact(rows), depth)
        last = float(kth_largest(estimates, depth))
        off = deviation(len(self.vector), last)
        # The best estimates are too high rather than too low, by about half a deviation...
        bound = last - (ESTIMATE_DEVIATIONS + 0.5) * off
        picked = estimates >= bound
        cosines = self.exact(rows[picked])
        # ... and where that was not enough, look again from where the last place truly is.
        lower = kth_largest(cosines, depth) - ESTIMATE_DEVIATIONS * off
        if lower < bound:
            more = (estimates >= lower) & ~picked
            if more.any():
                cosines = np.concatenate([cosines, self.exact(rows[more])])
                return best(self.block, np.concatenate([rows[picked], rows[more]]), cosines, depth)
        return best(self.block, rows[picked], cosines, depth)

    def _of_all(self, depth: int, mask: BoolArray | None) -> tuple[IntArray, FloatMatrix]:
        """Rows within the distance that matters, with estimates; of the live rows, or those of the mask."""
        if self._distances is None:
            self._distances = hamming(self.block.signs, self._query.words)
            self._distances[~self.block.alive] = _beyond(self._distances)
        distances = self._distances
        if mask is not None:
            distances = np.where(mask, distances, _beyond(distances))
        self._reach(within(distances, max(FIRST, 4 * depth)))
        estimates = self._reached_ones(mask)[1]
        limit = farthest(float(kth_largest(estimates, depth)), len(self.vector), HAMMING_DEVIATIONS)
        self._reach(_limited(distances, limit))
        return self._reached_ones(mask)

    def _reach(self, limit: int) -> None:
        """Estimate the live rows up to this Hamming distance, those that are not yet."""
        assert self._distances is not None
        limit = min(limit, int(_beyond(self._distances)) - 1)
        if limit <= self._reached:
            return
        new = self._distances <= limit
        if self._reached >= 0:
            new &= self._distances > self._reached
        rows = np.flatnonzero(new)
        self._rows = np.concatenate([self._rows, rows])
        self._estimates = np.concatenate([self._estimates, self._query.estimates(self.block.codes, rows)])
        self._reached = limit

    def _reached_ones(self, mask: BoolArray | None) -> tuple[IntArray, FloatMatrix]:
        if mask is None:
            return self._rows, self._estimates
        kept = mask[self._rows]
        return self._rows[kept], self._estimates[kept]

    def _of_some(self, depth: int, rows: IntArray) -> tuple[IntArray, FloatMatrix]:
        """The same of the rows given alone."""
        distances = hamming(self.block.signs[:, rows], self._query.words)
        first = distances <= within(distances, max(FIRST, 4 * depth))
        chosen = rows[first]
        estimates = self._query.estimates(self.block.codes, chosen)
        limit = farthest(float(kth_largest(estimates, depth)), len(self.vector), HAMMING_DEVIATIONS)
        more = (distances <= _limited(distances, limit)) & ~first
        if more.any():
            estimates = np.concatenate([estimates, self._query.estimates(self.block.codes, rows[more])])
            chosen = np.concatenate([chosen, rows[more]])
        return chosen, estimates


def _indices(rows: IntArray | BoolArray | None) -> IntArray | None:
    return None if rows is None or rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)


def _limited(distances: npt.NDArray[Any], limit: int) -> int:
    """The distance, or a smaller one within which no more rows are than are looked at."""
    limit, most = min(limit, int(_beyond(distances)) - 1), max(MOST_ROWS, int(MOST_SHARE * len(distances)))
    return limit if np.count_nonzero(distances <= limit) <= most else min(limit, within(distances, most))


def _beyond(distances: npt.NDArray[Any]) -> Any:
    """The distance that stands for "takes no part"."""
    return np.iinfo(distances.dtype).max


def within(distances: npt.NDArray[Any], count: int) -> int:
    """The smallest distance within which so many rows are (all that take part, if there are fewer)."""
    top = int(_beyond(distances)) - 1
    # A sample says about where; counting says exactly, in steps that grow: it may have missed all that take part.
    step = max(1, len(distances) // 16_384)
    sample = np.bincount(distances[::step], minlength=top + 2)[: top + 1]
    high = min(int(np.searchsorted(np.cumsum(sample), count / step)), top)
    low, reach = high - 1, 1
    while high < top and np.count_nonzero(distances <= high) < count:
        low, high, reach = high, min(high + reach, top), 2 * reach
    while low >= 0 and np.count_nonzero(distances <= low) >= count:
        low, high, reach = max(low - reach, -1), low, 2 * reach
    while high - low > 1:
        middle = (low + high) // 2
        if np.count_nonzero(distances <= middle) < count:
            low = middle
        else:
            high = middle
    return high


def hamming(columns: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """How many bits differ.

    Parameters
    ----------
    columns : ndarray of uint64, shape (w, n)
    words : ndarray of uint64, shape (w,)

    Returns
    -------
    ndarray, shape (n,)
        Of uint8, and 254 for all from 254 on, where w is 6 or less; of uint16 otherwise.
    """
    count = columns.shape[1]
    small = len(words) <= 6
    result = np.empty(count, np.uint8 if small else np.uint16)
    differ = np.empty(min(count, _CHUNK), np.uint64)
    bits = np.empty(min(count, _CHUNK), np.uint8)
    second = np.empty(min(count, _CHUNK), np.uint8)
    for start in range(0, count, _CHUNK):
        end = min(start + _CHUNK, count)
        d, b, s, total = differ[: end - start], bits[: end - start], second[: end - start], result[start:end]
        for place, word in enumerate(words):
            np.bitwise_xor(columns[place, start:end], word, out=d)
            # 255 bits fit into a byte, so the words from the fourth on are counted apart.
            target = s if small and place >= 3 else total
            if place in ((0, 3) if small else (0,)):
                np.bitwise_count(d, out=target)
            else:
                np.bitwise_count(d, out=b)
                np.add(target, b, out=target)
        if len(words) > 3 and small:
            np.subtract(254, total, out=b)
            np.minimum(s, b, out=s)
            np.add(total, s, out=total)
    return result
