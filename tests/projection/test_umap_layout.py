from __future__ import annotations

import numpy as np
import pytest

from memlab.projection import VectorSpace
from memlab.projection.pca import PCA
from memlab.projection.umap_layout import fuzzy_graph, umap_layout
from tests.projection.conftest import groups

umap_ = pytest.importorskip("umap.umap_")


def named(vectors):
    return VectorSpace(tuple(f"m-{at}" for at in range(len(vectors))), vectors)


def with_copies():
    vectors = groups(100)
    vectors[40:43] = vectors[3]  # three copies of one
    vectors[60:80] = vectors[5]  # more copies than there are neighbours
    return vectors


@pytest.mark.parametrize(
    "vectors", [groups(100), groups(100, spread=0.05), with_copies()], ids=["loose", "tight", "same"]
)
def test_the_graph_is_that_of_umap_learn(vectors):
    near = named(vectors).neighbours(14)
    rows = np.concatenate([np.arange(100)[:, None], near.rows], axis=1).astype(np.int32)
    distances = np.concatenate([np.zeros((100, 1)), np.clip(1 - near.cosines, 0, 2)], axis=1).astype(np.float32)
    expected, _, _ = umap_.fuzzy_simplicial_set(
        vectors, 15, np.random.RandomState(0), "cosine", knn_indices=rows, knn_dists=distances
    )
    np.testing.assert_allclose(fuzzy_graph(near).toarray(), expected.toarray(), atol=2e-3)


def test_the_layout_is_as_faithful_as_that_of_umap_learn():
    """Not the same picture, which chance and the starting places decide, but one as good."""
    import warnings

    from memlab.projection import faithfulness

    space = named(groups(300, centres=12, spread=0.6))
    start = PCA.fit(space.vectors).place(space.vectors)
    ours = umap_layout(space, start, n_neighbors=15, min_dist=0.1, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = umap_.UMAP(metric="cosine", random_state=1, n_jobs=1).fit_transform(space.vectors)
    mine, other = faithfulness(space, ours), faithfulness(space, theirs.astype(np.float64))
    assert mine.trustworthiness > other.trustworthiness - 0.02
    assert mine.continuity > other.continuity - 0.02
