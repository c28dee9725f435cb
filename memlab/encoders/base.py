"""What an encoder is: text in, unit vectors out, and a name that says whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memlab.errors import EncoderError

FloatMatrix = npt.NDArray[np.float32]
IntMatrix = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EncoderStamp:
    """The identity of an encoder, as it is written beside the vectors it made.

    Two stamps are compatible when vectors of one may be compared with vectors of the other:
    the same weights, the same dimension and the same document prefix. The name is for people.
    """

    name: str
    fingerprint: str
    dimension: int
    token_limit: int
    document_prefix: str = ""

    def compatible(self, other: EncoderStamp) -> bool:
        """Whether vectors made under ``other`` may be compared with vectors made under this stamp."""
        return (self.fingerprint, self.dimension, self.document_prefix) == (
            other.fingerprint,
            other.dimension,
            other.document_prefix,
        )


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into unit vectors.

    Attributes
    ----------
    name : str
        What people call the model, for example ``sentence-transformers/all-MiniLM-L6-v2``.
    dimension : int
        Length of a vector.
    token_limit : int
        Most tokens of one text that take part, special tokens and prefix included.
    fingerprint : str
        ``sha256:`` and the hash of the weights. May locate and read the weights on first use.
    query_prefix, document_prefix : str
        Put before a query or a document by the encoder itself; empty for MiniLM.
    """

    @property
    def name(self) -> str:
        """What people call the model."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part, special tokens and prefix included."""
        ...

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of the weights."""
        ...

    @property
    def query_prefix(self) -> str:
        """Put before a query by the encoder itself."""
        ...

    @property
    def document_prefix(self) -> str:
        """Put before a document by the encoder itself."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode queries: ``(len(texts), dimension)`` float32, each row of length 1."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode documents: ``(len(texts), dimension)`` float32, each row of length 1."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a document, untruncated, special tokens and prefix included."""
        ...

    def token_spans(self, text: str) -> IntMatrix:
        """Character offsets of the tokens of ``text``, untruncated and without special tokens.

        Returns
        -------
        ndarray of int64, shape (n_tokens, 2)
            Start and end offsets in code points, ascending.
        """
        ...


def stamp(encoder: Encoder) -> EncoderStamp:
    """Return the identity to write beside the vectors of ``encoder``."""
    return EncoderStamp(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        token_limit=encoder.token_limit,
        document_prefix=encoder.document_prefix,
    )


def check_vectors(vectors: npt.ArrayLike, count: int, dimension: int, source: str) -> FloatMatrix:
    """Return ``vectors`` as unit float32 rows, or say what is wrong with them.

    Parameters
    ----------
    vectors : array_like, shape (count, dimension)
        Vectors of any finite length but zero.
    count, dimension : int
        The shape that is expected.
    source : str
        Who made the vectors, for the message.

    Returns
    -------
    ndarray of float32, shape (count, dimension)
        Rows of length 1.

    Raises
    ------
    EncoderError
        If the shape is another one, or a row has NaN, infinity or length zero.
    """
    try:
        matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EncoderError(f"{source}: expected numbers of shape ({count}, {dimension}), found {error}") from error
    if matrix.shape != (count, dimension):
        raise EncoderError(
            f"{source}: expected vectors of shape ({count}, {dimension}), found {matrix.shape}; "
            "use the encoder that the store was made with"
        )
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise EncoderError(f"{source}: vector {row} holds NaN or infinity; every component must be a finite number")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not norms.all():
        row = int(np.flatnonzero(norms[:, 0] == 0)[0])
        raise EncoderError(f"{source}: vector {row} has length zero, so it has no direction to compare")
    # Rows that are unit already stay bit for bit as they are: dividing by 0.99999994 would move them.
    off = np.abs(norms[:, 0] - 1.0) > 1e-5
    if off.any():
        matrix = matrix.copy()
        matrix[off] /= norms[off]
    return np.ascontiguousarray(matrix)
