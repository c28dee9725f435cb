"""Several threads and several processes on one file, at once, and killed at the wrong moment."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.errors import StoreLocked
from memlab.store import MemoryStore
from tests.store.helpers import assert_sound, raw_connection, vectors_in_memory, vectors_on_disk

Worker = Any  # a Popen with all three pipes


@pytest.fixture
def worker() -> Iterator[Callable[..., Worker]]:
    """Start another process; it is ended at the latest with the test."""
    started: list[Worker] = []
    root = Path(memlab.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def start(*arguments: Any) -> Worker:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("workers.py")), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def hear(process: Worker) -> str:
    line = process.stdout.readline().strip()
    assert line, process.stderr.read()
    return line


def say(process: Worker, word: str) -> None:
    process.stdin.write(word + "\n")
    process.stdin.flush()


# -- two processes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reader_sees_every_commit_of_another_process_at_once(make_store, worker):
    reader = make_store(encoder=HashingEncoder(32))
    retriever = memlab.HybridRetriever(reader)
    writer = worker("write_many", reader.path, 5000)
    recalls = 0
    while (line := hear(writer)) != "end":
        done = int(line)
        last = done - 1
        recall = retriever.recall(f"common memory number{last}x about topic{last % 13}", limit=1)
        hit = recall.hits[0]
        assert hit.memory_id == f"m-{last:05}"
        # Found by its word and by its vector: both channels see the commit.
        assert {part.channel for part in hit.place.contributions} == {"keyword", "vector"}
        assert len(reader) == done
        recalls += 1
        say(writer, "seen")
    assert recalls > 20
    assert sorted(memory.memory_id for memory in reader.find()) == [f"m-{i:05}" for i in range(5000)]
    assert reader._index.refreshes > 10
    assert_sound(reader)


@pytest.mark.slow
def test_recalls_while_two_processes_write_without_waiting(make_store, worker, tmp_path):
    reader = make_store(encoder=HashingEncoder(32))
    retriever = memlab.HybridRetriever(reader)
    writers = [worker("write_freely", reader.path, name, 300) for name in ("one", "two")]
    for process in writers:
        assert hear(process) == "ready"
    for process in writers:
        say(process, "go")
    seen, backups = 0, 0
    while any(process.poll() is None for process in writers):
        recall = retriever.recall("memory", limit=1000)
        assert len(recall.hits) >= min(seen, 50), "what was there stays"
        with reader.view() as view:
            count = view.searched
            assert count >= seen
            assert len(view.snapshot.documents) == count, "rows and vectors of the same commit"
            seen = count
        if seen > 100 * backups:
            copy = MemoryStore(reader.backup(tmp_path / f"copy-{backups}.db"), HashingEncoder(32))
            assert len(copy) >= seen
            assert_sound(copy)
            copy.close()
            backups += 1
    for process in writers:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert out.strip() == "end"
    assert backups >= 3
    assert len(reader) == 600
    assert_sound(reader)


@pytest.mark.slow
def test_many_processes_make_the_same_new_store(tmp_path, worker):
    count = 10
    processes = [worker("open_new", tmp_path, count) for _ in range(3)]
    for process in processes:
        assert hear(process) == "ready"
    for i in range(count):
        for process in processes:
            say(process, "go")
        for process in processes:
            assert hear(process) == str(i)
        with MemoryStore(tmp_path / f"new-{i}.db", HashingEncoder(8)) as store:
            assert len(store) == 3
            assert_sound(store)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_killed_at_random_during_200_bulk_writes(tmp_path, worker):
    process = worker("killed", tmp_path / "memory.db", 200, 20260304)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    in_work, _ = map(int, out.split())
    assert in_work > 150, "most were killed while they wrote"


def test_idempotency_keys_hold_across_processes(make_store, worker):
    """Two processes import the same records with the same keys at once: each record is there once."""
    store = make_store(encoder=HashingEncoder(32))
    path = store.path
    processes = [worker("write_freely", path, "same", 100) for _ in range(2)]
    for process in processes:
        assert hear(process) == "ready"
    for process in processes:
        say(process, "go")
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert "end" in out
    assert len(store) == 100
    assert_sound(store)


# -- readers and locks ------------------------------------------------------------------------------------------------


def test_a_held_write_lock_stops_no_reader(make_store):
    store = make_store()
    made = store.remember("found by its words")
    held = raw_connection(store.path)
    held.execute("BEGIN IMMEDIATE")
    held.execute("UPDATE memories SET importance = 1")
    started = time.monotonic()
    other = make_store(busy_timeout=0.0)
    for reader in (store, other, make_store(read_only=True), make_store(encoder=None)):
        assert [hit.memory_id for hit in memlab.HybridRetriever(reader).recall("words").hits] == [made.memory_id]
        assert reader.get(made.memory_id).importance == 5
        assert reader.check().ok
        reader.stats(), reader.memories(), reader.history(made.memory_id), reader.tags()
    assert time.monotonic() - started < 4, "nobody waited for the busy timeout"
    held.execute("COMMIT")
    held.close()
    assert other.get(made.memory_id).importance == 1


def test_a_reader_stops_no_writer(make_store):
    store = make_store()
    store.remember("first")
    reader = make_store()
    writer = make_store(busy_timeout=0.0)
    with reader.view() as view:
        assert view.searched == 1
        for i in range(5):
            writer.remember(f"while it reads {i}")
        writer.reembed(HashingEncoder(16))
        assert view.searched == 1
    assert len(reader) == 6


READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def test_reading_runs_no_statement_that_writes(make_store):
    store = make_store(encoder=HashingEncoder(64, token_limit=8))
    made = store.remember("one two three four. five six seven eight. nine ten eleven twelve. thirteen", tags="t")
    reader = make_store(encoder=HashingEncoder(64, token_limit=8))
    connection = reader.db.conn
    statements: list[str] = []
    forbidden: list[tuple[Any, ...]] = []

    def read_all():
        memlab.HybridRetriever(reader).recall("thirteen twelve", project=None, tags="t", recency_boost=True)
        reader.get(made.memory_id), reader.find(tags="t"), reader.memories(), reader.stats(), reader.check()
        reader.history(made.memory_id), reader.passages(made.memory_id), reader.vectors(), reader.tags(), len(reader)

    def authorise(action, first, second, database, trigger):
        if action == sqlite3.SQLITE_PRAGMA:
            allowed = second is None or first in ("integrity_check", "table_info", "table_xinfo")
        elif action == sqlite3.SQLITE_TRANSACTION:
            allowed = first in ("BEGIN", "ROLLBACK")
        else:
            allowed = action in READING
        if not allowed:
            forbidden.append((action, first, second))
        return sqlite3.SQLITE_OK

    # Connecting to a virtual table (FTS5, json_each) makes SQLite parse a CREATE TABLE, which the authorizer is asked
    # about; the second time they are connected.
    read_all()
    connection.set_authorizer(authorise)
    connection.set_trace_callback(statements.append)
    read_all()
    connection.set_trace_callback(None)
    connection.set_authorizer(None)
    assert forbidden == []
    assert len(statements) > 20
    assert {statement.split()[0].upper() for statement in statements if not statement.startswith("--")} <= {
        "BEGIN",
        "ROLLBACK",
        "SELECT",
        "PRAGMA",
        "WITH",
    }
    assert "BEGIN IMMEDIATE" not in statements


def test_opening_an_existing_store_writes_nothing(make_store):
    store = make_store()
    store.remember("a")
    store.close()
    before = store.path.read_bytes()
    with MemoryStore(store.path, HashingEncoder(64)) as again:
        again.find()
    assert store.path.read_bytes() == before


def test_a_lock_that_is_held_too_long(make_store):
    store = make_store(busy_timeout=0.05)
    made = store.remember("a")
    held = raw_connection(store.path)
    held.execute("BEGIN IMMEDIATE")
    for write in (
        lambda: store.remember("b"),
        lambda: store.remember_many(["b"]),
        lambda: store.update(made.memory_id, content="b"),
        lambda: store.forget(made.memory_id),
        lambda: store.touch(made.memory_id),
        lambda: store.reembed(),
    ):
        with pytest.raises(StoreLocked, match="busy"):
            write()
    held.execute("ROLLBACK")
    held.close()
    assert [memory.content for memory in store.find()] == ["a"]
    assert store.remember("b").created
    assert_sound(store)


def test_a_writer_waits_for_another(make_store):
    store = make_store(busy_timeout=30)
    store.remember("a")
    held = raw_connection(store.path, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    held.execute("INSERT INTO memories (id, content) VALUES ('m-held', 'x')")
    timer = threading.Timer(0.2, lambda: held.execute("COMMIT"))
    timer.start()
    store.remember("b")
    timer.join()
    held.close()
    assert len(store) == 3


# -- threads ----------------------------------------------------------------------------------------------------------


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run jobs at the same time; the first error is raised here."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(jobs))

    def run(job):
        try:
            barrier.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]


@pytest.mark.slow
def test_threads_write_and_recall_at_once(make_store):
    store = make_store(encoder=HashingEncoder(32, token_limit=8), busy_timeout=60)
    retriever = memlab.HybridRetriever(store)
    store.remember("common words to begin with")
    writing = threading.Event()
    writing.set()
    left = [3]
    lock = threading.Lock()

    def write(name: str) -> Callable[[], None]:
        def job():
            try:
                for i in range(40):
                    made = store.remember(
                        f"common {name} {i}. with a second sentence. and a third one", memory_id=f"m-{name}-{i}"
                    )
                    assert store.get(made.memory_id).content.startswith(f"common {name} {i}.")
                    if i % 4 == 0:
                        store.update(made.memory_id, content=f"common changed {name} {i}")
                    if i % 10 == 0:
                        store.forget(made.memory_id)
                    if i % 20 == 0:
                        store.remember_many([f"common bulk {name} {i} {n}" for n in range(10)])
            finally:
                with lock:
                    left[0] -= 1
                    if not left[0]:
                        writing.clear()

        return job

    def read():
        seen = 0
        while writing.is_set():
            assert retriever.recall("common words sentence", limit=100).hits
            with store.view() as view:
                assert len(view.snapshot.documents) == view.searched
                seen += 1
        assert seen

    in_threads(write("a"), write("b"), write("c"), read, read)
    assert len(store) == 1 + 3 * (40 - 4 + 20)
    assert_sound(store)


def test_one_key_from_many_threads_is_one_memory(make_store):
    store = make_store(busy_timeout=60)
    made: list[Any] = []
    in_threads(*[lambda: made.append(store.remember("same", idempotency_key="k"))] * 8)
    assert len({memory.memory_id for memory in made}) == 1
    assert sum(memory.created for memory in made) == 1
    assert len(store) == 1


def test_the_first_memory_from_many_threads(make_store):
    store = make_store(busy_timeout=60)
    in_threads(*[lambda i=i: store.remember(f"memory {i}") for i in range(8)])
    assert store.db["encoders"].count == 1
    assert_sound(store)


def test_an_index_shared_by_threads_keeps_up(make_store):
    store, other = make_store(), make_store()
    ids = list(store.remember_many([f"memory {i}" for i in range(50)]).memory_ids)
    done = threading.Event()

    def write():
        for i in range(60):
            other.update(ids[i % 50], content=f"changed {i}")
        done.set()

    def look():
        while not done.is_set():
            with store.view() as view:
                numbers, _, matrix = view.documents.matrix()
                known = view.ids(numbers.tolist())
                rows = dict(view.connection.execute("SELECT id, vector FROM memories").fetchall())
                for number, row in zip(numbers.tolist(), matrix, strict=True):
                    assert rows[known[number]] == row.tobytes()

    in_threads(write, look, look)
    assert vectors_in_memory(store) == vectors_on_disk(store.path)
