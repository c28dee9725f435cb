from __future__ import annotations

import numpy as np
import pytest

from memlab.projection import VectorSpace, faithfulness
from memlab.projection import faithfulness as _function  # noqa: F401 - the module below has the same name
from memlab.projection.pca import PCA
from tests.projection.conftest import groups

module = __import__("memlab.projection.faithfulness", fromlist=["x"])


def named(vectors):
    return VectorSpace(tuple(f"m-{at}" for at in range(len(vectors))), vectors)


@pytest.fixture(scope="module")
def space():
    return named(groups(150))


def test_trustworthiness_is_that_of_scikit_learn(space):
    from sklearn.manifold import trustworthiness

    coordinates = PCA.fit(space.vectors).place(space.vectors)
    found = faithfulness(space, coordinates, k=7)
    assert found.trustworthiness == pytest.approx(
        trustworthiness(space.vectors, coordinates, n_neighbors=7, metric="cosine"), abs=1e-6
    )
    # Continuity is trustworthiness with the spaces exchanged.
    distances = 1 - space.vectors.astype(np.float64) @ space.vectors.T.astype(np.float64)
    np.fill_diagonal(distances, 0)
    _, places = np.unique(coordinates, axis=0, return_inverse=True)
    assert len(set(places)) == len(space)
    swapped = trustworthiness(coordinates, _classical(distances), n_neighbors=7)
    assert found.continuity == pytest.approx(swapped, abs=1e-6)


def _classical(distances):
    """Points whose Euclidean order of neighbours is that of the cosines: unit vectors themselves."""
    values, axes = np.linalg.eigh(1 - distances)
    return axes * np.sqrt(np.clip(values, 0, None))


def test_a_picture_that_is_the_space_is_perfect():
    angles = np.sort(np.random.default_rng(0).uniform(0, 1.5, 80))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = faithfulness(named(circle), circle.astype(np.float64))
    assert found.trustworthiness == pytest.approx(1, abs=1e-3)
    assert found.continuity == pytest.approx(1, abs=1e-3)
    assert found.kept > 0.98


def test_a_picture_drawn_by_lot_is_half_right(space):
    found = faithfulness(space, np.random.default_rng(0).normal(size=(150, 2)))
    assert 0.4 < found.trustworthiness < 0.6
    assert found.kept < 0.15


def test_of_many_memories_a_sample_says_nearly_the_same(space, monkeypatch):
    coordinates = PCA.fit(space.vectors).place(space.vectors)
    whole = faithfulness(space, coordinates)
    monkeypatch.setattr(module, "EXACT_UP_TO", 100)
    monkeypatch.setattr(module, "SAMPLE", 75)
    part = faithfulness(space, coordinates)
    assert (part.memories, part.sampled) == (150, 75)
    assert part.trustworthiness == pytest.approx(whole.trustworthiness, abs=0.05)
    assert part == faithfulness(space, coordinates)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_few_memories(count):
    found = faithfulness(named(groups(count)), np.random.default_rng(0).normal(size=(count, 2)))
    assert 0 <= found.trustworthiness <= 1
    assert found.k <= max(0, (count - 1) // 2)


def test_it_says_so_in_a_sentence(space):
    found = faithfulness(space, PCA.fit(space.vectors).place(space.vectors), k=5)
    assert f"{found.kept:.0%} are among the 5 nearest here" in str(found)
