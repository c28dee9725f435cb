from __future__ import annotations

import numpy as np
import pytest


def groups(count: int, dimension: int = 64, centres: int = 6, seed: int = 0, spread: float = 0.35) -> np.ndarray:
    """Unit vectors in some loose groups: row ``i`` is of group ``i % centres``."""
    random = np.random.default_rng(seed)
    middle = random.normal(size=(centres, dimension))
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    noise = random.normal(size=(count, dimension)) / np.sqrt(dimension)
    vectors = middle[np.arange(count) % centres] + spread * 2 * noise
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def fill(store, vectors, prefix="m", text="note"):
    """Memories with these vectors, ``m-0`` and so on."""
    records = [{"content": f"{text} number {at}", "memory_id": f"{prefix}-{at}"} for at in range(len(vectors))]
    store.remember_many(records, vectors=vectors)
    return store


@pytest.fixture
def grouped(make_store):
    """A store of 120 memories in six groups."""
    return fill(make_store(), groups(120))
