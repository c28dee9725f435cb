"""A recall as the query log keeps it, and back: a retriever as JSON values, and the same one made of them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidValue
from memlab.retrieval.channels import KeywordChannel, PassageChannel, StemChannel, VectorChannel
from memlab.retrieval.fusion import RRF, ConvexFusion, ScoreFusion
from memlab.retrieval.recency import RecencyRanker
from memlab.store import MemoryStore
from memlab.store.logged import LoggedQuery

if TYPE_CHECKING:
    from memlab.retrieval.recall import Recall
    from memlab.retrieval.retriever import HybridRetriever

_STAGES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        KeywordChannel,
        StemChannel,
        VectorChannel,
        PassageChannel,
        RRF,
        ConvexFusion,
        ScoreFusion,
        RecencyRanker,
    )
}


def settings_of(retriever: HybridRetriever) -> dict[str, Any]:
    """The settings of a retriever as JSON values, its store aside.

    Returns
    -------
    dict
        ``channels, fusion, recency, recency_boost, depth, limit``; a stage is ``{"kind": name, **its settings}``. Of a
        stage that is not memlab's own only the ``repr`` is there.
    """
    return {
        "channels": [_described(channel) for channel in retriever.channels],
        "fusion": _described(retriever.fusion),
        "recency": None if retriever.recency is None else _described(retriever.recency),
        "recency_boost": retriever.recency_boost,
        "depth": retriever.depth,
        "limit": retriever.limit,
    }


def retriever_of(settings: Mapping[str, Any], store: MemoryStore) -> HybridRetriever:
    """A retriever over ``store`` with the settings that :func:`settings_of` gave.

    Raises
    ------
    InvalidValue
        If a stage is not one of memlab's own, or the settings are not those of a retriever.
    """
    from memlab.retrieval.retriever import HybridRetriever

    try:
        recency = settings["recency"]
        return HybridRetriever(
            store,
            channels=tuple(_made(stage) for stage in settings["channels"]),
            fusion=_made(settings["fusion"]),
            recency=None if recency is None else _made(recency),
            recency_boost=settings["recency_boost"],
            depth=settings["depth"],
            limit=settings["limit"],
        )
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"settings: expected those of a retriever, as the query log has them: {error}") from error


def _described(stage: Any) -> dict[str, Any]:
    kind = type(stage)
    if _STAGES.get(kind.__name__) is not kind:
        return {"kind": f"{kind.__module__}.{kind.__qualname__}", "repr": repr(stage)}
    values = {item.name: getattr(stage, item.name) for item in dataclasses.fields(stage)}
    return {"kind": kind.__name__, **{name: _plain(value) for name, value in values.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _made(stage: Mapping[str, Any]) -> Any:
    kind = _STAGES.get(stage["kind"])
    if kind is None:
        raise InvalidValue(
            f"settings: {stage['kind']} is none of memlab's own channels, fusions or rankers ({', '.join(_STAGES)}), "
            "so it cannot be made again; give the retriever itself"
        )
    return kind(**{name: _tuples(value) for name, value in stage.items() if name != "kind"})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def record(recall: Recall, retriever: HybridRetriever) -> None:
    """Leave word of a recall with the query log of its store; does nothing while that is off."""
    retriever.store.query_log.add(lambda: logged(recall, retriever))


def logged(recall: Recall, retriever: HybridRetriever) -> LoggedQuery:
    """A recall as the query log keeps it."""
    trace = recall.trace
    return LoggedQuery(
        query=trace.query,
        filters=trace.filters,
        limit=trace.limit,
        recency_boost=bool(trace.recency),
        now=trace.now,
        mode=trace.mode,
        note=trace.note,
        encoder=trace.encoder,
        settings=settings_of(retriever),
        milliseconds=sum(trace.timings.values()),
        hits=tuple((hit.memory_id, hit.score) for hit in recall.hits),
    )


def entry_of(store: MemoryStore, entry: LoggedQuery | int) -> LoggedQuery:
    """A recorded recall itself, or the one with this number in the log of ``store``."""
    return entry if isinstance(entry, LoggedQuery) else store.query_log[entry]


def arguments_of(entry: LoggedQuery) -> dict[str, Any]:
    """What a recorded recall was called with, its query aside."""
    return {
        "limit": entry.limit,
        "recency_boost": entry.recency_boost,
        "now": entry.now,
        "filters": entry.filters,
    }


def replay(store: MemoryStore, entry: LoggedQuery | int) -> Recall:
    """Run a recorded recall again, with the settings and the ``now`` that it had; it is not recorded.

    On a store that has not changed since, the hits are the same; on one that has, the difference is what the changes
    did. A store that was re-embedded with another encoder answers with that one.

    Parameters
    ----------
    store : MemoryStore
    entry : LoggedQuery or int
        One of ``store.query_log``, or its number there.

    Raises
    ------
    InvalidValue
        If there is none of this number, or its retriever had a stage that is not memlab's own.
    """
    entry = entry_of(store, entry)
    given = arguments_of(entry)
    retriever = retriever_of(entry.settings, store)
    return retriever.rank(retriever.gather(entry.query, filters=given.pop("filters")), **given)
