"""Where something new lies in a picture that stays as it is: between the nearest of those that are in it."""

from __future__ import annotations

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import FloatArray

PLACED_BY = 10
"""Neighbours that decide where something new lies."""
_SAME = 1e-6  # a cosine this near to 1 is the same text


def place(new: FloatMatrix, vectors: FloatMatrix, coordinates: FloatArray, k: int = PLACED_BY) -> FloatArray:
    """The weighted mean of the ``k`` nearest by cosine.

    The weight falls linearly from the nearest to nothing at the one after the last, ``c_j - c_{k+1}``, so that a memory
    that enters or leaves the circle of neighbours moves nothing. A vector that is in the picture already lies where it
    does.

    Parameters
    ----------
    new : ndarray of float32, shape (m, dimension)
        Unit rows.
    vectors : ndarray of float32, shape (n, dimension)
        Those of the picture.
    coordinates : ndarray of float64, shape (n, 2)

    Returns
    -------
    ndarray of float64, shape (m, 2)
        NaN where there is nobody to lie beside.
    """
    if not len(vectors):
        return np.full((len(new), 2), np.nan)
    placed = np.empty((len(new), 2))
    size = max(1, (48 << 20) // (4 * len(vectors)))
    for start in range(0, len(new), size):
        cosines = new[start : start + size] @ vectors.T
        most = min(k + 1, len(vectors))
        rows = np.argpartition(cosines, len(vectors) - most, axis=1)[:, len(vectors) - most :]
        values = np.take_along_axis(cosines, rows, axis=1).astype(np.float64)
        weights = values - (values.min(axis=1, keepdims=True) if most > k else -1.0)
        same = values > 1 - _SAME
        weights = np.where(same.any(axis=1, keepdims=True), same, weights)
        # All equally near: each counts the same.
        weights[weights.sum(axis=1) <= 0] = 1.0
        weights /= weights.sum(axis=1, keepdims=True)
        placed[start : start + size] = np.einsum("mk,mkd->md", weights, coordinates[rows])
    return placed
