"""One vector for a text from the vectors of its passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix, check_vectors
from memlab.errors import InvalidValue

__all__ = ["Aggregation", "aggregate"]

Aggregation = Literal["length-weighted", "mean", "first"]


def aggregate(
    vectors: npt.ArrayLike, lengths: Sequence[int] | npt.ArrayLike, how: str = "length-weighted"
) -> npt.NDArray[np.float32]:
    """Aggregate the vectors of a text's passages.

    With ``v[i]`` the vectors and ``w[i]`` the lengths, the result is ``sum(w[i] * v[i])`` divided by its
    own length; ``mean`` has all weights equal, ``first`` is ``v[0]``. Where the sum cancels out there is
    no direction, and the first vector stands for the text.

    Parameters
    ----------
    vectors : array_like of float, shape (n, dimension)
        One row for each passage, n >= 1.
    lengths : sequence of int, length n
        The passages' lengths in code points (``Passage.length``), which the store can always tell from
        the offsets it keeps. Any other unit works, if it is the same for all.
    how : {"length-weighted", "mean", "first"}
        The weights.

    Returns
    -------
    ndarray of float32, shape (dimension,)
        Of length 1. A single passage keeps its vector bit for bit, if that is of length 1.

    Raises
    ------
    InvalidValue
        If ``how`` is none of the three, the lengths do not match the rows, or are not positive.
    EncoderError
        If a vector has NaN, infinity or length zero.
    """
    if how not in get_args(Aggregation):
        raise InvalidValue(f"how: expected one of {', '.join(get_args(Aggregation))}, found {how!r}")
    shape = np.shape(vectors)
    if len(shape) != 2 or 0 in shape:
        raise InvalidValue(f"vectors: expected one row for each passage, at least one, found shape {shape}")
    rows: FloatMatrix = check_vectors(vectors, *shape, source="aggregate")
    weights = np.asarray(lengths, dtype=np.float64)
    if weights.shape != (len(rows),) or not np.isfinite(weights).all() or (weights <= 0).any():
        raise InvalidValue(f"lengths: expected {len(rows)} positive numbers, found {lengths!r}")
    if how == "first" or len(rows) == 1:
        return np.array(rows[0])
    if how == "mean":
        weights = np.ones(len(rows))
    total = (weights / weights.sum()) @ rows.astype(np.float64)
    norm = float(np.linalg.norm(total))
    # float32 rows that cancel leave a rest of this size: a direction of rounding errors only.
    if norm < 1e-6:
        return np.array(rows[0])
    return np.asarray(total / norm, dtype=np.float32)
