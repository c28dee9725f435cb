"""mcp-memory-service: its own storage class (sqlite-vec and FTS5), as its server uses it, and its hybrid retrieval.

It needs an sqlite3 that can load extensions; where Python's own cannot, pysqlite3 takes its place. In place of its
model stands a look-up of the same vectors. ``ANALYZE`` is run once after storing, which it does not do by itself:
without the statistics SQLite 3.51 answers its keyword query row by row, in seconds.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np


class _LookUp:
    """In place of its model."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors

    def encode(self, texts: list[str], convert_to_numpy: bool = True) -> np.ndarray:
        return np.stack([self._vectors(text) for text in texts])


class Adapter:
    """One database."""

    batch = 500
    encodes = True

    def __init__(self, folder: Path, vectors: Any) -> None:
        self._path = folder / "memory.db"
        self._vectors = vectors
        self._loop = asyncio.new_event_loop()
        self._storage: Any = None
        import sqlite3

        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            import pysqlite3

            sys.modules["sqlite3"] = pysqlite3
            sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

    def version(self) -> str:
        """Of mcp-memory-service."""
        from importlib.metadata import version

        return version("mcp-memory-service")

    def open(self) -> None:
        """Open the storage, or make it."""
        from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage

        look_up = _LookUp(self._vectors)

        class Storage(SqliteVecMemoryStorage):
            async def _initialize_embedding_model(self) -> None:
                self.embedding_model = look_up
                self.embedding_dimension = 384

        self._storage = Storage(str(self._path))
        self._loop.run_until_complete(self._storage.initialize())

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """Its own batches."""
        from mcp_memory_service.models.memory import Memory
        from mcp_memory_service.utils.hashing import generate_content_hash

        if self._storage is None:
            self.open()
        memories = [
            Memory(content=text, content_hash=generate_content_hash(text), metadata={"note": name})
            for name, text in zip(ids, texts, strict=True)
        ]
        results = self._loop.run_until_complete(self._storage.store_batch(memories))
        # A second memory of the same content is refused, which is its way.
        failed = [said for done, said in results if not done and "Duplicate" not in str(said)]
        if failed:
            raise RuntimeError(f"{len(failed)} of {len(results)} were not stored: {failed[0]}")

    def finish(self) -> None:
        """Statistics for SQLite's planner."""
        self._storage.conn.execute("ANALYZE")
        self._storage.conn.commit()

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its retrieval by meaning."""
        return self._ids(self._storage.retrieve(text, limit))

    def hybrid(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its hybrid retrieval."""
        return self._ids(self._storage.retrieve_hybrid(text, limit))

    def _ids(self, found: Any) -> list[str]:
        return [result.memory.metadata["note"] for result in self._loop.run_until_complete(found)]
