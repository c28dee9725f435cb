"""A query is encoded once while it is among the last ones, and never answered with another encoder's vector."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memlab import HashingEncoder
from memlab.encoders import stamp
from memlab.errors import EncoderError
from memlab.store import AUTO
from memlab.store.query_vectors import QueryVectors


class Counting(HashingEncoder):
    """Tells what it was asked for."""

    def __init__(self, dimension=64):
        super().__init__(dimension)
        self.asked = []

    def encode_queries(self, texts):
        self.asked += texts
        return super().encode_queries(texts)


def test_a_query_is_encoded_once(make_store):
    encoder = Counting()
    store = make_store(encoder=encoder)
    first = store.encode_query("retry webhooks")
    np.testing.assert_array_equal(store.encode_query("retry webhooks"), first)
    store.encode_query("Retry webhooks")
    assert encoder.asked == ["retry webhooks", "Retry webhooks"]


def test_what_a_caller_does_to_a_vector_stays_with_the_caller(make_store):
    store = make_store(encoder=Counting())
    first = store.encode_query("retry")
    kept = first.copy()
    first[:] = 0
    second = store.encode_query("retry")
    np.testing.assert_array_equal(second, kept)
    second[:] = 0
    np.testing.assert_array_equal(store.encode_query("retry"), kept)


def test_another_encoder_is_asked_anew(make_store):
    store = make_store(encoder=HashingEncoder(64))
    store.remember("retry webhooks")
    before = store.encode_query("retry")
    other = Counting(32)
    store.reembed(other)
    after = store.encode_query("retry")
    assert (before.shape, after.shape) == ((64,), (32,))
    np.testing.assert_array_equal(after, HashingEncoder(32).encode_queries(["retry"])[0])
    assert other.asked == ["retry"]


def test_a_store_that_another_one_moved_over(make_store):
    writer = make_store(encoder=HashingEncoder(64))
    writer.remember("retry webhooks")
    reader = make_store(encoder=AUTO)
    assert reader.encode_query("retry").shape == (64,)
    writer.reembed(HashingEncoder(32))
    with reader.view():
        vector, made_by = reader.encode_query_stamped("retry")
    assert vector.shape == (made_by.dimension,) == (32,)


def test_a_failure_is_not_kept(make_store):
    class Failing(Counting):
        def encode_queries(self, texts):
            if not self.asked:
                self.asked += texts
                raise RuntimeError("once")
            return super().encode_queries(texts)

    store = make_store(encoder=Failing())
    with pytest.raises(EncoderError, match="once"):
        store.encode_query("retry")
    assert store.encode_query("retry").shape == (64,)


def test_the_oldest_make_room():
    encoder = HashingEncoder(8)
    made_by, recent = stamp(encoder), QueryVectors()
    row = np.ones((1, 8), np.float32)
    for number in range(256):
        recent.keep(f"q{number}", row * number, encoder, made_by)
    assert recent.get("q0", encoder, made_by) is not None
    recent.keep("one more", row, encoder, made_by)
    assert len(recent) == 256
    assert recent.get("q0", encoder, made_by) is not None
    assert recent.get("q1", encoder, made_by) is None
    recent.keep("a" * 20_000, row, encoder, made_by)
    assert len(recent) == 256
    assert recent.get("q0", HashingEncoder(8), made_by) is None
    assert len(recent) == 0


def test_threads(make_store):
    store = make_store(encoder=HashingEncoder(64))
    expected = {f"q{number}": HashingEncoder(64).encode_queries([f"q{number}"])[0] for number in range(300)}
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: (number, store.encode_query(f"q{number % 300}")), range(1200)))
    for number, vector in results:
        np.testing.assert_array_equal(vector, expected[f"q{number % 300}"])
