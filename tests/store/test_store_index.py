"""The vectors in memory: after any change, by anyone, they are those in the file."""

from __future__ import annotations

import contextlib
import os
import threading

import numpy as np
import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from memlab.store.blocks import Block
from memlab.store.index import VectorIndex
from memlab.store.nearest import nearest
from memlab.store.reading import fetch
from tests.store.helpers import assert_sound, raw_connection, vectors_in_memory, vectors_on_disk

WORDS = [
    "retry",
    "webhook",
    "jitter",
    "cache",
    "token",
    "queue",
    "index",
    "vector",
    "migrate",
    "deploy",
    "rollback",
    "schema",
]


def brute_force(path, query: np.ndarray) -> list[tuple[float, str]]:
    """Cosine with every live vector of the file, best first, ties by id."""
    wide = query.astype(np.float64)
    rows = vectors_on_disk(path).items()
    return sorted((-float((np.frombuffer(v, "<f4").astype(np.float64) * wide).sum()), i) for i, v in rows)


def ranked(store: MemoryStore, query: np.ndarray, depth: int) -> list[tuple[float, str]]:
    with store.view() as view:
        owners, _, cosines = view.documents.nearest(query, depth)
        ids = view.ids(owners.tolist())
    return sorted((-cosine, ids[owner]) for owner, cosine in zip(owners.tolist(), cosines.tolist(), strict=True))


def assert_nearest(store: MemoryStore, query_text: str, depth: int) -> None:
    query = store.encode_query(query_text)
    expected, found = brute_force(store.path, query), ranked(store, query, depth)
    if len(expected) > depth:
        # All that tie with the last place are given.
        bound = expected[depth - 1][0]
        expected = [row for row in expected if row[0] <= bound]
    assert found == expected


def document_vectors(snapshot) -> tuple[np.ndarray, np.ndarray]:
    alive = snapshot.documents.alive
    return snapshot.documents.owners[alive], snapshot.documents.matrix[alive]


