"""Codes of vectors: two bits a component, from which cosines can be estimated.

A vector is turned by a fixed rotation (signs and Hadamard blocks: additions alone, the same to the last bit on every
machine), after which its components look alike whatever the encoder. Each is rounded to one of four levels; the upper
bit is its sign. The signs alone give the first, rough order by Hamming distance (Charikar, 2002, "Similarity estimation
techniques from rounding algorithms"); both bits, against the query's full precision, a finer one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

CODES_VERSION = 1
"""Goes up with every change of what a vector's code is."""

# The step of the four levels -1.5, -0.5, 0.5, 1.5 that fits a normal distribution best: Max (1960), "Quantizing for
# minimum distortion", table II. What is left of a component's variance then is 0.1188.
_STEP = np.float32(0.9957)
_LOSS = 0.1188
_ROUNDS = 2
_CHUNK = 256  # rows: what is worked on stays in the cache


def padded(dimension: int) -> int:
    """Components after zeros were added, a multiple of 64."""
    return -(-dimension // 64) * 64


def code_bytes(dimension: int) -> int:
    """Bytes of a code: a quarter of a byte a component."""
    return padded(dimension) // 4


@lru_cache(maxsize=8)
def _flips(size: int) -> tuple[FloatMatrix, ...]:
    """The signs of each round, from a hash: no generator's algorithm is part of the files."""
    bits = np.frombuffer(hashlib.shake_256(f"signs {size}".encode()).digest(_ROUNDS * size // 8), np.uint8)
    signs = np.unpackbits(bits).astype(np.float32) * 2 - 1
    return tuple(signs.reshape(_ROUNDS, size))


def rotated(matrix: FloatMatrix) -> FloatMatrix:
    """Vectors after the fixed rotation, as columns: float32, shape (padded dimension, n); of unit ones, variance 1."""
    count, dimension = matrix.shape
    size = padded(dimension)
    block = size & -size  # the largest power of two that divides it
    rows = np.zeros((size, count), np.float32)
    rows[:dimension] = matrix.T
    spare = np.empty_like(rows)
    for number, flips in enumerate(_flips(size)):
        if number and block < size:  # components of one block go to all
            spare.reshape(block, size // block, count)[:] = rows.reshape(size // block, block, count).transpose(1, 0, 2)
            rows, spare = spare, rows
        rows *= flips[:, None]
        half = 1
        while half < block:
            pairs, sums = (part.reshape(size // (2 * half), 2, half, count) for part in (rows, spare))
            np.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
            np.subtract(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
            rows, spare, half = spare, rows, 2 * half
    rows *= np.float32(math.sqrt(size) / block)  # each round makes them sqrt(block) times as long
    return rows


def encode(matrix: FloatMatrix) -> Bytes:
    """Codes of unit rows.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, dimension)

    Returns
    -------
    ndarray of uint8, shape (n, code_bytes(dimension))
        Each byte has the signs of four components in its upper half and their lower bits in the other.
    """
    codes = np.empty((len(matrix), code_bytes(matrix.shape[1])), np.uint8)
    for start in range(0, len(matrix), _CHUNK):
        components = rotated(matrix[start : start + _CHUNK])
        size, count = components.shape
        bits = np.empty((size // 4, 2, 4, count), bool)
        lower = (components > -_STEP) ^ (components > _STEP)
        bits[:, 0] = (components > 0).reshape(size // 4, 4, count)
        bits[:, 1] = lower.reshape(size // 4, 4, count) ^ bits[:, 0]
        codes[start : start + count] = np.packbits(np.ascontiguousarray(bits.reshape(2 * size, count).T), axis=1)
    return codes


def signs(codes: Bytes) -> Words:
    """The signs of codes, as columns of words: shape (padded dimension / 64, n)."""
    packed = (codes[:, 0::2] & np.uint8(0xF0)) | (codes[:, 1::2] >> np.uint8(4))
    return np.ascontiguousarray(packed.view(np.uint64).T)


@lru_cache(maxsize=1)
def _levels() -> npt.NDArray[np.complex128]:
    """By the value of a byte, its four components: 16 bytes, looked up as one thing."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    levels = (2 * bits[:, :4] + bits[:, 4:]).astype(np.float32) - np.float32(1.5)
    return np.ascontiguousarray(levels * _STEP).view(np.complex128).ravel()


@lru_cache(maxsize=2)
def _rotation(dimension: int) -> FloatMatrix:
    """The rotation as a matrix, shape (padded dimension, dimension): for one vector a product is quicker."""
    return rotated(np.eye(dimension, dtype=np.float32))


@dataclass(frozen=True)
class CodedQuery:
    """A query, ready to be compared with codes.

    Attributes
    ----------
    components : ndarray of float32, shape (padded dimension,)
    words : ndarray of uint64, shape (padded dimension / 64,)
        Its signs.
    """

    components: FloatMatrix
    words: Words

    @classmethod
    def of(cls, vector: FloatMatrix) -> CodedQuery:
        """From a unit vector, float32, shape (dimension,)."""
        components = _rotation(len(vector)) @ vector
        words = np.packbits(components > 0).view(np.uint64)
        # Rounding takes (1 - loss) of a vector's length along itself; the mean of what that does is undone here.
        return cls(components / np.float32(len(components) * (1 - _LOSS)), words)

    def estimates(self, codes: Bytes, rows: npt.NDArray[np.int64] | None = None) -> FloatMatrix:
        """Estimated cosines of some rows of ``codes``, float32; they are off by about :func:`deviation`."""
        count = len(codes) if rows is None else len(rows)
        result = np.empty(count, np.float32)
        size, step = codes.shape[1], 256
        gathered = np.empty((min(step, count), size), np.uint8)
        levels = np.empty((min(step, count), size), np.complex128)
        for start in range(0, count, step):
            end = min(start + step, count)
            part = codes[start:end]
            if rows is not None:
                part = codes.take(rows[start:end], axis=0, out=gathered[: end - start], mode="clip")
            _levels().take(part, out=levels[: end - start], mode="clip")
            np.dot(levels[: end - start].view(np.float32), self.components, out=result[start:end])
        return result


def deviation(dimension: int, cosine: float = 0.0) -> float:
    """The standard deviation of an estimated cosine from the true one.

    What rounding took from a vector lies anywhere; the part of the query that is at right angles to the vector meets
    it by chance.
    """
    return math.sqrt(_LOSS / (1 - _LOSS) * max(0.0, 1 - cosine * cosine) / padded(dimension))


def farthest(cosine: float, dimension: int, deviations: float) -> int:
    """The Hamming distance of signs that a vector of this cosine stays within, up to so many standard deviations.

    Two signs differ with the probability ``angle / pi``, each on its own: the distance has a binomial distribution.
    """
    size = padded(dimension)
    chance = math.acos(max(-1.0, min(1.0, cosine))) / math.pi
    return math.ceil(size * chance + deviations * math.sqrt(size * chance * (1 - chance)))
