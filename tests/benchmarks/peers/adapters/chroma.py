"""Chroma: a persistent collection with its HNSW index. It has no ranked keyword search, so no hybrid one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Adapter:
    """One collection; cosine."""

    batch = 5000  # the most it takes at once

    def __init__(self, folder: Path, vectors: object) -> None:
        self._folder = folder / "chroma"
        self._collection: Any = None

    def version(self) -> str:
        """Of chromadb."""
        import chromadb

        return chromadb.__version__

    def open(self) -> None:
        """Open the collection, or make it."""
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(self._folder), Settings(anonymized_telemetry=False))
        self._collection = client.get_or_create_collection(
            "notes", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """Ready vectors with their texts."""
        if self._collection is None:
            self.open()
        self._collection.add(ids=ids, documents=texts, embeddings=matrix)

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Nearest, with their texts."""
        found = self._collection.query(query_embeddings=[vector], n_results=limit, include=["documents", "distances"])
        return found["ids"][0]