class Walk:
    """Random changes from two store objects and a raw connection on one file."""

    def __init__(self, make_store, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.stores = [make_store(encoder=HashingEncoder(32, token_limit=8)) for _ in range(2)]
        self.raw = raw_connection(self.stores[0].path)
        self.made = 0

    def text(self) -> str:
        words = self.rng.choice(WORDS, self.rng.integers(2, 25))
        return " ".join(words)

    def pick(self, trashed: bool) -> str | None:
        ids = [memory.memory_id for memory in self.stores[0].find(trashed=trashed)]
        return str(self.rng.choice(ids)) if ids else None

    def step(self) -> None:
        store = self.stores[self.rng.integers(2)]
        action = self.rng.choice(
            ["insert", "bulk", "update", "trash", "restore", "purge", "raw", "pending", "reembed"],
            p=[0.3, 0.07, 0.2, 0.13, 0.1, 0.06, 0.09, 0.03, 0.02],
        )
        live, gone = self.pick(False), self.pick(True)
        if action == "insert":
            self.made += 1
            store.remember(self.text(), memory_id=f"m-{self.made}")
        elif action == "bulk":
            store.remember_many([self.text() for _ in range(self.rng.integers(1, 15))])
        elif action == "update" and live:
            store.update(live, content=self.text())
        elif action == "trash" and live:
            store.forget(live)
        elif action == "restore" and gone:
            store.restore(gone)
        elif action == "purge" and gone:
            store.purge(gone)
        elif action == "raw" and live:
            self.raw.execute("UPDATE memories SET content = ? WHERE id = ?", (self.text(), live))
        elif action == "pending":
            store.embed_pending()
        elif action == "reembed":
            limit = int(self.rng.choice([6, 8]))
            store.reembed(HashingEncoder(32, token_limit=limit), batch_size=7)


@pytest.mark.parametrize("seed", range(4))
def test_nearest_equals_brute_force_after_every_step(make_store, seed):
    walk = Walk(make_store, seed)
    for _ in range(60):
        walk.step()
        for store in walk.stores:
            assert vectors_in_memory(store) == vectors_on_disk(store.path)
            assert_nearest(store, walk.text(), int(walk.rng.integers(1, 12)))
    for store in walk.stores:
        assert_sound(store)
    assert sum(store._index.refreshes for store in walk.stores) > 40
    walk.raw.close()


def test_only_what_changed_is_read(make_store):
    writer, reader = make_store(), make_store()
    ids = writer.remember_many([f"memory {i} {WORDS[i % 12]}" for i in range(300)]).memory_ids
    reader.vectors()
    index = reader._index
    assert (index.loads, index.refreshes) == (1, 0)
    reader.vectors()
    assert (index.loads, index.refreshes) == (1, 0), "nothing changed, nothing is read"
    writer.touch(ids[:50])
    writer.update(ids[0], importance=9)
    reader.vectors()
    assert (index.loads, index.refreshes) == (1, 0), "what nobody searches by does not concern it"
    for number, change in enumerate(
        (
            lambda: writer.update(ids[0], project="p"),  # the log is the word index's too: one memory is read again
            lambda: writer.remember("one more"),
            lambda: writer.update(ids[1], content="changed"),
            lambda: writer.forget(ids[2]),
            lambda: writer.restore(ids[2]),
            lambda: writer.purge(writer.forget(ids[3]).memory_id),
        ),
        start=1,
    ):
        change()
        assert vectors_in_memory(reader) == vectors_on_disk(reader.path)
        assert (index.loads, index.refreshes) == (1, number)


def test_a_refresh_reads_few_rows(make_store):
    store = make_store()
    store.remember_many([f"memory {i}" for i in range(500)])
    store.vectors()
    store.remember("one more")
    statements: list[str] = []
    store.db.conn.set_trace_callback(statements.append)
    with store.view() as view:
        assert len(view.snapshot.documents) == 501
    store.db.conn.set_trace_callback(None)
    vectors = [statement for statement in statements if "m.vector" in statement]
    assert vectors
    assert all("json_each('[501]')" in statement for statement in vectors), vectors


def test_a_pruned_log_means_a_whole_load(make_store, monkeypatch):
    writer, reader = make_store(), make_store()
    writer.remember_many([f"memory {i}" for i in range(20)])
    reader.vectors()
    for i in range(5):
        writer.remember(f"later {i}")
    raw = raw_connection(writer.path)
    raw.execute("DELETE FROM memory_changes WHERE change < (SELECT max(change) FROM memory_changes)")
    raw.close()
    assert vectors_in_memory(reader) == vectors_on_disk(reader.path)
    assert (reader._index.loads, reader._index.refreshes) == (2, 0)


def test_the_log_does_not_grow_without_end(make_store):
    from memlab.store.schema import CHANGES_KEPT

    writer, reader = make_store(encoder=None), make_store(encoder=None)
    writer.remember("kept")
    reader.vectors()
    raw = raw_connection(writer.path)
    raw.execute(
        "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT ?) "
        "INSERT INTO memories (id, content) SELECT 'm-' || i, 'row ' || i FROM c",
        (CHANGES_KEPT + 50,),
    )
    count = raw.execute("SELECT count(*) FROM memory_changes").fetchone()[0]
    raw.close()
    assert count == CHANGES_KEPT
    assert reader.vectors()[0] == []
    assert (reader._index.loads, reader._index.refreshes) == (2, 0)
    assert len(reader) == CHANGES_KEPT + 51


def test_a_snapshot_in_use_stays_as_it_is(make_store):
    writer, reader = make_store(encoder=HashingEncoder(32, 8)), make_store(encoder=HashingEncoder(32, 8))
    long = " ".join(WORDS * 3)
    ids = writer.remember_many([f"memory {i} {long}" for i in range(60)]).memory_ids
    kept = []
    for round_number in range(30):
        with reader.view() as view:
            snapshot = view.snapshot
        numbers, matrix = document_vectors(snapshot)
        passages = snapshot.passages
        state = (
            numbers.copy(),
            matrix.copy(),
            passages.matrix[passages.alive].copy(),
            passages.owners[passages.alive].copy(),
        )
        kept.append((snapshot, state))
        writer.update(ids[round_number], content=f"changed {round_number} {long}")
        writer.remember(f"new {round_number} {long}")
        writer.forget(ids[-1 - round_number])
    for snapshot, (numbers, matrix, passage_matrix, passage_owners) in kept:
        np.testing.assert_array_equal(document_vectors(snapshot)[0], numbers)
        np.testing.assert_array_equal(document_vectors(snapshot)[1], matrix)
        alive = snapshot.passages.alive
        np.testing.assert_array_equal(snapshot.passages.matrix[alive], passage_matrix)
        np.testing.assert_array_equal(snapshot.passages.owners[alive], passage_owners)
    assert reader._index.loads == 1


def test_a_view_sees_one_commit(make_store):
    writer, reader = make_store(), make_store()
    writer.remember("first", memory_id="m-1")
    with reader.view() as view:
        assert view.searched == 1
        writer.remember("second", memory_id="m-2")
        writer.forget("m-1")
        seen = fetch(view.connection, ["m-1", "m-2"])
        assert list(seen) == ["m-1"]
        assert seen["m-1"].trashed_at is None
        assert len(view.keyword('"first" OR "second"', 10)) == 1
        assert len(view.snapshot.documents) == 1
    assert [memory.memory_id for memory in reader.find()] == ["m-2"]


def test_equal_vectors_tie_exactly_and_go_by_id(make_store):
    import memlab

    store = make_store()
    # The same text, so the same vector, in many places of the matrix.
    ids = [f"m-{i:03}" for i in np.random.default_rng(3).permutation(200)]
    store.remember_many([{"content": "the very same words", "memory_id": memory_id} for memory_id in ids])
    store.remember("other words entirely", memory_id="m-other")
    found = ranked(store, store.encode_query("same words"), 5)
    assert len(found) == 200
    assert len({score for score, _ in found}) == 1
    recall = memlab.HybridRetriever(store).only("vector").recall("same words", limit=7)
    assert [hit.memory_id for hit in recall.hits] == [f"m-{i:03}" for i in range(7)]


def test_vectors_that_cannot_be_used_are_left_out(store):
    ids = store.remember_many([f"memory {i}" for i in range(4)]).memory_ids
    raw = raw_connection(store.path)
    raw.execute("UPDATE memories SET vector = ? WHERE id = ?", (np.full(64, np.nan, "<f4").tobytes(), ids[0]))
    raw.execute("UPDATE memories SET vector = ? WHERE id = ?", (b"short", ids[1]))
    raw.close()
    assert set(store.vectors()[0]) == set(ids[2:])
    assert not store.check().ok


@pytest.mark.parametrize("seed", range(20))
def test_nearest_alone(seed):
    rng = np.random.default_rng(seed)
    count, dimension = int(rng.integers(1, 400)), int(rng.integers(2, 40))
    matrix = rng.standard_normal((count, dimension)).astype(np.float32)
    matrix[rng.integers(0, count, count // 2)] = matrix[0]  # ties
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix[matrix[:, 0] == matrix[0, 0]] = matrix[0]
    query = matrix[rng.integers(count)]
    block = Block.build(np.arange(count) * 3, np.zeros(count, np.int64), matrix)
    gone = rng.choice(count, int(rng.integers(0, count)), replace=False) * 3
    empty = np.empty(0, np.int64)
    block = block.changed(np.sort(gone), empty, empty, np.empty((0, dimension), np.float32))
    allowed = np.sort(rng.choice(count, int(rng.integers(0, count + 1)), replace=False) * 3)
    depth = int(rng.integers(0, 30))
    for who in (None, allowed):
        owners, _, cosines = nearest(block, query, depth, block.rows(who))
        live = set(range(0, 3 * count, 3)) - set(gone.tolist())
        if who is not None:
            live &= set(who.tolist())
        scores = {n: float((matrix[n // 3].astype(np.float64) * query.astype(np.float64)).sum()) for n in live}
        ordered = sorted(scores.values(), reverse=True)
        if depth == 0 or not live:
            assert len(owners) == 0
            continue
        bound = ordered[min(depth, len(ordered)) - 1]
        assert dict(zip(owners.tolist(), cosines.tolist(), strict=True)) == {
            n: s for n, s in scores.items() if s >= bound
        }
        assert list(cosines) == sorted(cosines, reverse=True)


def test_a_vector_of_another_length_counts_by_its_direction(store):
    near, far = store.remember("alpha beta gamma"), store.remember("entirely different words")
    with contextlib.closing(raw_connection(store.path)) as raw:
        blob = raw.execute("SELECT vector FROM memories WHERE id = ?", (far.memory_id,)).fetchone()[0]
        long = (np.frombuffer(blob, "<f4") * 100).astype("<f4").tobytes()
        raw.execute("UPDATE memories SET vector = ? WHERE id = ?", (long, far.memory_id))
    hits = memlab.HybridRetriever(store).only("vector").recall("alpha beta gamma").hits
    assert hits[0].memory_id == near.memory_id
    assert all(hit.place.contributions[0].raw_score <= 1 + 1e-6 for hit in hits)
    assert any("not of length 1" in problem for problem in store.check().problems)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_loads_vectors(store, monkeypatch):
    store.remember("one")
    loading, go_on = threading.Event(), threading.Event()
    load = VectorIndex._load

    def slow(*arguments):
        loading.set()
        go_on.wait(30)
        return load(*arguments)

    store._index._current = None
    monkeypatch.setattr(VectorIndex, "_load", staticmethod(slow))
    thread = threading.Thread(target=store.vectors)
    thread.start()
    assert loading.wait(30)
    child = os.fork()
    if child == 0:  # the lock that the other thread holds must not hold here
        go_on.set()
        os._exit(0 if len(store.vectors()[0]) == 1 else 1)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
