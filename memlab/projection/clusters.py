"""Groups of memories by what they say: k-means on the vectors, each group named by its most typical words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memlab.checks import whole
from memlab.projection.space import VectorSpace
from memlab.store import MemoryStore
from memlab.store.analysis import STOP_WORDS
from memlab.store.blocks import IntArray

if TYPE_CHECKING:
    import pandas as pd

LEAST, MOST = 4, 8
"""Groups that are made unasked: fewer say little of some hundred memories, more cannot be told apart by colour."""
_SAMPLE = 1_000  # memories by which the number of groups is chosen
_MINIBATCH_FROM = 20_000
_WORDS_OF = 10_000
_WORD = re.compile(r"[^\W\d_][\w]{2,}")


@dataclass(frozen=True)
class Clusters:
    """Groups of memories.

    Attributes
    ----------
    ids : tuple of str, length n
    labels : ndarray of int64, shape (n,)
        The group of each, from 0, the largest first.
    words : tuple of tuple of str
        By group, the words most typical of it.
    silhouette : float
        -1 to 1: how much nearer memories are to their own group than to the next one. Notes of one life of work are
        seldom well separated; 0.05 to 0.1 is usual.
    """

    ids: tuple[str, ...]
    labels: IntArray
    words: tuple[tuple[str, ...], ...]
    silhouette: float

    def __len__(self) -> int:
        return len(self.words)

    @property
    def names(self) -> tuple[str, ...]:
        """What each group may be called: its first three words."""
        return tuple(", ".join(words[:3]) or f"group {at + 1}" for at, words in enumerate(self.words))

    @property
    def frame(self) -> pd.DataFrame:
        """``memory_id, cluster, label``."""
        import pandas as pd

        names = self.names
        return pd.DataFrame(
            {
                "memory_id": list(self.ids),
                "cluster": self.labels,
                "label": [names[label] for label in self.labels.tolist()],
            }
        )


def clusters(store: MemoryStore, n: int | None = None, *, seed: int = 0, space: VectorSpace | None = None) -> Clusters:
    """Group the memories of a store by their vectors.

    k-means on unit vectors (so by cosine), with scikit-learn; by mini-batches for more than 20,000. If no number of
    groups is asked for, it is the one with the best silhouette on a sample (Rousseeuw 1987).

    Parameters
    ----------
    store : MemoryStore
    n : int, optional
        How many groups.
    seed : int
        The same groups every time on one machine.
    space : VectorSpace, optional
        The store's vectors, where they are at hand.
    """
    space = space or VectorSpace.of(store)
    count = len(space)
    if n is not None:
        n = whole(n, "n", least=1)
    if count < 2 or n == 1:
        labels, quality = np.zeros(count, np.int64), 0.0
    else:
        labels, quality = _best(space.vectors, n, seed)
    order = np.argsort(-np.bincount(labels, minlength=1), kind="stable") if count else np.empty(0, np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    labels = place[labels] if count else labels
    groups = int(labels.max(initial=-1)) + 1
    return Clusters(space.ids, labels, _typical_words(store, space.ids, labels, groups), quality)


def _best(vectors: npt.NDArray[np.float32], n: int | None, seed: int) -> tuple[IntArray, float]:
    from sklearn.metrics import silhouette_score

    count = len(vectors)
    sample = vectors
    if count > _SAMPLE:
        sample = vectors[np.sort(np.random.default_rng(seed).choice(count, _SAMPLE, replace=False))]
    different = len(np.unique(sample, axis=0))
    if different < 2:
        return np.zeros(count, np.int64), 0.0
    chosen = None if n is None else min(n, different)
    if chosen is None:
        scores: dict[int, float] = {}
        for groups in range(LEAST if count >= 10 * LEAST else 2, min(MOST, different - 1) + 1):
            labels = _fitted(sample, groups, seed, starts=1).labels_
            scores[groups] = float(silhouette_score(sample, labels, metric="cosine"))
        if not scores:
            return np.zeros(count, np.int64), 0.0
        chosen = max(scores, key=lambda groups: (scores[groups], -groups))
    model = _fitted(vectors, chosen, seed)
    labels = np.asarray(model.labels_, np.int64)
    _, labels = np.unique(labels, return_inverse=True)
    seen = model.predict(sample)
    proper = 1 < len(np.unique(seen)) < len(sample)
    quality = float(silhouette_score(sample, seen, metric="cosine")) if proper else 0.0
    return labels.astype(np.int64), quality


def _fitted(vectors: npt.NDArray[np.float32], groups: int, seed: int, starts: int = 4) -> Any:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if len(vectors) > _MINIBATCH_FROM:
        return MiniBatchKMeans(groups, random_state=seed, n_init=1, batch_size=4096, max_iter=20).fit(vectors)
    return KMeans(groups, random_state=seed, n_init=starts).fit(vectors)


def _typical_words(
    store: MemoryStore, ids: Sequence[str], labels: IntArray, groups: int, most: int = 6
) -> tuple[tuple[str, ...], ...]:
    """By group, the words with the largest ``p * log(p / q)``.

    ``p`` is the share of the group's memories that have the word, ``q`` that of all: what the word adds to the
    Kullback-Leibler divergence. Counted by memories, so that one long memory does not name a group.
    """
    counts = [Counter[str]() for _ in range(groups)]
    shown: dict[str, Counter[str]] = {}
    if len(ids) > _WORDS_OF:
        # Some thousand memories name a group as well as all of them.
        rows = np.linspace(0, len(ids) - 1, _WORDS_OF).astype(np.int64)
        ids, labels = [ids[row] for row in rows.tolist()], labels[rows]
    for start in range(0, len(ids), 4096):
        part = {memory.memory_id: memory for memory in store.get_many(ids[start : start + 4096])}
        for memory_id, label in zip(ids[start : start + 4096], labels[start : start + 4096].tolist(), strict=True):
            if memory_id not in part:
                continue
            words: dict[str, str] = {}
            for word in _WORD.findall(part[memory_id].content):
                words.setdefault(word.lower(), word)
            for word, written in words.items():
                if word not in STOP_WORDS:
                    counts[label][word] += 1
                    shown.setdefault(word, Counter())[written] += 1
    total = Counter[str]()
    for counted in counts:
        total.update(counted)
    sizes = np.bincount(labels, minlength=groups) if len(labels) else np.zeros(groups, int)
    named = []
    for counted, size in zip(counts, sizes.tolist(), strict=True):
        worth = {
            word: n / size * math.log((n / size) / (total[word] / len(ids)))
            for word, n in counted.items()
            if n > 1 or len(counted) < 9
        }
        best = sorted(worth, key=lambda word: (-worth[word], word))[:most]
        named.append(tuple(max(sorted(shown[word]), key=lambda form: shown[word][form]) for word in best))
    return tuple(named)
