"""Many memories in one go: the same tables as one by one, ready vectors as a matrix, and nothing left behind."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.encoders import HashingEncoder
from memlab.errors import EncoderError, InvalidValue, StoreError
from memlab.store import MemoryStore, bulk, remembering, termindex, writing
from memlab.store.records import draft
from tests.store.helpers import (
    OddEncoder,
    assert_sound,
    dump,
    postings,
    raw_connection,
    terms_from_scratch,
    terms_on_disk,
    vectors_in_memory,
)

NOW = "2026-03-04T09:12:41.123Z"


def unit_rows(count: int, dimension: int = 64, seed: int = 0) -> Any:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# -- the same as the triggers -----------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12).filter(
    str.strip
)
CONTENTS = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80).filter(str.strip)
    | st.sampled_from(["HTTPServer retries", "the of and", "same text", "same text\0but for its end", "東京の会議"])
)  # fmt: skip
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", NOW])
RECORDS = st.fixed_dictionaries(
    {"content": CONTENTS},
    optional={
        "project": WORDS,
        "category": WORDS,
        "tags": st.lists(WORDS, max_size=3),
        "related_files": st.lists(WORDS, max_size=3),
        "file_checksums": st.dictionaries(WORDS, WORDS, max_size=2),
        "importance": st.integers(1, 10),
        "created_at": TIMES,
        "updated_at": TIMES,
        "trashed_at": st.none() | TIMES,
        "source": WORDS,
    },
)
SAME = ("memories", "memory_numbers", "memory_search", "memory_terms", "memory_terms_pending", "memory_changes",
        "memory_revisions", "bulk_write")  # fmt: skip


def insert_by_triggers(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Rows as a program adds them that knows only SQL, the trash through a change of its own where there is one."""
    marks = ", ".join("?" * len(rows[0]))
    for row in rows:
        connection.execute(f"INSERT INTO memories VALUES ({marks})", row)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.lists(RECORDS, min_size=1, max_size=4), min_size=1, max_size=3),
    st.sampled_from([1, 3, 58, 70]),
    st.booleans(),
)
def test_the_same_tables_as_row_by_row(tmp_path_factory, batches, repeated, in_a_thread):
    folder = tmp_path_factory.mktemp("pair")
    with (
        pytest.MonkeyPatch.context() as patch,
        MemoryStore(folder / "bulk.db", HashingEncoder(16)) as store,
        MemoryStore(folder / "rows.db", HashingEncoder(16)) as other,
    ):
        patch.setattr(bulk, "_WORTH_A_THREAD", 1 if in_a_thread else 1000)
        patch.setattr(bulk, "_AT_ONCE", (70, 10))
        for opened in (store, other):
            opened._file.connection().execute("PRAGMA synchronous = OFF")
            opened.remember("so that the encoder is recorded", memory_id="m-first", created_at=NOW)
        numbers = itertools.count()
        for batch in batches:
            # Long enough for statements of many rows and a rest.
            many = [{"created_at": NOW, **record, "memory_id": f"m-{next(numbers)}"} for record in batch * repeated][
                :150
            ]
            store.remember_many(many, vectors=unit_rows(len(many), 16, seed=len(many)), batch_size=len(many))
        with contextlib.closing(raw_connection(store.path)) as connection:
            rows = connection.execute(
                "SELECT m.* FROM memories m JOIN memory_numbers n ON n.id = m.id WHERE n.number > 1 ORDER BY n.number"
            ).fetchall()
        with contextlib.closing(raw_connection(other.path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            insert_by_triggers(connection, rows)
        with other.view() as view:
            assert view.terms_ready
        one, two = dump(store.path), dump(other.path)
        for table in SAME:
            assert one[table] == two[table], table
        for index in ("memory_terms", "memory_search"):
            assert postings(store.path, index) == postings(other.path, index)
        assert terms_on_disk(store.path) == terms_from_scratch(store.path)
        report = store.check()
        assert report.ok, report


def duplicates_by_hand(store: MemoryStore, ids: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    live = {memory.memory_id: memory.content for memory in store.find()}
    found = {}
    for memory_id in ids:
        content = store.get(memory_id).content
        if same := sorted(other for other, text in live.items() if text == content and other != memory_id):
            found[memory_id] = tuple(same)
    return found


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=12), st.integers(0, 12))
def test_duplicates_are_those_that_one_finds_by_hand(tmp_path_factory, records, cut):
    with MemoryStore(tmp_path_factory.mktemp("same") / "memory.db", None) as store:
        store._file.connection().execute("PRAGMA synchronous = OFF")
        store.remember_many(records[:cut])
        result = store.remember_many(records[cut:])
        assert result.duplicates == duplicates_by_hand(store, result.memory_ids)
        assert_sound(store)


def test_a_content_that_is_there_and_comes_several_times(store):
    old = store.remember("same").memory_id
    result = store.remember_many(["same", "same", "other"])
    one, two, _ = result.memory_ids
    assert result.duplicates == {one: tuple(sorted([old, two])), two: tuple(sorted([old, one]))}


def test_a_number_that_another_program_left_behind(store):
    with contextlib.closing(raw_connection(store.path)) as connection:
        connection.execute("INSERT INTO memory_numbers (id) VALUES ('m-1')")
        connection.execute(
            "INSERT INTO memory_search (rowid, id, content) "
            "SELECT number, id, 'former words' FROM memory_numbers WHERE id = 'm-1'"
        )
    store.remember_many([{"content": f"words of {at}", "memory_id": f"m-{at}"} for at in range(3)])
    assert [step.content for step in store.history("m-1")] == ["former words", "words of 1"]
    assert_sound(store)


# -- nothing is left behind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_a_thread", [False, True])
@pytest.mark.parametrize("where", ["termindex.rows", "termindex.add", "writing._insert_passages", "bulk._has_numbers"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("broke")])
def test_a_failure_anywhere_leaves_no_trace(store, monkeypatch, where, error, in_a_thread):
    monkeypatch.setattr(bulk, "_WORTH_A_THREAD", 1 if in_a_thread else 1000)
    store.remember("before")
    before = dump(store.path)
    module, name = where.split(".")

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr({"termindex": termindex, "writing": writing, "bulk": bulk}[module], name, fail)
    with pytest.raises(type(error)):
        store.remember_many([f"memory {at}" for at in range(100)])
    assert dump(store.path) == before
    monkeypatch.undo()
    with contextlib.closing(raw_connection(store.path)) as connection:
        connection.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'the triggers are awake')")
    assert_sound(store)


