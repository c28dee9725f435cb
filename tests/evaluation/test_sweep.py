"""Sweeps: every combination, the channels asked once."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from memlab import RRF, ConvexFusion, HybridRetriever, PassagePolicy, RecencyRanker
from memlab.errors import InvalidValue
from memlab.evaluation import evaluate, sweep
from memlab.retrieval.channels import KeywordChannel, VectorChannel

NOW = "2026-09-01T00:00:00Z"
MEASURES = "nDCG@10,R@5"


def test_every_combination_is_measured(retriever, small):
    grid: dict[str, Any] = {"k": [1, 60], "weights": [{}, {"keyword": 3}], "depth": (5, 50)}
    result = sweep(retriever, grid, small.queries, small.qrels, MEASURES, now=NOW, progress=False)
    assert len(result) == 8
    assert (result.names, result.measures) == (("k", "weights", "depth"), ("nDCG@10", "R@5"))
    table = result.table
    assert list(table.columns) == ["k", "weights", "depth", "nDCG@10", "R@5"]
    assert pd.api.types.is_integer_dtype(table["k"])
    for setting, row in zip(result.settings, table.to_dict("records"), strict=True):
        one = retriever.replace(fusion=RRF(setting["k"], setting["weights"]), depth=setting["depth"])
        alone = evaluate(one, small.queries, small.qrels, MEASURES, now=NOW, progress=False)
        assert {name: row[name] for name in grid} == setting
        assert (row["nDCG@10"], row["R@5"]) == (alone.mean("nDCG@10"), alone.mean("R@5"))
    best = result.best("R@5")
    assert table["R@5"].max() == table["R@5"][result.best_place("R@5")]
    assert best == result.settings[result.best_place("R@5")]
    assert result.best() == result.best("nDCG@10")
    with pytest.raises(InvalidValue, match="AP was not measured"):
        result.best("AP")


@dataclass(frozen=True)
class Counted(VectorChannel):
    asked: list = field(default_factory=list, compare=False)

    def search(self, query, view, depth, found):
        self.asked.append(depth)
        return super().search(query, view, depth, found)


def test_the_channels_are_asked_once_a_depth(retriever, small):
    channel = Counted()
    counted = retriever.replace(channels=(KeywordChannel(), channel))
    sweep(counted, {"k": range(1, 9), "depth": [5, 50]}, small.queries, small.qrels, progress=False)
    assert sorted(channel.asked) == [5] * 12 + [50] * 12


def test_recency_is_on_where_it_is_swept(retriever, small):
    options: dict[str, Any] = {"now": NOW, "progress": False}
    grid: dict[str, Any] = {"half_life_days": [10, 100], "strength": [0, 2.0]}
    result = sweep(retriever, grid, small.queries, small.qrels, MEASURES, **options)
    assert [setting["recency_boost"] for setting in result.settings] == [True] * 4
    for setting, evaluation in zip(result.settings, result.evaluations, strict=True):
        recency = RecencyRanker(setting["half_life_days"], setting["strength"])
        one = retriever.replace(recency=recency, recency_boost=True)
        assert evaluation.values == evaluate(one, small.queries, small.qrels, MEASURES, **options).values
    off = sweep(retriever, {"recency_boost": [False, True], "strength": [5]}, small.queries, small.qrels, **options)
    assert off.evaluations[0].run.rankings != off.evaluations[1].run.rankings
    assert len(off) == 2


def test_fusions(retriever, small):
    fusions = [RRF(), ConvexFusion(), RRF(one_vote=())]
    result = sweep(retriever, {"fusion": fusions}, small.queries, small.qrels, MEASURES, progress=False)
    assert result.table["fusion"].tolist() == fusions
    weighted: dict[str, Any] = {"fusion": fusions, "weights": [{"keyword": 2}]}
    result = sweep(retriever, weighted, small.queries, small.qrels, MEASURES, progress=False)
    alone = evaluate(
        retriever.replace(fusion=ConvexFusion({"keyword": 2})), small.queries, small.qrels, MEASURES, progress=False
    )
    assert result.evaluations[1].values == alone.values
    with pytest.raises(InvalidValue, match=r"grid: ConvexFusion\(\) has no k"):
        sweep(retriever, {"fusion": fusions, "k": [1]}, small.queries, small.qrels)


def test_passages_are_made_in_a_copy(make_store, small, counting, tmp_path):
    store = make_store(encoder=counting)
    long = [{**record, "content": " ".join([record["content"]] * 40)} for record in small.corpus]
    store.remember_many(long, progress=False)
    retriever = HybridRetriever(store, fusion=RRF())
    policies = [PassagePolicy(), PassagePolicy(aggregate="first"), PassagePolicy(overlap=20)]
    grid: dict[str, Any] = {"passages": policies, "k": [2, 60]}
    cache = tmp_path / "cache"
    options: dict[str, Any] = {"cache": cache, "progress": False}
    result = sweep(retriever, grid, small.queries, small.qrels, MEASURES, **options)
    assert result.table["passages"].tolist() == [policy for policy in policies for _ in range(2)]
    assert store.passage_policy == PassagePolicy()
    assert counting.queries == 12
    made = sorted(cache.glob("*.db"))
    assert len(made) == 2
    for policy, evaluation in zip(policies, result.evaluations[1::2], strict=True):
        own = make_store(f"{policy.overlap}-{policy.aggregate}.db", passages=policy)
        own.remember_many(long, progress=False)
        alone = evaluate(HybridRetriever(own, fusion=RRF()), small.queries, small.qrels, MEASURES, progress=False)
        assert evaluation.values == alone.values
    again = sweep(retriever, grid, small.queries, small.qrels, MEASURES, **options)
    assert again.table.equals(result.table)
    assert sorted(cache.glob("*.db")) == made
    store.remember("one more", memory_id="more")
    sweep(retriever, {"passages": policies[1:2]}, small.queries, small.qrels, **options)
    assert len(list(cache.glob("*.db"))) == 3


def test_an_interrupted_sweep_says_so(retriever, small, monkeypatch):
    original, calls = HybridRetriever.ask, []

    def ask(self, *arguments, **options):
        calls.append(1)
        if len(calls) > 8:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(HybridRetriever, "ask", ask)
    result = sweep(retriever, {"k": [1, 60]}, small.queries, small.qrels, progress=False)
    assert result.interrupted
    assert [len(evaluation.queries) for evaluation in result.evaluations] == [4, 4]
    assert result.notes[-1] == "stopped after 4 of 12 queries; the figures are of those"


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, r"expected \{name: \[value, ...\]\} with names of fusion, k, weights, depth"),
        ([("k", [1])], r"recency_boost, passages; found list$"),
        ({"kk": [1]}, "'kk' is no setting; the settings are fusion, k, weights, depth, half_life_days, strength"),
        ({"k": 60}, r"k: expected a list of values, found 60; for one write \[60\]"),
        ({"weights": {"keyword": 2}}, "weights: expected a list of values"),
        ({"k": []}, "k: expected one or more values"),
        ({"k": [-1]}, "k: expected a number"),
        ({"depth": [0]}, "depth: expected a whole number"),
        ({"weights": [{"keywords": 1}]}, "'keywords' is no channel"),
        ({"half_life_days": [0]}, "half_life_days: expected a number above 0"),
        ({"passages": ["first"]}, "passages: expected PassagePolicy objects"),
    ],
)
def test_bad_grids(retriever, small, grid, message):
    with pytest.raises(InvalidValue, match=message):
        sweep(retriever, grid, small.queries, small.qrels)


@pytest.mark.parametrize(
    ("name", "value"), [("fusion", "rrf"), ("fusion", RRF), ("weights", ["keyword"]), ("k", "60"), ("depth", 2.5)]
)
def test_a_value_that_is_none_is_said_before_any_work(retriever, small, monkeypatch, name, value):
    monkeypatch.setattr(HybridRetriever, "ask", None)
    with pytest.raises(InvalidValue, match=f"{name}: expected"):
        sweep(retriever, {name: [value]}, small.queries, small.qrels)
