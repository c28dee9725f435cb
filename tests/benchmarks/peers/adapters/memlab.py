"""memlab itself: its default recall, and its vector channel alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[4]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


class Adapter:
    """One store file; vectors come ready, so no encoder is loaded except for ``text``."""

    batch = None

    def __init__(self, folder: Path, vectors: object) -> None:
        self._path = folder / "memory.db"

    def version(self) -> str:
        """Of memlab."""
        import memlab

        return memlab.__version__

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """Texts and vectors in one call."""
        from memlab import MemoryStore, MiniLM
        from memlab.bench.subject import NameOnly
        from memlab.encoders.base import stamp

        records = [{"memory_id": name, "content": text} for name, text in zip(ids, texts, strict=True)]
        with MemoryStore(self._path, NameOnly(stamp(MiniLM()))) as store:
            store.remember_many(records, vectors=matrix, progress=False)

    def open(self) -> None:
        """The store, for reading."""
        from memlab import HybridRetriever, MemoryStore

        self._retriever = HybridRetriever(MemoryStore(self._path, read_only=True))

    def hybrid(self, text: str, vector: np.ndarray, limit: int) -> tuple[str, ...]:
        """A whole recall, the query's vector given."""
        retriever = self._retriever
        return retriever.rank(retriever.gather(text, query_vector=vector), limit=limit).ids

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """The vector channel."""
        from memlab.retrieval import VectorChannel
        from memlab.retrieval.channels import Query

        with self._retriever.store.view() as view:
            hits = VectorChannel().search(Query(text, vector), view, limit, frozenset()).hits
        return [hit.memory_id for hit in hits]

    def text(self, text: str, limit: int) -> tuple[str, ...]:
        """A whole recall from text."""
        return self._retriever.recall(text, limit=limit).ids
