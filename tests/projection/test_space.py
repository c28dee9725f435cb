from __future__ import annotations

import numpy as np
import pytest

from memlab.errors import InvalidValue
from memlab.projection import VectorSpace
from memlab.projection import space as module
from memlab.projection.pca import PCA
from memlab.projection.placing import place
from tests.projection.conftest import groups


def named(vectors):
    return VectorSpace(tuple(f"m-{at}" for at in range(len(vectors))), vectors)


def test_the_space_is_that_of_the_live_memories(grouped):
    grouped.forget("m-3")
    space = VectorSpace.of(grouped)
    assert space.ids == tuple(f"m-{at}" for at in range(120) if at != 3)
    np.testing.assert_allclose(space.vectors, np.delete(groups(120), 3, axis=0), atol=1e-6)


@pytest.mark.parametrize("block", [1 << 10, 48 << 20])
def test_neighbours_are_those_of_a_full_sort(monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_BYTES", block)  # two rows a block, and all at once
    vectors = groups(130)
    near = named(vectors).neighbours(9)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -2)
    np.testing.assert_array_equal(near.rows, np.argsort(-cosines, axis=1)[:, :9])
    np.testing.assert_allclose(near.cosines, -np.sort(-cosines, axis=1)[:, :9], atol=1e-6)


def test_fewer_memories_than_neighbours():
    assert named(groups(4)).neighbours(10).rows.shape == (4, 3)
    assert named(groups(1)).neighbours(10).rows.shape == (1, 0)
    assert named(np.empty((0, 8), np.float32)).neighbours(10).rows.shape == (0, 0)
    with pytest.raises(InvalidValue, match="at least 1"):
        named(groups(4)).neighbours(0)


def test_neighbours_are_found_once(monkeypatch):
    space = named(groups(50))
    many = space.neighbours(12)
    monkeypatch.setattr(VectorSpace, "similarities", None)
    np.testing.assert_array_equal(space.neighbours(5).rows, many.rows[:, :5])


def test_principal_components_are_those_of_the_singular_values():
    vectors = groups(90)
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    found = PCA.fit(vectors)
    coordinates = found.place(vectors)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(centred @ axes[:2].T), atol=1e-5)
    assert found.share == pytest.approx((values[:2] ** 2).sum() / (values**2).sum())
    # Turning the data round turns the axes, not the picture.
    np.testing.assert_allclose(PCA.fit(vectors[::-1].copy()).place(vectors), coordinates, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_principal_components_of_next_to_nothing(count):
    coordinates = PCA.fit(groups(count)).place(groups(count))
    assert coordinates.shape == (count, 2)
    assert np.isfinite(coordinates).all()


def test_something_new_lies_between_its_neighbours():
    vectors = groups(60)
    coordinates = np.random.default_rng(1).normal(size=(60, 2)) * 5
    new = groups(8, seed=5)
    placed = place(new, vectors, coordinates)
    for at in range(8):
        cosines = vectors @ new[at]
        order = np.argsort(-cosines)
        weights = cosines[order[:10]] - cosines[order[10]]
        expected = (weights[:, None] * coordinates[order[:10]]).sum(axis=0) / weights.sum()
        np.testing.assert_allclose(placed[at], expected, atol=1e-4)


def test_what_is_there_already_lies_where_it_is():
    vectors = groups(60)
    coordinates = np.random.default_rng(1).normal(size=(60, 2))
    np.testing.assert_array_equal(place(vectors, vectors, coordinates), coordinates)


def test_placing_where_all_are_alike_or_nobody_is():
    same = np.repeat(groups(1), 20, axis=0)
    coordinates = np.arange(40.0).reshape(20, 2)
    assert np.isfinite(place(groups(3, seed=2), same, coordinates)).all()
    assert np.isnan(place(groups(3), np.empty((0, 64), np.float32), np.empty((0, 2)))).all()
    np.testing.assert_allclose(place(groups(3), groups(2), coordinates[:2]).shape, (3, 2))
