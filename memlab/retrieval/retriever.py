"""The hybrid retriever: channels, fusion and recency put together, each a part that can be exchanged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Any

from memlab.checks import whole
from memlab.encoders.base import EncoderStamp, FloatMatrix, check_vectors
from memlab.errors import EncoderError, InvalidValue
from memlab.retrieval.candidates import Candidates, Reuse
from memlab.retrieval.channels import (
    Channel,
    ChannelHit,
    ChannelResult,
    PassageChannel,
    Query,
    StemChannel,
    VectorChannel,
)
from memlab.retrieval.fusion import Fusion, ScoreFusion
from memlab.retrieval.ranking import rank_all
from memlab.retrieval.recall import Recall
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.recording import record
from memlab.retrieval.terms import clean
from memlab.retrieval.trace import Trace
from memlab.store import Filters, MemoryStore
from memlab.store.encoding import mismatch
from memlab.store.reading import ReadView
from memlab.timestamps import parse_time, utc_now


@dataclass(frozen=True)
class HybridRetriever:
    """Recall by several channels, fused, with an optional recency boost.

    A frozen value: :meth:`replace`, :meth:`only` and :meth:`without` give changed copies over the same store.

    Parameters
    ----------
    store : MemoryStore
    channels : sequence of Channel
        Keyword (over stems), vector and passage by default.
    fusion : Fusion
        ``ScoreFusion()`` by default; ``RRF()`` is the published one, and ``memlab.profile("classic", store)`` the whole
        published recipe.
    recency : RecencyRanker or None
        What the boost does when it is on; ``None`` takes it out. By default up to 30 % with a half-life of 30 days,
        which measured best with :class:`ScoreFusion`; ``RecencyRanker()`` has the published 15 % and 14 days.
    recency_boost : bool
        Whether the boost is on where a recall does not say.
    depth : int
        Candidates taken from each channel.
    limit : int
        Hits where a recall does not say.

    Examples
    --------
    >>> retriever = HybridRetriever(store)
    >>> retriever.recall("how do we back off failing webhooks?", recency_boost=True)
    """

    store: MemoryStore
    channels: Sequence[Channel] = field(default_factory=lambda: (StemChannel(), VectorChannel(), PassageChannel()))
    fusion: Fusion = field(default_factory=ScoreFusion)
    recency: RecencyRanker | None = field(default_factory=lambda: RecencyRanker(half_life_days=30, strength=0.3))
    recency_boost: bool = False
    depth: int = 50
    limit: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.store, MemoryStore):
            raise InvalidValue(
                f"store: expected a memlab.MemoryStore, found {type(self.store).__name__} {self.store!r}"
            )
        if not isinstance(self.channels, Iterable):
            raise InvalidValue(f"channels: expected several, such as (VectorChannel(),), found {self.channels!r:.80}")
        object.__setattr__(self, "channels", tuple(self.channels))
        for what, part, method, examples in (
            *(("channels", channel, "search", "KeywordChannel() and VectorChannel()") for channel in self.channels),
            ("fusion", self.fusion, "contributions", "RRF() and ScoreFusion()"),
            *(() if self.recency is None else (("recency", self.recency, "factor", "RecencyRanker(), or None"),)),
        ):
            if isinstance(part, type) or not callable(getattr(part, method, None)):
                raise InvalidValue(f"{what}: expected objects such as {examples}, found {part!r:.80}")
        names = [channel.name for channel in self.channels]
        if not names or len(set(names)) < len(names):
            raise InvalidValue(f"channels: expected one or more channels with different names, found {names}")
        object.__setattr__(self, "depth", whole(self.depth, "depth", least=1))
        object.__setattr__(self, "limit", whole(self.limit, "limit", least=0))
        weights = getattr(self.fusion, "weights", {})
        for name in weights:
            if name not in KNOWN_CHANNELS and name not in names:
                raise InvalidValue(f"weights: {name!r} is no channel; the channels are {', '.join(names)}")

    # -- variants --------------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> HybridRetriever:
        """A copy with some settings changed: ``replace(recency=None, fusion=RRF(k=10))``."""
        known = [item.name for item in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise InvalidValue(f"replace: {name!r} is no setting; the settings are {', '.join(known)}")
        return dataclasses.replace(self, **changes)

    def only(self, *names: str) -> HybridRetriever:
        """A copy with these channels alone."""
        self._check_names(names)
        return self.replace(channels=tuple(channel for channel in self.channels if channel.name in names))

    def without(self, *names: str) -> HybridRetriever:
        """A copy with these channels left out."""
        self._check_names(names)
        return self.replace(channels=tuple(channel for channel in self.channels if channel.name not in names))

    def _check_names(self, names: tuple[str, ...]) -> None:
        have = [channel.name for channel in self.channels]
        for name in names:
            if name not in have:
                raise InvalidValue(f"{name!r} is no channel of this retriever; it has {', '.join(have)}")

    def __repr__(self) -> str:
        boost = f"{self.recency}, {'on' if self.recency_boost else 'off'} by default" if self.recency else "no recency"
        names = " + ".join(channel.name for channel in self.channels)
        return f"<HybridRetriever {names}; {self.fusion}; {boost}; depth {self.depth}; {self.store.path.name}>"

    # -- recall ----------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        recency_boost: bool | None = None,
        now: datetime | str | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Recall:
        """The memories that answer a query best, with all that made them so.

        Parameters
        ----------
        query : str
            Plain text, whatever it contains.
        limit : int, optional
            Most hits.
        recency_boost : bool, optional
            Whether newer memories get their bonus.
        now : datetime or str, optional
            The moment that ages are counted from, with a zone; the present by default.
        filters : Filters or mapping, optional
            Or its fields as keyword arguments: ``project="billing", tags=["retry"]``.

        Returns
        -------
        Recall
            Without hits if nothing matches. If no encoder can be had the keyword channel answers alone and the
            trace says why.
        """
        found = self.rank(
            self.gather(query, filters=filters, **given), limit=limit, recency_boost=recency_boost, now=now
        )
        if self.store.query_log.recording:
            record(found, self)
        return found

    def gather(
        self,
        query: str,
        *,
        filters: Filters | Mapping[str, Any] | None = None,
        query_vector: FloatMatrix | None = None,
        made_by: EncoderStamp | None = None,
        **given: Any,
    ) -> Candidates:
        """The first half of a recall: embed the query and ask every channel.

        Parameters
        ----------
        query_vector : ndarray of float32, shape (dimension,), optional
            Where it is known already: encoding many queries at once is cheaper.
        made_by : EncoderStamp, optional
            Whose vector that is; the store's own encoder's by default.

        Returns
        -------
        Candidates

        Raises
        ------
        InvalidValue
            If the query is no text, a filter is unknown, or the vector has the wrong shape or holds NaN.
        """
        if not isinstance(query, str):
            raise InvalidValue(f"query: expected text, found {type(query).__name__}")
        chosen = filters_of(filters, given)
        timings: dict[str, float] = {}
        started = perf_counter()
        prepared = self._prepare(query) if query_vector is None else Query(query, query_vector, made_by=made_by)
        timings["encode"] = 1000 * (perf_counter() - started)
        for attempt in (1, 2):
            started = perf_counter()
            with self.store.view(chosen) as view:
                timings["open"] = 1000 * (perf_counter() - started)
                fitting = self.fitting(prepared, view)
                if prepared.made_by is None or fitting.vector is not None or attempt == 2:
                    return self.ask(fitting, view, timings=timings)
            # The store was re-embedded between the two looks: once more with the encoder that it has now.
            prepared = self._prepare(query)
        raise AssertionError("the second attempt returns")  # pragma: no cover

    def ask(
        self,
        query: Query,
        view: ReadView,
        *,
        timings: Mapping[str, float] | None = None,
        reuse: Reuse | None = None,
    ) -> Candidates:
        """Ask every channel, within one view.

        Parameters
        ----------
        query : Query
            Made for this view's encoder, see :meth:`fitting`.
        view : ReadView
        timings : mapping of str to float, optional
            Milliseconds of the stages before.
        reuse : Reuse, optional
            What other retrievers over the same store found for this query in this view; added to.
        """
        spent = dict(timings or {})
        known = Reuse() if reuse is None else reuse
        results: list[ChannelResult] = []
        found: frozenset[int] = frozenset()
        for channel in self.channels:
            result = known.search(channel, query, view, self.depth, found)
            results.append(result)
            spent[channel.name] = result.milliseconds
            found |= {hit.number for hit in result.hits}
        started = perf_counter()
        facts = known.facts_of(view, found)
        spent["facts"] = 1000 * (perf_counter() - started)
        used = view.encoder.name if view.encoder is not None and query.vector is not None else None
        candidates = Candidates(query, view.filters, self.depth, tuple(results), facts, view.searched, used, spent)
        return self._completed(candidates, view, known) if self.fusion.complete else candidates

    def _completed(self, candidates: Candidates, view: ReadView, known: Reuse) -> Candidates:
        """The candidates with each channel's score of what the others found."""
        started = perf_counter()
        results = []
        channels = {channel.name: channel for channel in self.channels}
        for result in candidates.results:
            if result.channel not in channels:
                raise InvalidValue(
                    f"candidates: expected those of the channels {', '.join(channels)}, found one of {result.channel}; "
                    "gather them with a retriever of the same channels"
                )
            channel = channels[result.channel]
            missing = candidates.facts.keys() - {hit.number for hit in result.hits}
            scores = known.scores_of(channel, candidates.query, view, missing) if missing and result.ran else {}
            looked_up = (
                ChannelHit(number, candidates.facts[number][0], None, score, passage)
                for number, (score, passage) in scores.items()
            )
            ordered = sorted(looked_up, key=lambda hit: (-hit.raw_score, hit.memory_id))
            results.append(dataclasses.replace(result, looked_up=tuple(ordered)))
        timings = {**candidates.timings, "look up": 1000 * (perf_counter() - started)}
        return dataclasses.replace(candidates, results=tuple(results), timings=timings, complete=True)

    def _prepare(self, text: str) -> Query:
        if not any(channel.needs_vector for channel in self.channels):
            return Query(text, None, "no channel needs the query's vector")
        if not clean(text).strip():
            return Query(text, None, "the query is blank")
        if self.store.encoder_stamp is None and self.store.wants_encoder:
            return Query(text, None, "no memory has a vector yet")  # no need to load a model for that
        try:
            encoded, made_by = self.store.encode_query_stamped(text)
        except EncoderError as error:
            return Query(text, None, str(error))
        return Query(text, encoded, made_by=made_by)

    @staticmethod
    def fitting(query: Query, view: ReadView) -> Query:
        """The query, without its vector if that cannot be compared with the store's: another process re-embedded it.

        Raises
        ------
        InvalidValue
            If a vector of unknown origin has another dimension than the store's, or is none.
        """
        if query.vector is None or view.encoder is None:
            return query
        if query.made_by is not None:
            if view.encoder.compatible(query.made_by):
                return query
            return Query(query.text, None, str(mismatch(view.encoder, query.made_by)))
        try:
            row = check_vectors([query.vector], 1, view.encoder.dimension, "query_vector")[0]
        except EncoderError as error:
            raise InvalidValue(str(error)) from None
        return Query(query.text, row, made_by=view.encoder)

    def rank(
        self,
        candidates: Candidates,
        *,
        limit: int | None = None,
        recency_boost: bool | None = None,
        now: datetime | str | None = None,
    ) -> Recall:
        """The second half of a recall: fuse, boost, order. Nothing is embedded or searched again.

        Raises
        ------
        InvalidValue
            If the limit is no whole number of 0 or more, ``now`` names no zone, or the boost is wanted and
            ``recency`` is ``None``.
        """
        wanted = self.limit if limit is None else whole(limit, "limit", least=0)
        boost = self.recency_boost if recency_boost is None else bool(recency_boost)
        if recency_boost and self.recency is None:
            raise InvalidValue(
                "recency_boost: this retriever has recency=None; give it a RecencyRanker() with replace()"
            )
        # To the millisecond, as all times here: the moment of a trace can be given again, and nothing is lost.
        moment = parse_time(utc_now() if now is None else now, "now")
        ranker = self.recency if boost else None
        late = ""
        if self.fusion.complete and not candidates.complete:
            # Gathered for a fusion of ranks. The scores are those of the store as it is now.
            with self.store.view(candidates.filters) as view:
                # Re-embedded since: then a vector of that time compares with nothing.
                query = self.fitting(candidates.query, view)
                if query.vector is None and candidates.query.vector is not None:
                    late = f"nothing was looked up beyond the depth: {query.note}"
                candidates = self._completed(dataclasses.replace(candidates, query=query), view, Reuse())
        started = perf_counter()
        ranked = rank_all(candidates, self.fusion, ranker, moment)
        mode, note = _mode(candidates.results)
        note = "; ".join(filter(None, (note, late)))
        trace = Trace(
            query=candidates.query.text,
            filters=candidates.filters,
            limit=wanted,
            depth=candidates.depth,
            now=moment,
            mode=mode,
            note=note,
            channels=candidates.results,
            fusion=repr(self.fusion),
            recency=repr(ranker) if ranker else "",
            ranked=ranked,
            searched=candidates.searched,
            encoder=candidates.encoder,
            timings={**candidates.timings, "rank": 1000 * (perf_counter() - started)},
            settings={"channels": self.channels, "fusion": self.fusion, "recency": ranker},
        )
        return Recall.of(trace, self.store, retriever=self, candidates=candidates)


KNOWN_CHANNELS = ("keyword", "vector", "passage")


def _mode(results: Sequence[ChannelResult]) -> tuple[str, str]:
    ran = [result.channel for result in results if result.ran]
    missing = [result for result in results if not result.ran]
    note = ""
    if missing:
        names = " and ".join(result.channel for result in missing)
        note = f"the {names} channel{'s' if len(missing) > 1 else ''} did not run: {missing[0].note}"
    # A channel that found something and has a remark did its work in a lesser way.
    note = "; ".join(filter(None, (note, *(result.note for result in results if result.ran and result.hits))))
    if len(ran) > 1:
        return "hybrid", note
    return (f"{ran[0]}-only" if ran else "none"), note


def filters_of(filters: Filters | Mapping[str, Any] | None, given: Mapping[str, Any]) -> Filters:
    """The filters of a recall; an unknown name says what else a recall takes."""
    try:
        return Filters.of(filters, **given)
    except InvalidValue as error:
        if "is no filter" not in str(error):
            raise
        raise InvalidValue(
            f"{error}; a recall also takes limit, recency_boost and now, and what a retriever is made of (depth, "
            "fusion, channels, recency) is changed with its replace()"
        ) from None
