"""Evaluations: values, means, intervals, and what is said about odd input."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memlab import HybridRetriever
from memlab.errors import InvalidValue
from memlab.evaluation import Evaluation, Run, compare, evaluate, sweep, vector_recall
from memlab.retrieval import VectorChannel


def test_an_evaluation_of_a_retriever(retriever, small):
    result = evaluate(retriever, small.queries, small.qrels, "nDCG@10,R@5,AP", progress=False)
    assert isinstance(result, Evaluation)
    assert result.measures == ("nDCG@10", "R@5", "AP")
    assert result.query_ids == small.qrels.query_ids
    assert result.name == "keyword + vector + passage"
    assert (result.notes, result.interrupted) == ((), False)
    for query in small.queries:
        hits = retriever.recall(query.text, limit=5).ids
        relevant = small.qrels.relevant(query.query_id)
        assert result.values["R@5"][query.query_id] == pytest.approx(len(relevant & set(hits)) / len(relevant))
    tidy = result.per_query
    assert list(tidy.columns) == ["query_id", "measure", "value"]
    assert len(tidy) == 3 * len(small.queries)
    summary = result.summary
    assert list(summary.columns) == ["measure", "mean", "low", "high", "queries"]
    means = tidy.groupby("measure")["value"].mean()
    assert summary["mean"].tolist() == pytest.approx([means[name] for name in result.measures])
    assert (summary["low"] <= summary["mean"]).all()
    assert (summary["mean"] <= summary["high"]).all()
    assert summary["queries"].tolist() == [12] * 3
    assert summary.equals(evaluate(retriever, small.queries, small.qrels, result.measures, progress=False).summary)
    assert result.of("R@5").dtype == np.float64
    with pytest.raises(InvalidValue, match=r"R@7 was not measured; these were: nDCG@10, R@5, AP"):
        result.of("R@7")
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_run_of_the_same_hits_gives_the_same(retriever, small, tmp_path):
    result = evaluate(retriever, small.queries, small.qrels, name="mine", progress=False)
    for run in (result.run, result.run.frame, result.run.write_trec(tmp_path / "mine.run")):
        again = evaluate(run, small.queries, small.qrels)
        assert again.values == result.values
    assert again.name == "mine"


def test_a_judged_query_without_hits_counts_as_nothing(small):
    first, second, *_ = small.queries
    answers = {memory: 1.0 for memory in small.qrels.relevant("q00")}
    result = evaluate(Run.of({"q00": answers, "q01": {}}), [first, second], small.qrels, "R@5")
    assert result.of("R@5").tolist() == [1.0, 0.0]
    assert result.notes == (
        "left out, being judged but not among the queries: 10 queries (q02, q03, q04, q05, q06, …)",
    )
    result = evaluate(Run.of({"q00": answers, "zz": {"m": 1}}), small.queries, small.qrels, "R@5")
    assert result.mean("R@5") == pytest.approx(1 / 12)
    assert result.notes == (
        "not in the run, which counts as no hits: 11 queries (q01, q02, q03, q04, q05, …)",
        "in the run, but not measured: 1 query (zz)",
    )
    with pytest.raises(InvalidValue, match="has none of the 12 judged queries"):
        evaluate(Run.of({"zz": {"m": 1.0}}), small.queries, small.qrels)


def test_ties_of_a_run_are_noted(small):
    answers = dict.fromkeys(["m01", "m02"], 1.0)
    result = evaluate({query.query_id: answers for query in small.queries}, small.queries, small.qrels, "R@5")
    assert "memories tie in 12 queries (q00, q01, q02, q03, q04, …); ties were broken by memory id" in result.notes


def test_an_unknown_relevant_memory_stays_in_the_denominator(retriever, small):
    qrels = small.qrels.as_dict()
    before = evaluate(retriever, small.queries, qrels, "R@5", progress=False)
    qrels["q00"]["gone"] = 1
    after = evaluate(retriever, small.queries, qrels, "R@5", progress=False)
    known = len(small.qrels.relevant("q00"))
    assert after.values["R@5"]["q00"] == pytest.approx(before.values["R@5"]["q00"] * known / (known + 1))
    assert after.notes == ("judged relevant but not in memory.db, so never found: 1 memory (gone)",)


def test_an_interrupted_evaluation_says_so(retriever, small, monkeypatch):
    original, calls = HybridRetriever.ask, []

    def ask(self, *arguments, **options):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(HybridRetriever, "ask", ask)
    result = evaluate(retriever, small.queries, small.qrels, progress=False)
    assert result.interrupted
    assert (len(result.queries), result.planned) == (3, 12)
    assert result.summary["queries"].tolist() == [3] * 4
    assert "stopped after 3 of 12 queries; the figures are of those alone" in result.notes
    assert "stopped" in repr(result)
    assert "stopped" in result._repr_html_()


def test_each_query_has_its_own_day(filled, small):
    retriever = HybridRetriever(filled)
    options: dict[str, Any] = {"recency_boost": True, "now": "2026-09-01T00:00:00Z", "progress": False}
    common = evaluate(retriever, small.queries, small.qrels, **options)
    day = "2026-02-01T00:00:00Z"
    dated = [{"_id": query.query_id, "text": query.text, "now": day} for query in small.queries]
    own = evaluate(retriever, dated, small.qrels, **options)
    assert own.run.rankings != common.run.rankings
    assert own.run.rankings == evaluate(retriever, small.queries, small.qrels, **{**options, "now": day}).run.rankings


def test_the_evaluation_of_the_articles(filled, small):
    result = vector_recall(filled, small.queries, small.qrels)
    assert result.measures == ("R@5", "R@1")
    vector = HybridRetriever(filled, channels=(VectorChannel(),))
    assert result.values == evaluate(vector, small.queries, small.qrels, "R@5,R@1", progress=False).values
    assert vector_recall(filled, small.queries, small.qrels, k=[3]).measures == ("R@3",)
    assert vector_recall(filled, small.queries, small.qrels, k=3).measures == ("R@3",)
    for bad in ([], [0], [1.5], [True], 0, "5"):
        with pytest.raises(InvalidValue, match="k: expected"):
            vector_recall(filled, small.queries, small.qrels, k=bad)  # type: ignore[arg-type]


def test_no_judgment_fits(retriever, small):
    with pytest.raises(InvalidValue, match="has a judgment"):
        evaluate(retriever, {"other": "text"}, small.qrels)
    with pytest.raises(InvalidValue, match="expected judgments, found none"):
        evaluate(retriever, small.queries, {})
    nothing = replace(small.qrels, judgments={"q00": {"m00": 0}})
    result = evaluate(retriever, small.queries, nothing, "R@5", progress=False)
    assert result.mean("R@5") == 0
    assert "no memory is relevant, which counts as 0: 1 query (q00)" in result.notes


def test_a_measure_beyond_the_limit_is_refused(retriever, small):
    systems = {"all": retriever, "vector": retriever.only("vector")}
    for measure_with in (
        lambda names, **options: evaluate(retriever, small.queries, small.qrels, names, **options),
        lambda names, **options: compare(systems, small.queries, small.qrels, names, **options),
        lambda names, **options: sweep(retriever, {"k": [2]}, small.queries, small.qrels, names, **options),
    ):
        with pytest.raises(InvalidValue, match="limit: 100 hits are too few for these measures, which look at 1000"):
            measure_with("R@1000")
        with pytest.raises(InvalidValue, match="limit: 4 hits are too few for these measures, which look at 5"):
            measure_with("nDCG@3,R@5", limit=4)
        with pytest.raises(InvalidValue, match="limit: expected a whole number of at least 1"):
            measure_with("R@5", limit=0)


def test_a_depth_that_cuts_what_is_measured_is_noted(retriever, small):
    short = retriever.only("vector").replace(depth=4)
    said = (
        "fewer than the 5 hits that are looked at, because of its depth of 4: 12 queries (q00, q01, q02, q03, q04, …)"
    )
    assert f"vector: {said}" in evaluate(short, small.queries, small.qrels, "R@5", progress=False).notes
    systems = {"all": retriever, "short": short}
    assert f"short: {said}" in compare(systems, small.queries, small.qrels, "R@5", progress=False).notes
    assert said in sweep(short, {"k": [1, 2]}, small.queries, small.qrels, "R@5", progress=False).notes
    enough = evaluate(short, small.queries, small.qrels, "R@4", progress=False)
    assert not any("depth" in note for note in enough.notes)
    every = retriever.only("vector").replace(depth=len(small.corpus) + 1)  # fewer hits, but no more memories
    assert not any("depth" in note for note in evaluate(every, small.queries, small.qrels, "AP", progress=False).notes)
