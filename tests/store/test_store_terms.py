"""The term index follows every change, whoever makes it, and an older file gets one."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

from memlab.encoders import HashingEncoder
from memlab.errors import StoreDamaged, StoreError, StoreReadOnly
from memlab.store import MemoryStore, schema, termindex
from memlab.store.analysis import analyse, query_tokens
from memlab.store.filters import Filters
from tests.store.helpers import (
    assert_sound,
    dump,
    postings,
    raw_connection,
    terms_from_scratch,
    terms_on_disk,
)

TEXTS = (
    "HTTPServer times out under load",
    "Webhook retries with a budget of three",
    "the retry budget of webhooks, in snake_case",
    "東京の会議で再試行を決めた",
    "sha256 of ADR-016 and E4102",
    "é" * 300,
    "the of and",
)


@pytest.fixture
def sql(store) -> Iterator[sqlite3.Connection]:
    """A connection of a program that knows only SQL."""
    with contextlib.closing(raw_connection(store.path)) as connection:
        yield connection


def pending(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM memory_terms_pending").fetchone()[0]


def assert_as_from_scratch(store: MemoryStore) -> None:
    """Rows and postings are those of an index that is made anew."""
    with store.view() as view:
        assert view.terms_ready
    assert terms_on_disk(store.path) == terms_from_scratch(store.path)
    before = postings(store.path)
    assert store.reindex() == len(store)
    assert postings(store.path) == before


# -- memlab's own writes ----------------------------------------------------------------------------------------------


def test_nothing_is_pending_after_any_write_of_memlab(store, sql):
    def see() -> None:
        assert pending(sql) == 0
        assert terms_on_disk(store.path) == terms_from_scratch(store.path)

    one = store.remember(TEXTS[0], project="billing", tags=["time out", "load"], related_files=["src/a.py"]).memory_id
    see()
    assert terms_on_disk(store.path)[one][1] == "note billin time load src py"
    store.remember_many([{"content": text, "memory_id": f"m-{at}"} for at, text in enumerate(TEXTS)], batch_size=3)
    see()
    for change in (
        {"content": "other words"},
        {"project": None},
        {"category": "decision"},
        {"tags": ["red"]},
        {"related_files": ["lib/z.rs"]},
        {"importance": 3},
    ):
        store.update(one, **change)
        see()
    store.forget(one)
    see()
    assert one not in terms_on_disk(store.path)
    store.restore(one)
    see()
    assert one in terms_on_disk(store.path)
    store.forget(one)
    store.purge(one)
    see()
    store.touch("m-1")
    store.reembed(HashingEncoder(32))
    see()
    assert_sound(store)
    assert_as_from_scratch(store)


def test_a_write_that_fails_leaves_the_index_as_it_was(store, sql):
    store.remember(TEXTS[0])
    before = dump(store.path)

    def fail() -> None:
        with store._file.write() as connection:
            connection.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'never')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert dump(store.path) == before


def test_a_backup_has_the_index(store, make_store, tmp_path):
    store.remember_many(TEXTS)
    store.backup(tmp_path / "copy.db")
    copy = make_store("copy.db", read_only=True)
    with copy.view() as view:
        assert view.terms_ready
    assert postings(copy.path) == postings(store.path)


# -- writes of others -------------------------------------------------------------------------------------------------

STATEMENTS = (
    "INSERT INTO memories (id, content) VALUES ('{new}', '{text}')",
    "INSERT INTO memories (id, content, trashed_at) VALUES ('{new}', '{text}', '2026-01-01')",
    "INSERT OR REPLACE INTO memories (id, content, tags) VALUES ('{old}', '{text}', '[\"{word}\"]')",
    "INSERT OR REPLACE INTO memories (id, content, trashed_at) VALUES ('{old}', '{text}', '2026-01-01')",
    "UPDATE memories SET content = '{text}' WHERE id = '{old}'",
    "UPDATE memories SET content = '{text}', id = '{new}' WHERE id = '{old}'",
    "UPDATE memories SET id = '{new}' WHERE id = '{old}'",
    "UPDATE OR REPLACE memories SET id = '{other}' WHERE id = '{old}'",
    "UPDATE OR REPLACE memories SET id = '{other}', content = '{text}', trashed_at = NULL WHERE id = '{old}'",
    "UPDATE memories SET project = '{word}', category = '{word}' WHERE id = '{old}'",
    "UPDATE memories SET tags = '[\"{word}\"]', related_files = '[\"{word}.py\"]' WHERE id = '{old}'",
    "UPDATE memories SET trashed_at = '2026-01-01' WHERE id = '{old}'",
    "UPDATE memories SET trashed_at = '2026-02-02 10:00' WHERE trashed_at IS NOT NULL",
    "UPDATE memories SET trashed_at = NULL",
    "DELETE FROM memories WHERE id = '{old}'",
    "DELETE FROM memories WHERE trashed_at IS NOT NULL",
)


@pytest.mark.parametrize("recursive_triggers", ["OFF", "ON"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_sql_keeps_the_index_whole(store, sql, statement, recursive_triggers):
    sql.execute(f"PRAGMA recursive_triggers = {recursive_triggers}")
    store.remember_many([{"content": text, "memory_id": f"m-{at}"} for at, text in enumerate(TEXTS)])
    store.forget("m-2")
    for old, other in (("m-1", "m-3"), ("m-2", "m-4"), ("m-5", "m-2")):
        sql.execute(statement.format(old=old, other=other, new=f"n-{old}", text=f"about {old}", word="red"))
        # What is in the index holds at any time, without memlab; what is missing waits.
        scratch = terms_from_scratch(store.path)
        waiting = {
            row[0]
            for row in sql.execute(
                "SELECT n.id FROM memory_terms_pending p LEFT JOIN memory_numbers n ON n.number = p.number"
            )
        }
        found = terms_on_disk(store.path)
        assert found == {memory_id: scratch[memory_id] for memory_id in scratch if memory_id not in waiting}
        assert waiting <= set(scratch)
        report = store.check()
        assert report.ok, report
        assert report.unindexed == len(waiting)
    assert_sound(store)
    assert_as_from_scratch(store)


def test_changes_that_do_not_matter_make_nothing_pending(store, sql):
    store.remember(TEXTS[0], memory_id="m-a")
    sql.execute("UPDATE memories SET importance = 9, access_count = 3, source = 'x', subcategory = 'y'")
    sql.execute("UPDATE memories SET content = content, tags = tags, trashed_at = trashed_at")
    sql.execute("UPDATE memories SET created_at = '2026-01-01', vector = NULL, encoder_id = NULL")
    assert pending(sql) == 0


def test_the_next_look_heals_what_another_program_wrote(store, sql):
    sql.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma webhooks')")
    assert pending(sql) == 1
    assert "1 not in the term index yet" in repr(store.check())
    with store.view() as view:
        assert view.terms_ready
        assert [row.memory_id for row in view.terms(["webhoo"], 5)] == ["m-raw"]
    assert pending(sql) == 0


def test_the_next_write_heals_it_too(store, sql):
    sql.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma webhooks')")
    store.remember("mine")
    assert pending(sql) == 0
    assert "m-raw" in terms_on_disk(store.path)


def test_the_backlog_goes_in_batches(store, sql, monkeypatch):
    monkeypatch.setattr(termindex, "BATCH", 3)
    sizes: list[int] = []
    real = termindex.update

    def update(connection: sqlite3.Connection, batches: int | None = None) -> int:
        sizes.append(real(connection, batches))
        return sizes[-1]

    monkeypatch.setattr(termindex, "update", update)
    many = [(f"m-{at}", f"memory number{at}") for at in range(10)]
    sql.executemany("INSERT INTO memories (id, content) VALUES (?, ?)", many)
    with store.view() as view:
        assert view.terms_ready
    assert sizes == [3, 3, 3, 1, 0]
    # A writer does not take a backlog into its own transaction, and new memories never wait: nothing is left for it.
    sql.execute("UPDATE memories SET project = 'p'")
    sizes.clear()
    store.remember_many([f"more of {at}" for at in range(7)])
    assert sizes == [3, 3, 3, 1, 0, 0]
    assert_as_from_scratch(store)


def test_a_reader_goes_without_while_another_program_holds_the_store(store, sql):
    store.remember("mine")
    sql.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma')")
    sql.execute("BEGIN IMMEDIATE")
    with store.view() as view:
        assert not view.terms_ready
        assert [row.memory_id for row in view.keyword('"gamma"', 5)] == ["m-raw"]
    assert store._file.connection().execute("PRAGMA busy_timeout").fetchone() == (5000,)
    sql.execute("ROLLBACK")
    with store.view() as view:
        assert view.terms_ready


def test_a_look_from_inside_a_transaction_changes_nothing(store, sql):
    connection = store._file.connection()
    connection.execute("BEGIN")
    connection.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma')")
    with store.view() as view:
        assert not view.terms_ready
    connection.execute("ROLLBACK")
    with store.view() as view:
        assert view.terms_ready


def test_a_store_for_reading_only_says_so(store, sql, make_store):
    store.remember("mine")
    reader = make_store(read_only=True)
    with reader.view() as view:
        assert view.terms_ready
    sql.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'gamma')")
    for _ in range(2):
        with reader.view() as view:
            assert not view.terms_ready
            assert len(view.keyword('"gamma"', 5)) == 1
    report = reader.check()
    assert (report.ok, report.unindexed) == (True, 1)
    with pytest.raises(StoreReadOnly):
        reader.reindex()
    with store.view():
        pass
    with reader.view() as view:
        assert view.terms_ready


def test_text_that_is_no_utf_8_stops_nobody(store, sql):
    sql.execute("INSERT INTO memories (id, content) VALUES ('m-raw', CAST(x'616c706861ff62657461' AS TEXT))")
    sql.execute("UPDATE memories SET project = CAST(x'ff70' AS TEXT)")
    store.remember("mine", memory_id="m-a")
    assert pending(sql) == 0
    with store.view() as view:
        assert [row.number for row in view.terms(["beta"], 5)] == [1]


def test_tags_that_are_no_texts(store, sql):
    sql.execute("INSERT INTO memories (id, content, tags) VALUES ('m-raw', 'x', '[1, null, 2.5, [\"in\"], \"red\"]')")
    with store.view() as view:
        assert [row.memory_id for row in view.terms(["red"], 5)] == ["m-raw"]
    assert store.check().ok


def test_several_threads_heal_at_once(store, sql):
    store.remember("mine")
    failures: list[BaseException] = []
    stop = threading.Event()

    def look() -> None:
        try:
            while not stop.is_set():
                with store.view() as view:
                    if view.terms_ready:
                        live = view.connection.execute("SELECT count(*) FROM memories").fetchone()[0]
                        assert live == view.connection.execute("SELECT count(*) FROM memory_terms").fetchone()[0]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    with contextlib.closing(raw_connection(store.path, timeout=60)) as writer:
        for at in range(60):
            writer.execute("INSERT INTO memories (id, content) VALUES (?, ?)", (f"m-{at}", f"memory{at} webhooks"))
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert_as_from_scratch(store)


# -- any order of writes ----------------------------------------------------------------------------------------------


def anything(store: MemoryStore, connection: sqlite3.Connection, random_: random.Random) -> None:
    """One write of memlab or of a program that knows only SQL."""
    ids = [row[0] for row in connection.execute("SELECT id FROM memories ORDER BY id")] or ["m-0"]
    old, other, new = random_.choice(ids), random_.choice(ids), f"m-{random_.randrange(10**6)}"
    text = f"{random_.choice(TEXTS)} {random_.randrange(9)}"
    known = old in store
    live = known and not store.get(old).trashed_at
    mine: list[Callable[[], Any]] = [
        lambda: store.remember(text, tags=random_.sample(["red", "blue", "snake_case"], 2)),
        lambda: store.remember_many([text] * random_.randrange(4)),
        lambda: store.update(old, content=text) if live else None,
        lambda: store.update(old, project="p", tags=["green"]) if live else None,
        lambda: store.forget(old) if known else None,
        lambda: store.restore(old) if known else None,
        lambda: store.purge(),
    ]
    if random_.random() < 0.5:
        random_.choice(mine)()
    else:
        statement = random_.choice(STATEMENTS).format(old=old, other=other, new=new, text=text, word="redWord2")
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(statement)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_the_index_is_that_from_scratch_after_any_writes(tmp_path_factory, seed, steps):
    random_ = random.Random(seed)
    path = tmp_path_factory.mktemp("any") / "memory.db"
    with MemoryStore(path, None) as store, contextlib.closing(raw_connection(path)) as connection:
        store._file.connection().execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for _ in range(steps):
            anything(store, connection, random_)
            if random_.random() < 0.2:
                with store.view() as view:
                    assert view.terms_ready
        report = store.check()
        assert report.ok, report
        assert_as_from_scratch(store)


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(store) -> MemoryStore:
    rng = random.Random(7)
    words = ["webhook", "retry", "budget", "timeout", "HTTPServer", "cache", "东京", "sha256", "policy"]
    store.remember_many(
        {
            "content": " ".join(rng.choices(words, k=rng.randrange(1, 12))),
            "memory_id": f"m-{at:03}",
            "project": rng.choice(["retry", "billing", None]),
            "tags": rng.sample(words, 2),
        }
        for at in range(120)
    )
    return store


@pytest.mark.parametrize("weights", [None, {"labels": 0.25}, {"content": 0.0, "labels": 3.0}])
@pytest.mark.parametrize("filters", [Filters(), Filters(project="billing")])
@pytest.mark.parametrize("depth", [1, 7, 500])
def test_terms_gives_the_best_by_bm25_then_id(filled, weights, filters, depth):
    tokens = query_tokens("retry the HTTPServer budget").used
    given = {"content": 1.0, "labels": 1.0, **(weights or {})}
    with filled.view(filters) as view:
        allowed = view.allowed()
        rows = view.connection.execute(
            "SELECT rowid, -bm25(memory_terms, ?, ?) FROM memory_terms WHERE memory_terms MATCH ?",
            (given["content"], given["labels"], " OR ".join(f'"{token}"' for token in tokens)),
        ).fetchall()
        rows = [row for row in rows if allowed is None or row[0] in allowed]
        ids = view.ids([row[0] for row in rows])
        expected = sorted(((-score, ids[number], number) for number, score in rows))[:depth]
        found = view.terms(tokens, depth, weights=weights)
        assert [(-row.score, row.memory_id, row.number) for row in found] == expected
        assert view.terms(tokens, 1, weights=weights, only=found[-1].number) == [found[-1]]
        some = [row.number for row in found[:3]]
        assert {row.number for row in view.terms(tokens, depth, weights=weights, among=some)} == set(some)


def test_tokens_are_never_query_syntax(filled):
    with filled.view() as view:
        for token in ('"', 'a" OR "b', "NEAR(", "content:", "*", "東京"):
            assert view.terms([token], 5) == []
            assert view.pair_scores([(token, token)], [1]) == {}
            assert view.document_frequencies([token]) == {token: 0}
        assert view.terms([], 5) == []
        assert view.pair_scores([], [1]) == view.pair_scores([("a", "b")], []) == {}
        assert view.document_frequencies([]) == {}


def test_pair_scores(store):
    for at, text in enumerate(["retry budget", "budget retry", "retry of the budget", "retry, then any budget"]):
        store.remember(text, memory_id=f"m-{at}")
    store.remember("nothing", memory_id="m-tag", tags=["retry-budget"])
    pairs = query_tokens("the budget of a retry budget").pairs
    assert pairs == (("budget", "retry"), ("retry", "budget"))
    with store.view() as view:
        numbers = {memory_id: view.number(memory_id) for memory_id in ("m-0", "m-1", "m-2", "m-3", "m-tag")}
        scores = view.pair_scores(pairs[1:], list(numbers.values()))
        # "then" and "any" are stop words too.
        assert set(scores) == {numbers[memory_id] for memory_id in ("m-0", "m-2", "m-3", "m-tag")}
        assert all(score > 0 for score in scores.values())
        assert view.pair_scores(pairs[1:], [numbers["m-0"], numbers["m-1"]]) == {numbers["m-0"]: scores[numbers["m-0"]]}
        assert set(view.pair_scores(pairs, [numbers["m-1"]])) == {numbers["m-1"]}


def test_document_frequencies(filled, sql):
    with filled.view() as view:
        tokens = ["webhoo", "httpserver", "东京", "none", 'odd"token']
        found = view.document_frequencies(tokens)
    rows = terms_from_scratch(filled.path).values()
    assert found == {token: sum(token in f"{content} {labels}".split() for content, labels in rows) for token in tokens}
    filled.forget("m-000")
    with filled.view() as view:
        again = view.document_frequencies(["note"])
    assert again == {"note": 119}


# -- older files, other rules -----------------------------------------------------------------------------------------


def make_version_1(path: Path, contents: list[str]) -> None:
    """A store as it was before the term index."""
    with contextlib.closing(raw_connection(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        schema.migrations().apply(Database(connection, execute_plugins=False), stop_before="m002_terms")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.executemany(
            "INSERT INTO memories (id, content, tags) VALUES (?, ?, ?)",
            [(f"m-{at}", content, json.dumps(["old"])) for at, content in enumerate(contents)],
        )
        connection.execute("UPDATE memories SET trashed_at = '2026-01-01' WHERE id = 'm-1'")


def test_a_file_of_version_1_is_migrated(tmp_path, make_store):
    make_version_1(tmp_path / "memory.db", [*TEXTS])
    before = dump_of_memories(tmp_path / "memory.db")
    store = make_store(encoder=None)
    with contextlib.closing(raw_connection(store.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.SCHEMA_VERSION,)
        assert pending(connection) == len(TEXTS) - 1
    assert store.check().unindexed == len(TEXTS) - 1
    assert_as_from_scratch(store)
    assert_sound(store)
    assert dump_of_memories(store.path) == before
    store.close()
    again = make_store(encoder=None)
    with again.view() as view:
        assert view.terms_ready


def dump_of_memories(path: Path) -> list[Any]:
    with contextlib.closing(raw_connection(path)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("memories", "memory_numbers", "memory_search")
        ]


def test_a_new_file_and_a_migrated_one_have_the_same_schema(tmp_path, make_store):
    make_version_1(tmp_path / "old.db", ["a"])
    schemas = []
    for name in ("old.db", "new.db"):
        store = make_store(name, encoder=None)
        with contextlib.closing(raw_connection(store.path)) as connection:
            schemas.append(set(connection.execute("SELECT type, name, sql FROM sqlite_master")))
    assert schemas[0] == schemas[1]


def test_a_file_of_version_1_for_reading_only(tmp_path, make_store):
    make_version_1(tmp_path / "memory.db", [*TEXTS])
    before = dump_of_memories(tmp_path / "memory.db")
    store = make_store(encoder=None, read_only=True)
    with store.view() as view:
        assert not view.terms_ready
        assert [row.memory_id for row in view.keyword('"retries"', 5)] == []
        assert [row.memory_id for row in view.keyword('"webhooks"', 5)] == ["m-2"]
    report = store.check()
    assert report.ok, report
    assert len(store) == len(TEXTS) - 1
    assert dump_of_memories(store.path) == before
    # Another process migrates it meanwhile.
    with MemoryStore(store.path, None) as writer, writer.view():
        pass
    with store.view() as view:
        assert view.terms_ready


def test_a_migration_that_fails_leaves_version_1(tmp_path, make_store, monkeypatch):
    make_version_1(tmp_path / "memory.db", [*TEXTS])
    broken = "CREATE TRIGGER broken AFTER INSERT ON none BEGIN SELECT 1; END;\n"
    monkeypatch.setitem(schema.STEPS, "m002_terms", schema.STEPS["m002_terms"] + broken)
    with pytest.raises(StoreError, match="none"):
        make_store(encoder=None)
    with contextlib.closing(raw_connection(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'memory_terms%'").fetchall()
    monkeypatch.undo()
    assert_as_from_scratch(make_store(encoder=None))


@pytest.mark.parametrize("table", ["memory_terms", "memory_terms_pending", "memory_terms_vocabulary"])
def test_a_store_without_its_term_tables(store, make_store, table):
    store.close()
    with contextlib.closing(raw_connection(store.path)) as connection:
        connection.execute(f"DROP TABLE {table}")
    with pytest.raises(StoreDamaged, match="tables are missing"):
        make_store()


@pytest.mark.parametrize("how", ["view", "write"])
@pytest.mark.parametrize("version", ["0", "99", None])
def test_an_index_by_other_rules_is_made_anew(store, sql, make_store, how, version):
    store.remember_many(TEXTS)
    sql.execute("UPDATE memory_terms SET content = 'by other rules'")
    if version is None:
        sql.execute("DELETE FROM store_settings WHERE key = 'analysis_version'")
    else:
        sql.execute("UPDATE store_settings SET value = ? WHERE key = 'analysis_version'", (version,))
    report = store.check()
    assert (report.ok, report.unindexed) == (True, len(TEXTS))
    with make_store(read_only=True) as reader, reader.view() as view:
        assert not view.terms_ready
    if how == "view":
        with store.view() as view:
            assert view.terms_ready
    else:
        store.touch(store.find(limit=1)[0].memory_id)
    assert sql.execute("SELECT value FROM store_settings WHERE key = 'analysis_version'").fetchone() == ("1",)
    assert_as_from_scratch(store)


# -- what check sees --------------------------------------------------------------------------------------------------

DAMAGE = {
    "row missing": ("DELETE FROM memory_terms WHERE rowid = 1", "missing from the term index: m-0"),
    "row too many": (
        "INSERT INTO memory_terms (rowid, content, labels) VALUES (999, 'x', '')",
        "rows of the term index belong to no live memory: 999",
    ),
    "other terms": ("UPDATE memory_terms SET content = 'x' WHERE rowid = 1", "other terms than their text gives: m-0"),
    "other labels": ("UPDATE memory_terms SET labels = 'x' WHERE rowid = 1", "other terms than their text gives: m-0"),
    "postings that contradict the rows": (
        "UPDATE memory_terms_content SET c0 = c0 || ' more' WHERE id = 1",
        "the term index is damaged",
    ),
    "postings that are gone": ("DELETE FROM memory_terms_data WHERE id > 100", "the term index is damaged"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_check_sees_damage_and_reindex_heals_it(store, sql, what):
    statement, message = DAMAGE[what]
    store.remember_many([{"content": text, "memory_id": f"m-{at}"} for at, text in enumerate(TEXTS)])
    assert store.check().ok
    sql.execute(statement)
    report = store.check()
    assert any(message in problem for problem in report.problems), report
    assert store.reindex() == len(TEXTS)
    assert_sound(store)
    assert_as_from_scratch(store)


def test_reindex_tells_how_far_it_is(store):
    store.remember_many(TEXTS)
    seen: list[tuple[int, int | None]] = []
    assert store.reindex(progress=lambda done, total: seen.append((done, total))) == len(TEXTS)
    assert seen[-1] == (len(TEXTS), len(TEXTS))


def test_labels_are_not_part_of_the_content(store):
    store.remember("alpha", memory_id="m-a", project="beta")
    with store.view() as view:
        assert view.pair_scores([("alpha", "note"), ("alpha", "beta")], [1]) == {}
        assert len(view.terms(analyse("beta"), 5)) == 1
