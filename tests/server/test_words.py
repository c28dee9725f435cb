"""The text of an answer says what its structure says."""

from __future__ import annotations

from typing import Any

from memlab.server.models import Contribution, HitItem, Item, MemoriesResult, RecallResult
from memlab.server.words import as_text

FACTS: dict[str, Any] = {
    "origin": "memory stored by an assistant",
    "content": "webhooks retry",
    "category": "decision",
    "subcategory": "http",
    "project": "billing",
    "tags": ["retry"],
    "importance": 7,
    "created_at": "2026-03-01T10:00:00Z",
    "age": "31 days",
    "age_days": 31.25,
    "related_files": ["src/hooks.py"],
}


def test_a_recall():
    hit = HitItem(
        id="m-1",
        **FACTS,
        rank=1,
        score=0.8125,
        recency_factor=1.25,
        contributions=[
            Contribution(channel="keyword", rank=1, raw_score=12.34567, contribution=0.4),
            Contribution(channel="vector", rank=None, raw_score=0.4321, contribution=0.25),
        ],
    )
    text = as_text(
        RecallResult(
            query="how do\nwebhooks retry",
            project="billing",
            mode="keyword-only",
            mode_reason="the encoder is loading",
            searched=1200,
            found=2,
            hits=[hit],
            dropped=["m-2"],
            shortened=["m-1"],
            notes=["limit was 0"],
        )
    )
    first, second, *_ = text.splitlines()
    assert first == "recall of 'how do webhooks retry': 2 found in 1,200 memories · keyword-only · project billing"
    assert second == "not hybrid: the encoder is loading"
    assert "1. m-1 · score 0.8125 · billing / decision / http · importance 7" in text
    assert "age 31 days (31.2 days, 2026-03-01T10:00:00Z) · #retry · files src/hooks.py" in text
    assert "keyword #1 +0.4000 (12.35), vector beyond depth +0.2500 (0.4321), recency x1.250" in text
    assert "left out for size: m-2" in text
    assert "cut short: m-1" in text
    assert text.endswith("note: limit was 0")


def test_a_memory_that_was_changed_and_trashed_and_cut():
    item = Item(
        id="m-1",
        **FACTS,
        updated_at="2026-03-02T10:00:00Z",
        trashed_at="2026-03-03T10:00:00Z",
        characters=12_000,
        pending=True,
    )
    text = as_text(
        MemoriesResult(action="get", project="", items=[item], counts=[], revisions=[], dropped=[], shortened=[])
    )
    assert "changed 2026-03-02T10:00:00Z" in text
    assert "in the trash since 2026-03-03T10:00:00Z" in text
    assert "cut short, 12,000 characters in all" in text
    assert "no vector yet" in text
