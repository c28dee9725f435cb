"""The older scoring of the studied system, by vectors alone, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import Any

import numpy as np

from memlab.checks import whole
from memlab.encoders.base import FloatMatrix
from memlab.errors import EncoderError, InvalidValue
from memlab.retrieval.fusion import fused
from memlab.retrieval.recall import Recall
from memlab.retrieval.recency import half_life_decay
from memlab.retrieval.retriever import filters_of
from memlab.retrieval.trace import Contribution, RankedMemory, Trace
from memlab.store import Filters, MemoryStore
from memlab.store.encoding import mismatch
from memlab.store.reading import ReadView
from memlab.timestamps import age_days, from_stored, parse_time, utc_now


def older_score(similarity: float, age: float, access_count: int) -> tuple[float, float, float]:
    """The three terms of the older score.

    ``0.35 * similarity``, ``0.55 * 0.5 ** (age / 14)`` and ``min(0.1, 0.01 * access_count)``.

    Parameters
    ----------
    similarity : float
        Cosine between query and memory.
    age : float
        Days.
    access_count : int
    """
    return 0.35 * similarity, 0.55 * half_life_decay(age, 14.0), min(0.1, 0.01 * access_count)


@dataclass(frozen=True)
class OlderRetriever:
    """Vector-only recall with the studied system's older score: mostly age, then similarity, then use.

    ``0.55 * 0.5 ** (age_days / 14) + 0.35 * cosine + min(0.1, 0.01 * access_count)`` over every memory that has a
    vector. Its recalls look like those of :class:`HybridRetriever`, with ``similarity``, ``recency`` and ``access`` in
    the place of channels, each ranked by its own term; there is no recency factor.

    Parameters
    ----------
    store : MemoryStore
    depth : int
        How many memories the trace keeps in order.
    limit : int
        Hits where a recall does not say.

    Raises
    ------
    InvalidValue
        If depth or limit are no whole numbers.
    """

    store: MemoryStore
    depth: int = 50
    limit: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", whole(self.depth, "depth", least=1))
        object.__setattr__(self, "limit", whole(self.limit, "limit", least=0))

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        now: datetime | str | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Recall:
        """The memories with the highest older score.

        Parameters
        ----------
        query, limit, now, filters
            See :meth:`HybridRetriever.recall`.

        Returns
        -------
        Recall
            Without hits if there is no vector of the query to compare; the trace says why.

        Raises
        ------
        InvalidValue
            If an argument is of the wrong kind.
        """
        if not isinstance(query, str):
            raise InvalidValue(f"query: expected text, found {type(query).__name__}")
        wanted = self.limit if limit is None else whole(limit, "limit", least=0)
        moment = utc_now() if now is None else parse_time(now, "now")
        chosen = filters_of(filters, given)
        started = perf_counter()
        note, vector, made_by = "", None, None
        if self.store.encoder_stamp is None and self.store.wants_encoder:
            note = "no memory has a vector yet"
        else:
            try:
                vector, made_by = self.store.encode_query_stamped(query)
            except EncoderError as error:
                note = f"without a query vector this scoring has no answer: {error}"
        with self.store.view(chosen) as view:
            if made_by is not None and view.encoder is not None and not view.encoder.compatible(made_by):
                note, vector = str(mismatch(view.encoder, made_by)), None
            ranked = () if vector is None else _ranked(view, vector, moment, max(self.depth, wanted))
        trace = Trace(
            query=query,
            filters=chosen,
            limit=wanted,
            depth=self.depth,
            now=moment,
            mode="vector-only (older scoring)",
            note=note,
            channels=(),
            fusion="0.35 similarity + 0.55 recency + min(0.1, 0.01 access count)",
            recency="",
            ranked=ranked,
            searched=view.searched,
            encoder=made_by.name if made_by is not None and vector is not None else None,
            timings={"recall": 1000 * (perf_counter() - started)},
        )
        return Recall.of(trace, self.store)


def _ranked(view: ReadView, vector: FloatMatrix, now: datetime, depth: int) -> tuple[RankedMemory, ...]:
    """The ``depth`` memories with the highest score, by score and then id."""
    numbers, _, cosines = view.documents.all(vector, view.documents.part(view.allowed()))
    facts = view.facts(numbers.tolist())
    rows = [(*facts[number], number, cosine) for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)]
    rows.sort(key=lambda row: row[0])  # by id, so that every stable order below breaks ties by it
    ages = np.array([age_days(from_stored(created), now) for _, created, _, _, _ in rows])
    terms = np.array(
        [older_score(row[4], age, row[2]) for row, age in zip(rows, ages.tolist(), strict=True)], dtype=np.float64
    ).reshape(len(rows), 3)
    # A term's rank is a memory's place when that term alone decides.
    ranks = np.empty(terms.shape, dtype=np.int64)
    for term in range(3):
        ranks[np.argsort(-terms[:, term], kind="stable"), term] = np.arange(1, len(rows) + 1)
    best = np.argsort(-terms.sum(axis=1), kind="stable")[:depth].tolist()
    ranked: list[RankedMemory] = []
    # numpy's sum and the trace's may differ in the last bit, and the trace's decides.
    for rank, i in enumerate(sorted(best, key=lambda i: (-fused(terms[i].tolist()), rows[i][0])), 1):
        memory_id, created, accesses, number, cosine = rows[i]
        age = float(ages[i])
        says = (f"0.35 x {cosine:.4g}", f"0.55 x 0.5^({age:.4g} / 14)", f"min(0.1, 0.01 x {accesses})")
        raw = (cosine, half_life_decay(age, 14.0), float(accesses))
        parts = tuple(
            Contribution(name, int(ranks[i, term]), raw[term], float(terms[i, term]), says[term])
            for term, name in enumerate(("similarity", "recency", "access"))
        )
        ranked.append(RankedMemory(memory_id, number, rank, parts, 1.0, age, from_stored(created)))
    return tuple(ranked)
