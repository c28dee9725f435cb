"""Fusion: from the lists of the channels to what each contributes to each memory. Pure functions, no store in sight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from memlab.checks import number
from memlab.errors import InvalidValue

Contributions = dict[str, dict[str, float]]
"""Memory id to channel to contribution."""


class Ranked(Protocol):
    """One row of a channel's list."""

    @property
    def memory_id(self) -> str:
        """Whose row it is."""
        ...

    @property
    def rank(self) -> int | None:
        """Place in the list, from 1; ``None`` for a memory beyond the depth that another channel found."""
        ...

    @property
    def raw_score(self) -> float:
        """In the channel's own unit, larger is better."""
        ...


Lists = Mapping[str, Sequence[Ranked]]
"""Channel name to its list."""


Formula = Callable[[str, Ranked], str]
Groups = tuple[tuple[str, ...], ...]
# Document vector and passages are looks at one text by one model: the better look speaks for the memory. Counted both,
# a long memory would have one vote more than a short one for the same evidence.
ONE_VOTE: Groups = (("vector", "passage"),)


DEFAULT_WEIGHTS = {"keyword": 0.42, "vector": 0.58, "passage": 0.58}


class Fusion(Protocol):
    """Anything that turns the channels' lists into contributions."""

    def contributions(self, lists: Lists) -> Contributions:
        """What each channel adds to each memory's score; memories in no list are absent."""
        ...

    def formulas(self, lists: Lists) -> Formula:
        """A function that says, in figures, how one row of a channel's list became its contribution."""
        ...

    @property
    def one_vote(self) -> Groups:
        """Groups of channels that have one vote together."""
        ...

    @property
    def complete(self) -> bool:
        """Whether it wants every channel's score of every candidate, those beyond a channel's depth too."""
        ...


def silent(by_channel: Mapping[str, float], groups: Groups) -> set[str]:
    """The channels that give way to another one of their group: all but the largest, the first of equal ones."""
    found: set[str] = set()
    for group in groups:
        voting = [channel for channel in group if channel in by_channel]
        if len(voting) > 1:
            best = max(voting, key=lambda channel: by_channel[channel])
            found.update(channel for channel in voting if channel != best)
    return found


def _settle(result: Contributions, groups: Groups) -> Contributions:
    if len(groups) == 1:
        group = groups[0]
        if len(group) == 2:  # as by default, and this is done for every candidate
            first, second = group
            for by_channel in result.values():
                if first in by_channel and second in by_channel:
                    by_channel[first if by_channel[second] > by_channel[first] else second] = 0.0
            return result
        for by_channel in result.values():
            voting = [channel for channel in group if channel in by_channel]
            if len(voting) > 1:
                best = max(voting, key=by_channel.__getitem__)
                by_channel.update((channel, 0.0) for channel in voting if channel != best)
        return result
    for by_channel in result.values():
        by_channel.update(dict.fromkeys(silent(by_channel, groups), 0.0))
    return result


def _listed(lists: Lists) -> Lists:
    """The lists without what was looked up beyond their depth."""
    return {channel: [row for row in rows if row.rank is not None] for channel, rows in lists.items()}


def _checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise InvalidValue(f"weights: expected {{channel: weight}}, such as {DEFAULT_WEIGHTS!r}, found {weights!r:.80}")
    return {channel: number(weight, f"weights: {channel}") for channel, weight in weights.items()}


def _checked_groups(groups: Iterable[Iterable[str]]) -> Groups:
    if isinstance(groups, str) or any(isinstance(group, str) for group in groups):
        raise InvalidValue(f"one_vote: expected groups of channels, such as {ONE_VOTE!r}, or (); found {groups!r}")
    return tuple(tuple(group) for group in groups)


