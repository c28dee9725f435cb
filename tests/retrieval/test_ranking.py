"""The lazily made order against one made at once, and words cut quickly against the slow way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import RRF, ConvexFusion, HybridRetriever, MemoryStore, RecencyRanker, ScoreFusion
from memlab.retrieval import terms as cutting
from memlab.retrieval.fusion import NOT_COUNTED, Fusion, silent
from memlab.retrieval.ranking import Ranking, rank_all, scored
from memlab.retrieval.trace import Contribution, RankedMemory
from memlab.timestamps import age_days

from .conftest import NOW

TEXT = "why do webhook retries lose the getUserName cache"


@pytest.mark.parametrize("fusion", [ScoreFusion(), RRF(), ConvexFusion(), ScoreFusion(one_vote=()), RRF(one_vote=())])
@pytest.mark.parametrize("recency", [None, RecencyRanker()])
def test_what_is_made_late_is_what_would_be_made_at_once(
    hashed: MemoryStore, fusion: Fusion, recency: RecencyRanker | None
) -> None:
    candidates = HybridRetriever(hashed, fusion=fusion).gather(TEXT)
    contributions, order = scored(candidates, fusion, recency, NOW)
    hits = {(result.channel, hit.memory_id): hit for result in candidates.results for hit in result.rows}
    say = fusion.formulas({result.channel: result.rows for result in candidates.results})
    expected = []
    for rank, (score, memory_id, factor) in enumerate(order, 1):
        unheard = silent(contributions[memory_id], fusion.one_vote)
        parts = tuple(
            Contribution(
                channel,
                (hit := hits[channel, memory_id]).rank,
                hit.raw_score,
                value,
                NOT_COUNTED if channel in unheard else say(channel, hit),
                hit.passage,
                channel not in unheard,
            )
            for channel, value in contributions[memory_id].items()
        )
        created = hashed.get(memory_id).created_at
        row = RankedMemory(memory_id, hit.number, rank, parts, factor, age_days(created, NOW), created)
        assert row.score == score  # to the last bit
        expected.append(row)
    ranked = rank_all(candidates, fusion, recency, NOW)
    assert len(expected) > 60
    assert ranked[-1] == expected[-1]
    assert ranked[3:9:2] == tuple(expected[3:9:2])
    assert ranked == tuple(expected)
    assert hash(ranked) == hash(tuple(expected))
    assert [ranked.place(row.memory_id) for row in expected] == expected
    assert ranked.place("nobody") is None
    assert pickle.loads(pickle.dumps(ranked)) == tuple(expected)
    with pytest.raises(IndexError):
        ranked[len(expected)]


def test_an_answer_makes_no_more_than_it_shows(hashed: MemoryStore) -> None:
    made: list[int] = []
    original = Ranking._make

    def counting(self: Ranking, at: int) -> RankedMemory:
        made.append(at)
        return original(self, at)

    with patch.object(Ranking, "_make", counting):
        recall = HybridRetriever(hashed).recall(TEXT, limit=4, now=NOW)
        assert made == [0, 1, 2, 3]
        assert recall.explain().count("\n") == 3
        assert recall.trace.place(recall.ids[2]) == recall.hits[2].place
        assert made == [0, 1, 2, 3]
    assert len(recall.trace.ranked) > 60


def test_ranking_again_reads_nothing(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry jitter @0", "retry cache @10", "@20")
    retriever = HybridRetriever(store)
    candidates = retriever.gather("retry @5")
    again = retriever.replace(fusion=ScoreFusion({"keyword": 0.9}))
    store.close()
    assert [row.memory_id for row in rank_all(candidates, again.fusion, None, NOW)] == ["a", "b", "c"]
    assert replace(candidates, results=()).results == ()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="aZ09 -._/:'\\@+#~&=!%^[]é", max_size=60) | st.text(alphabet="a-. ", max_size=120))
def test_words_of_ascii_are_cut_as_any_others(text: str) -> None:
    plain = text.lower()
    if plain.isascii():
        # One character beyond ASCII, standing alone, sends the same text the slow way.
        assert cutting._words(plain, cutting.JOINERS) == cutting._words(f"{plain} é", cutting.JOINERS)[:-1]
