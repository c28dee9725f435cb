"""Labelling: pools, order, the file, and what the widget answers."""

from __future__ import annotations

import os
import stat

import pandas as pd
import pytest

import memlab
from memlab.errors import FormatError, InvalidValue, UnknownMemory
from memlab.evaluation.labelling import LabellingSession, grade_names, pool, shuffled
from memlab.evaluation.queries import LabelledQuery
from memlab.retrieval import HybridRetriever
from memlab.widgets.labelling import Labeller

QUERIES = {"q1": "webhook retry", "q2": "index at night", "q3": "invoices"}
NOTES = (
    "webhooks retry with jitter",
    "the index is rebuilt at night",
    "a failed webhook is retried",
    "invoices are numbered by year",
    "money is kept in cents",
    "queries are logged for a month",
)


@pytest.fixture
def retriever(store):
    for number, text in enumerate(NOTES):
        store.remember(text, memory_id=f"m-{number}", project=("billing", "search")[number % 2])
    return HybridRetriever(store)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "qrels.tsv"


@pytest.fixture
def start(retriever, path, clock):
    def make(queries=QUERIES, path=path, **options):
        return LabellingSession(retriever, queries, path, clock=clock, **{"depth": 3, **options})

    return make


# -- what is asked, and in which order -------------------------------------------------------------------------------


def test_a_pool_has_the_first_of_every_channel(retriever) -> None:
    query = LabelledQuery("q", "webhook retry")
    found = retriever.replace(depth=2).gather(query.text)
    expected = {hit.memory_id for result in found.results for hit in result.hits}
    assert set(pool(retriever, query, 2)) == expected
    assert len({result.channel for result in found.results if result.hits}) > 1
    assert len(pool(retriever, query, 1)) < len(pool(retriever, query, 6)) == len(NOTES)


def test_filters_of_a_query_hold(retriever) -> None:
    query = LabelledQuery("q", "webhook", filters=memlab.Filters(project="search"))
    assert set(pool(retriever, query, 9)) == {"m-1", "m-3", "m-5"}


def test_the_order_says_nothing_of_the_ranks_and_stays(start, retriever) -> None:
    first, again, other = start(depth=6), start(depth=6), start(depth=6, seed=1)
    assert first.candidates("q1") == again.candidates("q1")
    orders = [session.candidates(name) for session in (first, other) for name in QUERIES]
    assert len(set(orders)) == len(orders)
    assert {tuple(sorted(order)) for order in orders} == {tuple(f"m-{at}" for at in range(6))}
    # Over many queries a place in the ranking says nothing of the place shown.
    ranked = retriever.recall("webhook retry", limit=6).ids
    places = [shuffled(ranked, f"q{at}", 0).index(ranked[0]) for at in range(600)]
    assert abs(sum(places) / 600 - 2.5) < 0.25
    assert shuffled([*ranked, "m-new"], "q", 0).index("m-new") >= 0
    without = [name for name in shuffled([*ranked, "m-new"], "q", 0) if name != "m-new"]
    assert tuple(without) == shuffled(ranked, "q", 0)


# -- marks and the file ----------------------------------------------------------------------------------------------


def test_every_mark_is_written_at_once_and_read_by_evaluation(start, path, clock) -> None:
    session = start(by="Ada Lovelace")
    session.mark("q1", "m-0", 1)
    assert memlab.Qrels.of(path).as_dict() == {"q1": {"m-0": 1}}
    clock.advance(minutes=1)
    session.mark("q1", "m-2", 0)
    lines = path.read_text().splitlines()
    assert lines == [
        "query-id\tcorpus-id\tscore\tby\tat",
        "q1\tm-0\t1\tAda Lovelace\t2026-03-04T09:12:41.123Z",
        "q1\tm-2\t0\tAda Lovelace\t2026-03-04T09:13:41.123Z",
    ]
    session.mark("q1", "m-0", None)
    assert memlab.Qrels.of(path) == session.qrels
    session.mark("q1", "m-2", None)
    assert path.read_text().splitlines() == lines[:1]
    assert len(session.qrels) == 0
    assert start().progress == (0, 3, 0, 0)


