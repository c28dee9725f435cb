"""Recency and the older scoring against figures worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from memlab import MemoryStore, OlderRetriever, RecencyRanker
from memlab.errors import InvalidValue
from memlab.retrieval.older import older_score

from .plane import cosine

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("days", "factor"), [(0, 1.15), (14, 1.075), (28, 1.0375), (42, 1.01875)])
def test_the_published_factor(days: int, factor: float) -> None:
    assert RecencyRanker().factor(NOW - timedelta(days=days), NOW) == pytest.approx(factor, abs=1e-15)


def test_the_factor_in_between_and_other_settings() -> None:
    assert RecencyRanker().factor(NOW - timedelta(days=7), NOW) == pytest.approx(1 + 0.15 / math.sqrt(2), abs=1e-15)
    assert RecencyRanker(half_life_days=2, strength=1).factor(NOW - timedelta(days=6), NOW) == 1.125


def test_a_time_in_the_future_counts_as_age_zero() -> None:
    assert RecencyRanker().factor(NOW + timedelta(days=400), NOW) == 1.15


@pytest.mark.parametrize("half_life", [0, -1, math.nan, math.inf, "14", True])
def test_bad_half_life(half_life: object) -> None:
    with pytest.raises(InvalidValue, match="half_life_days"):
        RecencyRanker(half_life_days=half_life)  # type: ignore[arg-type]


@pytest.mark.parametrize("strength", [-0.1, math.nan, math.inf, "1"])
def test_bad_strength(strength: object) -> None:
    with pytest.raises(InvalidValue, match="strength"):
        RecencyRanker(strength=strength)  # type: ignore[arg-type]


def test_the_older_terms() -> None:
    assert older_score(0.8, 14.0, 3) == (0.35 * 0.8, 0.275, 0.03)
    assert older_score(0.5, 0.0, 25) == (0.175, 0.55, 0.1)


def test_older_retriever_by_hand(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.remember("near @10", memory_id="old", created_at=NOW - timedelta(days=28))
    store.remember("far @60", memory_id="new", created_at=NOW)
    for _ in range(12):
        store.touch("old")
    recall = OlderRetriever(store).recall("@0", now=NOW)
    assert recall.ids == ("new", "old")
    # new: 0.35 x cos 60 + 0.55 + 0 = 0.725; old: 0.35 x cos 10 + 0.55 / 4 + 0.1
    assert recall[0].score == pytest.approx(0.35 * 0.5 + 0.55, abs=1e-7)
    assert recall[1].score == pytest.approx(0.35 * cosine(10) + 0.1375 + 0.1, abs=1e-7)
    for hit in recall:
        assert hit.score == math.fsum(part.contribution for part in hit.place.contributions)
    frame = recall.contributions
    assert list(frame[frame.memory_id == "old"].channel) == ["similarity", "recency", "access"]


def test_older_retriever_takes_filters_and_limits(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("one @1", "two @2")
    store.remember("three @3", memory_id="c", project="p")
    older = OlderRetriever(store)
    assert older.recall("@0", now=NOW, project="p").ids == ("c",)
    assert older.recall("@0", now=NOW, limit=0).ids == ()
    assert len(older.recall("@0", now=NOW, limit=99)) == 3


def test_older_retriever_without_an_encoder_says_so(make_store: Callable[..., MemoryStore]) -> None:
    recall = OlderRetriever(make_store("one @1", encoder=None)).recall("@0", now=NOW)
    assert recall.ids == ()
    assert "encoder=None" in recall.trace.note


def test_older_ranks_are_each_term_s_own_and_ties_break_by_id(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    for memory_id, days in (("b", 10), ("a", 10), ("c", 0)):
        store.remember("same @30", memory_id=memory_id, created_at=NOW - timedelta(days=days))
    store.touch("b")
    recall = OlderRetriever(store).recall("@30", now=NOW)
    ranks = {hit.memory_id: [part.rank for part in hit.place.contributions] for hit in recall}
    assert ranks == {"a": [1, 2, 2], "b": [2, 3, 1], "c": [3, 1, 3]}
    assert recall.ids == ("c", "b", "a")


def test_older_retriever_of_an_empty_store_loads_nothing(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    recall = OlderRetriever(store).recall("@0", now=NOW)
    assert recall.trace.note == "no memory has a vector yet"
