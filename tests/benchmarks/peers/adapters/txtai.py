"""txtai: an embeddings database with its hybrid index (its default Faiss index and its own BM25) and stored content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Adapter:
    """One saved index. It encodes texts by a function that looks the vectors up."""

    batch = None
    encodes = True

    def __init__(self, folder: Path, vectors: Any) -> None:
        self._folder = folder / "index"

        def transform(texts: list[str]) -> np.ndarray:
            return np.stack([vectors(text) for text in texts])

        self._transform = transform
        self._embeddings: Any = None

    def version(self) -> str:
        """Of txtai."""
        from importlib.metadata import version

        return version("txtai")

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """Index and save."""
        from txtai import Embeddings

        embeddings = Embeddings(method="external", transform=self._transform, hybrid=True, content=True)
        embeddings.index(zip(ids, texts, strict=True))
        embeddings.save(str(self._folder))
        embeddings.close()

    def open(self) -> None:
        """Load the saved index."""
        from txtai import Embeddings

        self._embeddings = Embeddings()
        self._embeddings.load(str(self._folder), config={"transform": self._transform})

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its search with all weight on the vectors."""
        return [row["id"] for row in self._embeddings.search(text, limit, weights=1.0)]

    def hybrid(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its hybrid search with its default weights."""
        return [row["id"] for row in self._embeddings.search(text, limit)]
