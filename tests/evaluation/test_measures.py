"""Measures are ir-measures' own, and their names too."""

import random
import sys

import ir_measures
import pytest

from memlab.errors import InvalidValue, MissingDependency
from memlab.evaluation import Run
from memlab.evaluation.measures import EXAMPLES, needed_depth, parse_measures, per_query

NAMES = (*EXAMPLES, "P@1", "RR", "nDCG", "AP@10", "R(rel=2)@3", "Bpref", "Rprec", "SetP", "nDCG(judged_only=True)@5")


@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_ir_measures_on_random_runs_with_ties(seed):
    random_ = random.Random(seed)
    memories = [f"m{number:03}" for number in range(60)]
    qrels = {f"q{n}": {m: random_.randint(0, 3) for m in random_.sample(memories, 12)} for n in range(20)}
    # Few different scores, so that most memories tie; some queries have no hits, one is not judged.
    scores = {
        f"q{n}": {m: random_.randint(0, 5) / 10 for m in random_.sample(memories, random_.choice([0, 3, 40]))}
        for n in range(21)
    }
    run = Run.of(scores)
    measures = parse_measures(NAMES)
    values = per_query(measures, qrels, run.rankings)
    untied = [
        ir_measures.ScoredDoc(query_id, memory_id, 1000.0 - place)
        for query_id, by_memory in scores.items()
        for place, (memory_id, _) in enumerate(sorted(by_memory.items(), key=lambda item: (-item[1], item[0])))
    ]
    judged = [ir_measures.Qrel(q, m, relevance) for q, by in qrels.items() for m, relevance in by.items()]
    expected = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, judged, untied)}
    assert {(name, query): value for name, by in values.items() for query, value in by.items()} == expected
    means = ir_measures.calc_aggregate(measures, judged, untied)
    for measure in measures:
        mine = values[str(measure)].values()
        assert sum(mine) / len(mine) == pytest.approx(means[measure], abs=1e-12)


def test_without_ties_the_scores_themselves_give_the_same():
    scores = {"q": {"a": 0.3, "b": 0.2, "c": 0.1}}
    measures = parse_measures("nDCG@2,RR@10,AP")
    theirs = {str(m.measure): m.value for m in ir_measures.iter_calc(measures, {"q": {"b": 2, "c": 1}}, scores)}
    mine = per_query(measures, {"q": {"b": 2, "c": 1}}, Run.of(scores).rankings)
    assert {name: by["q"] for name, by in mine.items()} == theirs


def test_scores_that_32_bits_cannot_tell_apart_keep_their_order():
    run = Run.of({"q": {"a": 1.0 - 1e-12, "z": 1.0}})
    values = per_query(parse_measures("RR@10"), {"q": {"z": 1}}, run.rankings)
    assert values == {"RR@10": {"q": 1.0}}


def test_names():
    assert [str(m) for m in parse_measures("nDCG@10, R@5,AP(rel=2),R@5")] == ["nDCG@10", "R@5", "AP(rel=2)"]
    assert parse_measures([ir_measures.P @ 3]) == (ir_measures.P @ 3,)
    assert parse_measures(ir_measures.P @ 3) == (ir_measures.P @ 3,)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", ["recall@5", "ndcg10", "R", "R@x", "R@0", "R@-1", "nDCG@10 R@5", "", ",", [], [7], [None], 7, None]
)
def test_bad_names_get_examples(bad):
    with pytest.raises(InvalidValue, match=r"such as R@5, R@1, nDCG@10"):
        parse_measures(bad)


def test_without_ir_measures_the_install_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingDependency, match=r'pip install "memlab\[eval\]"'):
        parse_measures("R@5")


def test_without_what_ir_measures_needs_its_command_is_told(monkeypatch):
    for provider in ir_measures.DefaultPipeline.providers:
        monkeypatch.setattr(provider, "is_available", lambda: False)
    with pytest.raises(MissingDependency, match=r"R@5 needs a package .*pip install"):
        parse_measures("R@5")


def test_needed_depth():
    assert needed_depth(parse_measures("nDCG@10,R@5"), 100) == 10
    assert needed_depth(parse_measures("nDCG@500"), 100) == 500
    assert needed_depth(parse_measures("nDCG@500,AP"), 100) == 500
    assert needed_depth(parse_measures("nDCG@10,AP"), 100) == 100
    assert needed_depth(parse_measures("nDCG(judged_only=True)@10"), 100) == 100
