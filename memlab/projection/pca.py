"""The linear picture: principal components, at once and for any number of memories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import FloatArray

_PART = 16_384  # rows that are converted together


@dataclass(frozen=True)
class PCA:
    """The plane of largest variance.

    Attributes
    ----------
    axes : ndarray of float32, shape (3, dimension)
        The mean, and two orthonormal axes.
    share : float
        Part of the variance that lies in the plane, 0 to 1.
    """

    axes: FloatMatrix
    share: float = 0.0

    @classmethod
    def fit(cls, vectors: FloatMatrix) -> PCA:
        """Find it, from the covariance of all vectors (Pearson 1901; Hotelling 1933).

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, dimension)
        """
        count, dimension = vectors.shape
        axes = np.zeros((3, dimension), np.float64)
        if count:
            axes[0] = vectors.mean(axis=0, dtype=np.float64)
        scatter = np.zeros((dimension, dimension))
        for start in range(0, count, _PART):
            # Unit vectors: in float32 their products are off by 1e-7, and take half the time.
            part = vectors[start : start + _PART] - axes[0].astype(np.float32)
            scatter += part.T @ part
        values, directions = np.linalg.eigh(scatter)
        for at in range(min(2, dimension)):
            axis = directions[:, -1 - at]
            # The sign of an axis means nothing; the same one every time keeps the picture the same way round.
            axes[1 + at] = axis * (1.0 if axis[np.argmax(np.abs(axis))] > 0 else -1.0)
        total = float(values.sum())
        share = float(values[-2:].sum()) / total if total > 0 else 0.0
        return cls(axes.astype(np.float32), share)

    def place(self, vectors: FloatMatrix) -> FloatArray:
        """Coordinates of vectors, float64, shape (n, 2): exact also for those that came later."""
        mean, plane = self.axes[0].astype(np.float64), self.axes[1:].astype(np.float64)
        return np.concatenate(
            [np.empty((0, 2))] + [(vectors[at : at + _PART] - mean) @ plane.T for at in range(0, len(vectors), _PART)]
        )