def _settings(fusion: RRF | ConvexFusion, first: list[str]) -> str:
    parts = first
    if fusion.weights:
        parts.append(f"weights={dict(fusion.weights)}")
    if fusion.one_vote != ONE_VOTE:
        parts.append(f"one_vote={fusion.one_vote}")
    return f"{type(fusion).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class RRF:
    """Reciprocal rank fusion: a channel contributes ``weight / (k + rank)``.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009, with a weight a channel.

    Parameters
    ----------
    k : float
        Larger values make the first ranks less special; 60 in the paper.
    weights : mapping of str to float
        By channel name, 1 where not named. A channel of weight 0 is shown in the trace but brings no memory in.
    one_vote : tuple of tuple of str
        Groups of channels that have one vote together: of a memory's contributions in a group the largest counts and
        the others are 0. ``()`` lets every channel vote.

    Raises
    ------
    InvalidValue
        If a number is negative or none at all.
    """

    k: float = 60
    weights: Mapping[str, float] = field(default_factory=dict)
    one_vote: Groups = ONE_VOTE
    complete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", number(self.k, "k"))
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        object.__setattr__(self, "one_vote", _checked_groups(self.one_vote))

    def contributions(self, lists: Lists) -> Contributions:
        """See :class:`Fusion`."""
        result: Contributions = {}
        for channel, rows in lists.items():
            weight = self.weights.get(channel, 1.0)
            if weight == 0:
                continue
            for row in rows:
                if row.rank is not None:
                    result.setdefault(row.memory_id, {})[channel] = weight / (self.k + row.rank)
        return _settle(result, self.one_vote)

    def formulas(self, lists: Lists) -> Formula:
        """See :class:`Fusion`."""
        return lambda channel, row: f"{self.weights.get(channel, 1.0):g} / ({self.k:g} + {row.rank})"

    def __repr__(self) -> str:
        return _settings(self, [f"k={self.k:g}"])


