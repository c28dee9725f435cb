"""How far a picture can be believed: whether those near on it are near in the vectors, and the other way round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.projection.space import VectorSpace
from memlab.store.blocks import FloatArray, IntArray

Distances = npt.NDArray[np.floating[Any]]

EXACT_UP_TO = 4_000
"""Memories up to which all are looked at; of more, a sample."""
SAMPLE = 500


@dataclass(frozen=True)
class Faithfulness:
    """Figures of one picture.

    Attributes
    ----------
    k : int
        Neighbours that are compared.
    trustworthiness : float
        1 if all neighbours on the picture are neighbours in the vectors; about 0.5 for a picture drawn by lot.
    continuity : float
        1 if all neighbours in the vectors are neighbours on the picture.
    kept : float
        Share of the ``k`` nearest in the vectors that are among the ``k`` nearest on the picture.
    memories, sampled : int
        How many there are, and for how many it was worked out: all, or a sample.
    """

    k: int
    trustworthiness: float
    continuity: float
    kept: float
    memories: int
    sampled: int

    def __str__(self) -> str:
        if not self.k:
            return "There are too few memories to say how faithful the picture is."
        return (
            f"Of the {self.k} memories nearest to one in the full space, {self.kept:.0%} are among the {self.k} "
            f"nearest here (trustworthiness {self.trustworthiness:.2f}, continuity {self.continuity:.2f})."
        )


def faithfulness(space: VectorSpace, coordinates: FloatArray, *, k: int = 10, seed: int = 0) -> Faithfulness:
    """Trustworthiness and continuity of a picture (Venna and Kaski 2001, 2006).

    ``1 - 2 / (n k (2 n - 3 k - 1))`` times the sum, over memories ``i`` and their false neighbours ``j``, of
    ``rank(i, j) - k``: how far outside of the circle of neighbours ``j`` truly is. Trustworthiness takes neighbours on
    the picture and ranks in the vectors, by cosine; continuity the other way round. Of more than
    :data:`EXACT_UP_TO` memories the mean over a seeded sample is taken; ranks are among all.

    Parameters
    ----------
    space : VectorSpace
        Of n memories.
    coordinates : ndarray of float64, shape (n, 2)
    k : int
        Made smaller for fewer than ``2 k`` memories, where the measure is not defined.
    """
    count = len(space)
    k = min(k, (count - 1) // 2)
    if k < 1:
        return Faithfulness(0, 1.0, 1.0, 1.0, count, count)
    anchors = np.arange(count)
    if count > EXACT_UP_TO:
        anchors = np.sort(np.random.default_rng(seed).choice(count, SAMPLE, replace=False))
    trust = continuity = kept = 0.0
    for start in range(0, len(anchors), 256):
        here = anchors[start : start + 256]
        apart = -(space.vectors[here] @ space.vectors.T)
        on_picture = _squared_distances(coordinates, here)
        first = np.arange(len(here))
        apart[first, here] = on_picture[first, here] = -np.inf  # rank 0 is the memory itself
        near, near_on_picture = _nearest(apart, k), _nearest(on_picture, k)
        trust += _beyond(apart, near_on_picture, k)
        continuity += _beyond(on_picture, near, k)
        kept += float((near[:, :, None] == near_on_picture[:, None, :]).sum())
    scale = 2.0 / (len(anchors) * k * (2 * count - 3 * k - 1))
    return Faithfulness(k, 1 - scale * trust, 1 - scale * continuity, kept / (len(anchors) * k), count, len(anchors))


def _squared_distances(coordinates: FloatArray, rows: IntArray) -> FloatArray:
    x, y = coordinates[:, 0], coordinates[:, 1]
    apart: FloatArray = (x[rows, None] - x[None, :]) ** 2 + (y[rows, None] - y[None, :]) ** 2
    return apart


def _nearest(distances: Distances, k: int) -> IntArray:
    """The k nearest of each row, without the memory itself, which is at minus infinity."""
    picked = np.argpartition(distances, k, axis=1)[:, : k + 1]
    order = np.argsort(np.take_along_axis(distances, picked, axis=1), axis=1, kind="stable")
    nearest: IntArray = np.take_along_axis(picked, order, axis=1)[:, 1:]
    return nearest


def _beyond(distances: Distances, neighbours: IntArray, k: int) -> float:
    """By how many ranks neighbours of the other space lie outside of the k nearest here, added up."""
    total = 0.0
    limits = np.take_along_axis(distances, neighbours, axis=1)
    for at in range(neighbours.shape[1]):
        # Those nearer, of which the memory itself is one: the rank from 1 among the others.
        ranks = np.count_nonzero(distances < limits[:, at, None], axis=1)
        total += float(np.maximum(ranks - k, 0).sum())
    return total
