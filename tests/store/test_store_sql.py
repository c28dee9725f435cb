"""Programs that know only SQL write to the file as well: everything that hangs on a memory must follow."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

from memlab.encoders import HashingEncoder
from memlab.errors import UnknownMemory
from memlab.store import MemoryStore
from tests.store.helpers import assert_sound, dump, raw_connection, search, vectors_in_memory

LONG = "one two three four. five six seven eight. nine ten eleven twelve. thirteen"


@pytest.fixture
def filled(make_store) -> MemoryStore:
    """Three memories, one of them of several passages, with the vectors in memory."""
    store = make_store(encoder=HashingEncoder(64, token_limit=8))
    store.remember("alpha words", memory_id="m-a", project="p", tags=["red", "blue"], idempotency_key="k-a")
    store.remember("beta words", memory_id="m-b", related_files=["src/beta.py"])
    store.remember(LONG, memory_id="m-long")
    assert_sound(store)
    return store


@pytest.fixture
def sql(filled):
    """Run one statement as a plain SQLite program would, then see that the store is whole."""
    connection = raw_connection(filled.path)

    def run(statement: str, *values):
        connection.execute(statement, values)
        assert_sound(filled)

    yield run
    connection.close()


# -- writing ----------------------------------------------------------------------------------------------------------


def test_insert_with_the_least(filled, sql):
    sql("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma words')")
    got = filled.get("m-raw")
    assert (got.category, got.importance, got.tags, got.pending) == ("note", 5, (), True)
    assert search(filled.path, "gamma") == ["m-raw"]
    assert filled.embed_pending() == 1
    assert "m-raw" in vectors_in_memory(filled)
    assert_sound(filled)


def test_insert_with_everything(filled, sql):
    vector = HashingEncoder(64).encode_documents(["gamma words"])[0]
    sql(
        "INSERT INTO memories (id, content, vector, encoder_id, tags, related_files, created_at, trashed_at, "
        "importance) "
        "VALUES ('m-raw', 'gamma words', ?, (SELECT encoder_id FROM memories WHERE id = 'm-a'), ?, ?, ?, NULL, 10)",
        vector.tobytes(),
        json.dumps(["grün", "x y"]),
        json.dumps(["lib/z.rs"]),
        "2026-01-01T01:30:00+05:30",
    )
    got = filled.get("m-raw")
    assert got.created_at.isoformat() == "2025-12-31T20:00:00+00:00"
    assert filled.db.execute("SELECT created_at FROM memories WHERE id = 'm-raw'").fetchone() == (
        "2025-12-31T20:00:00.000Z",
    )
    assert vectors_in_memory(filled)["m-raw"] == vector.tobytes()
    assert search(filled.path, "grun") == ["m-raw"]
    assert search(filled.path, "rs") == ["m-raw"]
    assert [memory.memory_id for memory in filled.find(created_before="2026-01-01T00:00:00Z")] == ["m-raw"]


def test_insert_into_the_trash(filled, sql):
    sql("INSERT INTO memories (id, content, trashed_at) VALUES ('m-raw', 'gamma', '2026-01-01 00:00:00')")
    assert search(filled.path, "gamma") == []
    assert filled.restore("m-raw").trashed_at is None
    assert search(filled.path, "gamma") == ["m-raw"]
    assert_sound(filled)


@pytest.mark.parametrize("statement", ["INSERT OR REPLACE", "REPLACE"])
@pytest.mark.parametrize("foreign_keys", ["OFF", "ON"])
@pytest.mark.parametrize("recursive_triggers", ["OFF", "ON"])
@pytest.mark.parametrize("memory_id", ["m-a", "m-long", "m-new"])
def test_replace(filled, statement, foreign_keys, recursive_triggers, memory_id):
    connection = raw_connection(filled.path)
    connection.execute(f"PRAGMA foreign_keys = {foreign_keys}")
    connection.execute(f"PRAGMA recursive_triggers = {recursive_triggers}")
    connection.execute(
        f"{statement} INTO memories (id, content, tags) VALUES (?, 'delta words', '[\"green\"]')", (memory_id,)
    )
    connection.close()
    assert_sound(filled)
    assert filled.get(memory_id).pending
    assert len(filled.passages(memory_id)) == 1
    assert search(filled.path, "delta") == [memory_id]
    assert search(filled.path, "thirteen") == ([] if memory_id == "m-long" else ["m-long"])
    assert search(filled.path, "red") == ([] if memory_id == "m-a" else ["m-a"])
    assert memory_id not in vectors_in_memory(filled)
    filled.embed_pending()
    assert_sound(filled)
    # The former text is kept, unless SQLite itself deleted the memory with all that hung on it.
    if memory_id != "m-new" and recursive_triggers == "OFF":
        assert [step.content for step in filled.history(memory_id)][-1] == "delta words"
        assert len(filled.history(memory_id)) == 2


def test_replace_with_the_same_text_makes_no_revision(filled, sql):
    sql("INSERT OR REPLACE INTO memories (id, content) VALUES ('m-a', 'alpha words')")
    assert len(filled.history("m-a")) == 1


def test_replace_of_a_memory_in_the_trash(filled, sql):
    filled.forget("m-long")
    sql("INSERT OR REPLACE INTO memories (id, content) VALUES ('m-long', 'back again')")
    assert search(filled.path, "again") == ["m-long"]
    sql("INSERT OR REPLACE INTO memories (id, content, trashed_at) VALUES ('m-long', 'gone', '2026-01-01T00:00:00Z')")
    assert search(filled.path, "again") == search(filled.path, "gone") == []


def test_ignore(filled, sql):
    before = dump(filled.path)
    sql("INSERT OR IGNORE INTO memories (id, content) VALUES ('m-a', 'ignored')")
    sql("INSERT OR IGNORE INTO memories (id, content, importance) VALUES ('m-x', 'ignored', 99)")
    assert dump(filled.path) == before
    sql("INSERT OR IGNORE INTO memories (id, content) VALUES ('m-new', 'taken in')")
    assert search(filled.path, "taken") == ["m-new"]


def test_upsert(filled, sql):
    upsert = (
        "INSERT INTO memories (id, content) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content"
    )
    sql(upsert, "m-long", "short now")
    assert [step.content for step in filled.history("m-long")] == [LONG, "short now"]
    assert filled.get("m-long").pending
    assert search(filled.path, "thirteen") == []
    sql(upsert, "m-new", "brand new")
    assert search(filled.path, "brand") == ["m-new"]
    sql("INSERT INTO memories (id, content) VALUES ('m-new', 'x') ON CONFLICT DO NOTHING")
    assert filled.get("m-new").content == "brand new"


def test_update_of_content(filled, sql):
    sql("UPDATE memories SET content = 'omega' WHERE id = 'm-long'")
    assert filled.get("m-long").pending
    assert search(filled.path, "omega") == ["m-long"]
    assert search(filled.path, "thirteen") == []
    assert [step.content for step in filled.history("m-long")] == [LONG, "omega"]
    assert filled.history("m-long")[0].replaced_at is not None
    sql("UPDATE memories SET content = content || ' more' WHERE id IN ('m-a', 'm-b')")
    assert search(filled.path, "more") == ["m-a", "m-b"]
    assert len(filled.history("m-a")) == 2


def test_update_of_content_with_its_new_vector(filled, sql):
    vector = HashingEncoder(64).encode_documents(["omega"])[0].tobytes()
    sql("UPDATE memories SET content = 'omega', vector = ? WHERE id = 'm-long'", vector)
    assert not filled.get("m-long").pending
    assert vectors_in_memory(filled)["m-long"] == vector
    assert len(filled.passages("m-long")) == 1


def test_update_of_the_vector_alone(filled, sql):
    vector = HashingEncoder(64).encode_documents(["omega"])[0].tobytes()
    sql("UPDATE memories SET vector = ? WHERE id = 'm-a'", vector)
    assert vectors_in_memory(filled)["m-a"] == vector
    sql("UPDATE memories SET vector = NULL WHERE id = 'm-a'")
    assert "m-a" not in vectors_in_memory(filled)
    assert filled.stats().pending == 1


def test_update_of_searched_columns(filled, sql):
    sql("UPDATE memories SET tags = '[\"violet\"]', project = 'quantum', category = 'decision' WHERE id = 'm-a'")
    sql("UPDATE memories SET related_files = '[\"docs/kappa.md\"]' WHERE id = 'm-a'")
    for word in ("violet", "quantum", "decision", "kappa"):
        assert search(filled.path, word) == ["m-a"]
    assert search(filled.path, "red") == []
    assert filled.tags() == {"violet": 1}


def test_update_of_trashed_at(filled, sql):
    sql("UPDATE memories SET trashed_at = '2026-02-03T04:05:06+01:00' WHERE id = 'm-long'")
    assert search(filled.path, "thirteen") == []
    assert filled.get("m-long").trashed_at.isoformat() == "2026-02-03T03:05:06+00:00"
    assert "m-long" not in vectors_in_memory(filled)
    sql("UPDATE memories SET trashed_at = NULL")
    assert search(filled.path, "thirteen") == ["m-long"]
    assert "m-long" in vectors_in_memory(filled)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01 10:00:00", "2026-01-01T10:00:00.000Z"),
        ("2026-01-01", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00.5-11:30", "2026-01-01T11:30:00.500Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("2026-02-30T00:00:00Z", "2026-03-02T00:00:00.000Z"),
        ("2026-01-01T24:00:00Z", "2026-01-02T00:00:00.000Z"),
    ],
)
def test_times_are_brought_into_the_one_form(filled, sql, written, stored):
    sql("UPDATE memories SET created_at = ?, updated_at = ? WHERE id = 'm-a'", written, written)
    sql("INSERT INTO memories (id, content, created_at) VALUES ('m-t', 'x', ?)", written)
    rows = filled.db.execute("SELECT created_at FROM memories WHERE id IN ('m-a', 'm-t')").fetchall()
    assert rows == [(stored,), (stored,)]
    assert filled.get("m-t").created_at == filled.get("m-a").updated_at


@pytest.mark.parametrize("written", [None, "", "yesterday", "now", "2026", 2460000.5, "12:00", "0000-12-31",
                                     "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "2026-13-01",
                                     "-100-01-01"])  # fmt: skip
def test_no_time_is_refused(filled, written):
    before = dump(filled.path)
    connection = raw_connection(filled.path)
    with pytest.raises(sqlite3.IntegrityError, match=r"ISO 8601|NOT NULL"):
        connection.execute("INSERT INTO memories (id, content, created_at) VALUES ('m-t', 'x', ?)", (written,))
    with pytest.raises(sqlite3.IntegrityError, match=r"ISO 8601|NOT NULL"):
        connection.execute("UPDATE memories SET created_at = ? WHERE id = 'm-a'", (written,))
    if written is not None:
        with pytest.raises(sqlite3.IntegrityError, match="ISO 8601"):
            connection.execute("UPDATE memories SET trashed_at = ? WHERE id = 'm-a'", (written,))
        with pytest.raises(sqlite3.IntegrityError, match="ISO 8601"):
            connection.execute(
                "INSERT OR IGNORE INTO memories (id, content, updated_at) VALUES ('t', 'x', ?)", (written,)
            )
    connection.close()
    assert dump(filled.path) == before


@pytest.mark.parametrize(
    ("column", "value"),
    [("importance", value) for value in (0, 11, 5.5, "high", None, b"5")]
    + [("tags", value) for value in ("red", "[", "", '{"a": 1}', '"red"', "5", "null", None)]
    + [("related_files", value) for value in ("a.py", '"a.py"', None)]
    + [("file_checksums", value) for value in ("x", "[]", "5", None)]
    + [("content", value) for value in ("", None, b"bytes")]
    + [("id", value) for value in ("", None)]
    + [("access_count", -1), ("category", None), ("vector", "text"), ("vector", 5), ("encoder_id", None)],
)
def test_impossible_values_are_refused(filled, column, value):
    before = dump(filled.path)
    connection = raw_connection(filled.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"UPDATE memories SET {column} = ? WHERE id = 'm-a'", (value,))
    if column != "encoder_id":
        given = {"id": "m-x", "content": "x", column: value}
        marks = ", ".join("?" * len(given))
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO memories ({', '.join(given)}) VALUES ({marks})", list(given.values()))
    connection.close()
    assert dump(filled.path) == before


# -- renaming and deleting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("foreign_keys", ["OFF", "ON"])
def test_a_new_id(filled, foreign_keys):
    filled.update("m-long", content=LONG + " fourteen")
    connection = raw_connection(filled.path)
    connection.execute(f"PRAGMA foreign_keys = {foreign_keys}")
    connection.execute("UPDATE memories SET id = 'm-new' WHERE id = 'm-long'")
    connection.execute("UPDATE memories SET id = 'm-key' WHERE id = 'm-a'")
    connection.close()
    assert_sound(filled)
    assert len(filled.history("m-new")) == 2
    assert len(filled.passages("m-new")) > 1
    assert search(filled.path, "fourteen") == ["m-new"]
    assert filled.remember("alpha words", idempotency_key="k-a").memory_id == "m-key"
    with pytest.raises(UnknownMemory):
        filled.get("m-long")


@pytest.mark.parametrize("foreign_keys", ["OFF", "ON"])
@pytest.mark.parametrize("memory_id", ["m-a", "m-long"])
@pytest.mark.parametrize(
    "also",
    [
        "content = 'new text'",
        "trashed_at = '2026-01-01T00:00:00+02:00'",
        "project = 'q', tags = '[\"t\"]'",
        "vector = NULL",
        "content = 'new text', trashed_at = '2026-01-01T00:00:00Z', created_at = '2025-01-01'",
        "content = 'new text', vector = (SELECT vector FROM memories WHERE id = 'm-b')",
    ],
)
def test_a_new_id_and_more_at_once(filled, foreign_keys, memory_id, also):
    filled.update(memory_id, content=filled.get(memory_id).content + " changed once")
    former = filled.get(memory_id).content
    connection = raw_connection(filled.path)
    connection.execute(f"PRAGMA foreign_keys = {foreign_keys}")
    connection.execute(f"UPDATE memories SET id = 'm-new', {also} WHERE id = ?", (memory_id,))
    connection.close()
    assert_sound(filled)
    contents = [step.content for step in filled.history("m-new")]
    if "content" in also:
        assert contents[1:] == [former, "new text"]
        assert len(filled.passages("m-new")) == 1
        assert filled.get("m-new").pending == ("vector" not in also)
        assert search(filled.path, "text") == ([] if "trashed" in also else ["m-new"])
    else:
        assert contents[1:] == [former]
    filled.embed_pending()
    assert_sound(filled)


def test_a_taken_id_is_refused_or_replaced(filled, sql):
    filled.update("m-a", content="alpha changed")
    filled.update("m-long", content=LONG + " fourteen")
    connection = raw_connection(filled.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE memories SET id = 'm-a' WHERE id = 'm-long'")
    connection.close()
    assert_sound(filled)
    sql("UPDATE OR REPLACE memories SET id = 'm-a' WHERE id = 'm-long'")
    assert len(filled) == 2
    assert search(filled.path, "alpha") == []
    assert search(filled.path, "fourteen") == ["m-a"]
    assert [step.content for step in filled.history("m-a")] == [LONG, LONG + " fourteen"]


@pytest.mark.parametrize("foreign_keys", ["OFF", "ON"])
def test_delete(filled, foreign_keys):
    filled.update("m-long", content=LONG + " fourteen")
    connection = raw_connection(filled.path)
    connection.execute(f"PRAGMA foreign_keys = {foreign_keys}")
    connection.execute("DELETE FROM memories WHERE id IN ('m-long', 'm-a')")
    assert_sound(filled)
    assert set(vectors_in_memory(filled)) == {"m-b"}
    for table in ("memory_revisions", "memory_passages", "idempotency_keys"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert search(filled.path, "words") == ["m-b"]
    connection.execute("DELETE FROM memories")
    connection.close()
    assert_sound(filled)
    assert vectors_in_memory(filled) == {}
    filled.remember("alpha words", idempotency_key="k-a")
    assert_sound(filled)


def test_delete_and_insert_again(filled, sql):
    sql("DELETE FROM memories WHERE id = 'm-a'")
    sql("INSERT INTO memories (id, content) VALUES ('m-a', 'another life')")
    assert len(filled.history("m-a")) == 1
    assert search(filled.path, "alpha") == []


def test_what_is_rolled_back_never_was(filled):
    connection = raw_connection(filled.path)
    before = dump(filled.path)
    found = vectors_in_memory(filled)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM memories WHERE id = 'm-a'")
    connection.execute("UPDATE memories SET content = 'x'")
    assert vectors_in_memory(filled) == found
    connection.execute("ROLLBACK")
    connection.close()
    assert dump(filled.path) == before
    assert_sound(filled)


def test_a_look_inside_an_own_transaction_is_not_remembered(filled):
    connection = filled.db.conn
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO memories (id, content, vector, encoder_id) SELECT 'm-ghost', 'ghost', vector, encoder_id "
        "FROM memories WHERE id = 'm-a'"
    )
    assert "m-ghost" in vectors_in_memory(filled)
    connection.execute("ROLLBACK")
    filled.remember("a true memory", memory_id="m-true")
    expected = HashingEncoder(64).encode_documents(["a true memory"])[0].tobytes()
    assert vectors_in_memory(filled)["m-true"] == expected
    assert_sound(filled)


def test_vacuum_moves_nothing(filled):
    for i in range(50):
        filled.remember(f"filler {i}", memory_id=f"m-f{i}")
    for i in range(0, 50, 2):
        filled.forget(f"m-f{i}")
    filled.purge()
    found = vectors_in_memory(filled)
    connection = raw_connection(filled.path)
    connection.execute("VACUUM")
    connection.close()
    assert_sound(filled)
    assert vectors_in_memory(filled) == found
    assert search(filled.path, "beta") == ["m-b"]
    filled.update("m-b", content="gamma")
    filled.remember("filler after")
    assert search(filled.path, "gamma") == ["m-b"]
    assert_sound(filled)
    filled.close()
    again = MemoryStore(filled.path)
    assert_sound(again)
    again.close()


def test_many_raw_changes_in_one_transaction(filled):
    connection = raw_connection(filled.path)
    rng = np.random.default_rng(5)
    connection.execute("BEGIN")
    for i in range(300):
        memory_id = f"m-{rng.integers(20)}"
        match rng.integers(6):
            case 0 | 1:
                connection.execute(
                    "INSERT OR REPLACE INTO memories (id, content) VALUES (?, ?)", (memory_id, f"text {i}")
                )
            case 2:
                connection.execute("UPDATE memories SET content = ? WHERE id = ?", (f"new {i}", memory_id))
            case 3:
                connection.execute("UPDATE memories SET trashed_at = '2026-01-01' WHERE id = ?", (memory_id,))
            case 4:
                connection.execute(
                    "UPDATE OR REPLACE memories SET id = ? WHERE id = ?", (f"m-{rng.integers(20)}", memory_id)
                )
            case 5:
                connection.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
    connection.execute("COMMIT")
    connection.close()
    assert_sound(filled)
    filled.embed_pending()
    assert_sound(filled)


def test_exact_duplicates_are_looked_up_by_an_index(store):
    statements: list[str] = []
    connection = store.db.conn
    connection.set_trace_callback(statements.append)
    store.remember("said once")
    connection.set_trace_callback(None)
    look = next(statement for statement in statements if "substr(content" in statement)
    plan = " ".join(row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + look))
    assert "USING INDEX memories_content" in plan
