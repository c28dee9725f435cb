"""What the channels found for a query: all that ranking needs, so that it can be done again with other settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memlab.retrieval.channels import Channel, ChannelResult, Query, Scores, timed
from memlab.store import Filters
from memlab.store.reading import ReadView
from memlab.timestamps import from_stored


@dataclass(frozen=True)
class Candidates:
    """What the channels found for a query: all that ranking needs, so that it can be repeated with other settings.

    Attributes
    ----------
    query : Query
    filters : Filters
    depth : int
    results : tuple of ChannelResult
    facts : mapping of int to (str, datetime, int)
        Memory number to id, creation time and access count.
    searched : int
        Live memories in the store.
    encoder : str or None
    timings : mapping of str to float
        Milliseconds by stage.
    complete : bool
        Whether every channel has also scored what only the others found.
    """

    query: Query
    filters: Filters
    depth: int
    results: tuple[ChannelResult, ...]
    facts: Mapping[int, tuple[str, datetime, int]]
    searched: int
    encoder: str | None
    timings: Mapping[str, float]
    complete: bool = False


@dataclass
class Reuse:
    """What was found for one query in one view, for further retrievers that ask the same of the same channel.

    Attributes
    ----------
    results : list of (Channel, int, frozenset of int, ChannelResult)
        Channel, depth, what was found before it, and its answer. Channels are compared, not hashed: their settings may
        be mappings.
    scores : list of (Channel, dict)
        What was looked up beyond the depth; a memory without a score is known by ``None``.
    facts : dict of int to (str, datetime, int)
        See :class:`Candidates`.
    """

    results: list[tuple[Channel, int, frozenset[int], ChannelResult]] = field(default_factory=list)
    scores: list[tuple[Channel, dict[int, tuple[float, int | None] | None]]] = field(default_factory=list)
    facts: dict[int, tuple[str, datetime, int]] = field(default_factory=dict)

    def search(
        self, channel: Channel, query: Query, view: ReadView, depth: int, found: frozenset[int]
    ) -> ChannelResult:
        """The channel's answer, asked for only if it is not known."""
        seen = found if _looks_at_found(channel) else frozenset()
        for known, at, before, result in self.results:
            if at == depth and known == channel and before == seen:
                return result
        result = timed(channel, query, view, depth, found)
        self.results.append((channel, depth, seen, result))
        return result

    def scores_of(self, channel: Channel, query: Query, view: ReadView, numbers: Iterable[int]) -> Scores:
        """The channel's scores of these memories, asked for only if they are not known."""
        wanted = sorted(numbers)
        known = next((scores for other, scores in self.scores if other == channel), None)
        if known is None:
            known = {}
            self.scores.append((channel, known))
        if missing := [number for number in wanted if number not in known]:
            found = channel.score(query, view, missing)
            known.update({number: found.get(number) for number in missing})
        return {number: score for number in wanted if (score := known[number]) is not None}

    def facts_of(self, view: ReadView, numbers: frozenset[int]) -> dict[int, tuple[str, datetime, int]]:
        """The facts of these memories, read only if they are not known."""
        if missing := sorted(numbers - self.facts.keys()):
            facts = self.facts
            for number, (memory_id, created, accesses) in view.facts(missing).items():
                facts[number] = memory_id, from_stored(created), accesses
        return {number: self.facts[number] for number in sorted(numbers) if number in self.facts}


def _looks_at_found(channel: Channel) -> bool:
    """Whether a channel's answer may depend on what was found before it; yes unless it says that it does not."""
    return bool(getattr(channel, "looks_at_found", True))
