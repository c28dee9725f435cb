"""What every test may use: a clock that stands still, and stores in a folder of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore

ENCODER = HashingEncoder(64)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


class FixedClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start: datetime = datetime(2026, 3, 4, 9, 12, 41, 123000, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        """Move by a ``timedelta(**by)``."""
        self.now += timedelta(**by)
        return self.now


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def make_store(tmp_path: Path, clock: FixedClock) -> Iterator[Callable[..., MemoryStore]]:
    """Open ``tmp_path / name``, by default with HashingEncoder(64) and the fixed clock; closed at the end."""
    opened: list[MemoryStore] = []

    def make(name: str = "memory.db", encoder: Any = ENCODER, **options: Any) -> MemoryStore:
        store = MemoryStore(tmp_path / name, encoder, **{"clock": clock, **options})
        opened.append(store)
        # Nobody cuts the power in the middle of a test, and waiting for the disk is most of the time it takes.
        store._file.connection().execute("PRAGMA synchronous = OFF")
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """An empty store with HashingEncoder(64) and the fixed clock."""
    return make_store()
