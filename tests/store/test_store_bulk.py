"""Many memories at once: batches, interruptions, and going on where it stopped."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.errors import ContentError, DuplicateIdError, IdempotencyError, InvalidValue
from tests.store.helpers import OddEncoder, assert_sound, dump, vectors_in_memory


def texts(count: int, word: str = "memory") -> list[str]:
    return [f"{word} number {i} about topic {i % 7}" for i in range(count)]


def test_contents_and_mappings_in_order(store):
    result = store.remember_many(["one", {"content": "two", "project": "p"}, {"content": "three", "memory_id": "m-3"}])
    assert (result.created, result.existing, result.pending, result.duplicates) == (3, 0, 0, {})
    assert [store.get(memory_id).content for memory_id in result.memory_ids] == ["one", "two", "three"]
    assert result.memory_ids[2] == "m-3"
    assert store.get(result.memory_ids[1]).project == "p"
    assert repr(result) == "<BulkResult: 3 new>"
    assert_sound(store)


def test_same_vectors_as_one_by_one(make_store):
    one, many = make_store("one.db"), make_store("many.db")
    for i, text in enumerate(texts(20)):
        one.remember(text, memory_id=f"m-{i}")
    many.remember_many([{"content": text, "memory_id": f"m-{i}"} for i, text in enumerate(texts(20))], batch_size=3)
    assert vectors_in_memory(one) == vectors_in_memory(many)


def test_batches_are_encoded_and_reported_one_by_one(make_store):
    encoder = OddEncoder()
    store = make_store(encoder=encoder)
    seen: list[tuple[int, int | None]] = []
    store.remember_many(texts(10), batch_size=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 10), (8, 10), (10, 10)]
    assert encoder.calls == 3
    seen.clear()
    store.remember_many((text for text in texts(5, "other")), batch_size=4, progress=lambda *step: seen.append(step))
    assert seen == [(4, None), (5, None)]


def test_nothing_is_something_too(store):
    result = store.remember_many([])
    assert (result.memory_ids, result.created) == ((), 0)
    assert store.encoder_stamp is None


@pytest.mark.parametrize("error", [RuntimeError("progress broke"), KeyboardInterrupt()])
def test_an_interruption_keeps_whole_batches_and_is_resumed(make_store, error):
    encoder = OddEncoder()
    store = make_store(encoder=encoder)

    def stop(done, total):
        if done == 8:
            raise error

    with pytest.raises(type(error)):
        store.remember_many(texts(20), batch_size=4, resume_key="import-1", progress=stop)
    assert len(store) == 8
    assert len(encoder.texts) == 8
    assert_sound(store)
    result = store.remember_many(texts(20), batch_size=4, resume_key="import-1")
    assert (result.created, result.existing) == (12, 8)
    assert len(encoder.texts) == 20, "what was stored is not encoded again"
    assert [store.get(memory_id).content for memory_id in result.memory_ids] == texts(20)
    assert len(store) == 20
    assert store.remember_many(texts(20), resume_key="import-1").existing == 20
    assert_sound(store)


def test_an_interruption_inside_the_encoder_keeps_earlier_batches(make_store):
    encoder = OddEncoder()
    encoder.fails = lambda call, _: KeyboardInterrupt() if call == 2 else None
    store = make_store(encoder=encoder)
    with pytest.raises(KeyboardInterrupt):
        store.remember_many(texts(20), batch_size=4, resume_key="r")
    assert len(store) == 8
    assert store.remember_many(texts(20), batch_size=4, resume_key="r").existing == 8
    assert len(store) == 20
    assert_sound(store)


def test_an_interruption_inside_the_transaction_undoes_the_batch(store, monkeypatch):
    from memlab.store import writing

    true_insert = writing.insert
    calls = []

    def insert(*arguments):
        true_insert(*arguments)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(writing, "insert", insert)
    with pytest.raises(KeyboardInterrupt):
        store.remember_many(texts(12), batch_size=4, resume_key="r")
    assert len(store) == 4
    assert_sound(store)
    assert store.remember_many(texts(12), batch_size=4, resume_key="r").created == 8


def test_records_with_ids_resume_without_a_key(store):
    records = [{"content": text, "memory_id": f"m-{i}"} for i, text in enumerate(texts(9))]
    store.remember_many(records[:5])
    result = store.remember_many(records)
    assert (result.created, result.existing) == (4, 5)
    assert len(store) == 9


def test_a_resume_key_with_other_records_is_an_error(store):
    store.remember_many(texts(4), resume_key="r")
    with pytest.raises(IdempotencyError, match=r"record 0: .*r/0"):
        store.remember_many(texts(4, "other"), resume_key="r")
    assert len(store) == 4


def test_an_own_key_goes_before_the_resume_key(store):
    store.remember_many([{"content": "a", "idempotency_key": "own"}], resume_key="r")
    assert not store.remember("a", idempotency_key="own").created
    assert store.remember("a", idempotency_key="r/0").created


def test_a_key_or_id_twice_in_one_batch(store):
    result = store.remember_many(
        [
            {"content": "a", "idempotency_key": "k"},
            {"content": "b", "memory_id": "m-b"},
            {"content": "a", "idempotency_key": "k"},
            {"content": "b", "memory_id": "m-b"},
        ]
    )
    assert result.memory_ids[0] == result.memory_ids[2]
    assert result.memory_ids[1] == result.memory_ids[3] == "m-b"
    assert (result.created, result.existing) == (2, 2)
    assert len(store) == 2
    assert_sound(store)


@pytest.mark.parametrize("key", [None, "other"])
def test_the_id_of_a_record_that_is_another_by_its_key_stands_for_nothing(store, key):
    result = store.remember_many(
        [
            {"content": "a", "memory_id": "m-1", "idempotency_key": "k"},
            {"content": "a", "memory_id": "m-2", "idempotency_key": "k"},
            {"content": "a", "memory_id": "m-2", "idempotency_key": key},
        ]
    )
    assert result.memory_ids == ("m-1", "m-1", "m-2")
    assert all(memory_id in store for memory_id in result.memory_ids)
    assert_sound(store)


@pytest.mark.parametrize("twice", [{"idempotency_key": "k"}, {"memory_id": "m-1"}])
def test_a_key_or_id_twice_with_other_content(store, twice):
    before = dump(store.path)
    with pytest.raises(InvalidValue, match=r"record 1: .*twice"):
        store.remember_many([{"content": "a", **twice}, {"content": "b", **twice}])
    assert dump(store.path) == before


def test_duplicates_are_reported_in_and_between_batches(store):
    old = store.remember("same").memory_id
    result = store.remember_many(["same", "other", "same"], batch_size=2)
    first, _, last = result.memory_ids
    assert result.duplicates == {first: (old,), last: tuple(sorted([old, first]))}
    assert len(store) == 4
    assert "2 with the same content" in repr(result)


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"content": ""}, ContentError, "content"),
        ({"project": "p"}, ContentError, "content"),
        ({"content": "a", "importance": 11}, InvalidValue, "importance"),
        ({"content": "a", "tags": [1]}, InvalidValue, "tags"),
        ({"content": "a", "created_at": "2026-01-01"}, InvalidValue, "zone"),
        ({"content": "a", "colour": "red"}, InvalidValue, "'colour'.*content"),
        ({"content": "a", "access_count": -1}, InvalidValue, "access_count"),
        ({"content": "a", "memory_id": "m-known"}, DuplicateIdError, "m-known"),
        ({"content": "a", "idempotency_key": "known"}, IdempotencyError, "'known'"),
        (5, InvalidValue, "int"),
        (None, InvalidValue, "NoneType"),
    ],
)
def test_a_bad_record_is_named_and_earlier_batches_stay(store, record, error, message):
    store.remember("known", memory_id="m-known", idempotency_key="known")
    with pytest.raises(error, match=f"(?s)^record 5: .*{message}"):
        store.remember_many([*texts(5), record, *texts(3, "later")], batch_size=4)
    assert sorted(memory.content for memory in store.find()) == sorted(["known", *texts(4)])
    assert_sound(store)


@pytest.mark.parametrize("records", ["text", b"bytes", {"content": "a"}, 5, None])
def test_records_of_another_kind(store, records):
    with pytest.raises(InvalidValue, match="record"):
        store.remember_many(records)
    assert len(store) == 0


def test_a_frame_itself_is_refused_with_a_hint(store):
    store.remember("a")
    with pytest.raises(InvalidValue, match="to_dict"):
        store.remember_many(store.memories())
    assert len(store) == 1


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "4", None])
def test_batch_sizes(store, size):
    store.remember("a")
    for call in (lambda: store.remember_many(["b"], batch_size=size), lambda: store.embed_pending(batch_size=size)):
        with pytest.raises(InvalidValue, match="batch_size"):
            call()
    with pytest.raises(InvalidValue, match="batch_size"):
        store.reembed(batch_size=size)
    assert len(store) == 1


def test_a_generator_that_breaks_keeps_whole_batches(store):
    def records():
        yield from texts(6)
        raise OSError("the file went away")

    with pytest.raises(OSError, match="went away"):
        store.remember_many(records(), batch_size=4)
    assert len(store) == 4


def test_a_frame_goes_round(make_store, clock):
    source, target = make_store("source.db"), make_store("target.db")
    ids = source.remember_many(
        [
            {"content": "one", "project": "p", "tags": ["a", "b"], "importance": 9, "related_files": ["x.py"]},
            {"content": "two", "file_checksums": {"x": "1"}, "created_at": "2025-01-01T00:00:00+02:00"},
            {"content": "three", "subcategory": "s", "source": "chat"},
        ]
    ).memory_ids
    clock.advance(hours=1)
    source.touch([ids[0], ids[0], ids[1]])
    source.touch(ids[0])
    source.update(ids[1], content="two, changed")
    source.forget(ids[2])
    frame = source.memories(trashed=None)
    result = target.remember_many(frame.to_dict("records"))
    assert result.created == 3
    assert target.find(trashed=None) == source.find(trashed=None)
    assert vectors_in_memory(target) == vectors_in_memory(source)
    assert target.remember_many(frame.to_dict("records")).existing == 3
    assert_sound(target)


def test_vectors_in_records(make_store):
    encoder = OddEncoder()
    store = make_store(encoder=encoder)
    vector = np.eye(64, dtype=np.float32)[3]
    result = store.remember_many(["plain", {"content": "given", "vector": vector}])
    assert encoder.texts == ["plain"]
    assert vectors_in_memory(store)[result.memory_ids[1]] == vector.tobytes()
    with pytest.raises(Exception, match=r"record 1: vector.*\(1, 64\)"):
        store.remember_many(["fine", {"content": "bad", "vector": [1.0, 2.0]}])
    assert len(store) == 2


def test_a_store_opened_read_only_refuses(make_store):
    from memlab.errors import StoreReadOnly

    make_store().remember("a")
    reader = make_store(read_only=True)
    for write in (
        lambda: reader.remember("b"),
        lambda: reader.remember_many(["b"]),
        lambda: reader.touch("x"),
        lambda: reader.purge(),
        lambda: reader.reembed(),
    ):
        with pytest.raises(StoreReadOnly, match="read_only"):
            write()
    assert len(reader) == 1
