"""The vectors of the last queries: a question is often asked again, with another filter or another knob."""

from __future__ import annotations

import threading
from collections import OrderedDict

from memlab.encoders.base import Encoder, EncoderStamp, FloatMatrix

__all__ = ["QueryVectors"]

_MOST = 256  # 0.4 MB at 384 dimensions
_LONGEST = 10_000  # characters; a longer text is a paste, not a question that comes again


class QueryVectors:
    """Query to vector, for one encoder at a time; the query that was not asked for longest makes room.

    May be used by several threads. What another encoder made is forgotten as soon as one is asked for or kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made_by: tuple[Encoder, EncoderStamp] | None = None
        self._vectors: OrderedDict[str, FloatMatrix] = OrderedDict()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, text: str, encoder: Encoder, stamp: EncoderStamp) -> FloatMatrix | None:
        """The vector of a query as this encoder made it, shape (1, dimension), a copy; ``None`` if it is not kept."""
        with self._lock:
            self._follow(encoder, stamp)
            vector = self._vectors.get(text)
            if vector is None:
                return None
            self._vectors.move_to_end(text)
            return vector.copy()

    def keep(self, text: str, vector: FloatMatrix, encoder: Encoder, stamp: EncoderStamp) -> None:
        """Keep a vector of shape (1, dimension)."""
        if len(text) > _LONGEST:
            return
        with self._lock:
            self._follow(encoder, stamp)
            self._vectors[text] = vector.copy()
            self._vectors.move_to_end(text)
            if len(self._vectors) > _MOST:
                self._vectors.popitem(last=False)

    def _follow(self, encoder: Encoder, stamp: EncoderStamp) -> None:
        if self._made_by is None or self._made_by[0] is not encoder or self._made_by[1] != stamp:
            self._vectors.clear()
            self._made_by = (encoder, stamp)
