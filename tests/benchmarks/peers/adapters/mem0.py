"""mem0 with ``infer=False``, so that no language model is asked, and its default store, a local Qdrant.

Its keyword part wants models that have to be downloaded, and is off without them: what it finds, it finds by vectors.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

_USER = "benchmark"


class _LookUp:
    """In place of its embedder."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._vectors(text).tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Adapter:
    """One local collection; memories are added one by one, as it wants them."""

    batch = 100
    encodes = True

    def __init__(self, folder: Path, vectors: Any) -> None:
        self._folder = folder
        self._vectors = vectors
        self._memory: Any = None
        os.environ["MEM0_DIR"] = str(folder)

    def version(self) -> str:
        """Of mem0ai."""
        from importlib.metadata import version

        return version("mem0ai")

    def open(self) -> None:
        """Make the memory; nothing is asked of the language model that it wants to be told of."""
        from mem0 import Memory

        unused = {"api_key": "unused"}
        store = {"collection_name": "notes", "path": str(self._folder / "qdrant"), "embedding_model_dims": 384}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**store, "on_disk": True}},
                "embedder": {"provider": "openai", "config": unused},
                "llm": {"provider": "openai", "config": unused},
                "history_db_path": str(self._folder / "history.db"),
            }
        )
        self._memory.embedding_model = _LookUp(self._vectors)

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """One call a memory."""
        if self._memory is None:
            self.open()
        for name, text in zip(ids, texts, strict=True):
            self._memory.add(text, user_id=_USER, metadata={"note": name}, infer=False)

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its search."""
        found = self._memory.search(text, top_k=limit, filters={"user_id": _USER}, threshold=0.0)
        return [row["metadata"]["note"] for row in found["results"]]
