"""The picture of a store: made once, kept in the store, and added to as memories come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memlab.checks import number, whole
from memlab.errors import InvalidValue, MissingDependency, StoreError
from memlab.progress import Show
from memlab.projection.faithfulness import Faithfulness, faithfulness
from memlab.projection.pca import PCA
from memlab.projection.placing import place
from memlab.projection.space import VectorSpace
from memlab.projection.umap_layout import load_umap, umap_layout
from memlab.store import MemoryStore, projections
from memlab.store.blocks import BoolArray, FloatArray, IntArray
from memlab.store.projections import KeptProjection

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("auto", "umap", "pca")
UMAP_UP_TO = 20_000
"""Memories up to which ``"auto"`` takes UMAP: finding neighbours exactly takes time with the square of their number."""
_REFIT_FROM = 0.2  # share of memories placed later from which a new fit is suggested
_VERSION = 1  # of how pictures are made: with another one those in the store are made anew


@dataclass(frozen=True)
class Projection:
    """The memories of a store in two dimensions.

    Attributes
    ----------
    store : MemoryStore
    method : {"umap", "pca"}
        How the picture was made.
    parameters : dict
        Of the method.
    seed : int
    ids : tuple of str, length n
        The live memories that have a vector, in the order in which they were stored.
    coordinates : ndarray of float64, shape (n, 2)
        The units mean nothing.
    placed : ndarray of bool, shape (n,)
        True for memories that came after the picture was made.
    note : str
        Why the method is another one than was asked for, or what should be done; empty otherwise.
    kept : bool
        Whether the picture is in the store, so that the next call finds it there.
    axes : ndarray of float32, shape (3, dimension), or None
        Of ``"pca"``: the mean and the two axes.
    """

    store: MemoryStore
    method: str
    parameters: dict[str, Any]
    seed: int
    ids: tuple[str, ...]
    coordinates: FloatArray
    placed: BoolArray
    note: str = ""
    kept: bool = False
    axes: npt.NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def frame(self) -> pd.DataFrame:
        """``memory_id, x, y, placed``."""
        import pandas as pd

        return pd.DataFrame(
            {
                "memory_id": list(self.ids),
                "x": self.coordinates[:, 0],
                "y": self.coordinates[:, 1],
                "placed": self.placed,
            }
        )

    def space(self) -> VectorSpace:
        """The vectors of these memories, without those that have none any more."""
        found = VectorSpace.of(self.store)
        if found.ids == self.ids:
            return found
        rows = {memory_id: at for at, memory_id in enumerate(found.ids)}
        kept = [memory_id for memory_id in self.ids if memory_id in rows]
        return VectorSpace(tuple(kept), found.vectors[[rows[memory_id] for memory_id in kept]])

    def of(self, ids: Sequence[str]) -> FloatArray:
        """Coordinates of memories, float64, shape (len(ids), 2); NaN for those that are not in the picture."""
        rows = {memory_id: at for at, memory_id in enumerate(self.ids)}
        found = np.full((len(ids), 2), np.nan)
        for at, memory_id in enumerate(ids):
            if memory_id in rows:
                found[at] = self.coordinates[rows[memory_id]]
        return found

    def place(self, vectors: npt.ArrayLike, space: VectorSpace | None = None) -> FloatArray:
        """Where vectors of the same encoder lie: queries, passages, new memories.

        By PCA exactly; by UMAP between the nearest memories of the picture, see :mod:`memlab.projection.placing`.

        Parameters
        ----------
        vectors : array_like, shape (m, dimension)
            Unit rows.
        space : VectorSpace, optional
            As from :meth:`space`, where it is at hand.

        Returns
        -------
        ndarray of float64, shape (m, 2)
        """
        new = np.atleast_2d(np.asarray(vectors, np.float32))
        space = space or self.space()
        if new.ndim != 2 or (len(space) and new.shape[1] != space.vectors.shape[1]):
            raise InvalidValue(f"vectors: expected the shape (m, {space.vectors.shape[1]}), found {new.shape}")
        if self.axes is not None:
            return PCA(self.axes).place(new)
        return place(new, space.vectors, self.of(space.ids))

    def faithfulness(self, *, k: int = 10, space: VectorSpace | None = None) -> Faithfulness:
        """How far the picture can be believed, see :func:`memlab.projection.faithfulness.faithfulness`."""
        space = space or self.space()
        return faithfulness(space, self.of(space.ids), k=k)

    def __repr__(self) -> str:
        how = {"umap": "UMAP", "pca": "PCA"}[self.method]
        parts = [f"{len(self):,} memories in two dimensions by {how}"]
        if self.placed.any():
            parts.append(f"{int(self.placed.sum()):,} placed after it was made")
        text = f"<Projection: {', '.join(parts)}>"
        return f"{text}\n{self.note}" if self.note else text


def project(
    store: MemoryStore,
    method: str = "auto",
    *,
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    seed: int = 42,
    refit: bool = False,
    keep: bool = True,
    progress: Show = None,
) -> Projection:
    """Lay the memories of a store out in two dimensions.

    The coordinates are kept in the store, by encoder, method, parameters and seed: the next call finds them. Memories
    that came since are placed beside their nearest neighbours and the others stay where they are; those whose text
    changed are placed anew; those that were forgotten are left out.

    Parameters
    ----------
    store : MemoryStore
        One that is open for reading only works too, and keeps nothing.
    method : {"auto", "umap", "pca"}
        ``"umap"`` keeps neighbours together and takes seconds, once. ``"pca"`` is the linear picture, there at once.
        ``"auto"`` takes UMAP for up to 20,000 memories if umap-learn is installed. Where UMAP cannot be had, or there
        are not more than ``n_neighbors`` memories, PCA takes its place and ``note`` says why.
    n_neighbors : int
        Of UMAP: how many neighbours count; more shows more of the whole and less of the detail.
    min_dist : float
        Of UMAP: how close points may lie, 0 to 1.
    seed : int
        Of UMAP: the same picture every time on one machine; another seed gives another one.
    refit : bool
        Make the picture anew.
    keep : bool
        Whether to write it into the store.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`. Ctrl-C stops the work and keeps nothing.

    Raises
    ------
    InvalidValue
        If an argument is outside of what is said here.
    """
    if method not in METHODS:
        raise InvalidValue(f"method: expected one of {', '.join(METHODS)}, found {method!r}")
    n_neighbors = whole(n_neighbors, "n_neighbors", least=2, most=1000)
    min_dist = number(min_dist, "min_dist")
    if min_dist > 1:
        raise InvalidValue(f"min_dist: expected a number from 0 to 1, found {min_dist!r}")
    seed = whole(seed, "seed", least=0)
    umap = {"n_neighbors": n_neighbors, "min_dist": min_dist}
    with store.view() as view:
        encoder_id, change = view.snapshot.encoder_id, view.snapshot.change
        count = len(view.documents)
        chosen, note = _method(method, count, n_neighbors)
        if method == "auto" and chosen == "pca" and not refit and count > n_neighbors:
            # Somebody waited for it already.
            kept = projections.find(view.connection, encoder_id, _settings("umap", umap, seed))
            chosen, note = ("pca", note) if kept is None else ("umap", "")
        parameters: dict[str, Any] = umap if chosen == "umap" else {}
        settings = _settings(chosen, parameters, seed)
        kept = None if refit else projections.find(view.connection, encoder_id, settings)
        if kept is None and chosen == "umap" and (why := _umap_missing(progress)) is not None:
            chosen, note, parameters = "pca", why, {}
            settings = _settings(chosen, parameters, seed)
            kept = None if refit else projections.find(view.connection, encoder_id, settings)
        if kept is not None and chosen == "pca" and kept.axes is None:
            kept = None
        if kept is not None:
            numbers = view.snapshot.documents.different_owners
            known = np.isin(numbers, kept.numbers, assume_unique=True)
            if known.all() and len(numbers):
                names = view.ids(numbers.tolist())
                rows = np.searchsorted(kept.numbers, numbers)
                made = Projection(
                    store,
                    chosen,
                    parameters,
                    seed,
                    tuple(names[n] for n in numbers.tolist()),
                    kept.coordinates[rows],
                    kept.placed[rows],
                    note,
                    True,
                    kept.axes,
                )
                return _advised(made)
        numbers, space = VectorSpace.seen(view)
    rows = np.empty(0, np.int64) if kept is None else np.flatnonzero(np.isin(numbers, kept.numbers))
    fresh = kept is None or not (~kept.placed[np.searchsorted(kept.numbers, numbers[rows])]).any()
    if fresh:
        made = _fitted(store, space, chosen, parameters, seed, note, progress)
        picture = KeptProjection(numbers, made.coordinates, made.placed, made.axes)
        # What was fitted may be another method than was asked for; it is kept as what it is.
        settings = _settings(made.method, made.parameters, seed)
    else:
        assert kept is not None
        made, picture = _added(store, numbers, space, kept, rows, chosen, parameters, seed, note)
    if keep and len(picture.numbers) and encoder_id is not None and not store.read_only:
        # A full disk or a busy writer takes nothing from the picture.
        try:
            store.keep_projection(encoder_id, settings, picture, change, new=fresh)
            made = replace(made, kept=True)
        except StoreError as error:
            made = replace(made, note=_joined(made.note, f"The picture was not kept: {error}."))
    return _advised(made)


def _method(method: str, count: int, n_neighbors: int) -> tuple[str, str]:
    """Which method it is for so many memories, and why if it is another one than was asked for."""
    if method == "pca":
        return "pca", ""
    if count <= n_neighbors:
        return "pca", f"UMAP needs more than n_neighbors={n_neighbors} memories, found {count}: this is PCA."
    if method == "auto" and count > UMAP_UP_TO:
        return "pca", (
            f'{count:,} memories: this is PCA, which is there at once. method="umap" compares every memory with every '
            f"other, {_expected(count)}."
        )
    return "umap", ""


def _expected(count: int) -> str:
    """About how long the first UMAP takes; measured on two cores, 100,000 in some ten minutes, with the square."""
    minutes = 1 + 9 * (count / 100_000) ** 2
    return f"which takes about {minutes:.0f} minutes once on two cores" if minutes < 90 else "which takes hours"


def _umap_missing(progress: Show) -> str | None:
    try:
        load_umap(progress)
    except MissingDependency as error:
        return f"{error}. Until then this is PCA."
    return None


def _settings(method: str, parameters: dict[str, Any], seed: int) -> str:
    # PCA has no chance in it: one picture, whatever the seed.
    what = {"method": method, **parameters, **({"seed": seed} if method == "umap" else {}), "version": _VERSION}
    return json.dumps(what, sort_keys=True)


def _fitted(
    store: MemoryStore,
    space: VectorSpace,
    method: str,
    parameters: dict[str, Any],
    seed: int,
    note: str,
    progress: Show,
) -> Projection:
    linear = PCA.fit(space.vectors)
    coordinates = linear.place(space.vectors)
    axes: npt.NDArray[np.float32] | None = linear.axes
    if method == "umap" and np.ptp(coordinates, axis=0).min(initial=np.inf) < 1e-6:
        method, note, parameters = "pca", "The memories hardly differ, so that there is nothing to lay out.", {}
    if method == "umap":
        coordinates = umap_layout(space, coordinates, seed=seed, progress=progress, **parameters)
        axes = None
    nobody = np.zeros(len(space), dtype=bool)
    return Projection(store, method, parameters, seed, space.ids, coordinates, nobody, note, False, axes)


def _added(
    store: MemoryStore,
    numbers: IntArray,
    space: VectorSpace,
    kept: KeptProjection,
    rows: IntArray,
    method: str,
    parameters: dict[str, Any],
    seed: int,
    note: str,
) -> tuple[Projection, KeptProjection]:
    """The kept picture with the memories that came since; and these alone, to be kept too."""
    at = np.searchsorted(kept.numbers, numbers[rows])
    coordinates, placed = np.empty((len(numbers), 2)), np.ones(len(numbers), dtype=bool)
    coordinates[rows], placed[rows] = kept.coordinates[at], kept.placed[at]
    new = np.setdiff1d(np.arange(len(numbers)), rows, assume_unique=True)
    if kept.axes is not None:
        coordinates[new] = PCA(kept.axes).place(space.vectors[new])
    else:
        # Beside what was fitted, not beside what was placed before: errors must not add up.
        fitted = rows[~kept.placed[at]]
        coordinates[new] = place(space.vectors[new], space.vectors[fitted], coordinates[fitted])
    made = Projection(store, method, parameters, seed, space.ids, coordinates, placed, note, False, kept.axes)
    return made, KeptProjection(numbers[new], coordinates[new], placed[new])


def _advised(made: Projection) -> Projection:
    share = float(made.placed.mean()) if len(made) else 0.0
    if share < _REFIT_FROM:
        return made
    advice = f"{share:.0%} of the memories came after this picture was made; project(..., refit=True) makes it anew."
    return replace(made, note=_joined(made.note, advice))


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


__all__ = ["METHODS", "UMAP_UP_TO", "Projection", "project"]
