from __future__ import annotations

import pytest

from memlab import RRF, HybridRetriever, MemoryStore, RecencyRanker, profile
from memlab.errors import InvalidValue
from memlab.retrieval import PROFILES, KeywordChannel, PassageChannel, StemChannel, VectorChannel


def test_classic_is_what_was_published(hashed: MemoryStore) -> None:
    classic = profile("classic", hashed)
    assert classic.channels == (
        KeywordChannel(joiners="_"),
        VectorChannel(),
        PassageChannel(scope="candidates", single_passages=True),
    )
    assert classic.fusion == RRF(k=60, one_vote=())
    assert classic.recency == RecencyRanker(half_life_days=14, strength=0.15)
    assert (classic.depth, classic.recency_boost) == (50, False)
    assert profile("classic-no-passages", hashed) == classic.without("passage")


def test_the_others_are_parts_of_the_default(hashed: MemoryStore) -> None:
    default = HybridRetriever(hashed)
    assert profile("default", hashed) == default
    assert profile("vector", hashed) == default.only("vector")
    assert profile("keyword", hashed).channels == (StemChannel(),)


def test_every_profile_recalls(hashed: MemoryStore) -> None:
    for name in PROFILES:
        assert profile(name, hashed).recall("webhook retries").ids


def test_an_unknown_profile_lists_the_known_ones(hashed: MemoryStore) -> None:
    with pytest.raises(InvalidValue, match="'best' is none; the profiles are vector, keyword, classic"):
        profile("best", hashed)
