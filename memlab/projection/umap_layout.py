"""UMAP (McInnes, Healy and Melville 2018, arXiv:1802.03426) by umap-learn, on exact neighbours."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from memlab.errors import MissingDependency
from memlab.progress import Progress, Show
from memlab.projection.space import Neighbours, VectorSpace
from memlab.store.blocks import FloatArray

INSTALL = 'pip install "memlab[map]"'
_ONE_AT_A_TIME = threading.Lock()
_HALVINGS = 40
_LEAST_WIDTH = 1e-3  # of a circle of neighbours, as a share of the mean distance


def load_umap(progress: Show = None) -> None:
    """Import umap-learn; raises :class:`MissingDependency` with the command that installs it."""
    if find_spec("umap") is None:
        raise _missing("not installed")
    loading = False if "umap" in sys.modules else progress
    try:
        with Progress("loading umap-learn (the first time it compiles itself)", 1, loading, at_once=True) as shown:
            import umap  # noqa: F401

            shown.advance()
    except ImportError as error:
        raise _missing(f"installed but fails when imported ({error})") from error


def _missing(state: str) -> MissingDependency:
    return MissingDependency(
        f"UMAP needs the package umap-learn, which is {state}; install it with: {INSTALL}", name="umap"
    )


def umap_layout(
    space: VectorSpace,
    start: FloatArray,
    *,
    n_neighbors: int,
    min_dist: float,
    seed: int,
    progress: Show = None,
) -> FloatArray:
    """Lay memories out so that neighbours stay together.

    Neighbours by cosine come from :meth:`VectorSpace.neighbours`: exact, and for some thousand memories many times as
    quick as the approximate search, which has to be compiled first. The layout itself is umap-learn's.

    Parameters
    ----------
    space : VectorSpace
        Of more than ``n_neighbors`` memories.
    start : ndarray of float64, shape (n, 2)
        Where they begin: the principal components, so that the large-scale order is theirs and not chance
        (Kobak and Linderman 2021, doi:10.1038/s41587-020-00809-z).
    n_neighbors, min_dist, seed
        As in ``umap.UMAP``; a memory counts as its own first neighbour there.

    Returns
    -------
    ndarray of float64, shape (n, 2)
        The same on every run on one machine, not on another system.

    Raises
    ------
    MissingDependency
        If umap-learn is not there.
    """
    load_umap(progress)
    from umap import umap_

    rng = np.random.RandomState(seed)
    graph = fuzzy_graph(space.neighbours(n_neighbors - 1, progress))
    a, b = umap_.find_ab_params(1.0, min_dist)
    extent = np.ptp(start, axis=0).max()
    with warnings.catch_warnings(), _steps_counted(progress):
        warnings.simplefilter("ignore")  # numba's, about threads it does not need here
        layout, _ = umap_.simplicial_set_embedding(
            space.vectors,
            graph,
            n_components=2,
            initial_alpha=1.0,
            a=a,
            b=b,
            gamma=1.0,
            negative_sample_rate=5,
            n_epochs=None,  # 500 for up to 10,000 memories, 200 for more
            init=(10.0 * (start - start.mean(axis=0)) / extent).astype(np.float32),
            random_state=rng,
            metric="cosine",
            metric_kwds={},
            densmap=False,
            densmap_kwds={},
            output_dens=False,
            parallel=False,  # several threads would not give the same picture twice
        )
    return np.asarray(layout, np.float64)


def fuzzy_graph(near: Neighbours) -> Any:
    """The weighted graph of neighbours that UMAP lays out (section 3.1 of the article).

    The weight of ``j`` for ``i`` is ``exp(-max(0, d_ij - rho_i) / sigma_i)``, with the distance to the nearest other
    as ``rho_i`` and ``sigma_i`` such that the weights add up to ``log2(k)``; the graph is ``A + A' - A * A'``. The same
    as umap-learn's own, whose functions for it take most of the ten seconds that it compiles.

    Parameters
    ----------
    near : Neighbours
        ``k - 1`` others of each memory: it is its own first neighbour here.

    Returns
    -------
    scipy.sparse.coo_matrix of float32, shape (n, n)
    """
    from scipy import sparse

    count, others = near.rows.shape
    distances = np.clip(1.0 - near.cosines.astype(np.float64), 0.0, 2.0)
    apart = distances > 0
    nearest = np.where(apart.any(axis=1), np.where(apart, distances, np.inf).min(axis=1), 0.0)
    beyond = np.maximum(distances - nearest[:, None], 0.0)
    # Bisection, for all memories at once: the sum of weights grows with sigma.
    low, high, wanted = np.zeros(count), np.full(count, 1.0), np.log2(others + 1)
    while (narrow := (_weights(beyond, high).sum(axis=1) < wanted) & (high < 1e9)).any():
        high[narrow] *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        more = _weights(beyond, middle).sum(axis=1) > wanted
        high, low = np.where(more, middle, high), np.where(more, low, middle)
    # Nobody's circle shrinks to nothing; the memory itself, at distance 0, is counted in the mean.
    mean = distances.sum(axis=1) / (others + 1)
    sigma = np.maximum((low + high) / 2, _LEAST_WIDTH * np.where(nearest > 0, mean, mean.mean()))
    weights = np.where(beyond > 0, _weights(beyond, sigma), 1.0)
    rows = np.repeat(np.arange(count), others)
    one_way = sparse.coo_matrix((weights.ravel(), (rows, near.rows.ravel())), shape=(count, count)).tocsr()
    both = one_way + one_way.T - one_way.multiply(one_way.T)
    return both.astype(np.float32).tocoo()


def _weights(beyond: FloatArray, sigma: FloatArray) -> FloatArray:
    weights: FloatArray = np.exp(-beyond / np.maximum(sigma, 1e-300)[:, None])
    return weights


@contextmanager
def _steps_counted(progress: Show) -> Iterator[None]:
    """Show the epochs of a layout in our own way: tqdm leaves a frozen bar in a saved notebook."""
    from umap import layouts

    def counted(steps: range, **_: object) -> Iterable[int]:
        # The first step compiles, which takes seconds.
        with Progress("laying out (the first time compiles)", len(steps), progress) as shown:
            for step in steps:
                yield step
                shown.advance()

    with _ONE_AT_A_TIME:
        before = layouts.tqdm
        layouts.tqdm = counted
        try:
            yield
        finally:
            layouts.tqdm = before
