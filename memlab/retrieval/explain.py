"""A trace in words: why a memory is where it is, and why another is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memlab.errors import UnknownMemory
from memlab.retrieval.trace import Contribution, RankedMemory, Trace
from memlab.store.records import shorten
from memlab.timestamps import format_time

if TYPE_CHECKING:
    from memlab.retrieval.candidates import Candidates
    from memlab.retrieval.retriever import HybridRetriever
    from memlab.store import Filters, MemoryStore

_UNITS = {"keyword": "bm25", "vector": "cosine", "passage": "cosine", "similarity": "cosine"}


class Text(str):
    """Text that a notebook shows as it reads, without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def contribution_words(part: Contribution) -> str:
    """``keyword 0.016393 [rank 1, bm25 7.21: 1 / (60 + 1)]``."""
    unit = _UNITS.get(part.channel, "score")
    where = f", passage {part.passage + 1}" if part.passage is not None else ""
    rank = "beyond the depth" if part.rank is None else f"rank {part.rank}"
    return f"{part.channel} {part.contribution:.6f} [{rank}, {unit} {part.raw_score:.4g}{where}: {part.formula}]"


def explain(trace: Trace, place: RankedMemory) -> Text:
    """The whole sum of one ranked memory in one sentence, and a clause for each channel that did not find it."""
    total = " + ".join(contribution_words(part) for part in place.contributions)
    if trace.recency:
        total = f"({total}) x {place.recency_factor:.6f} [recency, {place.age_days:.1f} days old]"
    silent = [
        f"the {result.channel} channel {_silence(result.ran, result.note, place)}"
        for result in trace.channels
        if place.of(result.channel) is None
    ]
    rest = "".join(f"; {clause}" for clause in silent)
    return Text(f"{place.memory_id} is number {place.rank} with {place.score:.6f} = {total}{rest}.")


def _silence(ran: bool, note: str, place: RankedMemory) -> str:
    if not ran:
        return "did not run"
    return f"gave nothing ({note})" if note else "did not have it in its list"


@dataclass(frozen=True)
class WhyNot:
    """Why a memory is not among the hits.

    Attributes
    ----------
    memory_id : str
    found : bool
        True if it is a hit after all.
    reasons : tuple of str
        Where it dropped out.
    remedies : tuple of str
        What would bring it back, each tried or worked out, not guessed.
    """

    memory_id: str
    found: bool
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.memory_id}: " + "; ".join(self.reasons) + "."
        if self.remedies:
            text += " To bring it back: " + "; or ".join(self.remedies) + "."
        return text

    __repr__ = __str__


def why_not(
    trace: Trace,
    memory_id: str,
    store: MemoryStore | None,
    retriever: HybridRetriever | None,
    candidates: Candidates | None,
) -> WhyNot:
    """Follow one memory through a recall; see :meth:`Recall.why_not`."""
    place = trace.place(memory_id)
    if place is not None and place.rank <= trace.limit:
        return WhyNot(memory_id, True, (f"it is a hit, number {place.rank} with {place.score:.6f}",), ())
    if store is None:
        raise UnknownMemory(f"{memory_id!r} is not in this trace, and the trace has no store to look further")
    memory = store.get(memory_id)
    if memory.trashed_at is not None:
        since = format_time(memory.trashed_at)
        return WhyNot(memory_id, False, (f"it is in the trash since {since}",), (f"restore({memory_id!r})",))
    if place is not None:
        return _below_limit(trace, place)
    if retriever is None or candidates is None:
        with store.view(trace.filters) as view:
            failing = view.failing_conditions(memory_id)
        if failing:
            return WhyNot(memory_id, False, (f"it does not pass the filters {', '.join(failing)}",), ())
        return WhyNot(memory_id, False, (f"it is not among the first {len(trace.ranked)} in this order",), ())
    with store.view(trace.filters) as view:
        failing = view.failing_conditions(memory_id)
    if failing:
        return _filtered(trace, memory_id, failing, retriever, candidates)
    return _beyond_depth(trace, memory_id, store, retriever, candidates)


