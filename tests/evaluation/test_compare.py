from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memlab import HybridRetriever, MemoryStore
from memlab.errors import InvalidValue
from memlab.evaluation.ablate import ablate, variants
from memlab.evaluation.compare import Comparison, compare
from memlab.evaluation.evaluate import evaluate
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.runs import Run
from memlab.evaluation.significance import holm, paired_interval, paired_permutation
from memlab.retrieval.channels import KeywordChannel, VectorChannel
from tests.evaluation.rankings import FIRST, MIXED, QRELS, QUERIES, SECOND, ranked


def test_figures_are_those_of_the_parts(retriever: HybridRetriever, small: LabelledSet) -> None:
    systems = {"vector": retriever.only("vector"), "keyword": retriever.only("keyword"), "all": retriever}
    comparison = compare(systems, small.queries, small.qrels, "nDCG@10,R@5")
    table = comparison.table
    assert list(table.columns) == [
        "system", "measure", "mean", "low", "high", "difference", "difference_low", "difference_high",
        "p", "p_holm", "wins", "ties", "losses",
    ]  # fmt: skip
    assert list(zip(table.measure, table.system, strict=True)) == [(m, s) for m in ("nDCG@10", "R@5") for s in systems]
    alone = {name: evaluate(one, small.queries, small.qrels, "nDCG@10,R@5") for name, one in systems.items()}
    for row in table.to_dict("records"):
        own, base = (alone[name].of(row["measure"]) for name in (row["system"], "vector"))
        assert row["mean"] == own.mean()
        if row["system"] == "vector":
            assert all(math.isnan(row[name]) for name in ("difference", "difference_low", "difference_high", "p"))
            continue
        assert row["difference"] == pytest.approx(row["mean"] - base.mean(), abs=1e-12)
        assert (row["difference_low"], row["difference_high"]) == paired_interval(own - base)
        assert row["p"] == paired_permutation(own, base)
        assert row["wins"] == (own > base).sum()
        assert row["wins"] + row["ties"] + row["losses"] == len(small.queries)
    for _, part in table.dropna().groupby("measure"):
        assert part.p_holm.tolist() == holm(part.p.to_numpy()).tolist()
    assert table.wins.isna().sum() == 2


