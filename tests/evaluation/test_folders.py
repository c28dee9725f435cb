"""Labelled sets in BEIR's layout."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memlab import Filters, MemoryStore
from memlab.errors import FormatError, InvalidValue
from memlab.evaluation import LabelledQuery, LabelledSet, Qrels, read_folder, write_folder
from memlab.evaluation.folders import labelled_set_of
from memlab.sample_data import sample


@pytest.fixture
def folder(tmp_path):
    """Three memories, two queries, one split."""
    (tmp_path / "set" / "qrels").mkdir(parents=True)
    rows = [
        {"_id": "a", "title": "Title", "text": "text", "project": "p", "tags": ["x"], "created_at": "2024-01-02"},
        {"_id": 2, "title": "", "text": "two", "date": "2024-11-18T09:56:52+01:00", "category": "Library"},
        {"_id": "c", "text": "three", "metadata": {"project": "q", "importance": 7}},
    ]
    path = tmp_path / "set"
    (path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n')
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\t2\t2\n")
    return path


def test_what_is_read(folder):
    labelled = read_folder(folder)
    assert (labelled.name, labelled.split, labelled.path, labelled.notes) == ("set", "test", folder, ())
    assert labelled.corpus == (
        {
            "memory_id": "a",
            "content": "Title text",
            "project": "p",
            "tags": ["x"],
            "created_at": "2024-01-02T00:00:00.000Z",
        },
        {"memory_id": "2", "content": "two", "category": "Library", "created_at": "2024-11-18T08:56:52.000Z"},
        {"memory_id": "c", "content": "three", "project": "q", "importance": 7},
    )
    assert labelled.queries == (LabelledQuery("q1", "one"), LabelledQuery("q2", "two"))
    assert labelled.qrels.as_dict() == {"q1": {"a": 1}, "q2": {"2": 2}}
    assert repr(labelled) == "<LabelledSet set: 3 memories, 2 queries, 2 judgments (test)>"


def test_what_is_written_is_read_again(folder, tmp_path, small):
    filters = Filters(project="p", tags=["x", "y"])
    odd = LabelledQuery("q 3", "drei\u2028", datetime(2026, 1, 2, tzinfo=UTC), filters, tests="either", topic="t")
    for labelled in (
        small,
        read_folder(folder),
        replace(small, queries=(*small.queries, odd), split="dev", qrels=Qrels.of({"q 3": ["m01"]})),
    ):
        target = write_folder(labelled, tmp_path / f"out-{labelled.split}-{labelled.name}")
        again = read_folder(target)
        assert replace(again, name=labelled.name, path=labelled.path) == labelled
        with pytest.raises(InvalidValue, match="holds a labelled set already"):
            write_folder(labelled, target)
        write_folder(labelled, target, overwrite=True)


def test_a_field_without_a_place_is_not_dropped(tmp_path):
    labelled = LabelledSet("x", ({"memory_id": "a", "content": "b", "vector": [1]},), (), Qrels({}))
    with pytest.raises(InvalidValue, match="corpus: a: there is no place for vector"):
        write_folder(labelled, tmp_path / "x")


def test_the_sample_is_such_a_folder(tmp_path):
    data = sample()
    labelled = read_folder(data.folder)
    assert len(labelled.corpus) == len(data.records)
    assert {query.query_id: dict(query.filters.given()) for query in labelled.queries} == {
        query.query_id: dict(Filters.of(query.filters).given()) for query in data.queries
    }
    with MemoryStore(tmp_path / "s.db", None) as store:
        store.remember_many(labelled.corpus, progress=False)
        assert len(store) == len(data.records)


def test_splits(folder):
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tc\t1\n")
    assert read_folder(folder).split == "test"
    assert read_folder(folder, "train").qrels.as_dict() == {"q1": {"c": 1}}
    with pytest.raises(InvalidValue, match=r"split: .* has test, train; found 'dev'"):
        read_folder(folder, "dev")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    assert read_folder(folder).split == "dev"
    (folder / "qrels" / "dev.tsv").rename(folder / "qrels" / "other.tsv")
    with pytest.raises(InvalidValue, match="one must be named: other, train"):
        read_folder(folder)
    (folder / "qrels" / "train.tsv").unlink()
    assert read_folder(folder).split == "other"
    (folder / "qrels" / "other.tsv").unlink()
    with pytest.raises(FormatError, match=r"expected judgments such as test\.tsv"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels"])
def test_a_folder_that_is_not_beir_says_what_is_missing(folder, name):
    path = folder / name
    path.rename(folder.parent / "away")
    with pytest.raises(FormatError, match=rf"there is no {name}"):
        read_folder(folder)


def test_no_folder_at_all(tmp_path, folder):
    with pytest.raises(FormatError, match="expected a folder in BEIR layout, found none"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="found a file"):
        read_folder(folder / "corpus.jsonl")


def add(folder, line):
    with (folder / "corpus.jsonl").open("a") as file:
        file.write(line + "\n")


def test_rows_that_cannot_be_stored_are_left_out_and_counted(folder):
    add(folder, '{"_id": "e", "title": "", "text": " "}')
    add(folder, '{"_id": "c", "text": "three", "metadata": {"project": "q", "importance": 7}}')
    labelled = read_folder(folder)
    assert len(labelled.corpus) == 3
    assert labelled.notes == (
        "left out, having no text: 1 memory (e)",
        "left out, being there already: 1 row (c)",
    )


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ('{"_id": "x"', FormatError, "line 4: expected a JSON object"),
        ('{"_id": "x"}', FormatError, "line 4: expected _id and text, found '_id'"),
        ('{"text": "x"}', FormatError, "line 4: expected _id and text"),
        ('{"_id": 1.5, "text": "x"}', FormatError, "line 4: _id: expected text or a whole number, found 1.5"),
        ('{"_id": "x", "text": "x", "title": 7}', FormatError, "line 4: title: expected text, found 7"),
        ('{"_id": "x", "text": "x", "date": "1 May"}', FormatError, "line 4: created_at: expected an ISO 8601 time"),
        ('{"_id": "a", "text": "other"}', InvalidValue, "an id may stand for one text, found others: a in .* line 4"),
    ],
)
def test_a_broken_row_is_named(folder, line, error, message):
    add(folder, line)
    with pytest.raises(error, match=message):
        read_folder(folder)


def test_an_empty_corpus(folder):
    (folder / "corpus.jsonl").write_text("")
    with pytest.raises(FormatError, match="expected memories, found none"):
        read_folder(folder)


def test_topics_of_memories_become_those_of_the_queries_they_answer(folder):
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    rows[0]["metadata"] = {"topic": "first", "part": "decision"}
    rows[1]["topic"] = "second"
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "one", "metadata": {"tests": "latest decision"}}\n{"_id": "q2", "text": "two"}\n'
        '{"_id": "q3", "text": "three", "topic": "own"}\n{"_id": "q4", "text": "four"}\n'
    )
    judgments = "q1\ta\t1\nq1\t2\t2\nq2\ta\t1\nq2\t2\t0\nq3\ta\t1\nq4\tc\t1\n"
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judgments)
    labelled = read_folder(folder)
    assert [query.topic for query in labelled.queries] == ["second", "first", "own", ""]
    assert [query.tests for query in labelled.queries] == ["latest decision", "", "", ""]
    assert "topic" not in labelled.corpus[1]


def test_the_temporal_set_is_read_the_same_both_ways():
    dated = sample("temporal")
    labelled = read_folder(dated.folder)
    assert [(q.query_id, q.tests, q.topic, q.now) for q in labelled.queries] == [
        (q.query_id, q.tests, q.topic, q.now) for q in dated.queries
    ]
    assert labelled_set_of(dated).queries == labelled.queries
    assert labelled_set_of(dated).qrels == labelled.qrels
