"""Encoders that misbehave on demand, raw connections, and the slow and simple way to a right answer."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from memlab.store.analysis import analyse

TABLES = (
    "store_settings",
    "encoders",
    "memories",
    "memory_numbers",
    "memory_search",
    "memory_terms",
    "memory_terms_pending",
    "memory_passages",
    "memory_revisions",
    "idempotency_keys",
    "memory_changes",
    "bulk_write",
    "staged_vectors",
    "staged_passages",
)


class OddEncoder(HashingEncoder):
    """A hashing encoder under any name, that counts its calls and goes wrong when told to.

    ``fails`` is asked before every call with (number of the call from 0, texts): what it returns is raised if it is an
    exception, and given back as the vectors if it is an array.
    """

    def __init__(self, dimension: int = 64, token_limit: int = 256, name: str | None = None, weights: str = "") -> None:
        super().__init__(dimension, token_limit)
        self._name = name or f"hashing-{dimension}"
        self._weights = weights
        self.calls = 0
        self.texts: list[str] = []
        self.fails: Any = lambda call, texts: None

    @property
    def name(self) -> str:
        return self._name

    @property
    def fingerprint(self) -> str:
        return super().fingerprint + self._weights

    def encode_documents(self, texts: Sequence[str]) -> Any:
        outcome = self.fails(self.calls, texts)
        self.calls += 1
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            return outcome
        self.texts += texts
        vectors = super().encode_documents(texts)
        # Other weights give other vectors.
        return np.roll(vectors, len(self._weights), axis=1)


def raw_connection(path: Path, **options: Any) -> sqlite3.Connection:
    """A connection as a program has it that knows only SQLite: no foreign keys, no recursive triggers."""
    connection = sqlite3.connect(path, isolation_level=None, **options)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA recursive_triggers = OFF")
    return connection


def dump(path: Path) -> dict[str, list[Any]]:
    """Every row of every table of a store."""
    connection = raw_connection(path)
    try:
        return {table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}"))) for table in TABLES}
    finally:
        connection.close()


def search(path: Path, word: str) -> list[str]:
    """Ids that the search index gives for one word."""
    connection = raw_connection(path)
    try:
        rows = connection.execute(
            "SELECT id FROM memory_search WHERE memory_search MATCH ? ORDER BY id", (f'"{word}"',)
        )
        return [row[0] for row in rows]
    finally:
        connection.close()


def terms_on_disk(path: Path) -> dict[str, tuple[str, str]]:
    """Memory id to the columns of its row in the term index."""
    with contextlib.closing(raw_connection(path)) as connection:
        rows = connection.execute(
            "SELECT n.id, t.content, t.labels FROM memory_terms t LEFT JOIN memory_numbers n ON n.number = t.rowid"
        ).fetchall()
    found = {memory_id: (content, labels) for memory_id, content, labels in rows}
    assert len(found) == len(rows)
    return found


def terms_from_scratch(path: Path) -> dict[str, tuple[str, str]]:
    """What the term index has to have, from the live memories alone."""
    with contextlib.closing(raw_connection(path)) as connection:
        rows = connection.execute(
            "SELECT id, content, category, project, tags, related_files FROM memories WHERE trashed_at IS NULL"
        ).fetchall()
    return {
        memory_id: (
            " ".join(analyse(content)),
            " ".join(analyse(" ".join([category, project or "", *json.loads(tags), *json.loads(files)]))),
        )
        for memory_id, content, category, project, tags, files in rows
    }


def postings(path: Path, index: str = "memory_terms") -> list[tuple[Any, ...]]:
    """Every occurrence that FTS5 has in an index: term, number, column, position."""
    with contextlib.closing(raw_connection(path)) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, {index}, instance)")
        return connection.execute("SELECT * FROM temp.instances ORDER BY 1, 2, 3, 4").fetchall()


def vectors_on_disk(path: Path) -> dict[str, bytes]:
    """Vectors of the live memories, as a plain query gives them."""
    connection = raw_connection(path)
    try:
        return dict(
            connection.execute(
                "SELECT id, vector FROM memories WHERE trashed_at IS NULL AND vector IS NOT NULL"
            ).fetchall()
        )
    finally:
        connection.close()


def vectors_in_memory(store: MemoryStore) -> dict[str, bytes]:
    """Vectors of the live memories, as the index of an open store has them."""
    ids, matrix = store.vectors()
    assert len(set(ids)) == len(ids)
    return {memory_id: row.astype("<f4").tobytes() for memory_id, row in zip(ids, matrix, strict=True)}


def passages_on_disk(path: Path) -> set[tuple[str, int, bytes]]:
    """Passage vectors of the live memories that have a vector."""
    connection = raw_connection(path)
    try:
        return set(
            connection.execute(
                "SELECT p.memory_id, p.position, p.vector FROM memory_passages p JOIN memories m ON m.id = p.memory_id "
                "WHERE m.trashed_at IS NULL AND m.vector IS NOT NULL"
            )
        )
    finally:
        connection.close()


def passages_in_memory(store: MemoryStore) -> set[tuple[str, int, bytes]]:
    """Passage vectors as the index of an open store has them."""
    with store.view() as view:
        owners, labels, matrix = view.passages.matrix()
        ids = view.ids(owners.tolist())
    return {
        (ids[owner], label, row.astype("<f4").tobytes())
        for owner, label, row in zip(owners.tolist(), labels.tolist(), matrix, strict=True)
    }


def assert_sound(store: MemoryStore) -> None:
    """Check the file, and that the indexes have what is in it once somebody has looked."""
    report = store.check()
    assert report.ok, report
    with store.view() as view:
        assert view.terms_ready
        assert view.searched == report.memories
    assert store.check().unindexed == 0
    assert terms_on_disk(store.path) == terms_from_scratch(store.path)
    assert vectors_in_memory(store) == vectors_on_disk(store.path)
    assert passages_in_memory(store) == passages_on_disk(store.path)
