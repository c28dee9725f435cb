"""Some texts and the vectors that the original weights make of them: any graph can be checked without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memlab.encoders.base import FloatMatrix

__all__ = ["CHECK_TEXTS", "TOLERANCE", "TOLERANCE_COSINE", "largest_difference", "reference_vectors"]

CHECK_TEXTS: tuple[str, ...] = (
    "retry",
    "Webhooks retry with full jitter, capped at 5 min.",
    "ERR_CONN_4021 in src/db/pool.py: raise PoolExhausted(f'{size} of {limit}')",
    "数据库连接池耗尽了。请求在三十秒后超时。",
    "Почему сборка падает на втором шаге? Où est passé le café ? ¿Dónde está la configuración?",
    "كيف نعيد المحاولة بعد فشل الطلب؟ एक त्रुटि संदेश ελληνικά עברית ไทย 한국어",
    "We moved the nightly job to 03:00 UTC because the backup held the lock. " * 9,
    "The index follows other writers' commits; deletes leave gaps that are filled later (see notes, p. 4). " * 40,
)
"""From one token to more than 256, several scripts; the last one is cut off."""

TOLERANCE = 5e-5
"""Largest difference of a component; rounding alone gives about 1e-6, a wrong graph far more."""
TOLERANCE_COSINE = 0.9999


def reference_vectors() -> FloatMatrix:
    """What sentence-transformers makes of :data:`CHECK_TEXTS` with the original weights: ``(8, 384)`` float32."""
    vectors: FloatMatrix = np.load(Path(__file__).with_name("reference_vectors.npy"), allow_pickle=False)
    return vectors


def largest_difference(vectors: FloatMatrix, expected: FloatMatrix) -> tuple[float, float]:
    """Largest difference of a component, and the smallest cosine; infinite and -1 where the shapes differ."""
    if vectors.shape != expected.shape or not np.isfinite(vectors).all():
        return float("inf"), -1.0
    return float(np.abs(vectors - expected).max()), float((vectors * expected).sum(axis=1).min())


def agrees(found: Sequence[FloatMatrix], expected: FloatMatrix) -> tuple[bool, float]:
    """Whether all of several attempts agree with what is expected, and their largest difference."""
    pairs = [largest_difference(vectors, expected) for vectors in found]
    worst, cosine = max(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    return worst < TOLERANCE and cosine > TOLERANCE_COSINE, worst
