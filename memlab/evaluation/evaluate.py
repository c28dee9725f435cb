"""Evaluate one retriever, or one run: every measure of every judged query, and the means with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.evaluation.gathering import DEFAULT_LIMIT, Judged, gather_all, judged, missing_memories
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import DEFAULT_MEASURES, check_limit, parse_measures, per_query
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.evaluation.runs import Run
from memlab.evaluation.wording import counted
from memlab.progress import Show
from memlab.retrieval.retriever import HybridRetriever

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How well one system answers labelled queries; :func:`evaluate` makes it.

    Attributes
    ----------
    name : str
    values : mapping of str to (mapping of str to float)
        Name of the measure to query id to value, all over the same queries in the same order.
    run : Run
        What was measured.
    queries : tuple of LabelledQuery
        Those that were measured, in order.
    qrels : Qrels
        Their judgments.
    notes : tuple of str
        What was left out or odd, counted.
    interrupted : bool
        Whether it was stopped: the figures are then of the queries that were finished.
    """

    name: str
    values: Mapping[str, Mapping[str, float]]
    run: Run
    queries: tuple[LabelledQuery, ...]
    qrels: Qrels
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    planned: int = field(default=0, compare=False)
    """How many queries there were to measure."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures, in the order in which they were asked for."""
        return tuple(self.values)

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries that were measured, in order."""
        return tuple(query.query_id for query in self.queries)

    def of(self, measure: Any) -> npt.NDArray[np.float64]:
        """The values of one measure, float64, shape (queries,), in the order of :attr:`query_ids`.

        Raises
        ------
        InvalidValue
            If it was not measured.
        """
        values = self.values.get(str(measure))
        if values is None:
            raise InvalidValue(f"{measure} was not measured; these were: {', '.join(self.values)}")
        return np.fromiter((values[query_id] for query_id in self.query_ids), np.float64, len(self.queries))

    def mean(self, measure: Any) -> float:
        """The mean of one measure over the queries."""
        return float(self.of(measure).mean())

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """By measure: the 95 % interval of the mean, from a bootstrap over the queries."""
        from memlab.evaluation.significance import bootstrap_interval

        return {measure: bootstrap_interval(self.of(measure), level=LEVEL, seed=0) for measure in self.measures}

    @property
    def per_query(self) -> pd.DataFrame:
        """Tidy: ``query_id`` (str), ``measure`` (str), ``value`` (float); one row a query and measure."""
        import pandas as pd

        rows = [(name, measure, values[name]) for measure, values in self.values.items() for name in self.query_ids]
        return pd.DataFrame(rows, columns=["query_id", "measure", "value"])

    @property
    def summary(self) -> pd.DataFrame:
        """``measure, mean, low, high, queries``: the means with their 95 % bootstrap intervals."""
        import pandas as pd

        rows = [(name, self.mean(name), *self.intervals[name], len(self.queries)) for name in self.measures]
        return pd.DataFrame(rows, columns=["measure", "mean", "low", "high", "queries"])

    def plot(self) -> Any:
        """The means with their intervals, as a matplotlib figure that a saved notebook keeps as a picture."""
        from memlab.evaluation import plots

        return plots.summary(self)

    def __repr__(self) -> str:
        from memlab.evaluation.tables import evaluation_text

        return evaluation_text(self)

    def _repr_html_(self) -> str:
        from memlab.evaluation.tables import evaluation_html

        return evaluation_html(self)


def evaluate(
    retriever: HybridRetriever | Run | Any,
    queries: Any,
    qrels: Any,
    measures: str | Iterable[Any] = DEFAULT_MEASURES,
    *,
    limit: int = DEFAULT_LIMIT,
    now: datetime | str | None = None,
    recency_boost: bool | None = None,
    progress: Show = None,
    name: str = "",
) -> Evaluation:
    """Measure how well a retriever, or a run made elsewhere, answers labelled queries.

    Parameters
    ----------
    retriever : HybridRetriever or run
        Or a :class:`Run`, or anything that :meth:`Run.of` reads.
    queries : mapping, iterable, DataFrame or path
        See :func:`queries_of`. Queries without judgments are left out, and counted.
    qrels : mapping, DataFrame or path
        See :meth:`Qrels.of`.
    measures : str or iterable
        Names of ir-measures: ``"nDCG@10,R@5"``.
    limit : int
        Hits of a query that are measured; a run made elsewhere is taken whole.
    now, recency_boost
        See :func:`gather_all`; of no meaning for a run.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.
    name : str
        What to call it.

    Returns
    -------
    Evaluation
        A judged query without hits counts 0; a relevant memory that the store does not have counts as not found.

    Raises
    ------
    InvalidValue
        If queries, judgments or measures cannot be used, or no query has a judgment.
    MissingDependency
        If ir-measures is not installed.

    Examples
    --------
    >>> evaluate(memlab.HybridRetriever(store), queries, qrels, "nDCG@10,R@5").summary
    """
    chosen = parse_measures(measures)
    both = judged(queries_of(queries), Qrels.of(qrels))
    if not isinstance(retriever, HybridRetriever):
        return measured(Run.of(retriever, name or None), both, chosen)
    looked_at = check_limit(chosen, whole(limit, "limit", least=1))
    notes = missing_memories(retriever.store, both.qrels)
    name = name or default_name(retriever)
    gathered = gather_all(
        {name: retriever},
        both.queries,
        limit=limit,
        looked_at=looked_at,
        now=now,
        recency_boost=recency_boost,
        progress=progress,
    )
    return measured(
        gathered.runs[name], both, chosen, queries=gathered.queries, notes=notes, interrupted=gathered.interrupted
    )


def default_name(retriever: HybridRetriever) -> str:
    """What a retriever is called where nobody says: its channels."""
    return " + ".join(channel.name for channel in retriever.channels)


def measured(
    run: Run,
    both: Judged,
    measures: Sequence[Any],
    *,
    queries: Sequence[LabelledQuery] | None = None,
    notes: Iterable[str] = (),
    interrupted: bool = False,
) -> Evaluation:
    """An evaluation of a run that is there already.

    Parameters
    ----------
    run : Run
    both : Judged
        From :func:`judged`.
    measures : sequence
        From :func:`parse_measures`.
    queries : sequence of LabelledQuery, optional
        Those that the run was asked, where it was stopped; all by default.
    notes : iterable of str
        More to say.
    interrupted : bool
    """
    asked = both.queries if queries is None else tuple(queries)
    qrels = both.qrels if queries is None else both.qrels.restricted(query.query_id for query in asked)
    said = [*both.notes, *notes, *run.notes]
    if queries is None and (absent := [name for name in qrels.query_ids if name not in run.rankings]):
        if len(absent) == len(asked):
            raise InvalidValue(
                f"the run {run.name} has none of the {counted(absent, 'judged query', 'judged queries')}; run and "
                "judgments must speak of the same query ids"
            )
        said.append(f"not in the run, which counts as no hits: {counted(absent, 'query', 'queries')}")
    if queries is None and (extra := [name for name in run.query_ids if name not in qrels.judgments]):
        said.append(f"in the run, but not measured: {counted(extra, 'query', 'queries')}")
    if interrupted:
        said.append(f"stopped after {len(asked):,} of {len(both.queries):,} queries; the figures are of those alone")
    values = per_query(measures, qrels.judgments, run.rankings)
    return Evaluation(run.name, values, run, asked, qrels, tuple(said), interrupted, len(both.queries))
