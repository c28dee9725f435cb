"""Judgments from everything that holds them, and what is said about bad ones."""

import math
from pathlib import Path

import pandas as pd
import pytest

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation import Qrels

NESTED = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}


def test_the_forms_are_the_same(tmp_path):
    nested = Qrels.of(NESTED)
    frame = nested.frame
    assert list(frame.columns) == ["query_id", "memory_id", "relevance"]
    assert frame.values.tolist() == [["q1", "a", 2], ["q1", "b", 0], ["q2", "c", 1]]
    beir = frame.rename(columns={"query_id": "query-id", "memory_id": "corpus-id", "relevance": "score"})
    tsv, trec = nested.write_beir(tmp_path / "test.tsv"), nested.write_trec(tmp_path / "qrels.txt")
    for source in (nested, frame, beir, tsv, str(trec)):
        assert Qrels.of(source) == nested
    assert tsv.read_text() == "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t1\n"
    assert trec.read_text() == "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\n"
    assert nested.as_dict() == NESTED
    assert nested.query_ids == ("q1", "q2")
    assert nested.relevant("q1") == {"a"}
    assert nested.relevant("q9") == set()
    assert len(nested) == 3
    assert "3 judgments of 2 queries" in repr(nested)


def test_lists_are_of_relevance_one():
    assert Qrels.of({"q1": ["a", "b"], 7: {"c"}}).as_dict() == {"q1": {"a": 1, "b": 1}, "7": {"c": 1}}
    with pytest.raises(InvalidValue, match=r"for one memory write \['a'\]"):
        Qrels.of({"q1": "a"})


def test_ids_that_pandas_read_as_numbers_are_text_again():
    frame = pd.DataFrame({"query_id": [1, 2], "memory_id": [10, 20], "relevance": [1, 1]})
    assert Qrels.of(frame).as_dict() == {"1": {"10": 1}, "2": {"20": 1}}
    with pytest.raises(InvalidValue, match=r"row 0: query_id: .*found 1.0; have pandas read ids with dtype=str"):
        Qrels.of(pd.DataFrame({"query_id": [1, None], "memory_id": ["a", "b"], "relevance": [1, 1]}))


def test_a_repeated_row_is_counted_and_a_contradicting_one_refused():
    rows = [("q1", "a", 1), ("q1", "b", 1), ("q1", "a", 1)]
    frame = pd.DataFrame(rows, columns=["query_id", "memory_id", "relevance"])
    qrels = Qrels.of(frame)
    assert len(qrels) == 2
    assert qrels.notes == ("qrels: left out as said before: 1 row (row 2)",)
    assert "row 2" in repr(qrels)
    frame.loc[2, "relevance"] = 0
    with pytest.raises(InvalidValue, match=r"q1 a is 1 in row 0 and 0 in row 2"):
        Qrels.of(frame)


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf, "x", None])
def test_a_relevance_is_a_whole_number(value):
    with pytest.raises(InvalidValue, match="relevance: expected a whole number"):
        Qrels.of({"q1": {"a": value}})


def test_negative_relevance_is_refused_with_the_rows():
    with pytest.raises(InvalidValue, match=r"2 negative ones .*q1 b -1.*q2 c -2.*write 0"):
        Qrels.of({"q1": {"a": 1, "b": -1}, "q2": {"c": -2}})


@pytest.mark.parametrize(
    "source", [{}, {"q1": {}}, {"q1": []}, pd.DataFrame(columns=["query_id", "memory_id", "score"])]
)
def test_no_judgments_are_an_error(source):
    with pytest.raises(InvalidValue, match="expected judgments, found none"):
        Qrels.of(source)


def test_what_is_no_source_says_what_is():
    with pytest.raises(InvalidValue, match=r"BEIR \.tsv or TREC file; found int"):
        Qrels.of(7)
    with pytest.raises(InvalidValue, match=r"found no memory_id among 'query_id', 'text'"):
        Qrels.of(pd.DataFrame({"query_id": ["q"], "text": ["x"]}))


def test_broken_files_name_the_line(tmp_path):
    path = tmp_path / "qrels.tsv"
    with pytest.raises(FormatError, match=r"qrels.tsv: the judgments cannot be read"):
        Qrels.of(path)
    path.write_text("query-id\tcorpus-id\tscore\nq1\ta\n")
    with pytest.raises(FormatError, match="line 2: expected 3 columns"):
        Qrels.of(path)
    path.write_text("query-id\tcorpus-id\tscore\nq1\ta\thigh\n")
    with pytest.raises(InvalidValue, match=r"line 2: relevance: expected a whole number"):
        Qrels.of(path)
    path.write_text("q1 0 a 1\nq1 0 b\n")
    with pytest.raises(FormatError, match=r"line 2: expected a BEIR .tsv .* or TREC qrels"):
        Qrels.of(path)
    path.write_bytes(b"q1 0 \xff 1\n")
    with pytest.raises(FormatError, match="expected UTF-8"):
        Qrels.of(path)


def test_ids_with_odd_characters_survive_beir_but_not_trec(tmp_path):
    qrels = Qrels.of({"q 1": {'a"b': 1, "c\u2028d": 2}})
    assert Qrels.of(qrels.write_beir(tmp_path / "t.tsv")) == qrels
    with pytest.raises(InvalidValue, match=r"white space, which these ids contain: 'q 1'"):
        qrels.write_trec(tmp_path / "t.txt")


def test_a_quotation_mark_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text('query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\t"b\t1\nq3\tc\t1\nq4\td"\t1\n', encoding="utf-8")
    qrels = Qrels.of(path)
    assert qrels.as_dict() == {"q1": {"a": 1}, "q2": {'"b': 1}, "q3": {"c": 1}, "q4": {'d"': 1}}
    assert Qrels.of(qrels.write_beir(tmp_path / "again.tsv")) == qrels


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", " a"])
def test_ids_that_a_tsv_cannot_hold_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match="separates by tabs and lines"):
        Qrels({"q": {name: 1}}).write_beir(tmp_path / "test.tsv")
    assert not (tmp_path / "test.tsv").exists()


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    file.write_text("query-id\tcorpus-id\tscore\tscore\nq\tm\t1\t0\n")
    frame = pd.DataFrame([["q", "m", 1, 0]], columns=["query_id", "memory_id", "relevance", "relevance"])
    for source, name in ((file, "score"), (frame, "relevance")):
        with pytest.raises(InvalidValue, match=f"expected each column once, found '{name}' more than once"):
            Qrels.of(source)