def _below_limit(trace: Trace, place: RankedMemory) -> WhyNot:
    reason = f"it came {place.rank} of {len(trace.ranked)} with {place.score:.6f}"
    if 0 < trace.limit <= len(trace.ranked):
        last = trace.ranked[trace.limit - 1]
        reason += f", and the last of the {trace.limit} hits, {last.memory_id}, has {last.score:.6f}"
    own = " + ".join(contribution_words(part) for part in place.contributions)
    return WhyNot(place.memory_id, False, (reason, f"its sum is {own}"), (f"limit={place.rank}",))


def _filtered(
    trace: Trace, memory_id: str, failing: list[str], retriever: HybridRetriever, candidates: Candidates
) -> WhyNot:
    given = trace.filters.given()
    names = ", ".join(f"{name}={_short(given[name])}" for name in failing)
    reason = f"the filter{'s' if len(failing) > 1 else ''} {names} keep{'' if len(failing) > 1 else 's'} it out"
    rest = {k: v for k, v in given.items() if k not in failing and not (k == "tag_match" and "tags" in failing)}
    again = _again(trace, retriever, candidates, depth=trace.depth, filters=type(trace.filters)(**rest))
    place = again.place(memory_id)
    without = f"leave out {names}"
    if place is None:
        return WhyNot(memory_id, False, (reason, "without it no channel would have it in its list either"), ())
    needs = "" if place.rank <= trace.limit else f" and limit={place.rank}"
    return WhyNot(memory_id, False, (reason,), (f"{without}{needs}: it would come {place.rank}",))


def _beyond_depth(
    trace: Trace, memory_id: str, store: MemoryStore, retriever: HybridRetriever, candidates: Candidates
) -> WhyNot:
    reasons: list[str] = []
    depths: list[int] = []
    with store.view(trace.filters) as view:
        number = view.number(memory_id)
        found = frozenset(hit.number for result in candidates.results for hit in result.hits)
        # The store may have been re-embedded since: then the vector of that time compares with nothing.
        query = retriever.fitting(candidates.query, view)
        for channel in retriever.channels:
            located = channel.locate(query, view, number if number is not None else -1, found)
            if isinstance(located, str):
                reasons.append(f"{channel.name}: {located}")
                continue
            rank, raw_score = located
            unit = _UNITS.get(channel.name, "score")
            if rank > trace.depth:
                reasons.append(
                    f"{channel.name}: rank {rank} ({unit} {raw_score:.4g}), beyond the depth of {trace.depth}"
                )
                depths.append(rank)
            else:
                reasons.append(
                    f"{channel.name}: rank {rank} ({unit} {raw_score:.4g}) now; it was not there when the recall "
                    "was made, it promised too little for the channel to score it, or its weight is 0"
                )
    remedies: list[str] = []
    for depth in sorted(depths):
        place = _again(trace, retriever, candidates, depth=depth, filters=trace.filters).place(memory_id)
        if place is not None:
            needs = "" if place.rank <= trace.limit else f" and limit={place.rank}"
            remedies.append(f"replace(depth={depth}){needs}: it would come {place.rank}")
            break
    if store.get(memory_id).pending:
        remedies.append("embed_pending(), so that it has a vector to be found by")
    return WhyNot(memory_id, False, tuple(reasons), tuple(remedies))


def _again(trace: Trace, retriever: HybridRetriever, candidates: Candidates, *, depth: int, filters: Filters) -> Trace:
    """The same recall with another depth or other filters; the query is not embedded again."""
    other = retriever.replace(depth=depth)
    found = other.gather(
        trace.query, filters=filters, query_vector=candidates.query.vector, made_by=candidates.query.made_by
    )
    return other.rank(found, limit=trace.limit, now=trace.now, recency_boost=bool(trace.recency)).trace


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return shorten(repr(value), 60)
