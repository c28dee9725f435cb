"""Runs from everything that holds them; ties are broken here and nowhere else."""

import math

import pandas as pd
import pytest

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation import Run

NESTED = {"q1": {"b": 0.5, "a": 0.9, "c": 0.1}, "q2": {}}


def test_the_forms_are_the_same(tmp_path):
    run = Run.of(NESTED, "mine")
    assert run.rankings == {"q1": (("a", 0.9), ("b", 0.5), ("c", 0.1)), "q2": ()}
    assert run.notes == ()
    frame = run.frame
    assert frame.values.tolist() == [["q1", "a", 1, 0.9], ["q1", "b", 2, 0.5], ["q1", "c", 3, 0.1]]
    path = run.write_trec(tmp_path / "mine.run")
    assert path.read_text().splitlines()[1] == "q1 Q0 b 2 0.5 mine"
    with_hits = {"q1": run.rankings["q1"]}
    assert Run.of(frame).rankings == with_hits
    assert Run.of(path).rankings == with_hits
    assert Run.of(path).name == "mine"
    assert Run.of(run) is run
    assert Run.of(run, "other").name == "other"
    assert run.top("q1", 2) == ("a", "b")
    assert run.top("q9") == ()
    assert "3 hits for 2 queries" in repr(run)


def test_ties_are_broken_by_memory_id_and_counted():
    run = Run.of({"q1": {"z": 1.0, "a": 1.0, "m": 2.0}, "q2": {"x": 1.0}})
    assert run.top("q1") == ("m", "a", "z")
    assert run.notes == ("memories tie in 1 query (q1); ties were broken by memory id",)
    assert "ties were broken" in repr(run)


def test_written_scores_keep_the_order_in_trec_evals_arithmetic(tmp_path):
    run = Run.of({"q1": {"z": 1.0, "a": 1.0}, "q2": {"x": 1.0, "y": 1.0 - 1e-12}, "q3": {"x": 0.5, "y": 0.25}})
    text = run.write_trec(tmp_path / "r").read_text()
    assert "q1 Q0 a 1 -1.0" in text
    assert "q1 Q0 z 2 -2.0" in text
    assert "q2 Q0 y 2 -2.0" in text
    assert "q3 Q0 y 2 0.25" in text
    again = Run.of(tmp_path / "r")
    assert {q: run.top(q) for q in run.query_ids} == {q: again.top(q) for q in again.query_ids}
    assert again.notes == ()


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None, "x", True])
def test_scores_are_finite_numbers(score):
    with pytest.raises(InvalidValue, match=r"expected finite scores, found 1 other one \(run\['q1'\]: q1 b "):
        Run.of({"q1": {"a": 1.0, "b": score}})


def test_nan_in_a_frame_names_the_rows():
    frame = pd.DataFrame({"query_id": ["q"] * 8, "memory_id": list("abcdefgh"), "score": [1.0] + [math.nan] * 7})
    with pytest.raises(InvalidValue, match=r"found 7 others \(row 1: q b nan, .*row 5: q f nan, …\)"):
        Run.of(frame)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "expected ranked memories, found none"),
        ([("q", "m", 1)], "found list"),
        ({"q1": ["a"]}, r"run\['q1'\]: expected \{memory_id: score\}, found list"),
        (pd.DataFrame({"query_id": ["q"], "doc_id": ["m"], "score": [1]}), "found no memory_id among"),
        (
            pd.DataFrame([["q", "m", 1, 2]], columns=["query_id", "memory_id", "score", "score"]),
            "run: expected each column once, found 'score' more than once",
        ),
        (
            pd.DataFrame({"query_id": ["q", "q"], "memory_id": ["m", "m"], "score": [1, 2]}),
            r"a memory may occur once a query, found again: 1 row \(row 1: q m\)",
        ),
    ],
)
def test_bad_runs_say_what_is_wrong(source, message):
    with pytest.raises(InvalidValue, match=message):
        Run.of(source)


def test_broken_files_name_the_line(tmp_path):
    path = tmp_path / "r.txt"
    with pytest.raises(FormatError, match="the run cannot be read"):
        Run.of(path)
    path.write_text("q1 Q0 a 1 0.5 x\nq1 Q0 b 2\n")
    with pytest.raises(FormatError, match="line 2: expected six columns"):
        Run.of(path)
    path.write_text("q1 Q0 a 1 nan x\n")
    with pytest.raises(InvalidValue, match="line 1: q1 a 'nan'"):
        Run.of(path)
    with pytest.raises(InvalidValue, match="'my run'"):
        Run.of({"q": {"m": 1.0}}, "my run").write_trec(path)
