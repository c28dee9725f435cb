"""Codes of vectors: what they estimate, that they follow every change, and that a wrong one is never answered from."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab.encoders import HashingEncoder
from memlab.errors import MemlabError
from memlab.store import codes, codetable, nearest, schema
from memlab.store.blocks import Block, CodedBlock, exact_cosines
from memlab.store.connection import BEFORE_COMMIT
from memlab.store.encoding import PassagePolicy
from memlab.store.index import VectorIndex
from tests.store.helpers import assert_sound, passages_on_disk, raw_connection, vectors_on_disk
from tests.store.test_store_index import WORDS, Walk, assert_nearest


@pytest.fixture
def early(monkeypatch):
    """Codes in stores of a few memories, and candidates chosen in three steps with a margin that misses nothing."""
    monkeypatch.setattr(codetable, "LARGE", 20)
    monkeypatch.setattr(codetable, "SMALL", 10)
    monkeypatch.setattr(codetable, "BATCH", 16)
    monkeypatch.setattr(nearest, "FIRST", 4)
    monkeypatch.setattr(nearest, "HAMMING_DEVIATIONS", 12.0)
    monkeypatch.setattr(nearest, "ESTIMATE_DEVIATIONS", 40.0)


def units(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    matrix = rng.standard_normal((count, dimension)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def codes_on_disk(path) -> dict[str, dict[tuple[int, int], bytes]]:
    """By table, memory number and passage: the code."""
    found: dict[str, dict[tuple[int, int], bytes]] = {}
    with contextlib.closing(raw_connection(path)) as raw:
        for table in ("document_codes", "passage_codes"):
            found[table] = {}
            for block, owners, labels, _, packed in raw.execute(f"SELECT * FROM {table}"):
                width = len(packed) // len(owners)
                places = np.frombuffer(labels, "<i8").tolist() if labels else [0] * len(owners)
                for i, (owner, place) in enumerate(zip(owners, places, strict=True)):
                    assert (64 * block + owner, place) not in found[table]
                    found[table][64 * block + owner, place] = packed[width * i : width * (i + 1)]
    return found


def codes_from_scratch(path) -> dict[str, dict[tuple[int, int], bytes]]:
    with contextlib.closing(raw_connection(path)) as raw:
        numbers = dict(raw.execute("SELECT id, number FROM memory_numbers"))
    documents = {(numbers[i], 0): _code(v) for i, v in vectors_on_disk(path).items()}
    return {
        "document_codes": documents,
        "passage_codes": {(numbers[i], at): _code(v) for i, at, v in passages_on_disk(path)},
    }


def _code(vector: bytes) -> bytes:
    return codes.encode(np.frombuffer(vector, "<f4")[None]).tobytes()


# -- codes alone -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 32, 64, 100, 384, 768, 1024])
def test_the_rotation_keeps_lengths_and_angles(dimension):
    matrix = units(np.random.default_rng(1), 50, dimension)
    turned = codes.rotated(matrix)
    assert turned.shape == (codes.padded(dimension), 50)
    np.testing.assert_allclose(turned.T @ turned / len(turned), matrix @ matrix.T, atol=2e-6)


def test_a_code_depends_on_its_vector_alone_and_is_the_same_everywhere():
    rng = np.random.default_rng(2)
    matrix = units(rng, 700, 384)
    packed = codes.encode(matrix)
    assert packed.shape == (700, 96)
    for start in (0, 13, 699):
        np.testing.assert_array_equal(codes.encode(matrix[start : start + 1])[0], packed[start])
    ramp = (np.arange(1, 385, dtype=np.float32) / np.float32(np.sqrt(np.sum(np.arange(1, 385.0) ** 2))))[None]
    import hashlib

    assert hashlib.sha256(codes.encode(ramp).tobytes()).hexdigest()[:16] == "9c3034a4f5b88089"


@pytest.mark.parametrize("dimension", [64, 384, 768])
def test_estimates_are_off_by_what_is_said(dimension):
    rng = np.random.default_rng(3)
    matrix = units(rng, 4000, dimension)
    matrix[:2000] = matrix[:2000] * 0.8 + matrix[:1] * 0.6
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = codes.CodedQuery.of(matrix[0])
    off = query.estimates(codes.encode(matrix))[1:] - (matrix @ matrix[0])[1:]
    assert abs(off.mean()) < 0.1 * codes.deviation(dimension)
    assert 0.5 * codes.deviation(dimension) < off.std() < 1.05 * codes.deviation(dimension)


@pytest.mark.parametrize("words", range(1, 17))
def test_hamming_distances(words):
    rng = np.random.default_rng(words)
    columns = rng.integers(0, 2**64, (words, 40_000), dtype=np.uint64)
    query = columns[:, 7].copy()
    columns[:, 8] = ~query  # farthest
    expected = np.bitwise_count(columns ^ query[:, None]).sum(axis=0)
    if words <= 6:
        expected = np.minimum(expected, 254)
    found = nearest.hamming(columns, query)
    np.testing.assert_array_equal(found, expected)
    for count in (1, 10, 1000, 40_000, 50_000):
        limit = nearest.within(found, count)
        assert (found <= limit).sum() >= min(count, len(found))
        assert limit == 0 or (found <= limit - 1).sum() < count


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("alive", [15_000, 19_999, 20_001])
def test_a_limit_is_found_quickly_where_the_sample_sees_nobody(monkeypatch, kind, alive):
    distances = np.full(40_004, np.iinfo(kind).max, kind)
    distances[1::2][:alive] = np.random.default_rng(alive).binomial(250, 0.5, alive)
    looks, count_nonzero = [], np.count_nonzero

    def looked(values):
        looks.append(1)
        return count_nonzero(values)

    monkeypatch.setattr(np, "count_nonzero", looked)
    limits = {count: nearest.within(distances, count) for count in (1, 768, 20_000)}
    monkeypatch.undo()
    assert len(looks) < 120
    top = np.iinfo(kind).max - 1
    for count, limit in limits.items():
        assert limit == top or (distances <= limit).sum() >= count
        assert limit == 0 or (distances <= limit - 1).sum() < count


@pytest.mark.parametrize("dimension", [384, 768])
def test_the_nearest_of_many_are_found(dimension):
    """With the margins as they are, among clusters of near neighbours."""
    rng = np.random.default_rng(4)
    centres = units(rng, 300, dimension)
    matrix = centres[rng.integers(0, 300, 30_000)] + units(rng, 30_000, dimension) * rng.uniform(0.5, 2, (30_000, 1))
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    none = np.zeros(30_000, np.int64)
    block = CodedBlock.build(np.arange(30_000), none, none, codes.encode(matrix))
    missing, read = 0, []
    for query in units(rng, 20, dimension) * 0.5 + centres[:20]:
        query = (query / np.linalg.norm(query)).astype(np.float32)

        def exact(rows, query=query):
            read.append(len(rows))
            return exact_cosines(matrix[rows], query)

        _, _, cosines = nearest.CodedSearch(block, query, exact).nearest(50, None)
        true = np.sort(exact_cosines(matrix, query))[::-1]
        np.testing.assert_array_equal(cosines[:10], true[:10])
        missing += 50 - np.isin(true[:50], cosines).sum()
    assert missing <= 2
    assert sum(read) < 20 * 3000, "most vectors are not read"


@pytest.mark.parametrize("seed", range(10))
def test_coded_search_equals_the_exact_one(seed, early):
    rng = np.random.default_rng(seed)
    count, dimension = int(rng.integers(1, 500)), int(rng.choice([8, 64, 384, 500]))
    matrix = units(rng, count, dimension)
    matrix[rng.integers(0, count, count // 3)] = matrix[0]  # ties
    owners = np.sort(rng.integers(0, count, count))  # several rows of one memory
    labels = np.arange(count)
    exact, coded = Block.build(owners, labels, matrix), CodedBlock.build(owners, labels, labels, codes.encode(matrix))
    whole = matrix
    for _ in range(3):
        gone = np.unique(rng.choice(count + 5, int(rng.integers(0, 9))))
        more = int(rng.integers(0, 30))
        new, whose = units(rng, more, dimension), np.sort(rng.integers(0, count + 5, more))
        exact = exact.changed(gone, whose, np.arange(more), new)
        coded = coded.changed(gone, whose, np.arange(more), np.arange(more), codes.encode(new))
        whole = exact.matrix
        np.testing.assert_array_equal(exact.owners[exact.alive], coded.owners[coded.alive])
        query = units(rng, 1, dimension)[0]

        def exactly(rows, query=query, whole=whole):
            return exact_cosines(whole[rows], query)

        search = nearest.CodedSearch(coded, query, exactly)
        for _ in range(4):
            depth = int(rng.integers(0, 40))
            some = np.unique(rng.choice(count + 5, int(rng.integers(0, count + 5))))
            for part in (None, coded.rows_of(some), coded.mask(some), coded.mask(None, some)):
                rows: Any = exact.rows() if part is None else np.flatnonzero(part) if part.dtype == bool else part
                wanted = nearest.nearest(exact, query, depth, rows)
                found = search.nearest(depth, part)
                assert sorted(zip(*(x.tolist() for x in found), strict=True)) == sorted(
                    zip(*(x.tolist() for x in wanted), strict=True)
                )


# -- codes in the file -----------------------------------------------------------------------------------------------


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000))
def test_answers_are_the_exact_ones_after_every_change(make_store, early, tmp_path_factory, seed):
    path = str(tmp_path_factory.mktemp("walk") / "memory.db")
    walk = Walk(lambda **options: make_store(path, **options), seed)
    for _ in range(25):
        walk.step()
        for store in walk.stores:
            assert_nearest(store, walk.text(), int(walk.rng.integers(1, 12)))
    for store in walk.stores:
        assert_sound(store)
    with make_store(path, encoder=None).view() as view:
        assert view.snapshot.coded or len(view.documents) + len(view.passages) <= 20
    walk.raw.close()


def fill(store, count: int = 60, start: int = 0) -> list[str]:
    long = " ".join(WORDS * 3)
    texts = [f"memory {i} {WORDS[i % 12]} {long if i % 3 else ''}" for i in range(start, start + count)]
    return list(store.remember_many(texts).memory_ids)


@pytest.fixture
def small(make_store):
    """Opens a store whose encoder takes eight tokens, so that long texts have passages."""
    return lambda *arguments, **options: make_store(*arguments, encoder=HashingEncoder(64, 8), **options)


def test_codes_are_those_of_the_vectors_and_follow_in_the_same_transaction(small, early):
    store = small()
    fill(store, 3)
    assert codes_on_disk(store.path) == {"document_codes": {}, "passage_codes": {}}
    ids = fill(store, 90, 3)
    changes = (
        lambda: None,
        lambda: store.update(ids[0], content="other words"),
        lambda: store.forget(ids[1]),
        lambda: store.restore(ids[1]),
        lambda: store.purge(store.forget(ids[2]).memory_id),
        lambda: store.reembed(HashingEncoder(64, 6)),
        lambda: store.reembed(HashingEncoder(64, 6), passages=PassagePolicy(overlap=2, aggregate="first")),
        lambda: store.reembed(HashingEncoder(128, 6)),
    )
    for change in changes:
        change()
        on_disk = codes_on_disk(store.path)
        assert on_disk == codes_from_scratch(store.path)
        assert on_disk["passage_codes"]
        assert_sound(store)
    for memory_id in store.vectors()[0][1:]:
        store.purge(store.forget(memory_id).memory_id)
    assert codes_on_disk(store.path)["document_codes"] == {}, "a store that has become small has none"
    for memory_id in store.vectors()[0]:
        store.forget(memory_id)
    assert store.vectors()[1].shape[0] == 0


def test_a_reader_loads_codes_and_reads_few_vectors(small, early):
    fill(small(), 200)
    reader = small(read_only=True)
    statements: list[str] = []
    reader.db.conn.set_trace_callback(statements.append)
    with reader.view() as view:
        assert view.snapshot.coded
        view.documents.nearest(reader.encode_query("memory 7"), 5)
        assert len(view.documents) == 200
    assert not [s for s in statements if "vector" in s and "json_each" not in s and "encoder" in s.split("WHERE")[-1]]


def test_foreign_programs_write_vectors_and_no_codes(small, early):
    store, reader = small(), small(read_only=True)
    ids = fill(store, 80)
    with contextlib.closing(raw_connection(store.path)) as raw:
        blob = raw.execute("SELECT vector FROM memories WHERE id = ?", (ids[3],)).fetchone()[0]
        raw.execute("UPDATE memories SET vector = ? WHERE id = ?", (blob, ids[4]))
        raw.execute("DELETE FROM memories WHERE id = ?", (ids[5],))
    before = codes_on_disk(store.path)
    for each in (store, reader):
        assert_nearest(each, "memory 3 vector", 7)
        assert not VectorIndex._load(each.db.conn, *_encoder(each))[1]
    assert codes_on_disk(store.path) == before, "reading writes nothing"
    store.remember("one more")
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)


def _encoder(store):
    with store.view() as view:
        return view.snapshot.encoder_id, view.snapshot.change, view.snapshot.dimension


def test_a_pruned_log_means_codes_anew(small, early):
    store = small()
    ids = fill(store, 80)
    with contextlib.closing(raw_connection(store.path)) as raw:
        raw.execute("DELETE FROM memories WHERE id = ?", (ids[5],))
        raw.execute("DELETE FROM memory_changes")
        raw.execute("DELETE FROM memories WHERE id = ?", (ids[6],))
    reader = small(read_only=True)
    assert_nearest(reader, "memory 6 vector", 7)
    assert_nearest(store, "memory 6 vector", 7)
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)


DAMAGES = {
    "a code is too short": "UPDATE document_codes SET codes = substr(codes, 2) WHERE block = 0",
    "a place is missing": "UPDATE document_codes SET places = substr(places, 9) WHERE block = 0",
    "an owner is missing": "UPDATE document_codes SET owners = substr(owners, 2) WHERE block = 0",
    "a row is missing": "DELETE FROM document_codes WHERE block = 1",
    "a row too many": "INSERT INTO document_codes SELECT 77, owners, labels, places, codes FROM document_codes LIMIT 1",
    "no blob": "UPDATE document_codes SET codes = 'text' WHERE block = 0",
    "an impossible owner": "UPDATE document_codes SET owners = x'FF' || substr(owners, 2) WHERE block = 0",
    "labels are cut": "UPDATE passage_codes SET labels = substr(labels, 3) WHERE block = 0",
    "the setting is none": "UPDATE store_settings SET value = 'x' WHERE key = 'vector_codes'",
    "another version": "UPDATE store_settings SET value = json_set(value, '$.version', 99) WHERE key = 'vector_codes'",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_codes_are_noticed_and_made_anew(small, early, damage):
    store = small()
    fill(store, 90)
    with contextlib.closing(raw_connection(store.path)) as raw:
        raw.execute(DAMAGES[damage])
    reader = small(read_only=True)
    assert_nearest(reader, "memory 3 vector", 7)
    told = any("reindex()" in problem for problem in store.check().problems)
    assert told == ("setting" not in damage and "version" not in damage)
    other = small()
    for _ in range(2):  # the first look answers from the vectors, the second makes the codes
        assert_nearest(other, "memory 3 vector", 7)
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)
    assert other.check().ok


def test_codes_of_other_vectors_are_found_by_check_and_made_anew_by_reindex(small, early):
    store = small()
    fill(store, 90)
    with contextlib.closing(raw_connection(store.path)) as raw:
        raw.execute("UPDATE document_codes SET codes = zeroblob(length(codes)) WHERE block = 0")
    assert "reindex()" in str(store.check().problems)
    store.reindex()
    assert store.check().ok
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)


def test_a_failed_transaction_leaves_the_codes_as_they_were(small, early):
    store = small()
    ids = fill(store, 90)
    before = codes_on_disk(store.path)
    with contextlib.suppress(RuntimeError), store._file.write() as connection:
        connection.execute("DELETE FROM memories WHERE id = ?", (ids[0],))
        codetable.update(connection)
        raise RuntimeError
    assert codes_on_disk(store.path) == before
    assert_sound(store)


def test_making_codes_can_be_interrupted(small, early, monkeypatch):
    monkeypatch.setattr(codetable, "LARGE", 10_000)
    store = small()
    ids = fill(store, 200)
    monkeypatch.setattr(codetable, "LARGE", 20)
    steps = store._file.make_codes()
    next(steps)
    steps.close()
    state = json.loads(_setting(store.path))
    assert state["reached"] == 64
    reader = small(read_only=True)
    assert_nearest(reader, "memory 3 vector", 7)
    # Changes on both sides of where it stopped.
    with store._file._changing() as connection:
        connection.execute("DELETE FROM memories WHERE id IN (?, ?)", (ids[3], ids[150]))
        codetable.update(connection)
    assert json.loads(_setting(store.path))["reached"] == 128
    store.forget(ids[9])
    assert json.loads(_setting(store.path))["reached"] is None
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)
    assert_nearest(reader, "memory 3 vector", 7)


def test_a_caller_who_goes_while_codes_are_made_is_not_told_that_nothing_was_stored(small, early):
    store, asked = small(), []

    def check():
        asked.append(1)
        if len(asked) > 1:
            raise MemlabError("nothing was stored")

    token = BEFORE_COMMIT.set(check)
    try:
        fill(store, 90)
    finally:
        BEFORE_COMMIT.reset(token)
    assert asked == [1]
    assert len(store) == 90
    assert codes_on_disk(store.path) == codes_from_scratch(store.path)


def _setting(path) -> str:
    with contextlib.closing(raw_connection(path)) as raw:
        return raw.execute("SELECT value FROM store_settings WHERE key = 'vector_codes'").fetchone()[0]


def test_a_file_of_version_2(small, early, tmp_path):
    """It has vectors and no place for codes: read as it is, and given codes by who may write."""
    store = small("new.db")
    ids = fill(store, 90)
    path = tmp_path / "old.db"
    store.backup(path)
    with contextlib.closing(raw_connection(path)) as raw:
        for table in ("document_codes", "passage_codes"):
            raw.execute(f"DROP TABLE {table}")
        raw.execute("DELETE FROM store_settings WHERE key = 'vector_codes'")
        raw.execute("DELETE FROM _sqlite_migrations WHERE name = 'm003_size'")
        for name in ("memories_inserted", "memory_changes_pruned"):
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute("DROP TABLE bulk_write")
        for statement in schema._statements(schema._TRIGGERS + schema._TERMS_TRIGGERS):
            with contextlib.suppress(sqlite3.OperationalError):  # those that are there
                raw.execute(statement)
        raw.execute("PRAGMA user_version = 2")
    reader = small("old.db", read_only=True)
    assert_nearest(reader, "memory 3 vector", 7)
    assert reader.check().ok
    writer = small("old.db")
    assert codes_on_disk(path)["document_codes"] == {}
    assert_nearest(writer, "memory 3 vector", 7)
    assert codes_on_disk(path) == codes_from_scratch(path)
    writer.forget(ids[0])
    assert_nearest(reader, "memory 3 vector", 7)
    assert_sound(writer)


def test_backup_and_vacuum_keep_them(small, early, tmp_path):
    store = small()
    fill(store, 90)
    store.backup(tmp_path / "copy.db")
    with contextlib.closing(raw_connection(tmp_path / "copy.db")) as raw:
        raw.execute("VACUUM")
        # What a VACUUM may do.
        raw.execute("UPDATE memories SET rowid = rowid + 1000")
    copy = small("copy.db")
    assert_nearest(copy, "memory 3 vector", 7)
    assert codes_on_disk(copy.path) == codes_on_disk(store.path) == codes_from_scratch(copy.path)
    assert_sound(copy)


def test_a_store_without_codes_answers_the_same(small, early, monkeypatch):
    store = small()
    fill(store, 150)
    coded, plain = memlab.HybridRetriever(store), None
    monkeypatch.setattr(codetable, "LARGE", 10_000)
    with store._file._changing() as connection:
        codetable.drop(connection)
    plain = memlab.HybridRetriever(small())
    with plain.store.view() as view:
        assert not view.snapshot.coded
    with coded.store.view() as view:
        assert not view.snapshot.coded or len(view.documents) == 150
    for query in ("memory 7 cache", "deploy rollback", "vector"):
        for name in ("vector", "passage"):
            one, other = (r.only(name).recall(query, limit=30) for r in (coded, plain))
            assert [(h.memory_id, h.score) for h in one.hits] == [(h.memory_id, h.score) for h in other.hits]
        missing = [m.memory_id for m in store.find()][:3]
        for memory_id in missing:
            assert repr(coded.recall(query).why_not(memory_id)) == repr(plain.recall(query).why_not(memory_id))


def test_a_memory_whose_passages_alone_changed_is_read_anew(small):
    """The aggregate "first" gives the same document vector for other passages; a snapshot must see them too."""
    store = small(passages=PassagePolicy(aggregate="first"))
    reader = small()
    fill(store, 10)
    with reader.view() as view:
        before = len(view.passages)
    store.reembed(passages=PassagePolicy(overlap=3, aggregate="first"))
    with reader.view() as view:
        assert len(view.passages) > before
    assert_sound(reader)
