from __future__ import annotations

import numpy as np
import pytest

from memlab.encoders import aggregate
from memlab.errors import EncoderError, InvalidValue

X, Y = [1.0, 0.0], [0.0, 1.0]


def test_worked_by_hand():
    np.testing.assert_allclose(aggregate([X, Y], [3, 4]), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(aggregate([X, Y], [3, 4], "mean"), [0.5**0.5, 0.5**0.5], rtol=1e-6)
    np.testing.assert_array_equal(aggregate([X, Y], [3, 4], "first"), X)


def test_type_and_length():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 384))
    vector = aggregate(rows / np.linalg.norm(rows, axis=1, keepdims=True), range(1, 8))
    assert vector.dtype == np.float32
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_one_passage_keeps_its_vector_bit_for_bit():
    rows = np.random.default_rng(1).normal(size=(1, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows)
    for how in ("length-weighted", "mean", "first"):
        vector = aggregate(rows, [5], how)
        assert vector.tobytes() == rows[0].tobytes()
        vector[0] = 9
        assert rows[0, 0] != 9


@pytest.mark.parametrize("how", ["length-weighted", "mean"])
def test_a_sum_that_cancels_gives_the_first(how):
    vector = np.random.default_rng(2).normal(size=384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    np.testing.assert_allclose(aggregate([vector, -vector], [5, 5], how), vector, atol=1e-7)


def test_scale_of_lengths_does_not_matter():
    rows = np.random.default_rng(3).normal(size=(4, 8))
    np.testing.assert_allclose(aggregate(rows, [1, 2, 3, 4]), aggregate(rows, [1e9, 2e9, 3e9, 4e9]), atol=1e-7)


@pytest.mark.parametrize(
    ("vectors", "lengths", "how", "error", "message"),
    [
        ([X], [1], "median", InvalidValue, "length-weighted, mean, first"),
        ([X, Y], [1], "mean", InvalidValue, "2 positive numbers"),
        ([X, Y], [1, 0], "first", InvalidValue, "2 positive numbers"),
        ([X, Y], [1, float("nan")], "first", InvalidValue, "2 positive numbers"),
        (np.zeros((0, 2)), [], "mean", InvalidValue, "at least one"),
        (X, [1], "mean", InvalidValue, "found shape"),
        ([X, [float("nan"), 1]], [1, 1], "mean", EncoderError, "NaN"),
        ([X, [0, 0]], [1, 1], "mean", EncoderError, "length zero"),
    ],
)
def test_bad_input(vectors, lengths, how, error, message):
    with pytest.raises(error, match=message):
        aggregate(vectors, lengths, how)
