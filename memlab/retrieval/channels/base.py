"""What a channel is: a query in, a ranked list out.

A channel sees the store through a :class:`~memlab.store.reading.ReadView` and knows nothing of the other channels'
scores. Ranks start at 1; memories that tie are ordered by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple, Protocol

from memlab.encoders.base import EncoderStamp, FloatMatrix
from memlab.retrieval.terms import Terms
from memlab.store.reading import ReadView


@dataclass(frozen=True)
class Query:
    """A query in the forms that channels need.

    Attributes
    ----------
    text : str
    vector : ndarray of float32, shape (dimension,), or None
        ``None`` when no encoder could be had.
    note : str
        Why there is no vector.
    made_by : EncoderStamp or None
        Whose vector it is, where that is known.
    """

    text: str
    vector: FloatMatrix | None = None
    note: str = ""
    made_by: EncoderStamp | None = None


class ChannelHit(NamedTuple):
    """One memory in a channel's list.

    Attributes
    ----------
    number : int
        The memory's number in the store.
    memory_id : str
    rank : int or None
        From 1. Ranks may have gaps: see :class:`PassageChannel`. ``None`` where the memory lies beyond the depth and
        was scored only because another channel found it.
    raw_score : float
        In the channel's own unit, larger is better: bm25 with its sign turned round, or a cosine.
    passage : int or None
        Position of the passage that gave the score.
    """

    number: int
    memory_id: str
    rank: int | None
    raw_score: float
    passage: int | None = None


@dataclass(frozen=True)
class ChannelResult:
    """What one channel found.

    Attributes
    ----------
    channel : str
    hits : tuple of ChannelHit
        By rank.
    looked_up : tuple of ChannelHit
        Memories beyond the depth that another channel found, for a fusion that weighs scores; their rank is ``None``.
    note : str
        Why it found nothing or did not run; empty otherwise.
    ran : bool
        Whether the channel could do its work.
    milliseconds : float
    terms : Terms or None
        What the keyword channel looked for.
    """

    channel: str
    hits: tuple[ChannelHit, ...] = ()
    note: str = ""
    ran: bool = True
    milliseconds: float = 0.0
    terms: Terms | None = None
    looked_up: tuple[ChannelHit, ...] = ()

    @property
    def rows(self) -> tuple[ChannelHit, ...]:
        """The hits, and after them what was looked up."""
        return self.hits + self.looked_up


Scores = dict[int, tuple[float, int | None]]
"""Memory number to raw score and position of the passage that gave it."""


class Channel(Protocol):
    """One way of ranking memories for a query."""

    @property
    def name(self) -> str:
        """What the channel is called in traces and weights."""
        ...

    @property
    def needs_vector(self) -> bool:
        """Whether the channel needs the query's vector."""
        ...

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """The best ``depth`` memories; ``found`` has the numbers that earlier channels found."""
        ...

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """Raw scores of these memories, wherever they rank; those that the channel has nothing to say of are absent."""
        ...

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """Rank and raw score of one memory however deep it lies, or in words why it has none."""
        ...


def timed(channel: Channel, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
    """Run a channel and note how long it took."""
    started = perf_counter()
    result = channel.search(query, view, depth, found)
    return replace(result, milliseconds=1000 * (perf_counter() - started))


def nothing(view: ReadView, what: str) -> str:
    """Why a channel found nobody."""
    return f"no memory {'that passes the filters ' if view.filters else ''}{what}"
