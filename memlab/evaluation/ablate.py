"""What each channel of a retriever is good for: all of them against each alone and each left out."""

from __future__ import annotations

from typing import Any

from memlab.errors import InvalidValue
from memlab.evaluation.compare import Comparison, compare
from memlab.retrieval.retriever import HybridRetriever

ALL = "all"


def ablate(
    retriever: HybridRetriever,
    queries: Any,
    qrels: Any,
    measures: Any = None,
    *,
    recency_boost: bool | None = None,
    **options: Any,
) -> Comparison:
    """Compare a retriever with itself, each channel alone and each left out.

    Parameters
    ----------
    retriever : HybridRetriever
        Of two channels or more.
    queries, qrels, measures
        See :func:`~memlab.evaluation.compare.compare`.
    recency_boost : bool, optional
        The retriever's own by default. If it is on, the retriever without it takes part too.
    options
        More arguments for :func:`~memlab.evaluation.compare.compare`.

    Returns
    -------
    Comparison
        The baseline is ``"all"``: a negative difference is what a channel that was left out is worth.

    Raises
    ------
    InvalidValue
        If the retriever has a single channel, and what ``compare`` raises.
    """
    return compare(variants(retriever, recency_boost), queries, qrels, measures, **options)


def variants(retriever: HybridRetriever, recency_boost: bool | None = None) -> dict[str, HybridRetriever]:
    """The retrievers of an ablation by name: ``all``, ``keyword only``, ``without keyword`` and so on."""
    if not isinstance(retriever, HybridRetriever):
        raise InvalidValue(f"retriever: expected a HybridRetriever, found {type(retriever).__name__}")
    if recency_boost is not None:
        if recency_boost and retriever.recency is None:
            raise InvalidValue("recency_boost: the retriever has recency=None; give it a RecencyRanker() first")
        retriever = retriever.replace(recency_boost=bool(recency_boost))
    names = [channel.name for channel in retriever.channels]
    if len(names) < 2:
        raise InvalidValue(f"retriever: expected two channels or more, found {', '.join(names)} alone")
    found = {ALL: retriever}
    found |= {f"{name} only": retriever.only(name) for name in names}
    if len(names) > 2:  # of two channels, leaving one out is having the other alone
        found |= {f"without {name}": retriever.without(name) for name in names}
    if retriever.recency_boost and retriever.recency is not None:
        found["without recency"] = retriever.replace(recency_boost=False)
    return found
