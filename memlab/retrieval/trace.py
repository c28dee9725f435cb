"""The trace of a recall: all that it did, from query terms to final order. Every view reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from memlab.retrieval.channels import ChannelResult
from memlab.retrieval.fusion import fused
from memlab.store.filters import Filters


@dataclass(frozen=True)
class Contribution:
    """What one channel adds to one memory's score.

    Attributes
    ----------
    channel : str
    rank : int or None
        The memory's place in the channel's list, from 1; ``None`` if it lies beyond the depth and was scored because
        another channel found it.
    raw_score : float
        In the channel's own unit; never compared across channels.
    contribution : float
    formula : str
        How rank or score became the contribution.
    passage : int or None
        Position of the passage that gave the score.
    counted : bool
        False where another channel of its group speaks for the memory; the contribution is 0 then.
    """

    channel: str
    rank: int | None
    raw_score: float
    contribution: float
    formula: str
    passage: int | None = None
    counted: bool = True


@dataclass(frozen=True)
class RankedMemory:
    """One memory in the final order.

    Attributes
    ----------
    memory_id : str
    number : int
        Its number in the store.
    rank : int
        From 1.
    contributions : tuple of Contribution
    fused : float
        ``math.fsum`` of the contributions.
    recency_factor : float
        1 without the boost.
    score : float
        ``fused * recency_factor``, to the last bit.
    age_days : float
    created_at : datetime
    """

    memory_id: str
    number: int
    rank: int
    contributions: tuple[Contribution, ...]
    recency_factor: float
    age_days: float
    created_at: datetime

    @property
    def fused(self) -> float:
        """The sum of the contributions."""
        return fused(part.contribution for part in self.contributions)

    @property
    def score(self) -> float:
        """The sum of the contributions times the recency factor."""
        return self.fused * self.recency_factor

    @property
    def recency_gain(self) -> float:
        """What the recency factor added to the sum of the contributions."""
        return self.score - self.fused

    def of(self, channel: str) -> Contribution | None:
        """What one channel contributed, if anything."""
        return next((part for part in self.contributions if part.channel == channel), None)


@runtime_checkable
class Findable(Protocol):
    """Ranked memories that know where each stands."""

    def place(self, memory_id: str) -> RankedMemory | None:
        """A memory's place, if it has one."""
        ...


@dataclass(frozen=True)
class Trace:
    """All that one recall did.

    Attributes
    ----------
    query : str
    filters : Filters
    limit, depth : int
        Hits that were wanted; candidates taken from each channel.
    now : datetime
        The moment that ages are counted from.
    mode : str
        ``"hybrid"``, or ``"<channel>-only"``.
    note : str
        What was missing and why, if anything was.
    channels : tuple of ChannelResult
    fusion, recency : str
        The settings, as text; recency is empty without the boost.
    ranked : sequence of RankedMemory
        Every memory that a channel with weight brought in, in final order: the hits are its first ``limit``.
    searched : int
        Live memories in the store.
    encoder : str or None
        Whose query vector it was.
    timings : mapping of str to float
        Milliseconds by stage.
    settings : mapping of str to Any
        The stages themselves, to run the same recall again.
    """

    query: str
    filters: Filters
    limit: int
    depth: int
    now: datetime
    mode: str
    note: str
    channels: tuple[ChannelResult, ...]
    fusion: str
    recency: str
    ranked: Sequence[RankedMemory]
    searched: int
    encoder: str | None
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def channel(self, name: str) -> ChannelResult | None:
        """What one channel found, if it took part."""
        return next((result for result in self.channels if result.channel == name), None)

    def place(self, memory_id: str) -> RankedMemory | None:
        """A memory's place in the final order, if it has one."""
        if isinstance(self.ranked, Findable):
            return self.ranked.place(memory_id)
        return next((row for row in self.ranked if row.memory_id == memory_id), None)