def test_finished_stopped_and_taken_up_again(start) -> None:
    session = start()
    assert session.first_unfinished() == "q1"
    session.mark("q1", session.candidates("q1")[0], 1)
    assert not session.finished("q1")
    session.finish("q1")
    assert session.qrels.relevant("q1") == {session.candidates("q1")[0]}
    assert session.after("q1") == "q2"
    session.mark("q2", session.candidates("q2")[1], 1)
    again = start()
    assert again.first_unfinished() == "q2"
    assert again.qrels == session.qrels
    assert again.progress == session.progress
    assert again.progress.finished == 1
    assert again.after("q3") == "q2"  # round, to what was left out
    again.none_relevant("q2")
    assert again.qrels.relevant("q2") == set()
    again.none_relevant("q3")
    assert (again.first_unfinished(), again.after("q3"), again.progress.finished) == (None, None, 3)
    again.clear("q3")
    assert again.first_unfinished() == "q3"


def test_a_new_memory_in_the_pool_opens_a_query_again(start, retriever) -> None:
    session = start(depth=10)
    session.none_relevant("q1")
    retriever.store.remember("one more webhook retry", memory_id="m-new")
    again = start(depth=10)
    assert not again.finished("q1")
    assert [name for name in again.candidates("q1") if again.grade("q1", name) is None] == ["m-new"]


def test_what_was_judged_is_shown_although_no_channel_finds_it_now(start, retriever) -> None:
    session = start(depth=1)
    outside = next(name for name in (f"m-{at}" for at in range(6)) if name not in session.candidates("q1"))
    session.mark("q1", outside, 1)
    assert outside in start(depth=1).candidates("q1")
    retriever.store.forget(outside)
    assert outside not in start(depth=1).candidates("q1")
    assert start(depth=1).qrels.relevant("q1") == {outside}  # the judgment stays


def test_a_memory_that_goes_to_the_trash_meanwhile_is_not_waited_for(start, retriever) -> None:
    session = start(depth=6)
    first, *others = session.candidates("q1")
    for name in others:
        session.mark("q1", name, 0)
    assert not session.finished("q1")
    retriever.store.forget(first)
    assert session.finished("q1")
    assert session.candidates("q1") == tuple(others)


def test_judgments_of_other_queries_stay_in_the_file(start, path) -> None:
    path.write_text("query-id\tcorpus-id\tscore\nother\tsomewhere\t3\n")
    session = start()
    session.mark("q1", "m-0", 1)
    assert memlab.Qrels.of(path).as_dict() == {"other": {"somewhere": 3}, "q1": {"m-0": 1}}
    assert pd.isna(session.frame.set_index("query_id").loc["other", "grade"])


@pytest.mark.parametrize("name", ["labels.qrels", "labels.txt"])
def test_any_other_name_is_trec(start, tmp_path, name) -> None:
    path = tmp_path / name
    session = start(path=path)
    session.mark("q1", "m-0", 1)
    session.mark("q1", "m-1", 0)
    assert path.read_text() == "q1 0 m-0 1\nq1 0 m-1 0\n"
    assert start(path=path).qrels == session.qrels == memlab.Qrels.of(path)


def test_grades_have_names(start) -> None:
    assert grade_names(1) == ("not relevant", "relevant")
    assert grade_names(2) == ("not relevant", "partly relevant", "fully relevant")
    assert grade_names(3)[3] == "grade 3"
    session = start(grades=("no", "so so", "yes"))
    session.mark("q1", "m-0", 2)
    assert session.frame.iloc[0][["query", "relevance", "grade"]].tolist() == ["webhook retry", 2, "yes"]
    with pytest.raises(InvalidValue, match=r"relevance 2, and grades go up to 1.*give grades=2"):
        start(grades=1)
    assert start(grades=2).grade("q1", "m-0") == 2


@pytest.mark.parametrize("bad", [0, 10, "yes", ["one"], ["a", "a"], ["a", " "], [str(at) for at in range(11)], 1.5])
def test_grades_that_are_none(bad) -> None:
    with pytest.raises(InvalidValue):
        grade_names(bad)


