"""The evaluation of the articles on the studied system: how often the vector channel alone finds what is labelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.evaluation.evaluate import Evaluation, evaluate
from memlab.progress import Show
from memlab.retrieval.channels import VectorChannel
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore


def vector_recall(
    store: MemoryStore,
    queries: Any,
    qrels: Any,
    k: int | Sequence[int] = (5, 1),
    *,
    now: datetime | str | None = None,
    progress: Show = None,
) -> Evaluation:
    """Recall@k of the document vectors alone, over labelled queries.

    Parameters
    ----------
    store : MemoryStore
    queries, qrels
        See :func:`~memlab.evaluation.evaluate.evaluate`.
    k : int or sequence of int
        Cutoffs; recall@5 and recall@1 in the articles.
    now, progress
        See :func:`~memlab.evaluation.evaluate.evaluate`.

    Returns
    -------
    Evaluation
        Its summary has the means with 95 % intervals.

    Raises
    ------
    InvalidValue
        If there is no cutoff, or one is no whole number of at least 1.
    EncoderUnavailable
        If the store has no vectors, or its encoder cannot be had.
    """
    cutoffs = [whole(cutoff, "k", least=1) for cutoff in (k if isinstance(k, Iterable) else [k])]
    if not cutoffs:
        raise InvalidValue("k: expected one or more cutoffs such as (5, 1), found none")
    retriever = HybridRetriever(store, channels=(VectorChannel(),), depth=max(cutoffs), recency=None)
    measures = [f"R@{cutoff}" for cutoff in cutoffs]
    return evaluate(
        retriever, queries, qrels, measures, limit=max(cutoffs), now=now, progress=progress, name="vector alone"
    )
