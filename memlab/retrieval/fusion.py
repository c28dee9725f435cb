"""Fusion: from the lists of the channels to what each contributes to each memory. Pure functions, no store in sight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memlab.errors import InvalidValue

Contributions = dict[str, dict[str, float]]
"""Memory id to channel to contribution."""


class Ranked(Protocol):
    """One row of a channel's list."""

    @property
    def memory_id(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def raw_score(self) -> float: ...


Lists = Mapping[str, Sequence[Ranked]]
"""Channel name to its list."""


class Fusion(Protocol):
    """Anything that turns the channels' lists into contributions."""

    def contributions(self, lists: Lists) -> Contributions:
        """What each channel adds to each memory's score; memories in no list are absent."""
        ...

    def formula(self, channel: str, rank: int, raw_score: float, contribution: float) -> str:
        """How one contribution came about, in figures."""
        ...


def _checked(weights: Mapping[str, float]) -> dict[str, float]:
    for channel, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight) or weight < 0:
            raise InvalidValue(f"weights: expected a number of 0 or more for {channel!r}, found {weight!r}")
    return {channel: float(weight) for channel, weight in weights.items()}


@dataclass(frozen=True)
class RRF:
    """Reciprocal rank fusion: a channel contributes ``weight / (k + rank)``.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009, with a weight a channel.

    Parameters
    ----------
    k : float
        Larger values make the first ranks less special; 60 in the paper.
    weights : mapping of str to float
        By channel name, 1 where not named.
    """

    k: float = 60
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, float)) or not math.isfinite(self.k) or self.k < 0:
            raise InvalidValue(f"k: expected a number of 0 or more, found {self.k!r}")
        object.__setattr__(self, "weights", _checked(self.weights))

    def contributions(self, lists: Lists) -> Contributions:
        """See :class:`Fusion`."""
        result: Contributions = {}
        for channel, rows in lists.items():
            weight = self.weights.get(channel, 1.0)
            if weight == 0:
                continue  # a channel without weight is shown in the trace, but brings no memory in
            for row in rows:
                result.setdefault(row.memory_id, {})[channel] = weight / (self.k + row.rank)
        return result

    def formula(self, channel: str, rank: int, raw_score: float, contribution: float) -> str:
        """See :class:`Fusion`."""
        return f"{self.weights.get(channel, 1.0):g} / ({self.k:g} + {rank})"


@dataclass(frozen=True)
class ConvexFusion:
    """A convex combination of scores: ``weight * (score - low) / (high - low)``.

    ``low`` and ``high`` are the extremes of the channel's list for this query (min-max normalisation, as in Bruch, Gai
    and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023); a list of equal scores gives each
    the whole weight. Weights are divided by their sum over the channels that have a list.

    Parameters
    ----------
    weights : mapping of str to float
        By channel name, 1 where not named.
    """

    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked(self.weights))

    def contributions(self, lists: Lists) -> Contributions:
        """See :class:`Fusion`."""
        weights = {channel: self.weights.get(channel, 1.0) for channel, rows in lists.items() if rows}
        total = math.fsum(weights.values())
        result: Contributions = {}
        for channel, weight in weights.items():
            if weight == 0:
                continue
            scores = [row.raw_score for row in lists[channel]]
            low, span = min(scores), max(scores) - min(scores)
            for row in lists[channel]:
                share = (row.raw_score - low) / span if span > 0 else 1.0
                result.setdefault(row.memory_id, {})[channel] = weight / total * share
        return result

    def formula(self, channel: str, rank: int, raw_score: float, contribution: float) -> str:
        """See :class:`Fusion`."""
        return f"weight {self.weights.get(channel, 1.0):g}, score {raw_score:.3g} scaled within the list"


def fused(contributions: Iterable[float]) -> float:
    """The sum of a memory's contributions.

    ``math.fsum`` rounds once, whatever the order of the terms, so whoever adds them up again gets the same bits.
    """
    return math.fsum(contributions)
