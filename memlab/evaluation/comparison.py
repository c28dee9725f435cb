"""A comparison of systems over the same queries: how much they differ, how sure that is, and on which queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.evaluation.evaluate import LEVEL, Evaluation
from memlab.evaluation.queries import LabelledQuery
from memlab.evaluation.significance import TOLERANCE, holm, paired_interval, paired_permutation

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
"""Differences with a corrected p-value below this are called differences."""

_COUNTS = ("wins", "ties", "losses")


@dataclass(frozen=True)
class Difference:
    """One system against the baseline in one measure.

    Attributes
    ----------
    mean, low, high : float
        Mean of system minus baseline, and its 95 % interval (:func:`~memlab.evaluation.significance.paired_interval`).
    p : float
        From :func:`~memlab.evaluation.significance.paired_permutation`.
    p_holm : float
        The same, corrected for the number of systems that are compared with the baseline in this measure.
    wins, ties, losses : int
        Queries that the system answers better, as well, worse; differences up to 1e-9 are ties.
    """

    mean: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int

    @property
    def found(self) -> bool:
        """Whether the systems can be told apart: the corrected p-value is below 0.05."""
        return self.p_holm < ALPHA


@dataclass(frozen=True, repr=False)
class Comparison:
    """How systems compare with a baseline; :func:`compare` makes it.

    Attributes
    ----------
    evaluations : mapping of str to Evaluation
        By system, all over the same queries and judgments.
    baseline : str
        The system that the others are compared with.
    notes : tuple of str
        What was left out or odd, counted.
    interrupted : bool
        Whether it was stopped: the figures are then of the queries that every system finished.
    resamples, seed : int
        Of the intervals and tests.
    """

    evaluations: Mapping[str, Evaluation]
    baseline: str
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    resamples: int = 10_000
    seed: int = 0

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order given."""
        return tuple(self.evaluations)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, in the order asked for."""
        return self.evaluations[self.baseline].measures

    @property
    def queries(self) -> tuple[LabelledQuery, ...]:
        """The queries that were compared."""
        return self.evaluations[self.baseline].queries

    @cached_property
    def differences(self) -> Mapping[tuple[str, str], Difference]:
        """By (system, measure), the baseline left out."""
        result: dict[tuple[str, str], Difference] = {}
        others = [name for name in self.systems if name != self.baseline]
        for measure in self.measures:
            base = self.evaluations[self.baseline].of(measure)
            values = {name: self.evaluations[name].of(measure) for name in others}
            ps = [paired_permutation(values[name], base, self.resamples, self.seed) for name in others]
            for name, p, p_holm in zip(others, ps, holm(ps).tolist(), strict=True):
                apart = values[name] - base
                low, high = paired_interval(apart, LEVEL, self.resamples, self.seed)
                wins, losses = int((apart > TOLERANCE).sum()), int((apart < -TOLERANCE).sum())
                ties = len(apart) - wins - losses
                result[name, measure] = Difference(float(apart.mean()), low, high, p, p_holm, wins, ties, losses)
        return result

    @property
    def table(self) -> pd.DataFrame:
        """One row a measure and system.

        Returns
        -------
        DataFrame
            ``system, measure, mean, low, high`` (95 % interval of the mean), ``difference, difference_low,
            difference_high`` (system minus baseline, with its 95 % interval), ``p, p_holm, wins, ties, losses``: see
            :class:`Difference`; missing for the baseline. Intervals are of one comparison each, Holm's correction is
            in ``p_holm`` alone.
        """
        import pandas as pd

        rows = []
        for measure in self.measures:
            for name, evaluation in self.evaluations.items():
                own = (name, measure, evaluation.mean(measure), *evaluation.intervals[measure])
                found = self.differences.get((name, measure))
                against = (None,) * 8 if found is None else tuple(vars(found).values())
                rows.append((*own, *against))
        columns = ["system", "measure", "mean", "low", "high", "difference", "difference_low", "difference_high"]
        frame = pd.DataFrame(rows, columns=[*columns, "p", "p_holm", *_COUNTS])
        floats = dict.fromkeys([*columns[2:], "p", "p_holm"], "float64")
        return frame.astype({**floats, **dict.fromkeys(_COUNTS, "Int64")})

    @property
    def per_query(self) -> pd.DataFrame:
        """Tidy: ``system, query_id, measure, value``."""
        import pandas as pd

        frames = [evaluation.per_query.assign(system=name) for name, evaluation in self.evaluations.items()]
        return pd.concat(frames, ignore_index=True)[["system", "query_id", "measure", "value"]]

    def changed(self, measure: Any = None, n: int = 10, system: str | None = None) -> pd.DataFrame:
        """The queries whose values differ most from the baseline's, largest difference first.

        Parameters
        ----------
        measure : str, optional
            The first one by default.
        n : int
            Most rows.
        system : str, optional
            One system alone; all by default.

        Returns
        -------
        DataFrame
            ``query_id, text, system, baseline_value, value, difference, baseline_hits, hits, relevant``: the hits are
            the ids of the first five memories, ``relevant`` those judged relevant.

        Raises
        ------
        InvalidValue
            If the measure was not measured or the system not compared.
        """
        import pandas as pd

        named = self.measure_named(measure)
        others = [name for name in self.systems if name != self.baseline]
        if system is not None and system not in others:
            raise InvalidValue(f"system: expected one of {', '.join(others)}, found {system!r}")
        base = self.evaluations[self.baseline]
        rows = []
        for name in others if system is None else [system]:
            own = self.evaluations[name]
            apart = own.of(named) - base.of(named)
            for place in np.flatnonzero(np.abs(apart) > TOLERANCE):
                query = self.queries[place]
                rows.append(
                    (
                        query.query_id,
                        query.text,
                        name,
                        base.values[named][query.query_id],
                        own.values[named][query.query_id],
                        float(apart[place]),
                        base.run.top(query.query_id),
                        own.run.top(query.query_id),
                        tuple(sorted(base.qrels.relevant(query.query_id))),
                    )
                )
        rows.sort(key=lambda row: (-abs(row[5]), row[0], row[2]))
        columns = ["query_id", "text", "system", "baseline_value", "value", "difference"]
        columns += ["baseline_hits", "hits", "relevant"]
        return pd.DataFrame(rows[: whole(n, "n", least=0)], columns=columns)

    def measure_named(self, measure: Any = None) -> str:
        """The name of a measure that was measured, the first by default; raises :class:`InvalidValue` for another."""
        named = self.measures[0] if measure is None else str(measure)
        if named not in self.measures:
            raise InvalidValue(f"{named} was not measured; these were: {', '.join(self.measures)}")
        return named

    def plot(self, measure: Any = None) -> Any:
        """The differences with their intervals as a matplotlib figure, for one measure or all."""
        from memlab.evaluation import plots

        return plots.forest(self, None if measure is None else self.measure_named(measure))

    def __repr__(self) -> str:
        from memlab.evaluation.tables import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from memlab.evaluation.tables import comparison_html

        return comparison_html(self)
