"""What the peers are given: the same texts, vectors and queries for all, in files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

QUERIES = 330


@dataclass(frozen=True)
class Data:
    """Rows, queries and what is right.

    Attributes
    ----------
    name : str
    rows, queries : Path
        Without the endings ``.jsonl`` and ``.npy``.
    count, asked : int
        How many rows and queries there are.
    qrels : mapping of str to set of str
        Query id to the ids that answer it; empty where nobody judged.
    """

    name: str
    rows: Path
    queries: Path
    count: int
    asked: int
    qrels: Mapping[str, set[str]]

    def exact(self, start: int, end: int, limit: int) -> list[list[str]]:
        """Ids of the nearest rows of some queries, by float64 products of what float32 proposes."""
        matrix, queries = np.load(f"{self.rows}.npy", mmap_mode="r"), np.load(f"{self.queries}.npy")
        ids = ids_of(self.rows)
        best = []
        for query in queries[start:end]:
            scores = matrix @ query
            picked = np.argpartition(scores, -min(4 * limit, len(scores)))[-min(4 * limit, len(scores)) :]
            exact = matrix[picked].astype(np.float64) @ query.astype(np.float64)
            best.append([ids[at] for at in picked[np.argsort(-exact, kind="stable")[:limit]]])
        return best


def synthetic(size: int, cache: Path) -> Data:
    """Synthetic memories with questions about them."""
    from memlab.bench.synthetic import VERSION, memories, questions, vectors

    folder = cache / "data" / f"synthetic-{size}-{VERSION}"
    rows, queries = folder / "rows", folder / "queries"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(rows, ((row["memory_id"], row["content"]) for row in memories(size)), vectors(size))
        asked = questions(QUERIES, size=size)
        matrix = np.stack([question.vector for question in asked])
        _write(queries, ((f"q{n}", question.text) for n, question in enumerate(asked)), matrix)
        (folder / "done").touch()
    return Data(f"{size:,} synthetic memories", rows, queries, size, QUERIES, {})


def labelled(folder: Path | None, cache: Path) -> Data:
    """A labelled set in BEIR layout, the bundled sample by default, encoded by all-MiniLM-L6-v2."""
    name, corpus, asked, qrels = _sample() if folder is None else _beir(folder)
    digest = hashlib.sha256(json.dumps([corpus, asked], sort_keys=True).encode()).hexdigest()[:12]
    place = cache / "data" / f"{name}-{digest}"
    if not (place / "done").exists():
        from memlab import MiniLM

        place.mkdir(parents=True, exist_ok=True)
        encoder = MiniLM()
        _write(place / "rows", corpus, encoder.encode_documents([text for _, text in corpus]))
        _write(place / "queries", asked, encoder.encode_queries([text for _, text in asked]))
        (place / "done").touch()
    return Data(name, place / "rows", place / "queries", len(corpus), len(asked), qrels)


def _sample() -> tuple[str, list[tuple[str, str]], list[tuple[str, str]], dict[str, set[str]]]:
    from memlab.sample_data import sample

    found = sample()
    judged = [query for query in found.queries if query.relevant and not query.filters]
    return (
        "the bundled sample",
        [(record["memory_id"], record["content"]) for record in found.records],
        [(query.query_id, query.text) for query in judged],
        {query.query_id: query.relevant for query in judged},
    )


def _beir(folder: Path) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]], dict[str, set[str]]]:
    from memlab.evaluation.folders import read_folder

    found = read_folder(folder)
    qrels: dict[str, set[str]] = {}
    for query_id, by_memory in _judgments(found.qrels).items():
        if right := {memory_id for memory_id, relevance in by_memory.items() if relevance > 0}:
            qrels[query_id] = right
    corpus = [(record["memory_id"], record["content"]) for record in found.corpus]
    asked = [(query.query_id, query.text) for query in found.queries if query.query_id in qrels]
    return found.name, corpus, asked, qrels


def _judgments(qrels: Any) -> dict[str, dict[str, int]]:
    by_query: dict[str, dict[str, int]] = {}
    for row in qrels.frame.to_dict("records"):
        by_query.setdefault(str(row["query_id"]), {})[str(row["memory_id"])] = int(row["relevance"])
    return by_query


def recall_at(found: Mapping[str, Sequence[str]], qrels: Mapping[str, set[str]], k: int = 5) -> float:
    """Mean share of a query's right answers among its first ``k``."""
    return float(np.mean([len(set(found[query][:k]) & right) / len(right) for query, right in qrels.items()]))


def ids_of(path: Path) -> list[str]:
    """The ids of a file, in order."""
    with open(f"{path}.jsonl", encoding="utf-8") as file:
        return [json.loads(line)["id"] for line in file]


def _write(path: Path, rows: Any, matrix: np.ndarray) -> None:
    with open(f"{path}.jsonl", "w", encoding="utf-8") as file:
        for name, text in rows:
            file.write(json.dumps({"id": name, "text": text}) + "\n")
    np.save(f"{path}.npy", np.ascontiguousarray(matrix, dtype=np.float32))
