"""Measure what a recency boost gains on one kind of query and costs on the others, by half-life and strength."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memlab.checks import number
from memlab.errors import InvalidValue
from memlab.evaluation.evaluate import measured
from memlab.evaluation.gathering import DEFAULT_LIMIT, Judged, gather_all, judged, missing_memories
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import needed_depth, parse_measures
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.evaluation.recency_study import RecencyStudy
from memlab.evaluation.wording import counted
from memlab.progress import Show
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.retriever import HybridRetriever

HALF_LIVES = (3.5, 7.0, 14.0, 30.0, 90.0)
STRENGTHS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.3)
GAINING = "latest decision"
"""The kind of query that the boost is there for, as the sets that come with memlab call it."""


def measure_recency(
    retriever: HybridRetriever,
    queries: Any,
    qrels: Any,
    *,
    half_lives: Iterable[float] = HALF_LIVES,
    strengths: Iterable[float] = STRENGTHS,
    kinds: Mapping[str, Iterable[str]] | str = "tests",
    gaining: str = GAINING,
    topics: Mapping[str, str] | None = None,
    measure: Any = "Success@1",
    now: datetime | str | None = None,
    progress: Show = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> RecencyStudy:
    """Measure what the recency boost does to each kind of query, for every half-life and strength.

    The channels are asked once; only the order is made anew for each setting.

    Parameters
    ----------
    retriever : HybridRetriever
        Its own recency settings do not count.
    queries, qrels
        See :func:`~memlab.evaluation.evaluate.evaluate`. A query's own moment is when it is asked.
    half_lives : iterable of float
        In days.
    strengths : iterable of float
        Boosts at age 0. No boost is always measured; 0 stands for it.
    kinds : mapping of str to iterable of str, or "tests"
        Kind to query ids, or what the queries say that they test. A query may be of several kinds.
    gaining : str
        The kind that should gain; what the others lose is the cost.
    topics : mapping of str to str, optional
        Query id to topic; what the queries say by default. Queries on one topic are not independent, so the intervals
        draw topics; a query without a topic is one of its own.
    measure : str
        One of ir-measures: ``"Success@1"``, ``"nDCG@10"``.
    now : datetime or str, optional
        The moment that ages are counted from, for the queries that have none of their own.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.
    resamples, seed : int
        Of the intervals.

    Returns
    -------
    RecencyStudy

    Raises
    ------
    InvalidValue
        If a half-life or a strength is none, there is nothing but no boost, a kind has no judged query, or none is
        called ``gaining``.

    Examples
    --------
    >>> dated = memlab.sample("temporal")
    >>> qrels = {query.query_id: query.judgments for query in dated.queries}
    >>> measure_recency(memlab.HybridRetriever(dated.build("temporal.db")), dated.queries, qrels)
    """
    if not isinstance(retriever, HybridRetriever):
        raise InvalidValue(f"retriever: expected a HybridRetriever, found {type(retriever).__name__}")
    rankers = _rankers(half_lives, strengths)
    chosen = parse_measures(measure if isinstance(measure, str) else [measure])
    if len(chosen) != 1:
        raise InvalidValue(f"measure: expected one, found {', '.join(map(str, chosen))}")
    asked = queries_of(queries)
    both = judged(asked, Qrels.of(qrels))
    wanted, said = _kinds(both, kinds, gaining)
    both = _of_kinds(both, wanted)
    notes = [*both.notes, *said, *missing_memories(retriever.store, both.qrels)]
    if now is None and (undated := [query.query_id for query in both.queries if query.now is None]):
        notes.append(
            f"asked at no moment of their own, so ages count from the present: {counted(undated, 'query', 'queries')}"
        )
    retrievers = {
        str(place): retriever.replace(recency=ranker, recency_boost=ranker is not None)
        for place, ranker in enumerate(rankers)
    }
    looked_at = needed_depth(chosen, DEFAULT_LIMIT)
    gathered = gather_all(
        retrievers,
        both.queries,
        limit=looked_at,
        looked_at=looked_at,
        now=now,
        progress=progress,
        label="recency",
    )
    silent = replace(both, notes=())
    evaluations = tuple(
        measured(run, silent, chosen, queries=gathered.queries, interrupted=gathered.interrupted)
        for run in gathered.runs.values()
    )
    notes += dict.fromkeys(note.split(": ", 1)[-1] for run in gathered.runs.values() for note in run.notes)
    if gathered.interrupted:
        notes.append(
            f"stopped after {len(gathered.queries):,} of {len(both.queries):,} queries; the figures are of those alone"
        )
        wanted = _finished(wanted, gathered.queries, gaining)
    named = {query.query_id: query.topic for query in both.queries if query.topic} if topics is None else dict(topics)
    return RecencyStudy(
        rankers, evaluations, wanted, named, tuple(notes), gathered.interrupted, resamples=resamples, seed=seed
    )


def _rankers(half_lives: Iterable[float], strengths: Iterable[float]) -> tuple[RecencyRanker | None, ...]:
    """No boost, and every combination of a half-life and a strength above 0."""
    lives, powers = _listed(half_lives, "half_lives"), _listed(strengths, "strengths")
    settings = {RecencyRanker(life, power) for life in lives for power in powers if number(power, "strengths") > 0}
    if not settings:
        raise InvalidValue(f"strengths: expected one or more above 0, found {powers}")
    return (None, *sorted(settings, key=lambda one: (one.half_life_days, one.strength)))


def _listed(values: Iterable[float], name: str) -> list[float]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidValue(f"{name}: expected numbers such as (7, 14), found {values!r}")
    found = list(values)
    if not found:
        raise InvalidValue(f"{name}: expected one number or more, found none")
    return found


def _kinds(
    both: Judged, kinds: Mapping[str, Iterable[str]] | str, gaining: str
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Kind to judged queries, the one that should gain first; and notes."""
    there = [query.query_id for query in both.queries]
    found: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    if isinstance(kinds, Mapping):
        for kind, names in kinds.items():
            if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
                raise InvalidValue(f"kinds: {kind}: expected query ids, found {names!r}")
            given = list(dict.fromkeys(names))
            if unknown := [name for name in given if name not in there]:
                notes.append(f"{kind}: left out, being no judged {counted(unknown, 'query', 'queries')}")
            found[str(kind)] = tuple(name for name in given if name in there)
            if not found[str(kind)]:
                raise InvalidValue(f"kinds: {kind}: expected ids of judged queries, found {given!r:.200}")
    elif kinds == "tests":
        for query in both.queries:
            if query.tests:
                found[query.tests] = (*found.get(query.tests, ()), query.query_id)
        if not found:
            raise InvalidValue(
                "kinds: none of the queries says what it tests; give kinds={'latest decision': [query_id, ...], ...}"
            )
    else:
        raise InvalidValue(f"kinds: expected {{kind: [query_id, ...]}} or 'tests', found {kinds!r}")
    if gaining not in found:
        raise InvalidValue(f"gaining: expected one of the kinds {', '.join(found)}; found {gaining!r}")
    if len(found) == 1:
        notes.append(f"all queries are of the kind {gaining}: there is nothing that a cost could be measured with")
    covered = {name for names in found.values() for name in names}
    if rest := [name for name in there if name not in covered]:
        notes.append(f"left out, being of no kind: {counted(rest, 'query', 'queries')}")
    return {gaining: found.pop(gaining), **found}, notes


def _of_kinds(both: Judged, kinds: Mapping[str, Sequence[str]]) -> Judged:
    covered = {name for names in kinds.values() for name in names}
    queries = tuple(query for query in both.queries if query.query_id in covered)
    return Judged(queries, both.qrels.restricted(query.query_id for query in queries), both.notes)


def _finished(
    kinds: Mapping[str, Sequence[str]], queries: Sequence[LabelledQuery], gaining: str
) -> dict[str, tuple[str, ...]]:
    """The kinds without the queries that were not reached."""
    done = {query.query_id for query in queries}
    left = {kind: tuple(name for name in names if name in done) for kind, names in kinds.items()}
    if not left[gaining]:
        raise KeyboardInterrupt  # stopped before there is anything to tell
    return {kind: names for kind, names in left.items() if names}
