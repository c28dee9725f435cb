"""Studies of recency, encoders and precisions as tables: what stands in which cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memlab.evaluation.findings import figure, finding, named, p_words, scale_of, span
from memlab.evaluation.layout import Figures
from memlab.evaluation.recency_study import MOST_COST, NO_BOOST

if TYPE_CHECKING:
    from memlab.evaluation.comparison import Comparison
    from memlab.evaluation.encoders import EncoderComparison
    from memlab.evaluation.precisions import PrecisionComparison
    from memlab.evaluation.recency_study import Effect, RecencyStudy

_NONE = "–"  # noqa: RUF001
_UNITS = ("B", "kB", "MB", "GB", "TB")


def recency_figures(study: RecencyStudy) -> Figures:
    """Settings down, kinds of query across; the mean, and the difference from no boost with its interval."""
    scale = scale_of(study.evaluations, study.measure)
    heads = ["half-life", "strength"]
    for kind, query_ids in study.kinds.items():
        count, topics = len(query_ids), study.topics_of(kind)
        of_topics = "" if topics == count else f", {topics:,} topics"
        heads.append(f"{named(kind)}\n{count:,} quer{'y' if count == 1 else 'ies'}{of_topics}")
    best = study.best()
    rows = []
    for place, ranker in enumerate(study.rankers):
        first = [NO_BOOST, ""] if ranker is None else [f"{ranker.half_life_days:g} d", f"{ranker.strength:g}"]
        rows.append([*first, *(_effect(study.effects[place, kind], scale, ranker is None) for kind in study.kinds)])
    points = " points" if scale == 100 else ""
    said = (
        f"Largest gain that costs at most {figure(MOST_COST, scale)}{points} in each other kind: {best}, "
        f"gain {figure(best.gain, scale)}, cost {figure(best.cost, scale)}. "
        "The best of several looks better than it is: measure it with other queries before quoting it."
    )
    state = ", interrupted" if study.interrupted else ""
    by_topic = ", by topic" if any(study.topics_of(kind) < len(ids) for kind, ids in study.kinds.items()) else ""
    return Figures(
        f"Recency boost, {study.measure}{' x 100' if scale == 100 else ''}: {len(study.queries):,} queries{state} · "
        f"beside each mean the difference from no boost with its 95 % interval{by_topic}; {named(study.gaining)} "
        "should gain, the others not lose",
        heads,
        rows,
        left=2,
        marked=frozenset([study.settings.index(best)]),
        said=[said],
        notes=study.notes,
    )


def _effect(effect: Effect, scale: float, none: bool) -> str:
    if none:
        return f"{figure(effect.mean, scale)}\n{span(effect.low, effect.high, scale)}"
    interval = span(effect.difference_low, effect.difference_high, scale, sign=True)
    return f"{figure(effect.mean, scale)}\n{figure(effect.difference, scale, sign=True)} ({interval})"


def encoders_figures(compared: EncoderComparison) -> Figures:
    """Encoders down; the first measure with interval and p, the other means, and what each costs."""
    comparison = compared.comparison
    measure = comparison.measures[0]
    heads = ["", *_measure_heads(comparison), "dim", "parameters", "weights", "vectors", "corpus s", "ms a query"]
    rows = []
    for row in compared.rows:
        cells = [named(row.name, 60), *_measured(comparison, row.name), f"{row.dimension:,}"]
        cells.append(_NONE if row.parameters is None else f"{row.parameters:,}")
        cells += [_size(row.weights_bytes), _size(row.vector_bytes)]
        cells += [_seconds(row.corpus_seconds, 1), _seconds(row.query_ms, 2)]
        rows.append(cells)
    state = ", interrupted" if comparison.interrupted else ""
    return Figures(
        f"{len(rows)} ways to make vectors: {len(comparison.queries):,} queries{state} · {compared.memories:,} "
        "memories; values from 0 to 1 are shown x 100, with 95 % intervals; times of this machine, without loading a "
        "model",
        heads,
        rows,
        said=[f"{finding(comparison, measure)}."],
        notes=compared.notes,
    )


def precisions_figures(compared: PrecisionComparison) -> Figures:
    """Precisions down; the first measure with interval and p, the other means, the size, and what is kept."""
    comparison = compared.comparison
    heads = ["", *_measure_heads(comparison), "vectors", f"top {compared.top} kept"]
    rows = []
    for name in comparison.systems:
        kept, interval = compared.kept(name), compared.kept_interval(name)
        share = f"{figure(kept)} %\n{span(*interval)}" if name != comparison.baseline else ""
        rows.append([named(name), *_measured(comparison, name), _size(compared.vector_bytes[name]), share])
    state = ", interrupted" if comparison.interrupted else ""
    return Figures(
        f"Vectors rounded to {len(rows) - 1} precision{'s' if len(rows) > 2 else ''}: {len(comparison.queries):,} "
        f"queries{state} · exact scans of {compared.memories:,} document vectors; the queries' vectors stay float32; "
        "values from 0 to 1 are shown x 100, with 95 % intervals",
        heads,
        rows,
        said=[f"{finding(comparison, comparison.measures[0])}."],
        notes=comparison.notes,
    )


def _measure_heads(comparison: Comparison) -> list[str]:
    first, *others = comparison.measures
    return [f"{first}\n95 %", "p (Holm)", *others]


def _measured(comparison: Comparison, name: str) -> list[str]:
    evaluation, (first, *others) = comparison.evaluations[name], comparison.measures
    scales = {measure: scale_of(comparison.evaluations.values(), measure) for measure in comparison.measures}
    against = comparison.differences.get((name, first))
    cells = [
        f"{figure(evaluation.mean(first), scales[first])}\n{span(*evaluation.intervals[first], scales[first])}",
        "baseline" if against is None else p_words(against.p_holm).removeprefix("p ").removeprefix("= "),
    ]
    return [*cells, *(figure(evaluation.mean(measure), scales[measure]) for measure in others)]


def _size(count: float | None) -> str:
    if count is None:
        return _NONE
    value, place = float(count), 0
    while value >= 999.5 and place < len(_UNITS) - 1:
        value, place = value / 1000, place + 1
    return f"{value:.0f} B" if place == 0 else f"{value:.3g} {_UNITS[place]}"


def _seconds(value: float, digits: int) -> str:
    return _NONE if math.isnan(value) else f"{value:,.{digits}f}"
