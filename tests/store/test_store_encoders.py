"""Encoders that fail, that are not there, and that are not the store's; and moving to another one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.encoders.base import stamp
from memlab.errors import EncoderError, EncoderMismatch, EncoderUnavailable, InvalidValue, StoreError
from memlab.store import PassagePolicy
from tests.store.helpers import OddEncoder, assert_sound, dump, vectors_in_memory, vectors_on_disk

NAN = np.full((1, 64), np.nan, np.float32)


def texts(count: int) -> list[str]:
    return [f"memory number {i} about topic {i % 7}" for i in range(count)]


# -- failing ----------------------------------------------------------------------------------------------------------

BROKEN = {
    "raises": lambda call, given: RuntimeError("out of memory"),
    "raises its own": lambda call, given: EncoderError("weights are broken"),
    "nan": lambda call, given: np.full((len(given), 64), np.nan, np.float32),
    "infinite": lambda call, given: np.full((len(given), 64), np.inf, np.float32),
    "zero": lambda call, given: np.zeros((len(given), 64), np.float32),
    "too few rows": lambda call, given: np.ones((len(given) - 1, 64), np.float32),
    "other dimension": lambda call, given: np.ones((len(given), 63), np.float32),
    "flat": lambda call, given: np.ones(64, np.float32),
    "no numbers": lambda call, given: np.array([["x"] * 64] * len(given)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_encoder_loses_nothing(make_store, how):
    encoder = OddEncoder()
    encoder.fails = BROKEN[how]
    store = make_store(encoder=encoder)
    made = store.remember("one fact")
    assert made.pending
    result = store.remember_many(texts(3))
    assert (result.created, result.pending) == (3, 3)
    assert result.note
    assert store.stats().pending == 4
    assert store.encoder_stamp is None
    recall = memlab.HybridRetriever(store).only("keyword").recall("fact")
    assert [hit.memory_id for hit in recall.hits] == [made.memory_id]
    with pytest.raises(EncoderError):
        store.embed_pending()
    assert store.check().ok
    encoder.fails = lambda call, given: None
    assert store.embed_pending() == 4
    assert store.stats().pending == 0
    assert vectors_in_memory(store)[made.memory_id] == HashingEncoder(64).encode_documents(["one fact"])[0].tobytes()
    assert_sound(store)


def test_a_failure_in_mid_bulk_leaves_that_batch_pending(make_store):
    encoder = OddEncoder()
    lost = set(texts(12)[4:8])
    encoder.fails = lambda call, given: RuntimeError("gpu lost") if lost & set(given) else None
    store = make_store(encoder=encoder)
    result = store.remember_many(texts(12), batch_size=4)
    assert (result.created, result.pending) == (12, 4)
    assert encoder.calls == 1 + (1 + 3) + 1  # the batch, and no more than three of it one by one
    assert "gpu lost" in result.note
    assert "gpu lost" in repr(result)
    waiting = {memory.memory_id for memory in store.find() if memory.pending}
    assert waiting == set(result.memory_ids[4:8])
    assert set(vectors_in_memory(store)) == set(result.memory_ids) - waiting
    lost.clear()
    seen: list[tuple[int, int | None]] = []
    assert store.embed_pending(batch_size=3, progress=lambda *step: seen.append(step)) == 4
    assert seen == [(3, 4), (4, 4)]
    assert_sound(store)
    assert store.embed_pending() == 0


def test_one_bad_text_leaves_only_itself_pending(make_store):
    encoder = OddEncoder()
    encoder.fails = lambda call, given: RuntimeError("no such character") if "text 5" in given else None
    store = make_store(encoder=encoder)
    contents = [f"text {i}" for i in range(8)]
    result = store.remember_many(contents)
    assert (result.created, result.pending) == (8, 1)
    assert "no such character" in result.note
    assert [memory.content for memory in store.find() if memory.pending] == ["text 5"]
    make_store(encoder=None).remember_many(["text 8", "text 9"])
    with pytest.raises(EncoderError, match=r"2 memories got their vectors; others could not be encoded: .*no such"):
        store.embed_pending()
    assert [memory.content for memory in store.find() if memory.pending] == ["text 5"]
    with pytest.raises(EncoderError, match="no such character"):
        store.embed_pending()
    assert_sound(store)


def test_embed_pending_keeps_what_was_done_before_a_failure(make_store):
    make_store(encoder=None).remember_many(texts(10))
    encoder = OddEncoder()
    encoder.fails = lambda call, given: RuntimeError("broke") if call >= 2 else None
    store = make_store(encoder=encoder)
    with pytest.raises(EncoderError, match="broke"):
        store.embed_pending(batch_size=4)
    assert store.stats().pending == 2
    encoder.fails = lambda call, given: None
    assert store.embed_pending(batch_size=4) == 2
    assert len(encoder.texts) == 10
    assert_sound(store)


def test_embed_pending_skips_what_changed_meanwhile(make_store):
    plain = make_store(encoder=None)
    ids = plain.remember_many(["stays", "is changed", "is purged"]).memory_ids
    encoder = OddEncoder()

    def meddle(call, given):
        if call == 0:
            plain.update(ids[1], content="changed by another")
            plain.forget(ids[2])
            plain.purge(ids[2])

    encoder.fails = meddle
    store = make_store(encoder=encoder)
    assert store.embed_pending() == 1
    assert store.get(ids[1]).pending
    assert_sound(store)
    assert store.embed_pending() == 1
    expected = HashingEncoder(64).encode_documents(["changed by another"])[0]
    assert vectors_in_memory(store)[ids[1]] == expected.tobytes()


def test_an_update_without_encoder_waits_for_its_vector(make_store):
    encoder = OddEncoder()
    store = make_store(encoder=encoder)
    made = store.remember("old text")
    encoder.fails = lambda call, given: RuntimeError("broke")
    got = store.update(made.memory_id, content="new text")
    assert got.pending
    assert vectors_in_memory(store) == {}
    assert store.update(made.memory_id, project="p").project == "p"
    assert_sound(store)


def test_no_encoder_at_all(make_store):
    store = make_store(encoder=None)
    made = store.remember("found by its words")
    assert made.pending
    assert not store.wants_encoder
    recall = memlab.HybridRetriever(store).recall("words")
    assert [hit.memory_id for hit in recall.hits] == [made.memory_id]
    with pytest.raises(EncoderUnavailable, match="encoder=None"):
        store.encoder()
    with pytest.raises(EncoderUnavailable):
        store.embed_pending()
    with pytest.raises(EncoderUnavailable):
        store.reembed()
    with pytest.raises(EncoderError):
        store.remember("x", vector=np.ones(64))
    assert len(store) == 1
    assert store.check().ok


# -- the store's own and others ---------------------------------------------------------------------------------------


def test_another_encoder_is_refused_by_name(make_store):
    make_store().remember("a")
    with pytest.raises(EncoderMismatch, match=r"hashing-64.*hashing-32.*memlab reembed --encoder hashing-32"):
        make_store(encoder=HashingEncoder(32))
    with pytest.raises(EncoderMismatch, match=r"hashing-64.*my-model"):
        make_store(encoder=OddEncoder(name="my-model", weights="x"))


def test_the_same_weights_under_another_name_are_the_same_encoder(make_store):
    make_store().remember("a")
    again = make_store(encoder=OddEncoder(name="my-model"))
    assert not again.remember("b").pending
    assert again.check().ok


def test_the_same_name_with_other_weights_is_refused(make_store):
    make_store().remember("a")
    with pytest.raises(EncoderMismatch, match="other weights"):
        make_store(encoder=OddEncoder(weights="x"))


def test_before_the_first_vector_any_encoder_will_do(make_store):
    make_store(encoder=None).remember("a")
    store = make_store(encoder=HashingEncoder(32))
    assert store.embed_pending() == 1
    assert store.encoder_stamp == stamp(HashingEncoder(32))


def test_two_first_writers_with_different_encoders(make_store):
    one, two = make_store(), make_store(encoder=HashingEncoder(32))
    one.remember("first")
    made = two.remember("second")
    assert made.pending, "the store is the first writer's"
    assert two.remember_many(["third"]).pending == 1
    assert "hashing-64" in two.remember_many(["fourth"]).note
    assert_sound(one)
    assert one.embed_pending() == 3


def test_the_own_encoder_is_found_by_its_name(make_store):
    from memlab.store import AUTO

    first = make_store(encoder=HashingEncoder(64, token_limit=8))
    long = "one two three four. five six seven eight. nine ten eleven twelve. thirteen"
    a = first.remember(long)
    again = make_store(encoder=AUTO)
    b = again.remember(long + " fourteen")
    assert not b.pending
    assert len(first.passages(a.memory_id)) == len(again.passages(b.memory_id)) == 3
    assert stamp(again.encoder()) == stamp(first.encoder())


def test_re_embedded_by_another_process_while_open(make_store):
    one = make_store()
    kept = one.remember("a fact about retries").memory_id
    retriever = memlab.HybridRetriever(one)
    assert {c.channel for c in retriever.recall("retries").hits[0].place.contributions} == {"keyword", "vector"}
    other = make_store()
    other.reembed(HashingEncoder(32))
    made = one.remember("another fact about retries")
    assert made.pending
    result = one.remember_many(["third fact about retries"])
    assert result.pending == 1
    assert "hashing-32" in result.note
    updated = one.update(kept, content="a fact about retries, changed")
    assert updated.pending
    recall = retriever.recall("retries")
    assert len(recall.hits) == 3
    assert "hashing-32" in str(recall.trace.note)
    assert one.check().ok
    assert other.embed_pending() == 3
    assert_sound(other)
    # And back again: the encoder that was refused fits now.
    other.reembed(HashingEncoder(64))
    assert not one.remember("fourth fact").pending
    assert "vector" in {c.channel for c in retriever.recall("fact").hits[0].place.contributions}
    assert_sound(one)


def test_a_store_without_an_encoder_of_its_own_choice_follows(make_store):
    from memlab.store import AUTO

    make_store().remember("a")
    auto = make_store(encoder=AUTO)
    assert not auto.remember("b").pending
    make_store(encoder=None).reembed(HashingEncoder(32))
    assert not auto.remember("c").pending
    assert stamp(auto.encoder()) == stamp(HashingEncoder(32))
    assert_sound(auto)


# -- re-embedding -----------------------------------------------------------------------------------------------------


def test_reembed_gives_every_memory_the_new_vector(make_store):
    store = make_store()
    ids = store.remember_many(texts(10)).memory_ids
    store.forget(ids[3])
    make_store(encoder=None).remember("pending", memory_id="m-p")
    new = OddEncoder(32)
    assert store.reembed(new, batch_size=4) == 11
    assert store.encoder_stamp == stamp(new)
    assert store.stats().pending == 0
    assert len(store.encode_query("x")) == 32
    expected = HashingEncoder(32).encode_documents(texts(10))
    found = vectors_in_memory(store)
    for i, memory_id in enumerate(ids):
        if i != 3:
            assert found[memory_id] == expected[i].tobytes()
    store.restore(ids[3])
    assert vectors_in_memory(store)[ids[3]] == expected[3].tobytes()
    assert_sound(store)
    assert [row["name"] for row in store.db["encoders"].rows] == ["hashing-32"]
    with pytest.raises(EncoderMismatch):
        make_store(encoder=HashingEncoder(64))


def test_reembed_goes_on_where_it_stopped(make_store):
    store = make_store()
    store.remember_many(texts(20))
    old = vectors_on_disk(store.path)
    new = OddEncoder(32)
    new.fails = lambda call, given: RuntimeError("gpu lost") if call == 3 else None
    with pytest.raises(EncoderError, match="gpu lost"):
        store.reembed(new, batch_size=4)
    assert len(new.texts) == 12
    assert store.check().staged == 12
    assert vectors_in_memory(store) == old
    assert len(store.encode_query("x")) == 64
    assert memlab.HybridRetriever(store).only("vector").recall("memory number 3", limit=1).hits
    store.close()
    again = make_store()
    new.fails = lambda call, given: None
    seen: list[tuple[int, int | None]] = []
    assert again.reembed(new, batch_size=4, progress=lambda *step: seen.append(step)) == 20
    assert sorted(new.texts) == sorted(texts(20)), "nothing is encoded twice"
    assert seen[0] == (12, 20)
    assert seen[-1] == (20, 20)
    assert again.check().staged == 0
    assert_sound(again)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("progress broke")])
def test_reembed_interrupted_by_its_watcher(make_store, stop):
    store = make_store()
    store.remember_many(texts(10))
    old = vectors_on_disk(store.path)
    new = OddEncoder(32)

    def watch(done, total):
        if done == 8:
            raise stop

    with pytest.raises(type(stop)):
        store.reembed(new, batch_size=4, progress=watch)
    assert vectors_in_memory(store) == old
    assert store.reembed(new, batch_size=4) == 10
    assert len(new.texts) == 10


def test_reembed_with_another_goal_starts_afresh(make_store):
    store = make_store()
    store.remember_many(texts(10))
    new = OddEncoder(32)
    new.fails = lambda call, given: RuntimeError("stop") if call == 1 else None
    with pytest.raises(EncoderError):
        store.reembed(new, batch_size=4)
    third = OddEncoder(16)
    assert store.reembed(third, batch_size=4) == 10
    assert len(third.texts) == 10
    assert len(store.encode_query("x")) == 16
    assert_sound(store)


def test_old_vectors_answer_until_the_end_and_changes_are_not_lost(make_store):
    store, other = make_store(), make_store()
    ids = list(store.remember_many(texts(12)).memory_ids)
    ids.sort()
    new = OddEncoder(32)
    made: list[str] = []

    def meddle(call, given):
        # Old vectors answer, whole and unmixed.
        assert vectors_in_memory(other) == vectors_on_disk(store.path)
        assert len(other.vectors()[1][0]) == 64
        if call == 1:
            made.append(other.remember("added meanwhile").memory_id)
            other.update(ids[0], content="staged, then changed")  # staged already
            other.update(ids[5], content="in work, then changed")  # in the batch that is being encoded
            other.update(ids[11], content="changed, then staged")
            other.forget(ids[1])
            other.forget(ids[2])
            other.purge(ids[2])

    new.fails = meddle
    store.reembed(new, batch_size=4)
    assert_sound(store)
    found = vectors_in_memory(store)
    assert set(found) == {*ids, *made} - {ids[1], ids[2]}
    for memory_id, vector in found.items():
        expected = HashingEncoder(32).encode_documents([store.get(memory_id).content])[0].tobytes()
        assert vector == expected, store.get(memory_id)
    assert store.get(ids[1]).trashed_at is not None
    assert not store.get(ids[1]).pending


def test_staged_vectors_do_not_survive_a_replacement_by_raw_sql(make_store):
    from tests.store.helpers import raw_connection

    store = make_store()
    ids = sorted(store.remember_many(texts(4)).memory_ids)
    new = OddEncoder(32)

    def meddle(call, given):
        if call == 1:
            connection = raw_connection(store.path)
            connection.execute("INSERT OR REPLACE INTO memories (id, content) VALUES (?, 'replaced')", (ids[0],))
            connection.execute("UPDATE memories SET id = 'm-renamed' WHERE id = ?", (ids[1],))
            connection.close()

    new.fails = meddle
    store.reembed(new, batch_size=2)
    expected = HashingEncoder(32).encode_documents(["replaced"])[0].tobytes()
    assert vectors_in_memory(store)[ids[0]] == expected
    assert_sound(store)


def test_two_reembeddings_at_once_do_not_mix(make_store):
    store, other = make_store(), make_store()
    store.remember_many(texts(8))
    new = OddEncoder(32)

    def meddle(call, given):
        if call == 1:
            other.reembed(HashingEncoder(16))

    new.fails = meddle
    with pytest.raises(StoreError, match="meanwhile"):
        store.reembed(new, batch_size=4)
    assert store.encoder_stamp == stamp(HashingEncoder(16))
    assert_sound(other)
    assert vectors_in_memory(store) == vectors_on_disk(store.path)


@pytest.mark.parametrize("how", sorted(set(BROKEN) - {"raises"}))
def test_reembed_with_a_broken_encoder_changes_nothing(make_store, how):
    store = make_store()
    store.remember_many(texts(3))
    old = vectors_in_memory(store)
    new = OddEncoder(64, weights="x")
    new.fails = BROKEN[how]
    with pytest.raises(EncoderError):
        store.reembed(new)
    assert vectors_in_memory(store) == old
    assert store.encoder_stamp == stamp(HashingEncoder(64))
    assert not store.remember("still works").pending
    assert_sound(store)


def test_reembed_of_an_empty_store_records_the_encoder(make_store):
    store = make_store(encoder=None)
    assert store.reembed(HashingEncoder(16)) == 0
    assert store.encoder_stamp == stamp(HashingEncoder(16))
    assert not store.remember("a").pending


def test_reembed_with_another_token_limit_is_recorded(make_store):
    store = make_store()
    made = store.remember("one two three four. five six seven eight. nine ten eleven twelve. thirteen")
    assert len(store.passages(made.memory_id)) == 1
    store.reembed(HashingEncoder(64, token_limit=8))
    assert store.encoder_stamp is not None
    assert store.encoder_stamp.token_limit == 8
    assert len(store.passages(made.memory_id)) == 3
    assert_sound(store)


def test_reembed_with_the_same_encoder_and_another_policy(make_store):
    encoder = OddEncoder(64, token_limit=8)
    store = make_store(encoder=encoder)
    made = store.remember("one two three four. five six seven eight. nine ten eleven twelve. thirteen")
    assert len(store.passages(made.memory_id)) == 3
    store.reembed(passages=PassagePolicy(aggregate="truncate"))
    assert store.passage_policy == PassagePolicy(aggregate="truncate")
    assert len(store.passages(made.memory_id)) == 1
    expected = HashingEncoder(64, 8).encode_documents([store.get(made.memory_id).content])[0].tobytes()
    assert vectors_in_memory(store)[made.memory_id] == expected
    assert_sound(store)
    with pytest.raises(InvalidValue, match="truncate"):
        make_store(encoder=HashingEncoder(64, 8), passages=PassagePolicy())


# -- passage policies -------------------------------------------------------------------------------------------------

LONG = "one two three four. five six seven eight. nine ten eleven twelve thirteen fourteen fifteen. last"


@pytest.mark.parametrize("aggregate", ["length-weighted", "mean", "first"])
@pytest.mark.parametrize("overlap", [0, 2])
def test_passages_cover_the_text_and_make_the_document_vector(make_store, aggregate, overlap):
    encoder = HashingEncoder(64, token_limit=8)
    store = make_store(encoder=encoder, passages=PassagePolicy(overlap=overlap, aggregate=aggregate))
    made = store.remember(LONG)
    passages = store.passages(made.memory_id)
    assert len(passages) > 2
    assert passages[0].start == 0
    assert passages[-1].end == len(LONG)
    assert [p.position for p in passages] == list(range(len(passages)))
    for before, after in itertools.pairwise(passages):
        assert after.start == before.end if overlap == 0 else after.start < before.end
    assert all(p.text == LONG[p.start : p.end] for p in passages)
    rows = encoder.encode_documents([p.text for p in passages]).astype(np.float64)
    weights = {
        "length-weighted": [len(p.text) for p in passages],
        "mean": [1] * len(rows),
        "first": [1] + [0] * (len(rows) - 1),
    }
    expected = np.average(rows, axis=0, weights=weights[aggregate])
    expected /= np.linalg.norm(expected)
    vector = np.frombuffer(vectors_in_memory(store)[made.memory_id], "<f4")
    np.testing.assert_allclose(vector, expected, atol=1e-6)
    assert_sound(store)
    # Reopened without a word about it, the store goes on the same way.
    assert make_store(encoder=encoder).passage_policy == PassagePolicy(overlap=overlap, aggregate=aggregate)


def test_a_short_memory_is_its_own_passage(store):
    made = store.remember("short")
    (passage,) = store.passages(made.memory_id)
    assert (passage.start, passage.end, passage.text) == (0, 5, "short")
    assert store.stats().passages == 0


def test_an_update_replaces_the_passages(make_store):
    store = make_store(encoder=HashingEncoder(64, token_limit=8))
    made = store.remember(LONG)
    many = len(store.passages(made.memory_id))
    store.update(made.memory_id, content="short")
    assert len(store.passages(made.memory_id)) == 1
    assert_sound(store)
    store.update(made.memory_id, content=LONG)
    assert len(store.passages(made.memory_id)) == many
    assert_sound(store)


@pytest.mark.parametrize("policy", [{"aggregate": "max"}, {"overlap": -1}, {"overlap": 1.5}, {"overlap": True}])
def test_bad_policies(policy):
    with pytest.raises(InvalidValue, match="expected"):
        PassagePolicy(**policy)


def test_an_overlap_that_does_not_fit_leaves_memories_pending_and_says_so(make_store):
    store = make_store(encoder=HashingEncoder(64, token_limit=8), passages=PassagePolicy(overlap=7))
    result = store.remember_many([LONG])
    assert result.pending == 1
    assert "overlap" in result.note
    assert store.check().ok


def test_an_update_with_a_broken_encoder_changes_only_what_it_says(make_store):
    encoder = OddEncoder()
    store = make_store(encoder=encoder)
    one, two = (store.remember(text).memory_id for text in ("one", "two"))
    encoder.fails = lambda call, given: NAN
    store.update(one, content="uno")
    before = dump(store.path)
    assert set(vectors_in_memory(store)) == {two}
    assert dump(store.path) == before


def test_an_encoder_that_cannot_even_say_who_it_is_loses_nothing(make_store):
    class Gone(HashingEncoder):
        @property
        def fingerprint(self) -> str:
            raise OSError("disk gone")

    store = make_store(encoder=Gone(64))
    made = store.remember("kept all the same")
    assert made.pending
    assert [hit.memory_id for hit in memlab.HybridRetriever(store).recall("kept")] == [made.memory_id]
    with pytest.raises(EncoderError, match="disk gone"):
        store.embed_pending()
