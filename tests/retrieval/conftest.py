from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memlab import HashingEncoder, MemoryStore

from .plane import PlaneEncoder

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def plane() -> PlaneEncoder:
    return PlaneEncoder()


@pytest.fixture
def make_store(tmp_path: Path, plane: PlaneEncoder) -> Iterator[Callable[..., MemoryStore]]:
    """Makes a store of contents with the plane encoder: ids a, b, c ... in the order given."""
    opened: list[MemoryStore] = []

    def make(*contents: str, encoder: object = plane, **options: object) -> MemoryStore:
        store = MemoryStore(tmp_path / f"{len(opened)}.db", encoder, clock=lambda: NOW, **options)  # type: ignore[arg-type]
        opened.append(store)
        store.remember_many(
            [{"memory_id": chr(ord("a") + i), "content": text} for i, text in enumerate(contents)], progress=False
        )
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="session")
def hashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """A read-mostly store of the sample with the hashing encoder."""
    from memlab import sample

    store = sample().build(tmp_path_factory.mktemp("hashed") / "sample.db", HashingEncoder(128), progress=False)
    yield store
    store.close()
