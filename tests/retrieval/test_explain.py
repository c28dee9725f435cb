from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memlab import RRF, HashingEncoder, HybridRetriever, MemoryStore, OlderRetriever
from memlab.errors import UnknownMemory
from memlab.retrieval.explain import WhyNot

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = make_store(*[f"retry number {i} @{i}" for i in range(1, 21)])  # a .. t
    store.remember(
        "cache of pages @50", memory_id="old", project="p", tags=["x", "y"], created_at=NOW - timedelta(days=90)
    )
    return store


def test_explain_is_the_whole_sum(store: MemoryStore) -> None:
    recall = HybridRetriever(store).recall("number 3 @0", recency_boost=True, now=NOW)
    text = str(recall.explain(recall.ids[0]))
    assert text.startswith(f"{recall.ids[0]} is number 1 with {recall[0].score:.6f} = (")
    parts = [float(x) for x in re.findall(r"(?:keyword|vector|passage) (\d\.\d+) \[", text)]
    factor = float(re.search(r"x (\d\.\d+) \[recency", text).group(1))  # type: ignore[union-attr]
    assert sum(parts) * factor == pytest.approx(recall[0].score, abs=2e-6)
    assert re.search(r"\[rank 1, bm25 [\d.]+: 0.42 x ([\d.]+) / \1\]", text)
    assert re.search(r"cosine ([\d.]+): 0.58 x \1\]", text)
    assert "the passage channel gave nothing (no memory has several passages)" in text
    assert repr(recall.explain(recall.ids[0])) == text  # no quotes in a notebook


def test_explain_of_ranks(store: MemoryStore) -> None:
    recall = HybridRetriever(store, fusion=RRF()).recall("number 3 @0", now=NOW)
    assert "1 / (60 + 1)" in recall.explain(recall.ids[0])


def test_explain_of_everything_has_a_line_a_hit(store: MemoryStore) -> None:
    recall = HybridRetriever(store).recall("retry @0", now=NOW)
    assert len(str(recall.explain()).splitlines()) == len(recall) == 5
    assert "recency" not in str(recall.explain())
    assert str(HybridRetriever(store).recall(" ").explain()) == "There are no hits to explain."


def test_explain_of_another_memory_points_to_why_not(store: MemoryStore) -> None:
    recall = HybridRetriever(store).recall("retry @0", now=NOW)
    with pytest.raises(UnknownMemory, match=r"why_not\('old'\)"):
        recall.explain("old")


def test_why_not_of_a_hit(store: MemoryStore) -> None:
    recall = HybridRetriever(store).recall("retry @0", now=NOW)
    answer = recall.why_not(recall.ids[1])
    assert answer.found
    assert "number 2" in str(answer)
    with pytest.raises(UnknownMemory):
        recall.why_not("nobody")


def remedy(answer: WhyNot, pattern: str) -> re.Match[str]:
    match = re.search(pattern, "; ".join(answer.remedies))
    assert match, answer
    return match


def test_why_not_below_the_limit_and_the_remedy_works(store: MemoryStore) -> None:
    retriever = HybridRetriever(store)
    recall = retriever.recall("retry @0", now=NOW)
    missing = recall.trace.ranked[8].memory_id
    answer = recall.why_not(missing)
    assert "it came 9 of" in answer.reasons[0]
    limit = int(remedy(answer, r"limit=(\d+)").group(1))
    assert missing in retriever.recall("retry @0", now=NOW, limit=limit).ids
    assert missing not in retriever.recall("retry @0", now=NOW, limit=limit - 1).ids


