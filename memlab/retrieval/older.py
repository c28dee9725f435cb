"""The older scoring of the studied system, by vectors alone, for comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter

import numpy as np

from memlab.errors import EncoderError, InvalidValue
from memlab.retrieval.recall import Recall
from memlab.retrieval.recency import half_life_decay
from memlab.retrieval.retriever import whole
from memlab.retrieval.trace import Contribution, RankedMemory, Trace
from memlab.store import Filters, MemoryStore
from memlab.store.encoding import mismatch
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
    the place of channels; there is no recency factor.

    Parameters
    ----------
    store : MemoryStore
    depth : int
        How many memories the trace keeps in order.
    limit : int
        Hits where a recall does not say.
    """

    store: MemoryStore
    depth: int = 50
    limit: int = 5

    def __post_init__(self) -> None:
        whole(self.depth, "depth", least=1)
        whole(self.limit, "limit", least=0)

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        now: datetime | str | None = None,
        filters: Filters | None = None,
        **given: object,
    ) -> Recall:
        """The memories with the highest older score; see :meth:`HybridRetriever.recall`."""
        if not isinstance(query, str):
            raise InvalidValue(f"query: expected text, found {type(query).__name__}")
        wanted = self.limit if limit is None else whole(limit, "limit", least=0)
        moment = utc_now() if now is None else parse_time(now, "now")
        chosen = Filters.of(filters, **given)
        started = perf_counter()
        rows: list[RankedMemory] = []
        note, encoder = "", None
        try:
            vector, made_by = self.store.encode_query_stamped(query)
        except EncoderError as error:
            note = f"without a query vector this scoring has no answer: {error}"
        with self.store.view(chosen) as view:
            searched = view.live_count()
            if not note and view.encoder is not None and not view.encoder.compatible(made_by):
                note = str(mismatch(view.encoder, made_by))
            if not note:
                encoder = view.encoder.name if view.encoder else None
                documents = view.snapshot.documents
                at = documents.rows(view.allowed())
                at = np.arange(len(documents.owners)) if at is None else at
                facts = view.facts(documents.owners[at].tolist())
                cosines = documents.exact(vector, at)
                order = np.argsort(-cosines, kind="stable")
                for similarity_rank, i in enumerate(order.tolist(), 1):
                    number = int(documents.owners[at[i]])
                    memory_id, created, accesses = facts[number]
                    rows.append(
                        _row(
                            memory_id,
                            number,
                            similarity_rank,
                            float(cosines[i]),
                            from_stored(created),
                            accesses,
                            moment,
                        )
                    )
        rows.sort(key=lambda row: (-row.score, row.memory_id))
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
            ranked=tuple(replace(row, rank=rank) for rank, row in enumerate(rows[: max(self.depth, wanted)], 1)),
            searched=searched,
            encoder=encoder,
            timings={"recall": 1000 * (perf_counter() - started)},
        )
        return Recall.of(trace, self.store)


def _row(
    memory_id: str, number: int, rank: int, cosine: float, created_at: datetime, accesses: int, now: datetime
) -> RankedMemory:
    age = age_days(created_at, now)
    similarity, recency, access = older_score(cosine, age, accesses)
    return RankedMemory(
        memory_id=memory_id,
        number=number,
        rank=0,
        contributions=(
            Contribution("similarity", rank, cosine, similarity, f"0.35 x {cosine:.4g}"),
            Contribution("recency", rank, age, recency, f"0.55 x 0.5^({age:.4g} / 14)"),
            Contribution("access", rank, float(accesses), access, f"min(0.1, 0.01 x {accesses})"),
        ),
        recency_factor=1.0,
        age_days=age,
        created_at=created_at,
    )