@pytest.mark.parametrize("bad", [2, -1, True and "1", 0.5])
def test_a_relevance_that_is_none_changes_nothing(start, path, bad) -> None:
    session = start()
    with pytest.raises(InvalidValue):
        session.mark("q1", "m-0", bad)
    assert not path.exists()
    assert session.progress.judged == 0


def test_unknown_names(start) -> None:
    session = start()
    with pytest.raises(InvalidValue, match="'q9' is none of the 3 queries"):
        session.mark("q9", "m-0", 1)
    with pytest.raises(UnknownMemory, match="nobody"):
        session.mark("q1", "nobody", 1)


def test_what_somebody_else_wrote_is_not_overwritten(start, path) -> None:
    session, other = start(), start()
    other.mark("q2", "m-1", 1)
    with pytest.raises(InvalidValue, match=r"somebody else has changed the file.*open it again"):
        session.mark("q1", "m-0", 1)
    assert session.grade("q1", "m-0") is None
    assert memlab.Qrels.of(path).as_dict() == {"q2": {"m-1": 1}}


def test_a_file_that_cannot_be_written_takes_no_mark(start, path, monkeypatch) -> None:
    session = start()
    session.mark("q1", "m-0", 1)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InvalidValue, match="No space left on device; the judgment was not taken"):
        session.mark("q1", "m-1", 1)
    assert session.grade("q1", "m-1") is None
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir() if item.suffix == ".part"] == []


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_the_mode_of_the_file_stays(start, path) -> None:
    session = start()
    session.mark("q1", "m-0", 1)
    path.chmod(0o640)
    session.mark("q1", "m-1", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_ids_that_cannot_stand_in_a_file(start, retriever, tmp_path) -> None:
    retriever.store.remember("a webhook retry with a blank", memory_id="m 1")
    retriever.store.remember("a webhook retry with a tab", memory_id="m\t1")
    start().mark("q1", "m 1", 1)
    with pytest.raises(InvalidValue, match="separates by tabs"):
        start().mark("q1", "m\t1", 1)
    with pytest.raises(InvalidValue, match="separates by white space"):
        start(path=tmp_path / "x.qrels").mark("q1", "m 1", 1)


def test_a_broken_file_is_an_error_and_stays(start, path) -> None:
    path.write_text("query-id\tcorpus-id\tscore\nq1\tm-0\n")
    with pytest.raises(FormatError, match="line 2"):
        start()
    assert path.read_text() == "query-id\tcorpus-id\tscore\nq1\tm-0\n"


def test_a_folder_that_is_not_there(start, tmp_path) -> None:
    with pytest.raises(InvalidValue, match="does not exist; make it first"):
        start(path=tmp_path / "nowhere" / "qrels.tsv")
    with pytest.raises(InvalidValue, match="is a folder"):
        start(path=tmp_path)


def test_added_queries_are_kept_beside_the_judgments(start, tmp_path) -> None:
    session = start()
    name = session.add_query("what is\n kept in cents?")
    assert name == "added-1"
    session.mark(name, "m-4", 1)
    assert session.add_query("another", "mine") == "mine"
    again = start()
    assert [query.query_id for query in again.queries] == ["q1", "q2", "q3", "added-1", "mine"]
    assert again.query("added-1").text == "what is kept in cents?"
    assert again.qrels.relevant("added-1") == {"m-4"}
    assert again.add_query("third") == "added-2"
    for bad in ("", "  "):
        with pytest.raises(InvalidValue):
            again.add_query(bad)
    with pytest.raises(InvalidValue, match="another query's"):
        again.add_query("x", "q1")
    assert memlab.evaluate(session.retriever, again.queries, again.qrels) is not None


def test_without_a_path_nothing_is_written(start, tmp_path) -> None:
    session = start(path=None)
    before = set(tmp_path.rglob("*"))
    session.none_relevant("q1")
    session.add_query("more")
    assert session.progress == (1, 4, len(session.candidates("q1")), 0)
    assert {item.name for item in set(tmp_path.rglob("*")) - before} <= {"memory.db-wal", "memory.db-shm"}


# -- the widget ------------------------------------------------------------------------------------------------------


@pytest.fixture
def labeller(retriever, path, clock):
    return memlab.label(retriever, QUERIES, path, depth=3, clock=clock)


def test_it_begins_at_the_first_query_that_is_not_finished(labeller, retriever, path) -> None:
    assert isinstance(labeller, Labeller)
    assert labeller.current == "q1"
    labeller.none_relevant()
    assert labeller.current == "q2"
    labeller.current = "q3"
    labeller.mark(labeller.candidates[0])
    assert labeller.qrels.relevant("q3") == {labeller.candidates[0]}
    assert memlab.label(retriever, QUERIES, path, depth=3).current == "q2"
    with pytest.raises(InvalidValue):
        labeller.current = "q9"


def test_a_view_is_told_no_rank_and_no_score(labeller) -> None:
    told = labeller.answer("hello", {}).body
    assert set(told["state"]["candidates"][0]) == {"id", "shown_id", "text", "more", "facts", "relevance"}
    assert tuple(row["id"] for row in told["state"]["candidates"]) == labeller.candidates
    assert told["grades"] == ["not relevant", "relevant"]


def test_the_questions_of_a_view(labeller) -> None:
    first = labeller.candidates[0]
    state = labeller.answer("mark", {"query": "q1", "memory": first, "relevance": 1}).body
    assert [row["relevance"] for row in state["candidates"] if row["id"] == first] == [1]
    assert labeller.answer("mark", {"query": "q1", "memory": first, "relevance": None}).body["progress"]["judged"] == 0
    assert labeller.answer("go", {"query": "q2"}).body["current"] == "q2"
    assert labeller.answer("finish", {"query": "q2"}).body["current"] == "q3"
    # A view that is slower than Python still means the query that it shows.
    labeller.current = "q3"
    assert labeller.answer("none", {"query": "q1"}).body["progress"]["finished"] == 2
    assert labeller.answer("clear", {"query": "q1"}).body["progress"]["finished"] == 1
    assert labeller.answer("add", {"text": "money"}).body["current"] == "added-1"
    for wrong in ({}, {"query": 3}, {"query": "q9"}):
        with pytest.raises(InvalidValue):
            labeller.answer("finish", wrong)
    with pytest.raises(InvalidValue):
        labeller.answer("mark", {"query": "q1", "memory": first, "relevance": "<b>"})


def test_stored_text_is_text_in_the_state_and_the_picture(retriever) -> None:
    retriever.store.remember("webhook <script>x</script> \x1b[31m", memory_id="<b>m</b>", project="<i>p</i>")
    retriever.store.remember("webhook escapes", memory_id="m\x1b[31m\u202e")
    labeller = memlab.label(retriever, {"<u>q</u>\x1b": "webhook <img src=x onerror=y>"}, None, depth=9)
    (row,) = [row for row in labeller.answer("hello", {}).body["state"]["candidates"] if row["id"] == "<b>m</b>"]
    assert "\x1b" not in row["text"]
    state = labeller.answer("hello", {}).body["state"]
    assert "m\ufffd[31m\ufffd" in [row["shown_id"] for row in state["candidates"]]
    assert state["queries"][0]["shown_id"] == "<u>q</u>\ufffd"
    html = labeller.picture()["text/html"]
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert "<u>" not in html


def test_the_picture_says_how_far_it_is(labeller) -> None:
    labeller.none_relevant("q1")
    text, html = labeller.picture()["text/plain"], labeller.picture()["text/html"]
    assert "1 of 3 queries finished" in text
    assert "1 of 3 queries finished" in html
    assert "1 of 3 queries finished" in repr(labeller)
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["finished", "open", "open"]
    assert "webhook retry" in text
    for word in ("<style", "<svg", "<script", "class="):
        assert word not in html


def test_a_store_is_no_retriever(retriever) -> None:
    with pytest.raises(InvalidValue, match="expected a HybridRetriever, found MemoryStore"):
        memlab.label(retriever.store, QUERIES, None)
