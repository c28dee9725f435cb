"""Labelled queries from everything that holds them."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from memlab import Filters
from memlab.errors import FormatError, InvalidValue
from memlab.evaluation import LabelledQuery, queries_of
from memlab.sample_data import sample

TWO = (LabelledQuery("q1", "one"), LabelledQuery("q2", "two"))


def test_the_forms_are_the_same(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "q1", "text": "one", "version": "3.5"}\n\n{"_id": "q2", "text": "two"}\n')
    for source in (
        TWO,
        list(TWO),
        {"q1": "one", "q2": "two"},
        [{"_id": "q1", "text": "one"}, {"query_id": "q2", "text": "two"}],
        pd.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"], "now": [None, None]}),
        path,
        str(path),
    ):
        assert queries_of(source) == TWO


def test_a_query_has_its_own_day_and_filters():
    (query,) = queries_of([{"_id": 1, "text": "x", "date": "2026-02-03", "filters": {"project": "p"}}])
    assert query == LabelledQuery("1", "x", datetime(2026, 2, 3, tzinfo=UTC), Filters(project="p"))
    (query,) = queries_of([{"_id": 1, "text": "x", "now": "2026-02-03T10:00:00+02:00"}])
    assert query.now == datetime(2026, 2, 3, 8, tzinfo=UTC)
    frame = pd.DataFrame({"query_id": ["q"], "text": ["x"], "now": pd.to_datetime(["2026-02-03"], utc=True)})
    assert queries_of(frame)[0].now == datetime(2026, 2, 3, tzinfo=UTC)


def test_the_sample_keeps_its_filters():
    queries = {query.query_id: query for query in queries_of(sample().queries)}
    from_file = {query.query_id: query for query in queries_of(sample().folder / "queries.jsonl")}
    assert queries == from_file
    assert any(query.filters for query in queries.values())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "expected queries, found none"),
        ([], "expected queries, found none"),
        (7, "found int"),
        ([7], "query 0: expected .* found int"),
        ([{"_id": "q"}], "query 0: expected query_id .* and text, found '_id'"),
        ({"q": " "}, r"query q: expected a text that is not blank, found ' '"),
        ({"q": None}, "not blank, found None"),
        ([TWO[0], TWO[1], TWO[0]], r"found twice: q1: query 0 and query 2"),
        ([{"_id": "q", "text": "x", "filters": {"projekt": "p"}}], r"query q: 'projekt' is no filter; the filters are"),
        ([{"_id": "q", "text": "x", "filters": "p"}], r"filters: expected a mapping"),
        ([{"_id": "q", "text": "x", "now": "2026-02-03T10:00:00"}], r"query q: now: .*names no time zone"),
        ([{"_id": "q", "text": "x", "date": "soon"}], r"query q: now: expected an ISO 8601 time"),
    ],
)
def test_bad_queries_say_which(source, message):
    with pytest.raises(InvalidValue, match=message):
        queries_of(source)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "q2", "text": ', "line 2: expected a JSON object"),
        ('["q2"]', "line 2: expected a JSON object, found"),
        ('{"_id": "q2"}', "line 2: expected query_id"),
        ('{"_id": "q2", "text": "x", "filters": {"nope": 1}}', r"line 2: query q2: 'nope' is no filter"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "q1", "text": "one"}\n' + line + "\n")
    with pytest.raises(FormatError, match=message):
        queries_of(path)


def test_a_file_that_is_not_there_or_names_an_id_twice(tmp_path):
    path = tmp_path / "queries.jsonl"
    with pytest.raises(FormatError, match="the queries cannot be read"):
        queries_of(path)
    path.write_text('{"_id": "q1", "text": "one"}\n{"_id": "q1", "text": "two"}\n')
    with pytest.raises(InvalidValue, match=r"q1: .*line 1 and .*line 2"):
        queries_of(path)


def test_what_a_query_tests_and_its_topic():
    (one,) = queries_of([{"_id": "q", "text": "t", "tests": "either", "metadata": {"topic": "x"}}])
    assert (one.tests, one.topic) == ("either", "x")
    with pytest.raises(InvalidValue, match="query q: tests: expected text, found 7"):
        queries_of([{"_id": "q", "text": "t", "tests": 7}])
