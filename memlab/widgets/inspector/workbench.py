"""Where the inspector's recalls are made: what the channels found is kept, so that a knob only ranks again."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Hashable

from memlab.retrieval import Candidates, HybridRetriever, Recall, ScoreFusion
from memlab.retrieval.neighbours import neighbours
from memlab.store import Filters
from memlab.widgets.inspector.settings import Settings

_KEPT = 8  # two sides, and a way back


class Workbench:
    """Recalls with changing settings over one retriever's store and channels.

    Query, filters and depth say what the channels find; everything else only ranks it. What was found is kept until the
    store changes, with every channel's score of what the others found, so that any fusion can rank it.

    Parameters
    ----------
    retriever : HybridRetriever
    recorded : Recall, optional
        A recall that was made before: as long as its query, filters and depth stand, what its channels found at that
        time is ranked, whatever has become of the store.

    Attributes
    ----------
    gathered : int
        How often channels were asked.
    """

    def __init__(self, retriever: HybridRetriever, recorded: Recall | None = None) -> None:
        self.retriever = retriever
        self.gathered = 0
        self._found: OrderedDict[Hashable, Candidates] = OrderedDict()
        self._recorded = _usable(recorded, retriever)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""
        return tuple(channel.name for channel in self.retriever.channels)

    def recall(self, query: str, settings: Settings) -> Recall:
        """The recall of a query with these settings."""
        candidates = self.candidates(query, settings.filters, settings.depth)
        retriever = settings.on(self.retriever)
        return retriever.rank(candidates, recency_boost=settings.recency_boost, now=settings.now)

    def is_recorded(self, query: str, settings: Settings) -> bool:
        """Whether what the channels found comes from the recorded recall."""
        return self._recorded is not None and _key(self._recorded) == (query, settings.filters, settings.depth)

    def candidates(self, query: str, filters: Filters, depth: int) -> Candidates:
        """What the channels find, asked for only if it is not known."""
        if self._recorded is not None and _key(self._recorded) == (query, filters, depth):
            return self._recorded
        key = (self._seen(), query, filters, depth)
        known = self._found.get(key)
        if known is None:
            self.gathered += 1
            known = self._gatherer(depth).gather(query, filters=filters)
            # Without an encoder the vector channels did not run; the next look may find one.
            if all(result.ran for result in known.results):
                self._found[key] = known
                while len(self._found) > _KEPT:
                    self._found.popitem(last=False)
        else:
            self._found.move_to_end(key)
        return known

    def _gatherer(self, depth: int) -> HybridRetriever:
        retriever = self.retriever.replace(depth=depth)
        return retriever if retriever.fusion.complete else retriever.replace(fusion=ScoreFusion())

    def _seen(self) -> Hashable:
        """The state of the store that a look now would see."""
        with self.retriever.store.view() as view:
            return view.snapshot.change, view.snapshot.encoder_id, view.terms_ready

    def ranks(self, recall: Recall, memory_id: str) -> dict[str, tuple[int, float] | str]:
        """By channel: rank and raw score of a memory however deep it lies, or in words why it has none."""
        trace, candidates = recall.trace, recall._candidates
        if candidates is None:
            return {}
        listed = {
            result.channel: next((hit for hit in result.hits if hit.memory_id == memory_id), None)
            for result in trace.channels
        }
        places: dict[str, tuple[int, float] | str] = {
            name: (hit.rank, hit.raw_score) for name, hit in listed.items() if hit is not None and hit.rank is not None
        }
        if len(places) == len(self.retriever.channels):
            return places
        with self.retriever.store.view(trace.filters) as view:
            number = view.number(memory_id)
            query = self.retriever.fitting(candidates.query, view)
            found = frozenset(hit.number for result in candidates.results for hit in result.hits)
            for channel in self.retriever.channels:
                if channel.name not in places:
                    at = number if number is not None else -1
                    places[channel.name] = channel.locate(query, view, at, found)
        return places

    def neighbours(self, memory_id: str, count: int = 5) -> list[tuple[str, float]]:
        """The nearest other memories of the whole store, by cosine."""
        with self.retriever.store.view() as view:
            return neighbours(view, memory_id, count)


def _key(candidates: Candidates) -> tuple[str, Filters, int]:
    return candidates.query.text, candidates.filters, candidates.depth


def _usable(recall: Recall | None, retriever: HybridRetriever) -> Candidates | None:
    """What a recall's channels found, if they are this retriever's."""
    if recall is None or recall._candidates is None or recall._retriever is None:
        return None
    made_by = dataclasses.replace(recall._retriever)
    same = made_by.store is retriever.store and made_by.channels == retriever.channels
    return recall._candidates if same else None
