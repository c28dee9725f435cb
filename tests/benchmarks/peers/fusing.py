"""What peers without a hybrid search of their own are given: plain OR queries, and reciprocal ranks added up."""

from __future__ import annotations

import re
from collections.abc import Iterable

DEPTH = 50
_WORD = re.compile(r"\w+")


def or_query(text: str) -> str:
    """All words of a text as an FTS5 expression."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(text.lower())))


def fused(lists: Iterable[Iterable[int]], limit: int) -> list[int]:
    """The best by the sum of 1 / (60 + rank)."""
    scores: dict[int, float] = {}
    for found in lists:
        for rank, item in enumerate(found, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda item: (-scores[item], item))[:limit]
