"""sqlite-vec (exact cosine in a ``vec0`` table) and FTS5 (all words joined by OR, ordered by rank), in one file.

Through apsw, which carries an SQLite of its own that can load extensions; the one of many Python builds cannot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from fusing import DEPTH, fused, or_query

_NEAREST = "SELECT rowid FROM vectors WHERE vector MATCH ? AND k = ?"


class Adapter:
    """Rows, words and vectors by rowid."""

    batch = None

    def __init__(self, folder: Path, vectors: object) -> None:
        self._path = folder / "store.db"
        self._db: Any = None

    def _connect(self) -> Any:
        import apsw
        import sqlite_vec

        db = apsw.Connection(str(self._path))
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        return db

    def version(self) -> str:
        """Of sqlite-vec and SQLite."""
        import apsw
        import sqlite_vec

        return f"{sqlite_vec.__version__}, SQLite {apsw.sqlite_lib_version()}"

    def ingest(self, ids: list[str], texts: list[str], matrix: np.ndarray) -> None:
        """One transaction."""
        db = self._connect()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT)")
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (content, tokenize = 'unicode61 remove_diacritics 2')")
        db.execute(f"CREATE VIRTUAL TABLE vectors USING vec0 (vector float[{matrix.shape[1]}] distance_metric=cosine)")
        with db:
            db.executemany(
                "INSERT INTO notes VALUES (?, ?, ?)",
                ((n, *row) for n, row in enumerate(zip(ids, texts, strict=True), 1)),
            )
            db.executemany("INSERT INTO words (rowid, content) VALUES (?, ?)", enumerate(texts, 1))
            db.executemany(
                "INSERT INTO vectors (rowid, vector) VALUES (?, ?)",
                ((n, row.astype("<f4").tobytes()) for n, row in enumerate(matrix, 1)),
            )
        db.close()

    def open(self) -> None:
        """Connect."""
        self._db = self._connect()

    def _nearest(self, vector: np.ndarray, limit: int) -> list[int]:
        return [row[0] for row in self._db.execute(_NEAREST, (vector.astype("<f4").tobytes(), limit))]

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
