"""Compare systems over the same queries: retrievers, runs made elsewhere, evaluations done before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.evaluation.comparison import Comparison, Difference
from memlab.evaluation.evaluate import Evaluation, measured
from memlab.evaluation.gathering import DEFAULT_LIMIT, Judged, gather_all, judged, missing_memories
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import DEFAULT_MEASURES, check_limit, parse_measures
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.evaluation.runs import Run
from memlab.evaluation.wording import counted
from memlab.progress import Show
from memlab.retrieval.retriever import HybridRetriever

__all__ = ["Comparison", "Difference", "compare"]


def compare(
    systems: Mapping[str, HybridRetriever | Run | Evaluation | Any],
    queries: Any = None,
    qrels: Any = None,
    measures: str | Iterable[Any] | None = None,
    *,
    baseline: str | None = None,
    limit: int = DEFAULT_LIMIT,
    now: datetime | str | None = None,
    recency_boost: bool | None = None,
    progress: Show = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare systems over the same labelled queries.

    Parameters
    ----------
    systems : mapping of str to HybridRetriever, Run or Evaluation
        Or anything that :meth:`Run.of` reads. Retrievers with equal channels share what these find. The run of an
        :class:`Evaluation` is measured again, with the judgments given here.
    queries, qrels
        As for :func:`~memlab.evaluation.evaluate.evaluate`; those of the first Evaluation by default.
    measures : str or iterable
        Names of ir-measures; those of the first Evaluation by default, or the usual four.
    baseline : str, optional
        The system that the others are compared with; the first by default.
    limit, now, recency_boost, progress
        See :func:`~memlab.evaluation.gathering.gather_all`; of no meaning for runs, which are taken whole.
    resamples, seed : int
        Of the bootstrap and of the permutation test.

    Returns
    -------
    Comparison
        Over the queries that are judged and that every system was asked. A query that a run does not have counts as 0
        for that run; one that an Evaluation was never asked, or that was not reached before an interruption, is left
        out for all. Either is said in the notes.

    Raises
    ------
    InvalidValue
        If there are fewer than two systems, the baseline is none of them, queries or judgments are missing or do not
        belong together, no query is left, or a measure looks at more than ``limit`` hits.

    Examples
    --------
    >>> compare({"vector": retriever.only("vector"), "hybrid": retriever}, queries, qrels, "nDCG@10,R@5")
    """
    given = _named(systems)
    first = _baseline(given, baseline)
    resamples = whole(resamples, "resamples", least=100)
    chosen_queries, chosen_qrels = _labels(given, queries, qrels)
    done = [item for item in given.values() if isinstance(item, Evaluation)]
    wanted = measures if measures is not None else done[0].measures if done else DEFAULT_MEASURES
    chosen = parse_measures(wanted)
    both = judged(chosen_queries, chosen_qrels)
    both, notes = _asked_by_all(given, both)
    retrievers = {name: item for name, item in given.items() if isinstance(item, HybridRetriever)}
    looked_at = check_limit(chosen, whole(limit, "limit", least=1)) if retrievers else 0
    notes += _absent(retrievers, both.qrels)
    runs = {name: _run(name, item) for name, item in given.items() if name not in retrievers}
    interrupted = any(item.interrupted for item in done)
    if retrievers:
        gathered = gather_all(
            retrievers,
            both.queries,
            limit=limit,
            looked_at=looked_at,
            now=now,
            recency_boost=recency_boost,
            progress=progress,
            label="comparing",
        )
        runs |= gathered.runs
        if gathered.interrupted:
            interrupted = True
            notes.append(f"stopped after {len(gathered.queries):,} of {len(both.queries):,} queries")
            both = _only(both, [query.query_id for query in gathered.queries])
    evaluations = {name: _measured(runs[name], both, chosen, cut=interrupted) for name in given}
    for name, evaluation in evaluations.items():
        said = [note if note.startswith(f"{name}: ") else f"{name}: {note}" for note in evaluation.notes]
        if name == first and any(name not in evaluation.run.rankings for name in evaluation.query_ids):
            said.append(f"{name}: it is the baseline, so the queries that it lacks raise the differences of the others")
        notes += said
    return Comparison(evaluations, first, tuple(dict.fromkeys(notes)), interrupted, resamples, seed)


