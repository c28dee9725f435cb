"""LanceDB: exact vectors (it makes no index by itself), its own full-text index and hybrid query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Adapter:
    """One table."""

    batch = None

    def __init__(self, folder: Path, vectors: object) -> None:
        self._folder = folder / "lance"
        self._table: Any = None

    def version(self) -> str:
        """Of lancedb."""
        from importlib.metadata import version

        return version("lancedb")

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """One Arrow table, then the full-text index."""
        import lancedb
        import pyarrow

        flat = pyarrow.array(np.ascontiguousarray(matrix, dtype=np.float32).reshape(-1))
        vectors = pyarrow.FixedSizeListArray.from_arrays(flat, matrix.shape[1])
        rows = pyarrow.table({"id": ids, "text": texts, "vector": vectors})
        table = lancedb.connect(str(self._folder)).create_table("notes", rows)
        table.create_fts_index("text")

    def open(self) -> None:
        """Open the table."""
        import lancedb

        self._table = lancedb.connect(str(self._folder)).open_table("notes")

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Nearest by cosine."""
        query = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        return query.select(["id", "text"]).limit(limit).to_arrow()["id"].to_pylist()

    def hybrid(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Its hybrid query, with reciprocal rank fusion, its default."""
        query = self._table.search(query_type="hybrid").vector(vector).text(_plain(text)).distance_type("cosine")
        return query.limit(limit).to_arrow()["id"].to_pylist()


def _plain(text: str) -> Any:
    """The text as words to match, not as query syntax."""
    from lancedb.query import MatchQuery

    return MatchQuery(text, "text")
