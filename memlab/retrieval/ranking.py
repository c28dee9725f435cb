"""From candidates to the final order; what made it so is written down when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, overload

from memlab.retrieval.candidates import Candidates
from memlab.retrieval.channels import ChannelHit
from memlab.retrieval.fusion import NOT_COUNTED, Contributions, Formula, Fusion, fused, silent
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.trace import Contribution, RankedMemory
from memlab.timestamps import age_days


def scored(
    candidates: Candidates, fusion: Fusion, recency: RecencyRanker | None, now: datetime
) -> tuple[Contributions, list[tuple[float, str, float]]]:
    """Contributions, and what they come to: (score, memory id, recency factor), by score, then memory id."""
    lists = {result.channel: result.rows for result in candidates.results}
    numbers = {hit.memory_id: hit.number for result in candidates.results for hit in result.hits}
    facts = candidates.facts
    contributions = fusion.contributions(lists)
    unordered: list[tuple[float, str, float]] = []
    for memory_id, by_channel in contributions.items():
        number = numbers[memory_id]
        if number in facts:  # not so if it was deleted in the midst of a recall
            factor = recency.factor(facts[number][1], now) if recency is not None else 1.0
            unordered.append((-fused(by_channel.values()) * factor, memory_id, factor))
    unordered.sort()
    return contributions, [(-negative, memory_id, factor) for negative, memory_id, factor in unordered]


class Ranking(Sequence[RankedMemory]):
    """Ranked memories, each made when it is looked at: an answer shows five of a hundred and fifty.

    Equal to the tuple of them.

    Parameters
    ----------
    candidates : Candidates
    fusion : Fusion
    now : datetime
    contributions : dict
        By memory id and channel.
    order : list of (float, str, float)
        Score, memory id and recency factor, best first.
    """

    def __init__(
        self,
        candidates: Candidates,
        fusion: Fusion,
        now: datetime,
        contributions: Contributions,
        order: list[tuple[float, str, float]],
    ) -> None:
        self._candidates, self._fusion, self._now = candidates, fusion, now
        self._contributions, self._order = contributions, order
        self._made: dict[int, RankedMemory] = {}

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], ChannelHit]:
        return {(result.channel, hit.memory_id): hit for result in self._candidates.results for hit in result.rows}

    @cached_property
    def _say(self) -> Formula:
        return self._fusion.formulas({result.channel: result.rows for result in self._candidates.results})

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {memory_id: at for at, (_, memory_id, _) in enumerate(self._order)}

    def place(self, memory_id: str) -> RankedMemory | None:
        """A memory's place, if it has one."""
        at = self._places.get(memory_id)
        return None if at is None else self[at]

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> RankedMemory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RankedMemory, ...]: ...
    def __getitem__(self, index: int | slice) -> RankedMemory | tuple[RankedMemory, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        at = range(len(self))[index]
        if at not in self._made:
            self._made[at] = self._make(at)
        return self._made[at]

    def _make(self, at: int) -> RankedMemory:
        _, memory_id, factor = self._order[at]
        contributions = self._contributions[memory_id]
        unheard = silent(contributions, self._fusion.one_vote)
        parts = []
        for channel, contribution in contributions.items():
            hit, counted = self._rows[channel, memory_id], channel not in unheard
            formula = self._say(channel, hit) if counted else NOT_COUNTED
            parts.append(Contribution(channel, hit.rank, hit.raw_score, contribution, formula, hit.passage, counted))
        created_at = self._candidates.facts[hit.number][1]
        age = age_days(created_at, self._now)
        return RankedMemory(memory_id, hit.number, at + 1, tuple(parts), factor, age, created_at)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Ranking | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return tuple, (tuple(self),)


def rank_all(candidates: Candidates, fusion: Fusion, recency: RecencyRanker | None, now: datetime) -> Ranking:
    """Fuse and order candidates: by score, then memory id; with all that made the order so."""
    return Ranking(candidates, fusion, now, *scored(candidates, fusion, recency, now))