def _named(systems: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(systems, Mapping):
        raise InvalidValue(f"systems: expected {{name: retriever, Run or Evaluation}}, found {type(systems).__name__}")
    given = dict(systems)
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(f"systems: expected names that are text, found {name!r}")
    if len(given) < 2:
        raise InvalidValue(
            f"systems: expected two or more, found {', '.join(given) or 'none'}; evaluate() measures a single one"
        )
    return given


def _baseline(given: Mapping[str, Any], baseline: str | None) -> str:
    if baseline is None:
        return next(iter(given))
    if baseline not in given:
        raise InvalidValue(f"baseline: expected one of {', '.join(given)}, found {baseline!r}")
    return baseline


def _labels(given: Mapping[str, Any], queries: Any, qrels: Any) -> tuple[Sequence[LabelledQuery], Qrels]:
    """Queries and judgments as given, or those of the first Evaluation."""
    done = {name: item for name, item in given.items() if isinstance(item, Evaluation)}
    for value, what in ((queries, "queries"), (qrels, "qrels")):
        if value is None and not done:
            raise InvalidValue(f"{what}: expected them, because none of the systems is an Evaluation that has its own")
    if qrels is None:
        name, first = next(iter(done.items()))
        for other, item in done.items():
            shared = [query_id for query_id in item.query_ids if query_id in first.qrels.judgments]
            apart = [key for key in shared if item.qrels.judgments[key] != first.qrels.judgments[key]]
            if apart:
                raise InvalidValue(
                    f"{name} and {other} were measured with different judgments of "
                    f"{counted(apart, 'query', 'queries')}; give the qrels that count"
                )
        chosen = first.qrels
    else:
        chosen = Qrels.of(qrels)
    return (next(iter(done.values())).queries if queries is None else queries_of(queries)), chosen


def _asked_by_all(given: Mapping[str, Any], both: Judged) -> tuple[Judged, list[str]]:
    """Leave out what an Evaluation was not asked: nobody knows what it would have answered."""
    notes = list(both.notes)
    for name, item in given.items():
        if not isinstance(item, Evaluation):
            continue
        asked = set(item.query_ids)
        missing = [query.query_id for query in both.queries if query.query_id not in asked]
        if missing:
            why = "was stopped before" if item.interrupted else "was not asked"
            notes.append(f"left out for all, because {name} {why} them: {counted(missing, 'query', 'queries')}")
            both = _only(both, [query.query_id for query in both.queries if query.query_id in asked])
    if not both.queries:
        raise InvalidValue(f"no judged query is left to compare: {'; '.join(notes)}")
    return both, notes


def _only(both: Judged, query_ids: Sequence[str]) -> Judged:
    kept = set(query_ids)
    queries = tuple(query for query in both.queries if query.query_id in kept)
    return replace(both, queries=queries, qrels=both.qrels.restricted(query.query_id for query in queries))


def _absent(retrievers: Mapping[str, HybridRetriever], qrels: Qrels) -> list[str]:
    stores = {id(retriever.store): retriever.store for retriever in retrievers.values()}
    return [note for store in stores.values() for note in missing_memories(store, qrels)]


def _run(name: str, item: Any) -> Run:
    try:
        return Run.of(item.run if isinstance(item, Evaluation) else item, name)
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error}") from None


def _measured(run: Run, both: Judged, measures: Sequence[Any], *, cut: bool) -> Evaluation:
    """One system; what is said of all of them is not said again."""
    if cut:  # a run made elsewhere has more queries than were finished; that says nothing about it
        known = {query.query_id for query in both.queries}
        run = replace(run, rankings={key: ranking for key, ranking in run.rankings.items() if key in known})
    return measured(run, replace(both, notes=()), measures)
