"""Memories that say the same, and memories that are like no other: found in the vectors, not on a picture of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.progress import Show
from memlab.projection.space import VectorSpace
from memlab.store import MemoryStore
from memlab.store.blocks import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

THRESHOLD = 0.85
"""Cosine from which two memories count as near duplicates."""
MOST_PAIRS = 1_000


def duplicates(
    store: MemoryStore,
    threshold: float = THRESHOLD,
    *,
    limit: int = MOST_PAIRS,
    space: VectorSpace | None = None,
    progress: Show = None,
) -> pd.DataFrame:
    """Pairs of memories that say nearly or exactly the same.

    Parameters
    ----------
    store : MemoryStore
    threshold : float
        Least cosine of a pair, above 0, at most 1.
    limit : int
        Most pairs, the nearest.
    space : VectorSpace, optional
        The store's vectors, where they are at hand.
    progress : bool or callable, optional

    Returns
    -------
    DataFrame
        ``memory_id, other_id, cosine, same_text, content, other_content``, nearest first; the first of a pair is the
        older one in the store. ``attrs["found"]`` has the number of pairs before the limit. Memories with the very same
        text are there whether they have vectors or not (the cosine is missing then), each with the first of them.
    """
    import pandas as pd

    if not 0 < threshold <= 1:
        raise InvalidValue(f"threshold: expected a cosine above 0 and at most 1, found {threshold!r}")
    limit = whole(limit, "limit", least=0)
    space = space or VectorSpace.of(store)
    found, first, second, cosines = _pairs(space, threshold, limit, progress)
    pairs = {
        (space.ids[a], space.ids[b]): (float(c), False)
        for a, b, c in zip(first.tolist(), second.tolist(), cosines.tolist(), strict=True)
    }
    rows = {memory_id: at for at, memory_id in enumerate(space.ids)}
    for pair in same_texts(store):
        if pair not in pairs:
            a, b = (rows.get(memory_id) for memory_id in pair)
            known = a is not None and b is not None
            pairs[pair] = (float(space.vectors[a] @ space.vectors[b]) if known else np.nan, True)
            found += not known or pairs[pair][0] < threshold
        else:
            pairs[pair] = (pairs[pair][0], True)
    ordered = sorted(pairs.items(), key=lambda item: (not item[1][1], -np.nan_to_num(item[1][0]), item[0]))[:limit]
    texts = _texts(store, {memory_id for pair, _ in ordered for memory_id in pair})
    # Forgotten since the vectors were read.
    ordered = [(pair, values) for pair, values in ordered if pair[0] in texts and pair[1] in texts]
    frame = pd.DataFrame(
        [(a, b, cosine, same, texts[a], texts[b]) for (a, b), (cosine, same) in ordered],
        columns=["memory_id", "other_id", "cosine", "same_text", "content", "other_content"],
    )
    frame.attrs["found"] = max(found, len(frame))
    return frame


def _pairs(
    space: VectorSpace, threshold: float, limit: int, progress: Show
) -> tuple[int, IntArray, IntArray, FloatArray]:
    """How many pairs there are, and the nearest of them: first, second and cosine."""
    found = 0
    first, second = np.empty(0, np.int64), np.empty(0, np.int64)
    cosines = np.empty(0)
    for start, block in space.similarities(progress, above=True):
        # Float32 products of equal vectors may fall short of 1 by a rounding.
        a, b = np.nonzero(block >= threshold - 1e-6)
        later = b > a
        a, b = a[later], b[later]
        found += len(a)
        first, second = np.concatenate([first, a + start]), np.concatenate([second, b + start])
        cosines = np.concatenate([cosines, block[a, b].astype(np.float64)])
        if len(first) > limit:
            best = np.lexsort((second, first, -cosines))[:limit]
            first, second, cosines = first[best], second[best], cosines[best]
    return found, first, second, cosines


def same_texts(store: MemoryStore) -> list[tuple[str, str]]:
    """Ids of live memories with the very same content, each with the first of them, by number."""
    pairs: list[tuple[str, str]] = []
    firsts: dict[str, str] = {}
    with store.view() as view:
        for content, memory_id in view.repeated_contents():
            if content in firsts:
                pairs.append((firsts[content], memory_id))
            else:
                firsts[content] = memory_id
    return pairs


def outliers(
    store: MemoryStore,
    n: int = 20,
    *,
    k: int = 10,
    space: VectorSpace | None = None,
    progress: Show = None,
) -> pd.DataFrame:
    """The memories that are least like any other, by mean cosine with their ``k`` nearest.

    (The distance to the nearest neighbours as a measure of being an outlier: Ramaswamy, Rastogi and Shim 2000; the mean
    over them: Angiulli and Pizzuti 2002.)

    Parameters
    ----------
    store : MemoryStore
    n : int
        How many.
    k : int
        Neighbours that are looked at. A group of more than ``k`` odd memories that are like one another is none.
    space : VectorSpace, optional
        The store's vectors, where they are at hand.
    progress : bool or callable, optional

    Returns
    -------
    DataFrame
        ``memory_id, mean_cosine, nearest_id, nearest_cosine, content``, the loneliest first.
    """
    import pandas as pd

    n = whole(n, "n", least=0)
    columns = ["memory_id", "mean_cosine", "nearest_id", "nearest_cosine", "content"]
    space = space or VectorSpace.of(store)
    near = space.neighbours(whole(k, "k", least=1), progress)
    if not near.rows.shape[1]:
        return pd.DataFrame(columns=columns)
    means = near.cosines.mean(axis=1, dtype=np.float64)
    lonely = np.lexsort((np.arange(len(means)), means))[:n]
    texts = _texts(store, {space.ids[row] for row in lonely.tolist()})
    rows = [
        (
            space.ids[row],
            float(means[row]),
            space.ids[int(near.rows[row, 0])],
            float(near.cosines[row, 0]),
            texts[space.ids[row]],
        )
        for row in lonely.tolist()
        if space.ids[row] in texts
    ]
    return pd.DataFrame(rows, columns=columns)


def _texts(store: MemoryStore, ids: set[str]) -> dict[str, str]:
    found = store.get_many(sorted(ids))
    return {memory.memory_id: memory.content for memory in found if memory.trashed_at is None}
