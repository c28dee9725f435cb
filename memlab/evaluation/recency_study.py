"""Recency settings with their gains and costs: what a study of them can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.checks import number
from memlab.evaluation.evaluate import LEVEL, Evaluation
from memlab.evaluation.queries import LabelledQuery
from memlab.evaluation.topics import topic_difference_interval, topic_mean_interval
from memlab.retrieval.recency import RecencyRanker

if TYPE_CHECKING:
    import pandas as pd

MOST_COST = 0.02
NO_BOOST = "no boost"
_EFFECT = ("mean", "low", "high", "difference", "difference_low", "difference_high")


@dataclass(frozen=True)
class Effect:
    """What a setting does to one kind of query.

    Attributes
    ----------
    mean, low, high : float
        Mean of the measure and its 95 % interval.
    difference, difference_low, difference_high : float
        Setting minus no boost, and its 95 % interval. All intervals are of this one figure, by topic.
    """

    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float


@dataclass(frozen=True)
class RecencySetting:
    """A half-life and a strength, and what they do.

    Attributes
    ----------
    ranker : RecencyRanker or None
        ``None`` is no boost.
    gain : float
        Mean difference from no boost over the queries that should gain.
    cost : float
        The largest mean loss among the other kinds of query; 0 where none loses.
    """

    ranker: RecencyRanker | None
    gain: float
    cost: float

    def __str__(self) -> str:
        one = self.ranker
        return NO_BOOST if one is None else f"half-life {one.half_life_days:g} days, strength {one.strength:g}"


@dataclass(frozen=True, repr=False)
class RecencyStudy:
    """Recency settings with their gains and costs; :func:`~memlab.evaluation.recency.measure_recency` makes it.

    Attributes
    ----------
    rankers : tuple of (RecencyRanker or None)
        The settings; the first is ``None``, no boost, and the others by half-life and strength.
    evaluations : tuple of Evaluation
        One a setting, all over the same queries.
    kinds : mapping of str to (tuple of str)
        Kind of query to ids of its queries; the first is the one that should gain.
    topics : mapping of str to str
        Query id to topic, for the queries that have one.
    notes : tuple of str
        What was left out or odd, counted.
    interrupted : bool
        Whether it was stopped: the figures are then of the queries that were finished.
    resamples, seed : int
        Of the intervals.
    """

    rankers: tuple[RecencyRanker | None, ...]
    evaluations: tuple[Evaluation, ...]
    kinds: Mapping[str, tuple[str, ...]]
    topics: Mapping[str, str]
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    resamples: int = 10_000
    seed: int = 0

    @property
    def measure(self) -> str:
        """The name of the measure."""
        return self.evaluations[0].measures[0]

    @property
    def queries(self) -> tuple[LabelledQuery, ...]:
        """The queries that were measured."""
        return self.evaluations[0].queries

    @property
    def gaining(self) -> str:
        """The kind of query that should gain."""
        return next(iter(self.kinds))

    @cached_property
    def effects(self) -> Mapping[tuple[int, str], Effect]:
        """By place of the setting and kind of query."""
        result = {}
        for kind, query_ids in self.kinds.items():
            # A query without a topic is one of its own; no topic can have this name.
            topics = [self.topics.get(query_id) or f"\0{query_id}" for query_id in query_ids]
            rows = [
                np.array([evaluation.values[self.measure][query_id] for query_id in query_ids])
                for evaluation in self.evaluations
            ]
            for place, row in enumerate(rows):
                apart = row - rows[0]
                result[place, kind] = Effect(
                    float(row.mean()),
                    *topic_mean_interval(row, topics, LEVEL, self.resamples, self.seed),
                    float(apart.mean()),
                    *topic_difference_interval(apart, topics, LEVEL, self.resamples, self.seed),
                )
        return result

    @property
    def settings(self) -> tuple[RecencySetting, ...]:
        """Every setting with its gain and cost, no boost first."""
        others = [kind for kind in self.kinds if kind != self.gaining]
        return tuple(
            RecencySetting(
                ranker,
                self.effects[place, self.gaining].difference,
                max((max(0.0, -self.effects[place, kind].difference) for kind in others), default=0.0),
            )
            for place, ranker in enumerate(self.rankers)
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row a setting and kind of query.

        Returns
        -------
        DataFrame
            ``half_life_days, strength`` (NaN and 0 for no boost), ``kind, queries, topics, mean, low, high,
            difference, difference_low, difference_high``: see :class:`Effect`.
        """
        import pandas as pd

        rows = []
        for place, ranker in enumerate(self.rankers):
            own = (np.nan, 0.0) if ranker is None else (ranker.half_life_days, ranker.strength)
            for kind, query_ids in self.kinds.items():
                effect = self.effects[place, kind]
                rows.append((*own, kind, len(query_ids), self.topics_of(kind), *vars(effect).values()))
        return pd.DataFrame(rows, columns=["half_life_days", "strength", "kind", "queries", "topics", *_EFFECT])

    def topics_of(self, kind: str) -> int:
        """How many topics the queries of a kind have; a query without one is one of its own."""
        return len({self.topics.get(query_id) or f"\0{query_id}" for query_id in self.kinds[kind]})

    def best(self, most_cost: float = MOST_COST) -> RecencySetting:
        """The setting with the largest gain among those whose cost is at most ``most_cost``.

        The cost is the largest mean loss among the kinds of query that need not gain, each for itself, so that the mix
        of queries in the set has no say. Of equal gains the one with the smaller cost, then the weaker, then the
        shorter half-life. Without a gain within the limit it is no boost.

        The best of many settings looks better than it is: measure it with other topics before quoting it.

        Parameters
        ----------
        most_cost : float
            In the unit of the measure: 0.02 is two points of 100.

        Raises
        ------
        InvalidValue
            If the limit is negative or no number.
        """
        limit = number(most_cost, "most_cost")
        first, *others = self.settings
        able = [one for one in others if one.cost <= limit + 1e-9 and one.gain > 1e-9]
        if not able:
            return first
        return min(able, key=lambda one: (-round(one.gain, 9), round(one.cost, 9), *_order(one.ranker)))

    def plot(self) -> Any:
        """Gain and cost over the strengths, a line for every half-life, as a matplotlib figure."""
        import pandas as pd

        from memlab.evaluation import plots

        rows: list[tuple[float, float, float, float]] = []
        for one in self.settings[1:]:
            assert one.ranker is not None  # only the first is
            rows.append((one.ranker.half_life_days, one.ranker.strength, one.gain, -one.cost))
        half_lives = dict.fromkeys(row[0] for row in rows)
        rows += [(half_life, 0.0, 0.0, 0.0) for half_life in half_lives]
        frame = pd.DataFrame(rows, columns=["half_life_days", "strength", "gain", "cost"])
        return plots.recency(frame, gaining=self.gaining, measure=self.measure)

    def __repr__(self) -> str:
        from memlab.evaluation.study_tables import recency_figures

        return recency_figures(self).text()

    def _repr_html_(self) -> str:
        from memlab.evaluation.study_tables import recency_figures

        return recency_figures(self).html()


def _order(ranker: RecencyRanker | None) -> tuple[float, float]:
    return (0.0, 0.0) if ranker is None else (ranker.strength, ranker.half_life_days)
