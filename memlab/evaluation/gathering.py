"""What every evaluation shares: many queries asked of many retrievers, and nothing asked twice.

The queries are encoded in one batch. For each query there is one view of each store, and what a channel finds in it
serves every retriever with an equal channel: four profiles scan the vectors once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memlab.checks import whole
from memlab.errors import EncoderUnavailable, InvalidValue
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import Ranking
from memlab.evaluation.queries import LabelledQuery
from memlab.evaluation.runs import Run
from memlab.evaluation.vectors import prepared
from memlab.evaluation.wording import counted
from memlab.progress import Progress, Show
from memlab.retrieval.candidates import Candidates, Reuse
from memlab.retrieval.channels import Query
from memlab.retrieval.ranking import scored
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore
from memlab.timestamps import parse_time, utc_now

DEFAULT_LIMIT = 100
"""Hits of a query that go into a run."""


@dataclass(frozen=True)
class Gathered:
    """What retrievers answered.

    Attributes
    ----------
    runs : dict of str to Run
        By the names of the retrievers, all over the same queries; a query without hits has an empty ranking.
    queries : tuple of LabelledQuery
        Those that were asked: all, or after an interruption the ones finished by every retriever.
    interrupted : bool
    """

    runs: dict[str, Run]
    queries: tuple[LabelledQuery, ...]
    interrupted: bool = False


@dataclass(frozen=True)
class Judged:
    """Queries with their judgments, and what was left out.

    Attributes
    ----------
    queries : tuple of LabelledQuery
        Those that have a judgment.
    qrels : Qrels
        The judgments of these queries, in their order.
    notes : tuple of str
    """

    queries: tuple[LabelledQuery, ...]
    qrels: Qrels
    notes: tuple[str, ...] = ()


def judged(queries: Sequence[LabelledQuery], qrels: Qrels) -> Judged:
    """Put queries and judgments together; what is on one side only is left out and counted.

    Raises
    ------
    InvalidValue
        If no query has a judgment.
    """
    kept = tuple(query for query in queries if query.query_id in qrels.judgments)
    if not kept and not qrels.judgments:
        raise InvalidValue("nothing is judged yet: expected at least one query with a memory that is judged for it")
    if not kept:
        raise InvalidValue(
            f"none of the {counted([query.query_id for query in queries], 'query', 'queries')} has a judgment; the "
            f"judgments are of {counted(qrels.query_ids, 'query', 'queries')}: do both speak of the same ids?"
        )
    notes = [*qrels.notes]
    if unjudged := [query.query_id for query in queries if query.query_id not in qrels.judgments]:
        notes.append(f"left out, having no judgment: {counted(unjudged, 'query', 'queries')}")
    known = {query.query_id for query in queries}
    if unknown := [name for name in qrels.query_ids if name not in known]:
        notes.append(f"left out, being judged but not among the queries: {counted(unknown, 'query', 'queries')}")
    if nothing := [query.query_id for query in kept if not qrels.relevant(query.query_id)]:
        notes.append(f"no memory is relevant, which counts as 0: {counted(nothing, 'query', 'queries')}")
    return Judged(kept, qrels.restricted(query.query_id for query in kept), tuple(notes))


def missing_memories(store: MemoryStore, qrels: Qrels) -> tuple[str, ...]:
    """A note on relevant memories that the store does not have; they count as not found."""
    relevant = dict.fromkeys(name for query_id in qrels.query_ids for name in sorted(qrels.relevant(query_id)))
    there: set[str] = set()
    names = list(relevant)
    for start in range(0, len(names), 500):
        there |= {m.memory_id for m in store.get_many(names[start : start + 500]) if m.trashed_at is None}
    absent = [name for name in names if name not in there]
    if not absent:
        return ()
    if len(absent) == len(names):
        raise InvalidValue(
            f"{store.path.name} has none of the relevant memories ({counted(names, 'memory', 'memories')}); judgments "
            "and store must speak of the same memory ids"
        )
    return (f"judged relevant but not in {store.path.name}, so never found: {counted(absent, 'memory', 'memories')}",)


def gather_all(
    retrievers: Mapping[str, HybridRetriever],
    queries: Sequence[LabelledQuery],
    *,
    limit: int = DEFAULT_LIMIT,
    looked_at: int = 0,
    now: datetime | str | None = None,
    recency_boost: bool | None = None,
    progress: Show = None,
    label: str = "evaluating",
) -> Gathered:
    """Ask every query of every retriever.

    Parameters
    ----------
    retrievers : mapping of str to HybridRetriever
        Over one store or several.
    queries : sequence of LabelledQuery
    limit : int
        Hits of a query that are kept.
    looked_at : int
        How many of them the measures look at. Queries that have fewer because of a retriever's depth are noted.
    now : datetime or str, optional
        The moment that ages are counted from, for the queries that have none of their own; the present by default,
        the same for all queries.
    recency_boost : bool, optional
        Each retriever's own by default.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Returns
    -------
    Gathered
        After Ctrl-C what was finished by then, with ``interrupted`` set.

    Raises
    ------
    InvalidValue
        If there is no retriever, or the boost is wanted of one without recency.
    EncoderUnavailable
        If a retriever has nothing but channels that need vectors, and no encoder can be had.
    """
    limit = whole(limit, "limit", least=1)
    moment = utc_now() if now is None else parse_time(now, "now")
    work = [_Work(name, retriever, _ranker(name, retriever, recency_boost)) for name, retriever in retrievers.items()]
    if not work:
        raise InvalidValue("expected one or more retrievers, found none")
    _count_without_vector(work)
    done: list[LabelledQuery] = []
    interrupted = False
    try:
        with Progress(label, len(queries), progress) as shown:
            for query, answers in _answers(work, queries, progress):
                for item, candidates in zip(work, answers, strict=True):
                    _, ordered = scored(candidates, item.retriever.fusion, item.ranker, query.now or moment)
                    item.rankings[query.query_id] = tuple((memory_id, score) for score, memory_id, _ in ordered[:limit])
                    if len(ordered) < looked_at and any(len(r.hits) >= candidates.depth for r in candidates.results):
                        item.short.append(query.query_id)
                    for result in candidates.results:
                        if result.ran and result.hits and result.note:
                            item.lesser.setdefault((result.channel, result.note), []).append(query.query_id)
                        if not result.ran:
                            item.silent.setdefault((result.channel, result.note), []).append(query.query_id)
                done.append(query)
                shown.advance()
    except KeyboardInterrupt:
        if not done:
            raise
        interrupted = True
    finished = [query.query_id for query in done]
    runs = {item.name: item.run(finished, looked_at) for item in work}
    return Gathered(runs, tuple(done), interrupted)


@dataclass
class _Work:
    """One retriever, and what it answered so far."""

    name: str
    retriever: HybridRetriever
    ranker: RecencyRanker | None
    rankings: dict[str, Ranking] = field(default_factory=dict)
    silent: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    lesser: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)
    without_vector: int = 0

    def run(self, finished: Sequence[str], looked_at: int) -> Run:
        notes = tuple(
            f"{self.name}: the {channel} channel did not run for {counted(names, 'query', 'queries')}: {why}"
            for (channel, why), every in self.silent.items()
            if (names := [query_id for query_id in every if query_id in self.rankings])
        )
        notes += tuple(
            f"{self.name}: the {channel} channel, for {counted(names, 'query', 'queries')}: {why}"
            for (channel, why), every in self.lesser.items()
            if (names := [query_id for query_id in every if query_id in self.rankings])
        )
        if self.without_vector and not self.silent:
            said = "1 memory has" if self.without_vector == 1 else f"{self.without_vector:,} memories have"
            notes += (f"{self.name}: {said} no vector that can be used, so vectors cannot find what is in there",)
        if names := [query_id for query_id in self.short if query_id in self.rankings]:
            notes += (
                f"{self.name}: fewer than the {looked_at} hits that are looked at, because of its depth of "
                f"{self.retriever.depth}: {counted(names, 'query', 'queries')}",
            )
        return Run({query_id: self.rankings[query_id] for query_id in finished}, self.name, notes)


def _count_without_vector(work: Sequence[_Work]) -> None:
    """Count, for each retriever that compares vectors, the memories that have none: never encoded, or damaged."""
    known: dict[int, int] = {}
    for item in work:
        store = item.retriever.store
        if any(channel.needs_vector for channel in item.retriever.channels):
            if id(store) not in known:
                with store.view() as view:
                    known[id(store)] = view.searched - len(view.documents)
            item.without_vector = known[id(store)]


def _ranker(name: str, retriever: HybridRetriever, recency_boost: bool | None) -> RecencyRanker | None:
    if not isinstance(retriever, HybridRetriever):
        raise InvalidValue(f"{name}: expected a HybridRetriever, found {type(retriever).__name__}")
    if recency_boost and retriever.recency is None:
        raise InvalidValue(
            f"recency_boost: the retriever {name} has recency=None; give it a RecencyRanker() with replace()"
        )
    wanted = retriever.recency_boost if recency_boost is None else recency_boost
    return retriever.recency if wanted else None


def _answers(
    work: Sequence[_Work], queries: Sequence[LabelledQuery], progress: Show
) -> Iterator[tuple[LabelledQuery, list[Candidates]]]:
    """Every query with the candidates of every retriever, in the order of ``work``."""
    stores = list({id(item.retriever.store): item.retriever.store for item in work}.values())
    texts = [query.text for query in queries]
    ready: dict[int, list[Query]] = {}
    for store in stores:
        of_store = [item.retriever for item in work if item.retriever.store is store]
        needed = any(channel.needs_vector for retriever in of_store for channel in retriever.channels)
        ready[id(store)] = prepared(store, texts, needed=needed, progress=progress)
        _require_vectors(of_store, ready[id(store)])
    facts: dict[int, dict[int, tuple[str, datetime, int]]] = {id(store): {} for store in stores}
    for place, query in enumerate(queries):
        answers: dict[int, Candidates] = {}
        for store in stores:
            reuse = Reuse(facts=facts[id(store)])  # who a memory is does not depend on the query
            with store.view(query.filters) as view:
                fitting = HybridRetriever.fitting(ready[id(store)][place], view)
                for number, item in enumerate(work):
                    if item.retriever.store is store:
                        answers[number] = item.retriever.ask(fitting, view, reuse=reuse)
        yield query, [answers[number] for number in range(len(work))]


def _require_vectors(retrievers: Sequence[HybridRetriever], queries: Sequence[Query]) -> None:
    """Refuse to measure retrievers that cannot answer at all; an answer by fewer channels is noted instead."""
    if any(query.vector is not None for query in queries) or not queries:
        return
    for retriever in retrievers:
        if all(channel.needs_vector for channel in retriever.channels):
            raise EncoderUnavailable(f"{retriever!r} needs the vectors of the queries: {queries[0].note}")
