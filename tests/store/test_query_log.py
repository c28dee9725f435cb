"""The query log: what is recorded, for how long, and that no recall waits for it or fails with it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.errors import InvalidValue, StoreReadOnly
from memlab.retrieval import HybridRetriever, retriever_of, settings_of
from memlab.retrieval.profiles import PROFILES
from memlab.store import MemoryStore, querylog, schema

NOW = datetime(2026, 3, 5, 12, 0, 0, 123000, tzinfo=UTC)
NOTES = (
    "webhooks retry with jitter",
    "the index is rebuilt at night",
    "a failed webhook is retried",
    "invoices by year",
)


@pytest.fixture
def filled(make_store):
    store = make_store()
    for number, text in enumerate(NOTES):
        store.remember(text, memory_id=f"m-{number}", project=("billing", "search")[number % 2], tags=["a", "b"])
    return store


@pytest.fixture
def retriever(filled):
    return HybridRetriever(filled)


def test_nothing_is_recorded_until_it_is_wanted(filled, retriever) -> None:
    retriever.recall("webhook")
    assert not filled.query_log.recording
    assert len(filled.query_log) == 0
    assert filled.query_log.last is None
    assert filled.query_log.frame.empty
    assert not [thread for thread in threading.enumerate() if thread.name == "memlab-query-log"]


def test_a_recall_is_recorded_with_all_that_it_takes_to_run_it_again(filled, retriever) -> None:
    assert filled.query_log.start("a test") is filled.query_log
    changed = retriever.replace(depth=7, fusion=memlab.RRF(k=10, weights={"keyword": 2}))
    found = changed.recall(
        "retried webhook", limit=2, recency_boost=True, now=NOW, project="billing", created_before="2027-01-01T00:00Z"
    )
    (entry,) = filled.query_log
    assert entry == filled.query_log.last == filled.query_log[entry.id]
    assert entry.query == "retried webhook"
    assert (entry.limit, entry.recency_boost, entry.now) == (2, True, NOW)
    assert entry.filters == memlab.Filters(project="billing", created_before="2027-01-01T00:00Z")
    assert entry.hits == tuple((hit.memory_id, hit.score) for hit in found)
    assert entry.hits
    assert (entry.mode, entry.note, entry.encoder) == (found.trace.mode, found.trace.note, found.trace.encoder)
    assert entry.recorded_at == filled._clock()
    assert entry.source == "a test"
    assert entry.milliseconds > 0
    assert entry.settings["fusion"]["k"] == 10
    assert retriever_of(entry.settings, filled) == changed
    row = filled.query_log.frame.loc[entry.id]
    assert (row["query"], row["hits"], row["memory_ids"], row["now"]) == ("retried webhook", len(found), found.ids, NOW)
    assert row["filters"]["project"] == ("billing",)


@pytest.mark.parametrize("name", PROFILES)
def test_a_replay_gives_the_same_answer_to_the_last_bit(filled, name) -> None:
    made = memlab.profile(name, filled).replace(recency_boost=True)
    assert settings_of(made)["recency_boost"] is True
    assert retriever_of(settings_of(made), filled) == made
    filled.query_log.start()
    found = made.recall("retried webhooks at night", now=NOW, tags=["a", "b"], tag_match="all")
    again = memlab.replay(filled, filled.query_log.last)
    assert again.ids == found.ids
    assert [hit.score for hit in again] == [hit.score for hit in found]
    assert again.trace.settings == found.trace.settings
    assert len(filled.query_log) == 1
    # The present moves on; the recorded `now` does not.
    assert memlab.replay(filled, filled.query_log.last.id).trace.now == NOW


def test_where_no_moment_was_given_the_one_that_was_used_is_recorded(filled, retriever) -> None:
    filled.query_log.start()
    found = retriever.recall("webhook", recency_boost=True)
    assert filled.query_log.last.now == found.trace.now


def test_what_was_recorded_stays_when_the_store_is_opened_again_and_the_switch_does_not(filled, make_store) -> None:
    filled.query_log.start()
    HybridRetriever(filled).recall("webhook", now=NOW)
    filled.close()
    again = make_store()
    assert [entry.query for entry in again.query_log] == ["webhook"]
    assert not again.query_log.recording
    HybridRetriever(again).recall("index", now=NOW)
    assert len(again.query_log) == 1


def test_stop_ends_it(filled, retriever) -> None:
    filled.query_log.start()
    retriever.recall("webhook")
    filled.query_log.stop()
    retriever.recall("index")
    assert [entry.query for entry in filled.query_log] == ["webhook"]


def test_only_recalls_of_people_are_recorded(filled, retriever) -> None:
    """What a view or an evaluation does in many small steps is not."""
    filled.query_log.start()
    retriever.rank(retriever.gather("webhook"))
    assert len(filled.query_log) == 0


# -- text is data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    ["'; DROP TABLE query_log; --", "a\x00b", "lone \ud800 one", "\x1b[31mred", "<script>x</script>", "", "ß→∑"],
)
def test_any_text_can_be_asked_and_replayed(filled, retriever, query) -> None:
    filled.query_log.start(source="who\x00?")
    found = retriever.recall(query, now=NOW)
    (entry,) = filled.query_log
    assert entry.query == query.replace("\x00", " ").replace("\ud800", " ")
    assert memlab.replay(filled, entry).ids == found.ids
    assert filled.query_log.lost == 0


# -- how much is kept ------------------------------------------------------------------------------------------------


def test_the_oldest_go_when_there_are_more_than_wanted(filled, retriever) -> None:
    filled.query_log.start(keep=3)
    for number in range(5):
        retriever.recall(f"webhook {number}")
    assert [entry.query for entry in filled.query_log] == ["webhook 2", "webhook 3", "webhook 4"]
    filled.query_log.start(keep=0)
    retriever.recall("webhook")
    assert len(filled.query_log) == 0


def test_what_is_too_old_goes(filled, retriever, clock) -> None:
    filled.query_log.start(keep_days=2)
    retriever.recall("first")
    filled.query_log.flush()
    clock.advance(days=1, hours=23)
    retriever.recall("second")
    assert [entry.query for entry in filled.query_log] == ["first", "second"]
    clock.advance(hours=2)
    retriever.recall("third")
    assert [entry.query for entry in filled.query_log] == ["second", "third"]


def test_without_bounds_all_stays_and_prune_is_for_once(filled, retriever, clock) -> None:
    filled.query_log.start(keep_days=None, keep=None)
    for number in range(4):
        retriever.recall(f"q{number}")
        filled.query_log.flush()
        clock.advance(days=1000)
    assert len(filled.query_log) == 4
    assert filled.query_log.prune(keep_days=2500, keep=None) == 2
    assert filled.query_log.prune(keep_days=None, keep=1) == 1
    assert filled.query_log.prune(keep_days=1e9) == 0
    assert [entry.query for entry in filled.query_log] == ["q3"]


def test_erase_by_number_by_time_and_all(filled, retriever, clock) -> None:
    filled.query_log.start()
    for number in range(5):
        retriever.recall(f"q{number}")
        filled.query_log.flush()
        clock.advance(days=1)
    first, second, third, *_ = [entry.id for entry in filled.query_log]
    assert filled.query_log.erase(first) == 1
    assert filled.query_log.erase([second, 999]) == 1
    assert filled.query_log.erase(before=filled.query_log[third].recorded_at) == 0
    assert filled.query_log.erase([third], before=clock.now) == 1
    assert [entry.query for entry in filled.query_log] == ["q3", "q4"]
    assert filled.query_log.erase() == 2
    assert len(filled.query_log) == 0
    retriever.recall("later")
    assert filled.query_log.last.id == 6  # no number comes again


def test_what_was_erased_is_nowhere_in_the_files(filled, retriever) -> None:
    secret = "correcthorsebatterystaple"
    filled.query_log.start()
    for number in range(50):
        retriever.recall(f"{secret} {number}")
    filled.query_log.flush()
    files = [filled.path, filled.path.with_name(filled.path.name + "-wal")]
    assert any(secret.encode() in path.read_bytes() for path in files)
    filled.query_log.erase()
    assert not any(secret.encode() in path.read_bytes() for path in files if path.exists())


@pytest.mark.parametrize("bad", [{"keep": -1}, {"keep": 1.5}, {"keep_days": -1}, {"keep_days": "x"}, {"source": 3}])
def test_bounds_are_checked_before_anything_starts(filled, bad) -> None:
    with pytest.raises(InvalidValue):
        filled.query_log.start(**bad)
    assert not filled.query_log.recording


def test_a_number_that_is_not_there(filled) -> None:
    with pytest.raises(InvalidValue, match=r"nothing is recorded under 7.*query_log\.frame"):
        filled.query_log[7]


# -- a recall neither waits nor fails --------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_says_so_at_the_switch(filled, make_store) -> None:
    reader = make_store(read_only=True)
    with pytest.raises(StoreReadOnly):
        reader.query_log.start()
    assert HybridRetriever(reader).recall("webhook")
    assert len(reader.query_log) == 0


def test_a_recall_answers_while_another_program_holds_the_store(filled, make_store) -> None:
    store = make_store(busy_timeout=0.05)
    store.query_log.start()
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert HybridRetriever(store).recall("webhook")
        assert store.query_log.flush()
        other.execute("ROLLBACK")
    assert store.query_log.lost == 1
    assert "another writer" in store.query_log.trouble
    assert "1 lost: " in repr(store.query_log)
    assert HybridRetriever(store).recall("index")
    assert [entry.query for entry in store.query_log] == ["index"]


def test_a_log_that_breaks_breaks_no_recall(filled, retriever, monkeypatch) -> None:
    filled.query_log.start()
    monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no more threads")))
    assert retriever.recall("webhook")
    assert (filled.query_log.lost, filled.query_log.trouble) == (1, "no more threads")


def test_too_many_that_wait_are_counted_and_not_kept(filled, retriever, monkeypatch) -> None:
    monkeypatch.setattr(querylog, "_MOST_WAITING", 2)
    filled.query_log.start()
    with filled._file.write():  # what is written waits for this
        for number in range(6):
            retriever.recall(f"q{number}")
        assert filled.query_log.flush() is False  # it would wait for itself
    assert filled.query_log.flush()
    assert len(filled.query_log) + filled.query_log.lost == 6
    assert filled.query_log.lost >= 2


def test_a_stage_of_ones_own_is_recorded_by_its_words_and_not_made_again(filled, retriever) -> None:
    class Mine(memlab.RRF):
        pass

    filled.query_log.start()
    found = retriever.replace(fusion=Mine(k=3)).recall("webhook")
    entry = filled.query_log.last
    assert entry.ids == found.ids
    assert "Mine" in entry.settings["fusion"]["kind"]
    with pytest.raises(InvalidValue, match=r"Mine is none of memlab's own.*give the retriever itself"):
        memlab.replay(filled, entry)


def test_settings_that_are_none(filled) -> None:
    with pytest.raises(InvalidValue, match="expected those of a retriever"):
        retriever_of({"channels": []}, filled)


def test_the_thread_ends_when_there_is_nothing_to_write(filled, retriever) -> None:
    filled.query_log.start()
    retriever.recall("webhook")
    thread = filled.query_log._thread
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive()
    assert len(filled.query_log) == 1


def test_recalls_of_many_threads_are_all_recorded(filled, retriever) -> None:
    filled.query_log.start()
    threads = [threading.Thread(target=lambda: [retriever.recall(f"webhook {n}") for n in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(filled.query_log) == 40


def test_a_process_that_ends_at_once_loses_nothing(tmp_path) -> None:
    script = (
        "import sys, memlab\n"
        "from memlab.encoders import HashingEncoder\n"
        "store = memlab.MemoryStore(sys.argv[1], HashingEncoder(64))\n"
        "store.remember('webhooks retry')\n"
        "store.query_log.start()\n"
        "memlab.HybridRetriever(store).recall('webhook')\n"
    )
    path = tmp_path / "memory.db"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, env={**os.environ})
    with MemoryStore(path, HashingEncoder(64)) as store:
        assert [entry.query for entry in store.query_log] == ["webhook"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_writes_nothing_twice(filled, retriever) -> None:
    filled.query_log.start()
    retriever.recall("webhook")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if filled.query_log._thread is None and not filled.query_log._waiting else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(filled.query_log) == 1


# -- the schema ------------------------------------------------------------------------------------------------------


def older(path) -> None:
    """Make a store one of version 3."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE query_log")
        connection.execute("DELETE FROM _sqlite_migrations WHERE name = 'm004_query_log'")
        connection.execute("PRAGMA user_version = 3")
        connection.commit()


def test_a_file_of_version_3_is_migrated(filled, make_store) -> None:
    path = filled.path
    filled.close()
    older(path)
    reader = make_store(read_only=True)
    assert (len(reader.query_log), list(reader.query_log), reader.query_log.last) == (0, [], None)
    reader.close()
    store = make_store()
    assert store.db.execute("PRAGMA user_version").fetchone() == (schema.SCHEMA_VERSION,)
    store.query_log.start()
    HybridRetriever(store).recall("webhook")
    assert len(store.query_log) == 1
    assert store.check().ok


def test_a_backup_has_the_log(filled, retriever, tmp_path) -> None:
    filled.query_log.start()
    retriever.recall("webhook")
    filled.query_log.flush()
    filled.backup(tmp_path / "copy.db")
    with MemoryStore(tmp_path / "copy.db", HashingEncoder(64)) as copy:
        assert [entry.query for entry in copy.query_log] == ["webhook"]