def test_why_not_beyond_the_depth_and_the_remedy_works(store: MemoryStore) -> None:
    retriever = HybridRetriever(store, depth=4)
    recall = retriever.recall("retry @0", now=NOW)
    answer = recall.why_not("old")
    assert any("keyword: it has none of the terms" in reason for reason in answer.reasons)
    assert any("vector: rank 21" in reason and "beyond the depth of 4" in reason for reason in answer.reasons)
    match = remedy(answer, r"replace\(depth=(\d+)\) and limit=(\d+)")
    again = retriever.replace(depth=int(match.group(1))).recall("retry @0", now=NOW, limit=int(match.group(2)))
    assert "old" in again.ids
    shallower = retriever.replace(depth=int(match.group(1)) - 1).recall("retry @0", now=NOW, limit=100)
    assert "old" not in shallower.ids


def test_why_not_filtered_names_the_filters_and_the_remedy_works(store: MemoryStore) -> None:
    retriever = HybridRetriever(store)
    recall = retriever.recall("cache @50", now=NOW, project="q", tags=["x"], min_importance=3)
    answer = recall.why_not("old")
    assert answer.reasons == ("the filter project='q' keeps it out",)
    assert "it would come 1" in str(answer)
    assert retriever.recall("cache @50", now=NOW, tags=["x"], min_importance=3).ids[0] == "old"
    both = retriever.recall("cache @50", now=NOW, project="q", created_after=NOW).why_not("old")
    assert both.reasons[0].startswith("the filters project='q', created_after=")


def test_why_not_trashed_and_the_remedy_works(store: MemoryStore) -> None:
    retriever = HybridRetriever(store)
    store.forget("old")
    answer = retriever.recall("cache @50", now=NOW).why_not("old")
    assert "in the trash" in str(answer)
    assert answer.remedies == ("restore('old')",)
    store.restore("old")
    assert retriever.recall("cache @50", now=NOW).ids[0] == "old"


def test_why_not_pending(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @10", encoder=None)
    answer = HybridRetriever(store).recall("cache", now=NOW).why_not("a")
    assert any("none of the terms cache" in reason for reason in answer.reasons)
    assert "embed_pending()" in str(answer)


def test_why_not_after_a_channel_lost_its_weight(store: MemoryStore) -> None:
    recall = HybridRetriever(store, fusion=RRF(weights={"vector": 0})).recall("retry @49", now=NOW)
    assert any("its weight is 0" in reason for reason in recall.why_not("old").reasons)


def test_why_not_tries_every_depth_that_a_channel_names(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(*["retry " * (10 - i) + f"@{i}" for i in range(10)])
    retriever = HybridRetriever(store, depth=2, fusion=RRF(weights={"keyword": 0}))
    answer = retriever.recall("retry @20", now=NOW).why_not("b")  # keyword rank 2 or so, vector rank 9
    depth = int(remedy(answer, r"depth=(\d+)").group(1))
    assert "b" in retriever.replace(depth=depth).recall("retry @20", now=NOW, limit=20).ids


@pytest.mark.parametrize("dimension", [32, 64])
def test_why_not_never_mixes_two_models(tmp_path: Path, dimension: int) -> None:
    with MemoryStore(tmp_path / "x.db", HashingEncoder(64)) as store:
        store.remember_many([{"memory_id": f"m{i}", "content": f"note {i} of many words"} for i in range(30)])
        recall = HybridRetriever(store, depth=3).recall("note many", now=NOW)
        missing = next(f"m{i}" for i in range(30) if recall.trace.place(f"m{i}") is None)
        other = HashingEncoder(dimension)
        if dimension == 64:
            other = Renamed(64)
        store.reembed(other)
        answer = str(recall.why_not(missing))
    assert f"vector: the store's vectors were made by {other.name}" in answer
    assert "cosine" not in answer


class Renamed(HashingEncoder):
    @property
    def name(self) -> str:
        return "renamed"

    @property
    def fingerprint(self) -> str:
        return "renamed-1"


def test_why_not_of_the_older_retriever_names_the_filters(store: MemoryStore) -> None:
    recall = OlderRetriever(store).recall("retry @0", now=NOW, project="q", min_importance=2)
    assert "does not pass the filters project" in str(recall.why_not("a"))