def test_channels_that_are_shared_run_once(
    retriever: HybridRetriever, small: LabelledSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for channel in (VectorChannel, KeywordChannel):
        search = channel.search

        def counting(self: Any, *rest: Any, search: Any = search) -> Any:
            calls.append(self.name)
            return search(self, *rest)

        monkeypatch.setattr(channel, "search", counting)
    ablate(retriever, small.queries, small.qrels)
    assert calls.count("vector") == calls.count("keyword") == len(small.queries)


def test_runs_evaluations_and_retrievers_mix(retriever: HybridRetriever, small: LabelledSet) -> None:
    done = evaluate(retriever, small.queries, small.qrels, "R@5", name="before")
    systems = {"now": retriever, "then": done, "run": done.run, "mapping": as_mapping(done.run)}
    comparison = compare(systems, small.queries, small.qrels, "R@5,nDCG@10")
    assert comparison.systems == ("now", "then", "run", "mapping")
    for found in comparison.differences.values():
        assert (found.mean, found.p, found.wins, found.losses) == (0, 1, 0, 0)
    assert "then, run and mapping give the same value as now in R@5 for all 12 queries" in repr(comparison)


def as_mapping(run: Run) -> dict[str, dict[str, float]]:
    return {name: dict(ranking) for name, ranking in run.rankings.items()}


def test_evaluations_bring_their_own_queries_judgments_and_measures() -> None:
    a, b = (evaluate(Run.of(run, "x"), QUERIES, QRELS, "RR@10") for run in (FIRST, SECOND))
    comparison = compare({"a": a, "b": b})
    assert comparison.measures == ("RR@10",)
    assert comparison.differences["b", "RR@10"].mean == -0.5
    other = evaluate(Run.of(SECOND), QUERIES, {**QRELS, "q03": {"else": 1}}, "RR@10")
    with pytest.raises(InvalidValue, match=r"different judgments of 1 query \(q03\)"):
        compare({"a": a, "b": other})
    assert len(compare({"a": a, "b": other}, qrels=QRELS).queries) == 20


def test_a_query_that_a_run_lacks_counts_as_nothing_found() -> None:
    part = {name: hits for i, (name, hits) in enumerate(FIRST.items()) if i >= 3}
    comparison = compare({"whole": SECOND, "part": part}, QUERIES, QRELS, "RR@10")
    assert comparison.differences["part", "RR@10"].mean == pytest.approx(17 / 20 - 0.5)
    assert comparison.differences["part", "RR@10"].losses == 3
    said = [note for note in comparison.notes if note.startswith("part: ")]
    assert any("counts as no hits: 3 queries (q00, q01, q02)" in note for note in said)
    turned = compare({"part": part, "whole": SECOND}, QUERIES, QRELS, "RR@10")
    assert any("it is the baseline" in note and "raise the differences" in note for note in turned.notes)


def test_what_an_evaluation_was_not_asked_is_left_out_for_all() -> None:
    asked = {name: text for i, (name, text) in enumerate(QUERIES.items()) if i >= 5}
    part = evaluate(Run.of({name: FIRST[name] for name in asked}), asked, QRELS, "RR@10")
    comparison = compare({"part": part, "whole": MIXED}, QUERIES, QRELS, "RR@10")
    assert [query.query_id for query in comparison.queries] == list(asked)
    assert any("part was not asked them: 5 queries" in note for note in comparison.notes)
    nothing = {name: QRELS[name] for name in list(QUERIES)[:5]}
    with pytest.raises(InvalidValue, match="no judged query is left"):
        compare({"part": part, "whole": MIXED}, QUERIES, nothing, "RR@10")


def test_interrupted_it_keeps_what_was_finished(retriever: HybridRetriever, small: LabelledSet) -> None:
    full = evaluate(retriever, small.queries, small.qrels, "R@5").run

    def stop(done: int, total: int | None) -> None:
        if done == 7:  # the queries are encoded in one step
            raise KeyboardInterrupt

    systems = {"now": retriever, "vector": retriever.only("vector"), "full": full}
    comparison = compare(systems, small.queries, small.qrels, "R@5", progress=stop)
    assert comparison.interrupted
    assert 0 < len(comparison.queries) < len(small.queries)
    assert {len(evaluation.queries) for evaluation in comparison.evaluations.values()} == {len(comparison.queries)}
    assert comparison.differences["full", "R@5"].mean == 0
    assert "interrupted" in repr(comparison).splitlines()[0]
    assert any(note.startswith("stopped after ") for note in comparison.notes)
    assert not any("not measured" in note for note in comparison.notes)
    again = compare({"a": comparison.evaluations["now"], "b": full}, small.queries, small.qrels, "R@5")
    assert len(again.queries) == len(comparison.queries)


def test_wins_need_more_than_rounding() -> None:
    comparison = compare({"a": SECOND, "b": MIXED}, QUERIES, QRELS, "RR@10")
    found = comparison.differences["b", "RR@10"]
    assert (found.wins, found.ties, found.losses) == (14, 3, 3)


def test_changed_shows_both_answers() -> None:
    comparison = compare({"a": SECOND, "b": MIXED, "c": FIRST}, QUERIES, QRELS, "RR@10,R@1")
    changed = comparison.changed(n=100, system="b")
    assert len(changed) == 17
    first, last = changed.iloc[0], changed.iloc[-1]
    assert (first.query_id, first.text, first.system) == ("q00", "question 0", "b")
    assert (first.baseline_value, first.value, first.difference) == (0.5, 1.0, 0.5)
    assert (first.baseline_hits, first.hits, first.relevant) == (("n1", "m-q00"), ("m-q00",), ("m-q00",))
    assert last.difference == -0.25
    assert len(comparison.changed("R@1", 3)) == 3
    assert set(comparison.changed(n=100).system) == {"b", "c"}
    assert len(compare({"a": FIRST, "b": FIRST}, QUERIES, QRELS).changed()) == 0
    with pytest.raises(InvalidValue, match="expected one of b, c"):
        comparison.changed(system="a")
    with pytest.raises(InvalidValue, match=r"nDCG@10 was not measured; these were: RR@10, R@1"):
        comparison.changed("nDCG@10")


def test_the_baseline_can_be_named() -> None:
    comparison = compare({"a": SECOND, "b": FIRST}, QUERIES, QRELS, "RR@10", baseline="b")
    assert comparison.differences["a", "RR@10"].mean == -0.5
    assert ("b", "RR@10") not in comparison.differences


def test_per_query_is_tidy_and_seeds_settle_all() -> None:
    one, two, three = (compare({"a": SECOND, "b": MIXED}, QUERIES, QRELS, "RR@10", seed=s) for s in (1, 1, 2))
    assert list(one.per_query.columns) == ["system", "query_id", "measure", "value"]
    assert len(one.per_query) == 40
    assert one.table.equals(two.table)
    assert not one.table.equals(three.table)


def sentence(systems: dict[str, Any], measure: str = "RR@10", **options: Any) -> str:
    from memlab.evaluation.findings import finding

    return finding(compare(systems, QUERIES, QRELS, measure, **options), measure)


def test_what_is_said() -> None:
    assert sentence({"a": SECOND, "b": FIRST}) == (
        "b is better than a in RR@10 by 50.0 points (95 %: 36.4 to 50.0), p < 0.001"
    )
    worse = sentence({"a": FIRST, "b": SECOND, "c": FIRST})
    assert worse.startswith("b is worse than a in RR@10 by 50.0 points (95 %: 36.4 to 50.0), p < 0.001 after Holm; ")
    assert worse.endswith("; c gives the same value as a for all 20 queries")
    near = ranked({name: 1 if i < 2 else 2 for i, name in enumerate(QUERIES)})
    unclear = sentence({"a": SECOND, "b": near})
    assert unclear.startswith("b cannot be told apart from a in RR@10 with 20 queries (95 %: -")
    assert unclear.endswith(", p = 0.50)")
    both = sentence({"a": SECOND, "b": FIRST, "c": near, "d": near})
    assert both.endswith("after Holm; the others cannot be told apart from a with 20 queries")
    many = sentence({"a": SECOND, **{f"c{i}": near for i in range(5)}})
    assert many == "5 systems (c0, c1, c2, …) cannot be told apart from a in RR@10 with 20 queries"


def test_a_single_query_says_so() -> None:
    comparison = compare({"a": SECOND, "b": FIRST}, {"q00": "one"}, QRELS, "RR@10")
    assert "with 1 query (no interval from a single query, p = 1.00)" in repr(comparison)
    assert "nan" not in repr(comparison) + comparison._repr_html_()


def test_measures_without_a_scale_are_not_in_points() -> None:
    many = {name: {**hits, **{f"x{i}": -i for i in range(9)}} for name, hits in FIRST.items()}
    assert "b is better than a in NumRet by 9.00 (95 %: " in sentence({"a": FIRST, "b": many}, "NumRet")


@pytest.mark.parametrize(
    ("systems", "options", "said"),
    [
        ({"a": FIRST}, {}, "expected two or more, found a"),
        ({}, {}, "found none"),
        ([FIRST, SECOND], {}, "found list"),
        ({"a": FIRST, 3: SECOND}, {}, "names that are text"),
        ({"a": FIRST, "b": SECOND}, {"baseline": "c"}, "expected one of a, b, found 'c'"),
        ({"a": FIRST, "b": 7}, {}, "b: run: expected a Run"),
        ({"a": FIRST, "b": SECOND}, {"resamples": 5}, "resamples"),
        ({"a": FIRST, "b": ranked({"other": 1})}, {}, "none of the 20 judged queries"),
        ({"a": FIRST, "b": {"q00": {"m": math.nan}}}, {}, "b: run: expected finite scores"),
    ],
)
def test_what_cannot_be_compared(systems: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        compare(systems, QUERIES, QRELS, "RR@10", **options)


def test_queries_and_judgments_are_needed() -> None:
    with pytest.raises(InvalidValue, match="queries: expected them"):
        compare({"a": FIRST, "b": SECOND}, None, QRELS)
    with pytest.raises(InvalidValue, match="qrels: expected them"):
        compare({"a": FIRST, "b": SECOND}, QUERIES)


def test_ablation(retriever: HybridRetriever, small: LabelledSet) -> None:
    comparison = ablate(retriever, small.queries, small.qrels, "R@5")
    assert comparison.baseline == "all"
    assert comparison.systems == (
        "all", "keyword only", "vector only", "passage only",
        "without keyword", "without vector", "without passage",
    )  # fmt: skip
    assert isinstance(comparison, Comparison)
    two = variants(retriever.without("passage"), recency_boost=True)
    assert list(two) == ["all", "keyword only", "vector only", "without recency"]
    assert two["all"].recency_boost
    assert not two["without recency"].recency_boost
    with pytest.raises(InvalidValue, match="two channels or more, found vector alone"):
        ablate(retriever.only("vector"), small.queries, small.qrels)
    with pytest.raises(InvalidValue, match="recency=None"):
        ablate(retriever.replace(recency=None), small.queries, small.qrels, recency_boost=True)
    with pytest.raises(InvalidValue, match="expected a HybridRetriever"):
        ablate(Run.of(FIRST), small.queries, small.qrels)  # type: ignore[arg-type]


def test_stores_may_differ(
    retriever: HybridRetriever, small: LabelledSet, make_store: Callable[..., MemoryStore]
) -> None:
    other = make_store("other.db")
    other.remember_many(small.corpus[:20], progress=False)
    comparison = compare({"all": retriever, "half": HybridRetriever(other)}, small.queries, small.qrels, "R@5")
    assert comparison.differences["half", "R@5"].mean < 0
    assert any("not in other.db" in note for note in comparison.notes)
    assert np.isfinite(comparison.table.dropna().p).all()
