"""One memory at a time: remember, read, change, trash, and what the store tells about all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from memlab.encoders import HashingEncoder
from memlab.errors import DuplicateIdError, IdempotencyError, InvalidValue, UnknownMemory
from memlab.store import Memory, MemoryStore
from tests.store.helpers import assert_sound, search, vectors_in_memory


def test_everything_that_is_given_comes_back(store, clock):
    given = dict(
        project="billing",
        category="decision",
        tags=["retry", "http", "retry"],
        importance=7,
        subcategory="backoff",
        source="chat",
        related_files=["src/a.py", "src/b.py"],
        file_checksums={"src/a.py": "abc"},
    )
    made = store.remember("Webhooks retry with full jitter.", created_at="2026-01-02T03:04:05.6789+02:00", **given)
    assert made.created
    assert made.duplicate_of == ()
    got = store.get(made.memory_id)
    assert got == made
    assert got.tags == ("retry", "http")
    assert got.created_at == datetime(2026, 1, 2, 1, 4, 5, 678000, tzinfo=UTC)
    for name in ("project", "category", "importance", "subcategory", "source"):
        assert getattr(got, name) == given[name]
    assert got.related_files == ("src/a.py", "src/b.py")
    assert got.file_checksums == {"src/a.py": "abc"}
    assert (got.accessed_at, got.access_count, got.trashed_at, got.updated_at, got.pending) == (
        None,
        0,
        None,
        None,
        False,
    )


def test_what_is_not_given_has_its_default(store, clock):
    got = store.remember("plain", project="  ", source="")
    assert (got.category, got.project, got.tags, got.importance, got.source) == ("note", None, (), 5, None)
    assert got.created_at == clock.now
    assert got.memory_id.startswith("m-")
    assert len(got.memory_id) == 12


@pytest.mark.parametrize(
    "content",
    ["  indented\n\n\ttext\n", "NUL \x00 inside", "C:\\repo\\main.py 'q' \"d\"", "日本語 🎉 é e\u0301", "x" * 200_000],
)
def test_content_is_kept_to_the_letter(store, content):
    assert store.get(store.remember(content).memory_id).content == content
    assert_sound(store)


def test_a_closed_and_reopened_store_has_the_same_memories(make_store):
    first = make_store()
    made = first.remember("kept", tags="one")
    vector = vectors_in_memory(first)
    first.close()
    again = make_store(encoder=None)
    assert again.get(made.memory_id) == made
    assert vectors_in_memory(again) == vector


def test_a_single_memory_has_the_vector_of_its_text(store):
    made = store.remember("one two three")
    expected = HashingEncoder(64).encode_documents(["one two three"])[0]
    ids, matrix = store.vectors()
    assert ids == [made.memory_id]
    np.testing.assert_array_equal(matrix[0], expected)


def test_a_given_vector_is_kept_as_a_unit_vector(store):
    store.remember("first")
    made = store.remember("second", vector=[3.0, 4.0] + [0.0] * 62)
    vector = np.frombuffer(vectors_in_memory(store)[made.memory_id], "<f4")
    np.testing.assert_allclose(vector[:3], [0.6, 0.8, 0.0], atol=1e-7)
    assert not made.pending
    assert_sound(store)


# -- idempotency and duplicates ---------------------------------------------------------------------------------------


def test_same_key_and_content_is_the_same_memory(store):
    first = store.remember("a fact", idempotency_key="k1", project="one")
    again = store.remember("a fact", idempotency_key="k1", project="two")
    assert first.created
    assert not again.created
    assert again.memory_id == first.memory_id
    assert again.project == "one"
    assert len(store) == 1


def test_same_key_and_other_content_is_an_error(store):
    first = store.remember("a fact", idempotency_key="k1")
    with pytest.raises(IdempotencyError, match=f"'k1'.*{first.memory_id}"):
        store.remember("another fact", idempotency_key="k1")
    assert [memory.content for memory in store.find()] == ["a fact"]


def test_a_key_stands_for_the_first_content_after_an_update(store):
    first = store.remember("a fact", idempotency_key="k1")
    store.update(first.memory_id, content="the fact, corrected")
    again = store.remember("a fact", idempotency_key="k1")
    assert (again.memory_id, again.content, again.created) == (first.memory_id, "the fact, corrected", False)
    with pytest.raises(IdempotencyError):
        store.remember("the fact, corrected", idempotency_key="k1")


def test_a_key_holds_in_the_trash_and_is_free_after_a_purge(store):
    first = store.remember("a fact", idempotency_key="k1")
    store.forget(first.memory_id)
    again = store.remember("a fact", idempotency_key="k1")
    assert again.memory_id == first.memory_id
    assert again.trashed_at is not None
    store.purge()
    fresh = store.remember("something else", idempotency_key="k1")
    assert fresh.created
    assert fresh.memory_id != first.memory_id


def test_a_key_holds_between_two_stores_on_one_file(make_store):
    one, two = make_store(), make_store()
    first = one.remember("a fact", idempotency_key="k1")
    assert two.remember("a fact", idempotency_key="k1").memory_id == first.memory_id
    with pytest.raises(IdempotencyError):
        two.remember("no", idempotency_key="k1")


def test_a_known_id_is_the_same_memory_or_an_error(store):
    store.remember("a fact", memory_id="m-1")
    assert not store.remember("a fact", memory_id="m-1").created
    with pytest.raises(DuplicateIdError, match="m-1"):
        store.remember("another", memory_id="m-1")
    assert len(store) == 1


def test_exact_duplicates_are_stored_and_reported(store):
    long = "x" * 60
    first = store.remember(long)
    assert store.remember(long + "y").duplicate_of == ()
    second = store.remember(long)
    assert second.duplicate_of == (first.memory_id,)
    assert second.created
    third = store.remember(long)
    assert third.duplicate_of == tuple(sorted([first.memory_id, second.memory_id]))
    store.forget(first.memory_id)
    assert store.remember(long).duplicate_of == tuple(sorted([second.memory_id, third.memory_id]))
    assert len(store) == 4
    assert store.remember("X" * 60).duplicate_of == ()


# -- changing ---------------------------------------------------------------------------------------------------------


def test_update_changes_what_is_given_and_nothing_else(store, clock):
    made = store.remember("old words", project="a", tags=["t"], importance=3, source="s")
    clock.advance(hours=1)
    got = store.update(made.memory_id, content="new text", project=None, tags=["u", "v"], importance=9)
    assert (got.content, got.project, got.tags, got.importance) == ("new text", None, ("u", "v"), 9)
    assert (got.source, got.created_at, got.updated_at) == ("s", made.created_at, clock.now)
    assert not got.pending
    assert search(store.path, "old") == []
    assert search(store.path, "new") == [made.memory_id]
    assert search(store.path, "u") == [made.memory_id]
    expected = HashingEncoder(64).encode_documents(["new text"])[0]
    assert vectors_in_memory(store)[made.memory_id] == expected.tobytes()
    assert_sound(store)


def test_update_of_metadata_keeps_the_vector_and_makes_no_revision(store):
    made = store.remember("words")
    before = vectors_in_memory(store)
    store.update(made.memory_id, category="decision", related_files=["a/b.py"], file_checksums={"a/b.py": "1"})
    assert vectors_in_memory(store) == before
    assert len(store.history(made.memory_id)) == 1
    assert search(store.path, "decision") == [made.memory_id]
    assert search(store.path, "b") == [made.memory_id]


def test_history_has_every_content(store, clock):
    made = store.remember("one")
    times = []
    for content in ("two", "two", "three"):
        times.append(clock.advance(minutes=1))
        store.update(made.memory_id, content=content)
    history = store.history(made.memory_id)
    assert [(step.revision, step.content) for step in history] == [(1, "one"), (2, "two"), (3, "three")]
    assert [step.replaced_at for step in history] == [times[0], times[2], None]


def test_touch_counts_an_access(store, clock):
    ids = [store.remember(f"memory {i}").memory_id for i in range(3)]
    clock.advance(days=1)
    store.touch(ids[:2])
    store.touch(ids[0])
    assert [store.get(memory_id).access_count for memory_id in ids] == [2, 1, 0]
    assert store.get(ids[0]).accessed_at == clock.now
    assert store.get(ids[2]).accessed_at is None
    store.touch([])


def test_trash_and_back(store, clock):
    made = store.remember("find me", project="p", tags="t", category="c")
    clock.advance(days=2)
    trashed = store.forget(made.memory_id)
    assert trashed.trashed_at == clock.now
    assert len(store) == 0
    assert store.find() == []
    assert [memory.memory_id for memory in store.find(trashed=True)] == [made.memory_id]
    assert [memory.memory_id for memory in store.find(trashed=None)] == [made.memory_id]
    assert (store.projects(), store.tags(), store.categories()) == ({}, {}, {})
    assert store.vectors()[0] == []
    assert search(store.path, "find") == []
    assert made.memory_id in store
    clock.advance(days=1)
    assert store.forget(made.memory_id).trashed_at == trashed.trashed_at
    assert store.restore(made.memory_id).trashed_at is None
    assert store.restore(made.memory_id).trashed_at is None
    assert search(store.path, "find") == [made.memory_id]
    assert store.vectors()[0] == [made.memory_id]
    assert_sound(store)


def test_a_memory_in_the_trash_is_not_changed(store):
    made = store.remember("x")
    store.forget(made.memory_id)
    with pytest.raises(UnknownMemory, match="trash"):
        store.update(made.memory_id, content="y")
    assert store.get(made.memory_id).content == "x"


def test_purge_deletes_for_good(store, clock):
    kept, gone, later = (store.remember(f"memory number {name}", idempotency_key=name).memory_id for name in "abc")
    store.update(gone, content="changed")
    store.forget(gone)
    clock.advance(days=10)
    store.forget(later)
    assert store.purge(trashed_before=clock.now - timedelta(days=1)) == 1
    with pytest.raises(UnknownMemory):
        store.get(gone)
    assert gone not in store
    with pytest.raises(InvalidValue, match=kept):
        store.purge([later, kept])
    assert later in store
    assert store.purge(later, trashed_before="2026-01-01T00:00:00Z") == 0
    assert store.purge([later, later]) == 1
    assert store.purge() == 0
    assert len(store) == 1
    assert_sound(store)
    for table in ("memory_revisions", "memory_passages"):
        assert store.db[table].count == 0
    assert [row["key"] for row in store.db["idempotency_keys"].rows] == ["a"]


# -- reading ----------------------------------------------------------------------------------------------------------


def test_get_many_keeps_the_order_and_skips_the_unknown(store):
    ids = list(store.remember_many(f"memory {i}" for i in range(600)).memory_ids)
    wanted = [ids[550], "m-none", ids[3], ids[550], ids[599]]
    assert [memory.memory_id for memory in store.get_many(wanted)] == [ids[550], ids[3], ids[599]]
    assert [memory.memory_id for memory in store.get_many(ids[::-1])] == ids[::-1]
    assert store.get_many([]) == []


def test_find_is_newest_first_then_by_id(store, clock):
    for memory_id in ("m-b", "m-a"):
        store.remember(memory_id, memory_id=memory_id)
    clock.advance(seconds=1)
    store.remember("newest", memory_id="m-z")
    assert [memory.memory_id for memory in store.find()] == ["m-z", "m-a", "m-b"]
    assert [memory.memory_id for memory in store.find(limit=2)] == ["m-z", "m-a"]
    assert store.find(limit=0) == []


def test_tallies_are_of_live_memories(store):
    store.remember("1", project="a", category="x", tags=["p", "q"])
    store.remember("2", project="b", category="x", tags=["q"])
    store.remember("3", project="b")
    store.forget(store.remember("4", project="b", category="x", tags=["q"]).memory_id)
    assert list(store.projects().items()) == [("b", 2), ("a", 1)]
    assert list(store.categories().items()) == [("x", 2), ("note", 1)]
    assert list(store.tags().items()) == [("q", 2), ("p", 1)]


def test_stats_count(make_store, clock):
    store = make_store(encoder=HashingEncoder(64, token_limit=8))
    one = store.remember("short", project="p", created_at="2026-01-01T00:00:00Z")
    store.remember("a b c d e f. g h i j k l. m n o p q r.", created_at="2026-02-01T00:00:00Z")
    store.update(one.memory_id, content="short too")
    store.forget(store.remember("trash").memory_id)
    make_store(encoder=None).remember("no vector")
    stats = store.stats()
    assert (stats.memories, stats.trashed, stats.pending, stats.revisions) == (3, 1, 1, 1)
    assert stats.passages == len(store.passages(store.find(created_after="2026-01-31T00:00:00Z")[-1].memory_id))
    assert (stats.projects, stats.categories) == (1, 1)
    assert (stats.oldest, stats.newest) == ("2026-01-01T00:00:00.000Z", "2026-03-04T09:12:41.123Z")
    assert (stats.encoder, stats.dimension) == ("hashing-64", 64)
    assert stats.file_bytes >= store.path.stat().st_size


def test_an_empty_store_answers(store):
    assert len(store) == 0
    assert bool(store)
    assert store.find() == []
    assert store.vectors()[0] == []
    assert store.memories().empty
    assert store.encoder_stamp is None
    assert store.stats().encoder is None
    assert (store.categories(), store.projects(), store.tags()) == ({}, {}, {})
    assert store.purge() == 0
    assert store.embed_pending() == 0
    assert store.check().ok


def test_memories_is_a_frame(store, clock):
    made = store.remember("a", tags=["t"], importance=2)
    store.forget(store.remember("b").memory_id)
    frame = store.memories()
    assert list(frame["memory_id"]) == [made.memory_id]
    assert {"content", "category", "project", "tags", "importance", "created_at", "trashed_at", "pending"} <= set(frame)
    for name in ("created_at", "accessed_at", "trashed_at", "updated_at"):
        assert isinstance(frame[name].dtype, pd.DatetimeTZDtype), name
    assert frame["created_at"][0] == pd.Timestamp(clock.now)
    assert frame["tags"][0] == ("t",)
    assert len(store.memories(trashed=None)) == 2
    assert len(store.memories(min_importance=3, trashed=True)) == 1
    assert list(store.memories(limit=0).columns) == list(frame.columns)


def test_reprs_teach(store):
    made = store.remember("Webhooks retry with full jitter.", project="billing", tags=["retry"])
    assert "Webhooks" in repr(made)
    assert "#retry" in repr(made)
    assert "1 memories" in repr(store)
    assert "hashing-64" in repr(store)
    store.close()
    assert "closed" in repr(store)


def test_as_dict_is_plain_json(store):
    import json

    made = store.remember("a", tags=["t"], file_checksums={"f": "1"})
    assert json.loads(json.dumps(made.as_dict()))["created_at"] == "2026-03-04T09:12:41.123Z"


def test_contains_and_equality(store):
    made = store.remember("a")
    assert made.memory_id in store
    assert "m-none" not in store
    assert 5 not in store
    assert isinstance(made, Memory)


def test_two_opened_stores_see_each_other_at_once(make_store):
    one, two = make_store(), make_store(encoder=None)
    made = one.remember("first", project="p")
    assert two.get(made.memory_id) == made
    assert vectors_in_memory(two) == vectors_in_memory(one)
    two.forget(made.memory_id)
    assert len(one) == 0
    assert one.vectors()[0] == []


def test_db_is_for_looking_around(store):
    store.remember("a", project="p")
    assert store.db["memories"].count == 1
    assert [row["project"] for row in store.db.query("select project from memories")] == ["p"]


def test_context_manager_closes(tmp_path):
    from memlab.errors import StoreClosed

    with MemoryStore(tmp_path / "a.db", None) as store:
        store.remember("a")
    with pytest.raises(StoreClosed):
        len(store)


def test_a_key_given_with_a_known_id_stands_for_that_memory(store):
    store.remember("said once", memory_id="m-1")
    assert not store.remember("said once", memory_id="m-1", idempotency_key="k").created
    again = store.remember("said once", idempotency_key="k")
    assert (again.memory_id, again.created) == ("m-1", False)
    assert len(store) == 1
