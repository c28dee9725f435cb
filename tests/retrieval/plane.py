"""An encoder whose vectors can be worked out by hand: a text with ``@30`` in it points at 30 degrees."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

ANGLE = re.compile(r"@(-?\d+)")
WORD = re.compile(r"\S+")


class PlaneEncoder:
    """Unit vectors in the plane; a token is a word. Counts how many texts it was given."""

    name = "plane"
    dimension = 2
    fingerprint = "plane-1"
    query_prefix = ""
    document_prefix = ""

    def __init__(self, token_limit: int = 8) -> None:
        self.token_limit = token_limit
        self.encoded = 0
        self.broken: Exception | None = None

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.broken is not None:
            raise self.broken
        self.encoded += len(texts)
        angles = [math.radians(int(m.group(1))) if (m := ANGLE.search(text)) else math.pi for text in texts]
        return np.array([(math.cos(a), math.sin(a)) for a in angles], dtype=np.float32).reshape(len(texts), 2)

    encode_queries = _encode
    encode_documents = _encode

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(WORD.findall(text)) for text in texts]

    def token_spans(self, text: str) -> np.ndarray:
        return np.array([m.span() for m in WORD.finditer(text)], dtype=np.int64).reshape(-1, 2)


def cosine(degrees: float) -> float:
    """Cosine between vectors that lie so many degrees apart."""
    return math.cos(math.radians(degrees))
