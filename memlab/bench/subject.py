"""What is measured: a store, questions that nobody has asked yet, and a filter that keeps a small part."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memlab.bench import synthetic
from memlab.bench.timing import Deal
from memlab.encoders.base import Encoder, EncoderStamp, FloatMatrix, IntMatrix
from memlab.errors import EncoderError, InvalidValue
from memlab.progress import Show
from memlab.retrieval.channels import Query
from memlab.store import AUTO, MemoryStore

QUESTIONS = 1200
_TEXTS = 5000  # most memories that are read for their words, and stored once more
_STORED = 20_000  # most synthetic ones that are
_FILTERED = 0.05  # the share of memories that a filter should keep


@dataclass
class Subject:
    """A store and what is asked of it.

    Attributes
    ----------
    store : MemoryStore
        Open for reading.
    name : str
    synthetic : bool
    questions : Deal of Query
        Each with a vector, where the store has vectors.
    fresh : Deal of str
        Other questions, which no encoder has seen.
    texts : Deal of str
        Contents for encoding.
    records : sequence of dict
        To be stored anew elsewhere; empty where the store has no vectors.
    matrix : ndarray of float32, shape (len(records), dimension)
        Their vectors.
    filtered : tuple of (str, str, float) or None
        Field, value and share of a filter.
    encoder : Encoder or None
        The store's, loaded; ``None`` where it cannot be had.
    notes : list of str
    """

    store: MemoryStore
    name: str
    synthetic: bool
    questions: Deal
    fresh: Deal
    texts: Deal
    records: Sequence[dict[str, Any]]
    matrix: FloatMatrix
    filtered: tuple[str, str, float] | None
    encoder: Encoder | None
    notes: list[str] = field(default_factory=list)


@contextmanager
def synthetic_subject(
    size: int,
    seed: int = 0,
    *,
    cache: str | os.PathLike[str] | None = None,
    encoder: Any = AUTO,
    progress: Show = None,
) -> Iterator[Subject]:
    """A synthetic store of this size, from the cache if it is there."""
    with synthetic.cached_store(size, seed, cache=cache, encoder=encoder, progress=progress) as store:
        made_by = store.encoder_stamp
        asked = synthetic.questions(min(QUESTIONS, 20 * size), seed, size=size)
        records = list(synthetic.memories(min(size, _STORED), seed))
        notes = []
        if encoder is AUTO and made_by is not None and made_by.name.startswith("hashing"):
            notes.append(f"the weights of all-MiniLM-L6-v2 were not found: what is encoded, {made_by.name} encodes")
        yield Subject(
            store=store,
            name=f"{size:,} synthetic memories",
            synthetic=True,
            questions=Deal([Query(one.text, one.vector, made_by=made_by) for one in asked[len(asked) // 3 :]]),
            fresh=Deal([one.text for one in asked[: len(asked) // 3]]),
            texts=Deal([record["content"] for record in synthetic.memories(2000, seed + 1)]),
            records=records,
            matrix=synthetic.vectors(len(records), seed),
            filtered=_filter(store),
            encoder=_encoder(store, notes),
            notes=notes,
        )


@contextmanager
def own_subject(path: Path, seed: int = 0) -> Iterator[Subject]:
    """A store of somebody's own, opened for reading; it is asked for words of its own memories."""
    with MemoryStore(path, read_only=True) as store:
        if not len(store):
            raise InvalidValue(
                f"{path}: expected memories, found none; `memlab bench --size 12k` measures synthetic ones"
            )
        notes: list[str] = []
        rng = np.random.default_rng(seed)
        made_by = store.encoder_stamp
        records = _records(store, made_by, rng)
        encoder = _encoder(store, notes)
        contents = [record["content"] for record in records]
        texts = _questions(contents, rng)
        fresh, texts = texts[: len(texts) // 3], texts[len(texts) // 3 :]
        stored = [record for record in records if "vector" in record]
        matrix = np.stack([record.pop("vector") for record in stored]) if stored else np.empty((0, 1), np.float32)
        vectors = _query_vectors(texts, matrix, encoder, rng, notes)
        if vectors is None:
            notes.append("no memory has a vector: only words were measured")
            asked = [Query(text, None, "no memory has a vector yet") for text in texts]
        else:
            asked = [Query(text, vector, made_by=made_by) for text, vector in zip(texts, vectors, strict=True)]
        yield Subject(
            store=store,
            name=str(path),
            synthetic=False,
            questions=Deal(asked),
            fresh=Deal(fresh),
            texts=Deal([contents[at] for at in rng.permutation(len(contents)).tolist()]),
            records=stored,
            matrix=matrix,
            filtered=_filter(store),
            encoder=encoder,
            notes=notes,
        )


@dataclass(frozen=True)
class NameOnly:
    """Stands for an encoder where ready vectors are stored: nothing is encoded, so no model need be loaded."""

    stamp: EncoderStamp
    query_prefix: str = ""

    @property
    def name(self) -> str:
        """What people call the model."""
        return self.stamp.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.stamp.dimension

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part."""
        return self.stamp.token_limit

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of the weights."""
        return self.stamp.fingerprint

    @property
    def document_prefix(self) -> str:
        """Put before a document."""
        return self.stamp.document_prefix

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Raise :class:`EncoderError`."""
        raise EncoderError(f"{self.name} is here by name only; texts cannot be encoded")

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Raise :class:`EncoderError`."""
        raise EncoderError(f"{self.name} is here by name only; texts cannot be encoded")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Raise :class:`EncoderError`."""
        raise EncoderError(f"{self.name} is here by name only; tokens cannot be counted")

    def token_spans(self, text: str) -> IntMatrix:
        """Raise :class:`EncoderError`."""
        raise EncoderError(f"{self.name} is here by name only; tokens cannot be located")


def _encoder(store: MemoryStore, notes: list[str]) -> Encoder | None:
    """The store's encoder, if it can be had and encodes."""
    if store.encoder_stamp is None:
        return None
    try:
        encoder = store.encoder()
        encoder.encode_queries(["a first text, for which a model is loaded"])
    except EncoderError as error:
        notes.append(f"nothing was encoded: {str(error).splitlines()[0]}")
        return None
    engine = str(getattr(encoder, "engine", ""))
    if engine.startswith("torch:"):
        notes.append(f"{encoder.name} computes with {engine}")
    return encoder


def _filter(store: MemoryStore) -> tuple[str, str, float] | None:
    """The project, or else the category, whose share of the memories is nearest to 5 %."""
    best: tuple[float, tuple[str, str, float]] | None = None
    with store.view() as view:
        for column in ("project", "category"):
            rows = view.connection.execute(
                f"SELECT {column}, count(*) FROM memories WHERE trashed_at IS NULL AND {column} IS NOT NULL GROUP BY 1"
            )
            for value, count in rows:
                share = count / max(1, view.searched)
                distance = abs(np.log(share / _FILTERED))
                if share < 1 and (best is None or distance < best[0]):
                    best = (distance, (column, value, share))
            if best is not None:
                break
    return None if best is None else best[1]


def _records(store: MemoryStore, made_by: EncoderStamp | None, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Id, content and, where there is one, vector: of all memories, or of some of a large store."""
    size = 4 * made_by.dimension if made_by else 0
    records: list[dict[str, Any]] = []
    with store.view() as view:
        read = view.connection.execute
        ids = [row[0] for row in read("SELECT id FROM memories WHERE trashed_at IS NULL ORDER BY id")]
        if len(ids) > _TEXTS:
            ids = [ids[at] for at in np.sort(rng.choice(len(ids), _TEXTS, replace=False)).tolist()]
        for name in ids:
            content, blob = read("SELECT content, vector FROM memories WHERE id = ?", (name,)).fetchone()
            records.append({"memory_id": name, "content": content})
            if blob is not None and len(blob) == size:
                vector = np.frombuffer(blob, "<f4").astype(np.float32)
                if np.isfinite(vector).all() and vector.any():
                    records[-1]["vector"] = vector
    return records


def _questions(contents: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Different questions: some words each of one memory."""
    made: dict[str, None] = {}
    for _ in range(20):
        for at in rng.permutation(len(contents)).tolist():
            words = list(dict.fromkeys(word[:60] for word in contents[at].split()))
            picked = sorted(rng.permutation(len(words))[: int(rng.integers(3, 10))].tolist())
            made.setdefault(" ".join(words[place] for place in picked))
            if len(made) == QUESTIONS:
                return list(made)
    return list(made)


def _query_vectors(
    texts: Sequence[str],
    matrix: FloatMatrix,
    encoder: Encoder | None,
    rng: np.random.Generator,
    notes: list[str],
) -> FloatMatrix | None:
    if not len(matrix):
        return None
    if encoder is not None:
        return encoder.encode_queries(texts)
    # Half one memory's and half another's: near something, equal to nothing.
    mixed = matrix[rng.integers(len(matrix), size=len(texts))] + matrix[rng.integers(len(matrix), size=len(texts))]
    notes.append("query vectors are means of two memories' each")
    norms = np.linalg.norm(mixed, axis=1, keepdims=True)
    unit: FloatMatrix = np.where(norms > 0, mixed / np.where(norms > 0, norms, 1), matrix[0]).astype(np.float32)
    return unit