@dataclass(frozen=True, repr=False)
class ConvexFusion:
    """A convex combination of scores: ``weight * (score - low) / (high - low)``.

    ``low`` and ``high`` are the extremes of the channel's list for this query (min-max normalisation, as in Bruch, Gai
    and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023); channels with one vote together
    share a unit and so the extremes. A list of equal scores gives each the whole weight. Weights are divided by their
    sum over the channels that have a list, a group counting once.

    Parameters
    ----------
    weights : mapping of str to float
        By channel name, 1 where not named. A channel of weight 0 is shown in the trace but brings no memory in.
    one_vote : tuple of tuple of str
        See :class:`RRF`.

    Raises
    ------
    InvalidValue
        If a number is negative or none at all.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    one_vote: Groups = ONE_VOTE
    complete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        object.__setattr__(self, "one_vote", _checked_groups(self.one_vote))

    def contributions(self, lists: Lists) -> Contributions:
        """See :class:`Fusion`."""
        lists = _listed(lists)
        scales = self._scales(lists)
        result: Contributions = {}
        for channel, (weight, low, high) in scales.items():
            for row in lists[channel]:
                share = (row.raw_score - low) / (high - low) if high > low else 1.0
                result.setdefault(row.memory_id, {})[channel] = weight * share
        return _settle(result, self.one_vote)

    def _scales(self, lists: Lists) -> dict[str, tuple[float, float, float]]:
        """By channel: its share of the weights, and the extremes that its scores are scaled by."""
        weights = {channel: self.weights.get(channel, 1.0) for channel, rows in lists.items() if rows}
        weights = {channel: weight for channel, weight in weights.items() if weight > 0}
        grouped = {channel for group in self.one_vote for channel in group}
        families = [[c for c in group if c in weights] for group in self.one_vote]
        families += [[channel] for channel in weights if channel not in grouped]
        families = [family for family in families if family]
        total = math.fsum(max(weights[channel] for channel in family) for family in families)
        scales: dict[str, tuple[float, float, float]] = {}
        for family in families:
            scores = [row.raw_score for channel in family for row in lists[channel]]
            scales.update({channel: (weights[channel] / total, min(scores), max(scores)) for channel in family})
        return scales

    def formulas(self, lists: Lists) -> Formula:
        """See :class:`Fusion`."""
        scales = self._scales(_listed(lists))

        def say(channel: str, row: Ranked) -> str:
            weight, low, high = scales[channel]
            if high == low:
                return f"{weight:.4g}, all scores being equal"
            return f"{weight:.4g} x ({row.raw_score:.4g} - {low:.4g}) / ({high:.4g} - {low:.4g})"

        return say

    def __repr__(self) -> str:
        return _settings(self, [])


@dataclass(frozen=True, repr=False)
class ScoreFusion:
    """A weighted sum of scores on scales that mean the same for every query.

    A channel in ``relative`` contributes ``weight * score / best``: ``best`` is the highest score of its list for this
    query, so the best keyword hit has 1 and one that matches a third as much has a third (the theoretical minimum, 0,
    and the observed maximum; Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023).
    Every other channel contributes ``weight * score``: a cosine is on one scale already, and stretching each list to
    the whole of it would give a list that says nothing the same say as one that does. Where all cosines lie close
    together, as they do for a language that the encoder does not know, the keywords then decide by themselves. Scores
    below 0 count as 0.

    The fusion wants every channel's score of every candidate, also of those that lie beyond the channel's depth.

    Parameters
    ----------
    weights : mapping of str to float
        By channel name, 1 where not named; the default was found on public sets with all-MiniLM-L6-v2, see the README.
        A channel of weight 0 is shown in the trace but brings no memory in.
    relative : tuple of str
        Channels whose scores are divided by the best one.
    one_vote : tuple of tuple of str
        See :class:`RRF`.

    Raises
    ------
    InvalidValue
        If a number is negative or none at all.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    relative: tuple[str, ...] = ("keyword",)
    one_vote: Groups = ONE_VOTE
    complete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        relative = (self.relative,) if isinstance(self.relative, str) else tuple(self.relative)
        object.__setattr__(self, "relative", relative)
        object.__setattr__(self, "one_vote", _checked_groups(self.one_vote))

    def contributions(self, lists: Lists) -> Contributions:
        """See :class:`Fusion`."""
        scales = self._scales(lists)
        result: Contributions = {}
        for channel, (weight, best) in scales.items():
            for row in lists[channel]:
                score, memory_id = row.raw_score, row.memory_id
                share = weight * score / best if score > 0.0 else 0.0
                if memory_id in result:
                    result[memory_id][channel] = share
                else:
                    result[memory_id] = {channel: share}
        return _settle(result, self.one_vote)

    def _scales(self, lists: Lists) -> dict[str, tuple[float, float]]:
        """By channel with a weight: the weight, and what its scores are divided by."""
        scales: dict[str, tuple[float, float]] = {}
        for channel, rows in lists.items():
            weight = self.weights.get(channel, 1.0)
            if weight > 0 and rows:
                best = max(row.raw_score for row in rows) if channel in self.relative else 1.0
                scales[channel] = (weight, best if best > 0 else 1.0)
        return scales

    def formulas(self, lists: Lists) -> Formula:
        """See :class:`Fusion`."""
        scales = self._scales(lists)

        def say(channel: str, row: Ranked) -> str:
            weight, best = scales[channel]
            divided = f" / {best:.4g}" if channel in self.relative else ""
            return f"{weight:.4g} x {max(0.0, row.raw_score):.4g}{divided}"

        return say

    def __repr__(self) -> str:
        parts = [] if dict(self.weights) == DEFAULT_WEIGHTS else [f"weights={dict(self.weights)}"]
        parts += [] if self.relative == ("keyword",) else [f"relative={self.relative}"]
        parts += [] if self.one_vote == ONE_VOTE else [f"one_vote={self.one_vote}"]
        return f"ScoreFusion({', '.join(parts)})"


NOT_COUNTED = "not counted: another channel of its group says more"


def fused(contributions: Iterable[float]) -> float:
    """The sum of a memory's contributions.

    ``math.fsum`` rounds once, whatever the order of the terms, so whoever adds them up again gets the same bits.
    """
    return math.fsum(contributions)