def test_an_error_of_sqlite_in_the_thread(make_store, monkeypatch):
    monkeypatch.setattr(bulk, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(bulk, "_INSERT_SEARCH", "INSERT INTO memory_search SELECT :shift, :before FROM nowhere")
    store = make_store()
    before = dump(store.path)
    with pytest.raises(StoreError, match="nowhere"):
        store.remember_many([f"memory {at}" for at in range(10)])
    assert dump(store.path) == before


def test_rows_at_the_end_of_all_numbers(store):
    with contextlib.closing(raw_connection(store.path)) as connection:
        connection.execute(
            "INSERT INTO memories (rowid, id, content) VALUES (9223372036854775807, 'm-last', 'the last row')"
        )
    store.remember_many([f"memory {at}" for at in range(60)])
    assert len(store) == 61
    assert_sound(store)


def test_another_program_never_sees_the_triggers_stand_aside(store, monkeypatch):
    seen: list[tuple[int, int]] = []
    true_add = termindex.add

    def add(connection: sqlite3.Connection, rows: Any) -> None:
        with contextlib.closing(raw_connection(store.path)) as other:
            look = "SELECT count(*) FROM bulk_write"
            seen.append((connection.execute(look).fetchone()[0], other.execute(look).fetchone()[0]))
        true_add(connection, rows)

    monkeypatch.setattr(termindex, "add", add)
    store.remember_many(["a", "b"])
    assert seen == [(1, 0)]


def test_check_sees_triggers_that_stand_aside(store):
    with contextlib.closing(raw_connection(store.path)) as connection:
        connection.execute("INSERT INTO bulk_write VALUES (1)")
        assert any("bulk_write" in problem for problem in store.check().problems)
        connection.execute("DELETE FROM bulk_write")
    assert store.check().ok


# -- a matrix of vectors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_generator", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64, ">f4"])
def test_a_matrix_in_place_of_vectors_in_records(make_store, as_generator, kind):
    one, many = make_store("one.db"), make_store("many.db", encoder=OddEncoder())
    matrix = unit_rows(20)
    records = [{"content": f"memory {at}", "memory_id": f"m-{at}"} for at in range(20)]
    for record, vector in zip(records, matrix, strict=True):
        one.remember(**record, vector=vector)
    given_ = iter(records) if as_generator else records
    result = many.remember_many(given_, vectors=matrix.astype(kind), batch_size=6)
    assert (result.created, result.pending) == (20, 0)
    assert vectors_in_memory(one) == vectors_in_memory(many)
    assert many.encoder().texts == []
    assert_sound(many)


def test_rows_are_made_unit_and_need_not_be_an_array(store):
    (memory_id,) = store.remember_many(["a"], vectors=[[3.0] + [0.0] * 63]).memory_ids
    assert vectors_in_memory(store)[memory_id] == np.eye(64, dtype="<f4")[0].tobytes()
    assert_sound(store)


def test_known_records_keep_their_place_in_the_matrix(store):
    matrix = unit_rows(6)
    records = [{"content": f"memory {at}", "memory_id": f"m-{at}"} for at in range(6)]
    store.remember_many(records[2:4], vectors=matrix[2:4])
    result = store.remember_many(records, vectors=matrix)
    assert (result.created, result.existing) == (4, 2)
    assert vectors_in_memory(store) == {f"m-{at}": matrix[at].tobytes() for at in range(6)}


@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        (np.zeros((9, 64)), EncoderError, "record 0: vector.*length zero"),
        (unit_rows(9, 32), EncoderError, r"record 0: vector.*\(1, 64\).*\(1, 32\)"),
        (unit_rows(8), InvalidValue, "8 rows for 9 records"),
        (unit_rows(10), InvalidValue, "10 rows for 9 records"),
        (np.zeros(64), InvalidValue, r"shape \(64,\)"),
        (np.zeros((9, 2, 64)), InvalidValue, r"shape \(9, 2, 64\)"),
        ("vectors", InvalidValue, r"shape \(\)"),
        ([[1.0], [1.0, 2.0]], InvalidValue, "row for each record"),
    ],
)
def test_vectors_that_do_not_fit(store, vectors, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        store.remember_many([f"memory {at}" for at in range(9)], vectors=vectors)
    assert len(store) == 0
    assert_sound(store)


def test_a_bad_row_is_named_and_earlier_batches_stay(store):
    matrix = unit_rows(12)
    matrix[9, 3] = np.nan
    with pytest.raises(EncoderError, match=r"record 9: vector.*NaN"):
        store.remember_many([f"memory {at}" for at in range(12)], vectors=matrix, batch_size=4)
    assert len(store) == 8
    assert_sound(store)


@pytest.mark.parametrize(("rows", "stored"), [(5, 4), (9, 7)])
def test_a_generator_and_a_matrix_of_another_length(store, rows, stored):
    with pytest.raises(InvalidValue, match="vectors: expected a row for each record"):
        store.remember_many((f"memory {at}" for at in range(7)), vectors=unit_rows(rows), batch_size=2)
    assert len(store) == stored
    assert_sound(store)


def test_a_vector_given_twice(store):
    vector = unit_rows(1)[0]
    with pytest.raises(InvalidValue, match="record 1: vector: given in the record and"):
        store.remember_many(["a", {"content": "b", "vector": vector}], vectors=unit_rows(2))
    assert len(store) == 0


# -- batches ----------------------------------------------------------------------------------------------------------


def steps(store: MemoryStore, records: Any, **options: Any) -> list[int]:
    done: list[int] = []
    store.remember_many(records, progress=lambda so_far, _: done.append(so_far), **options)
    return done


def test_how_many_make_a_batch(store, monkeypatch):
    monkeypatch.setattr(remembering, "READY", 10)
    monkeypatch.setattr(remembering, "ENCODED", 4)
    vectors = unit_rows(25)
    ready = [{"content": f"ready {at}", "vector": vector} for at, vector in enumerate(vectors)]
    plain = [f"plain {at}" for at in range(9)]
    assert steps(store, ready) == [10, 20, 25]
    assert steps(store, [record["content"] for record in ready], vectors=vectors) == [10, 20, 25]
    assert steps(store, plain) == [4, 8, 9]
    assert steps(store, [*ready[:5], *plain]) == [9, 13, 14]
    assert steps(store, ready, batch_size=12) == [12, 24, 25]
    assert steps(store, plain, batch_size=7) == [7, 9]
    assert_sound(store)


def test_a_generator_is_not_read_ahead(store, monkeypatch):
    monkeypatch.setattr(remembering, "READY", 10)
    taken = 0

    def records():
        nonlocal taken
        for vector in unit_rows(30):
            assert taken - len(store) < 10, "no more than a batch is held"
            taken += 1
            yield {"content": f"memory {taken}", "vector": vector}

    assert store.remember_many(records()).created == 30


def test_what_a_generator_reads_from_the_store_is_whole(store):
    def records():
        for at, vector in enumerate(unit_rows(12)):
            assert len(store) == at // 3 * 3
            yield {"content": f"memory {at}", "vector": vector}

    store.remember_many(records(), batch_size=3)
    assert_sound(store)


def test_the_page_cache_is_as_before(store):
    look = "PRAGMA cache_size"
    before = store.db.execute(look).fetchone()
    store.remember_many(["a"])
    with pytest.raises(InvalidValue):
        store.remember_many([""])
    assert store.db.execute(look).fetchone() == before


def test_a_memory_that_goes_while_another_is_encoded_is_stored_anew(make_store):
    """Known at the first look, gone at the second: it must not be taken for stored."""
    encoder = OddEncoder()
    store, other = make_store(encoder=encoder), make_store()
    store.remember("here", memory_id="m-here")

    def purge(call: int, texts: Any) -> None:
        if "new" in texts:
            other.forget("m-here")
            other.purge("m-here")

    encoder.fails = purge
    result = store.remember_many([{"content": "here", "memory_id": "m-here"}, "new"])
    assert (result.created, result.existing, result.pending) == (2, 0, 1)
    assert store.get("m-here").pending
    assert_sound(store)


def test_drafts_take_defaults_for_what_is_not_given():
    new = draft("text", created_at=NOW)
    assert new.columns == ("note", None, "[]", 5, NOW, None, None, "[]", "{}", None, 0, None, None)
    assert new.live
    ids = {draft("text", created_at=NOW).memory_id for _ in range(2000)}
    assert len(ids) == 2000
    assert {len(memory_id) for memory_id in ids} == {12}
    assert set("".join(memory_id[2:] for memory_id in ids)) == set("0123456789abcdefghjkmnpqrstvwxyz")
