"""``check`` must see every kind of damage."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore, codetable
from tests.store.helpers import assert_sound, dump, raw_connection

LONG = "one two three four. five six seven eight. nine ten eleven twelve. thirteen"
WHERE = "WHERE rowid = (SELECT number FROM memory_numbers WHERE id = 'm-a')"


@pytest.fixture
def sound(make_store) -> MemoryStore:
    store = make_store(encoder=HashingEncoder(64, token_limit=8))
    store.remember("alpha words", memory_id="m-a", tags=["red"], related_files=["a.py"], project="p")
    store.remember("beta words", memory_id="m-b")
    store.remember(LONG, memory_id="m-long")
    store.forget(store.remember("in the trash", memory_id="m-trash").memory_id)
    return store


def test_a_sound_store(sound, make_store):
    make_store(encoder=None).remember("waits")
    before = dump(sound.path)
    report = sound.check()
    assert report.ok
    assert report.problems == ()
    assert (report.memories, report.trashed, report.pending, report.staged) == (4, 1, 1, 0)
    assert report.passages == len(sound.passages("m-long"))
    assert repr(report).startswith("<CheckReport sound: 4 memories, 1 in the trash, 1 pending")
    assert dump(sound.path) == before


OTHER = "INSERT INTO encoders VALUES (99, 'other', 'sha256:1', 64, 256, '')"
DAMAGE = {
    "row missing in the search index": ([f"DELETE FROM memory_search {WHERE}"], "missing.*m-a"),
    "row too many in the search index": (
        ["INSERT INTO memory_search (rowid, id, content) VALUES (999, 'm-x', 'extra')"],
        "belong to no live memory.*m-x",
    ),
    "trashed memory in the search index": (
        ["INSERT INTO memory_search (rowid, id, content) "
         "SELECT number, id, 'x' FROM memory_numbers WHERE id = 'm-trash'"],
        "belong to no live memory.*m-trash",
    ),
    "other content in the search index": ([f"UPDATE memory_search SET content = 'x' {WHERE}"], "other words.*m-a"),
    "other tags in the search index": ([f"UPDATE memory_search SET tags = 'x' {WHERE}"], "other words.*m-a"),
    "other files in the search index": ([f"UPDATE memory_search SET files = NULL {WHERE}"], "other words.*m-a"),
    "other project in the search index": ([f"UPDATE memory_search SET project = 'q' {WHERE}"], "other words.*m-a"),
    "other id in the search index": ([f"UPDATE memory_search SET id = 'q' {WHERE}"], "other words.*m-a"),
    "no number": (["DELETE FROM memory_numbers WHERE id = 'm-a'"], "no number.*m-a"),
    "foreign encoder": ([OTHER, "UPDATE memories SET encoder_id = 99 WHERE id = 'm-a'"], "another encoder.*m-a"),
    "foreign encoder of a passage": (
        [OTHER, "UPDATE memory_passages SET encoder_id = 99 WHERE position = 1"],
        "another encoder.*m-long passage 1",
    ),
    "encoder that is not there": (["UPDATE memories SET encoder_id = 77 WHERE id = 'm-a'"], "refer to rows"),
    "vector too short": (["UPDATE memories SET vector = zeroblob(12) WHERE id = 'm-a'"], "another length.*m-a"),
    "vector of no floats": (["UPDATE memories SET vector = x'ff' WHERE id = 'm-a'"], "another length.*m-a"),
    "passage vector too long": (
        ["UPDATE memory_passages SET vector = zeroblob(260) WHERE position = 0"],
        "another length.*m-long passage 0",
    ),
    "vector of zeros": (["UPDATE memories SET vector = zeroblob(256) WHERE id = 'm-a'"], "not of length 1.*m-a"),
    "passage missing at the start": (["DELETE FROM memory_passages WHERE position = 0"], "do not cover.*m-long"),
    "passage missing in the middle": (["DELETE FROM memory_passages WHERE position = 1"], "do not cover.*m-long"),
    "passage missing at the end": (["DELETE FROM memory_passages WHERE position = 2"], "do not cover.*m-long"),
    "gap between passages": (
        ["UPDATE memory_passages SET start_offset = start_offset + 1 WHERE position = 1"],
        "do not cover.*m-long",
    ),
    "passage beyond the end": (
        ["UPDATE memory_passages SET end_offset = end_offset + 9 WHERE position = 2"],
        "do not cover.*m-long",
    ),
    "passage of nothing": (
        ["UPDATE memory_passages SET end_offset = start_offset WHERE position = 1"],
        "do not cover.*m-long",
    ),
    "passage of no memory": (
        ["INSERT INTO memory_passages (memory_id, position, start_offset, end_offset, vector, encoder_id) "
         "SELECT 'm-none', 0, 0, 1, vector, encoder_id FROM memories WHERE id = 'm-a'"],
        "refer to rows.*memory_passages",
    ),
    "revision of no memory": (
        ["INSERT INTO memory_revisions VALUES ('m-none', 1, 'x', '2026-01-01T00:00:00.000Z')"],
        "refer to rows.*memory_revisions",
    ),
    "key of no memory": (
        ["INSERT INTO idempotency_keys VALUES ('k', 'm-none', 'x')"],
        "refer to rows.*idempotency_keys"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_reported(sound, what):
    statements, message = DAMAGE[what]
    connection = raw_connection(sound.path)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    report = sound.check()
    assert not report.ok
    import re

    assert any(re.search(message, problem) for problem in report.problems), report
    assert "NOT sound" in repr(report)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_no_numbers(sound, value):
    vector = np.zeros(64, "<f4")
    vector[0] = 1
    vector[5] = value
    connection = raw_connection(sound.path)
    connection.execute("UPDATE memories SET vector = ? WHERE id = 'm-b'", (vector.tobytes(),))
    connection.close()
    assert any("not of length 1" in problem and "m-b" in problem for problem in sound.check().problems)


def test_many_faults_are_counted(sound):
    sound.remember_many([f"row {i}" for i in range(30)])
    connection = raw_connection(sound.path)
    connection.execute("DELETE FROM memory_search")
    connection.close()
    (problem,) = sound.check().problems
    assert "33" in problem
    assert len(problem) < 400


def test_text_that_is_no_text(sound):
    from memlab.errors import StoreDamaged

    connection = raw_connection(sound.path)
    connection.execute("UPDATE memories SET source = CAST(x'ff' AS TEXT) WHERE id = 'm-a'")
    connection.close()
    with pytest.raises(StoreDamaged, match="UTF-8"):
        sound.get("m-a")
    assert sound.get("m-b").content == "beta words"


def test_a_record_of_codes_that_is_none_stops_nobody(make_store, monkeypatch):
    monkeypatch.setattr(codetable, "LARGE", 3)
    store = make_store()
    store.remember_many(["a", "b", "c", "d", "e"])
    with contextlib.closing(raw_connection(store.path)) as raw:
        raw.execute("UPDATE store_settings SET value = json_set(value, '$.change', 'x') WHERE key = 'vector_codes'")
        assert raw.execute("SELECT changes()").fetchone() == (1,)
    store.remember("f")
    assert_sound(store)
