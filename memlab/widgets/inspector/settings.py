"""The settings of one recall, as stages for Python and as plain knobs for the view."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.retrieval import RRF, ConvexFusion, HybridRetriever, Recall, RecencyRanker, ScoreFusion
from memlab.retrieval.fusion import DEFAULT_WEIGHTS, ONE_VOTE, Fusion
from memlab.store import Filters
from memlab.timestamps import format_time, parse_time

KINDS: dict[str, type[ScoreFusion] | type[RRF] | type[ConvexFusion]] = {
    "score": ScoreFusion,
    "rrf": RRF,
    "convex": ConvexFusion,
}
OWN = "own"  # a fusion of another class: shown by name, its insides have no knobs
BOOST = RecencyRanker(half_life_days=30, strength=0.3)

Knobs = Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a recall is made with, beside the query; a frozen value, changed by :meth:`replace`.

    Attributes
    ----------
    fusion : Fusion
    recency : RecencyRanker
        What the boost does when it is on.
    recency_boost : bool
    depth, limit : int
    now : datetime or None
        The moment that ages are counted from; ``None`` for the present.
    filters : Filters
    """

    fusion: Fusion = field(default_factory=ScoreFusion)
    recency: RecencyRanker = BOOST
    recency_boost: bool = False
    depth: int = 50
    limit: int = 10
    now: datetime | None = None
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        if not callable(getattr(self.fusion, "contributions", None)) or not hasattr(self.fusion, "one_vote"):
            raise InvalidValue(
                f"fusion: expected a fusion or one of {', '.join(KINDS)}, found {type(self.fusion).__name__}"
            )
        knobs = ("half_life_days", "strength")
        if self.recency is not None and not all(hasattr(self.recency, name) for name in knobs):
            raise InvalidValue(f"recency: expected a memlab.RecencyRanker, found {type(self.recency).__name__}")
        object.__setattr__(self, "depth", whole(self.depth, "depth", least=1))
        object.__setattr__(self, "limit", whole(self.limit, "limit", least=0))
        object.__setattr__(self, "recency_boost", bool(self.recency_boost))
        object.__setattr__(self, "filters", Filters.of(self.filters))
        if self.now is not None:
            object.__setattr__(self, "now", parse_time(self.now, "now"))
        if self.recency is None:
            object.__setattr__(self, "recency", BOOST)

    @classmethod
    def of(cls, retriever: HybridRetriever, **given: Any) -> Settings:
        """Those of a retriever; what is given and not ``None`` takes their place."""
        own = cls(
            fusion=retriever.fusion,
            recency=retriever.recency or BOOST,
            recency_boost=retriever.recency_boost and retriever.recency is not None,
            depth=retriever.depth,
        )
        return dataclasses.replace(own, **{name: value for name, value in given.items() if value is not None})

    @classmethod
    def of_recall(cls, recall: Recall) -> Settings:
        """Those that a recall was made with, its ``now`` included."""
        trace = recall.trace
        ranker = trace.settings.get("recency")
        return cls(
            fusion=trace.settings.get("fusion") or ScoreFusion(),
            recency=ranker or BOOST,
            recency_boost=ranker is not None,
            depth=trace.depth,
            limit=trace.limit,
            now=trace.now,
            filters=trace.filters,
        )

    def replace(self, **changes: Any) -> Settings:
        """A copy with some changed: by name, or by knob.

        Parameters
        ----------
        **changes
            Attributes of this class, ``fusion`` also as ``"score"``, ``"rrf"`` or ``"convex"``; and ``k``, ``weights``
            (of some channels), ``half_life_days``, ``strength``.

        Raises
        ------
        InvalidValue
            If there is no such setting, or the fusion has no such knob.
        """
        names = [item.name for item in dataclasses.fields(self)]
        knobs = ("k", "weights", "half_life_days", "strength")
        for name in changes:
            if name not in names and name not in knobs:
                raise InvalidValue(f"{name!r} is no setting; the settings are {', '.join([*names, *knobs])}")
        plain = {name: value for name, value in changes.items() if name in names}
        if isinstance(plain.get("fusion"), str):
            plain["fusion"] = _fusion(plain["fusion"], self.fusion)
        fusion = plain.get("fusion", self.fusion)
        for name in ("k", "weights"):
            if name in changes:
                if not hasattr(fusion, name):
                    raise InvalidValue(f"{name}: {fusion!r} has none; choose another fusion first")
                value = changes[name]
                if name == "weights":
                    if not isinstance(value, Mapping):
                        raise InvalidValue(f"weights: expected {{channel: weight}}, found {type(value).__name__}")
                    value = {**fusion.weights, **value}
                fusion = dataclasses.replace(fusion, **{name: value})
        ranker = {name: changes[name] for name in ("half_life_days", "strength") if name in changes}
        if ranker:
            plain["recency"] = dataclasses.replace(plain.get("recency") or self.recency, **ranker)
        return dataclasses.replace(self, **{**plain, "fusion": fusion})

    def on(self, retriever: HybridRetriever) -> HybridRetriever:
        """The retriever with these settings."""
        changes: dict[str, Any] = {}
        for name in ("fusion", "recency", "recency_boost", "depth", "limit"):
            if getattr(retriever, name) != getattr(self, name):
                changes[name] = getattr(self, name)
        if retriever.recency is None and not self.recency_boost:
            changes.pop("recency", None)
        return retriever.replace(**changes) if changes else retriever

    # -- knobs -------------------------------------------------------------------------------------------------------

    def knobs(self, channels: tuple[str, ...]) -> dict[str, Any]:
        """The same as plain JSON values, for the view."""
        kind = next((name for name, cls in KINDS.items() if type(self.fusion) is cls), OWN)
        weights: Mapping[str, float] = getattr(self.fusion, "weights", {})
        return {
            "fusion": kind,
            "k": getattr(self.fusion, "k", 60),
            "weights": {name: weights.get(name, 1.0) for name in channels},
            "one_vote": bool(self.fusion.one_vote),
            "depth": self.depth,
            "limit": self.limit,
            "boost": self.recency_boost,
            "half_life": self.recency.half_life_days,
            "strength": self.recency.strength,
            "now": None if self.now is None else format_time(self.now),
            "filters": plain_filters(self.filters),
        }

    def with_knobs(self, knobs: Knobs, channels: tuple[str, ...]) -> Settings:
        """A copy as the view's knobs stand; what has not moved stays the very object that it was."""
        mine = self.knobs(channels)
        if {**mine, **knobs} == mine:
            return self
        fusion = self.fusion
        if any(knobs.get(name, mine[name]) != mine[name] for name in ("fusion", "k", "weights", "one_vote")):
            fusion = _turned(fusion, knobs, mine)
        recency = self.recency
        if any(knobs.get(name, mine[name]) != mine[name] for name in ("half_life", "strength")):
            recency = RecencyRanker(knobs["half_life"], knobs["strength"])
        now = self.now if knobs.get("now", mine["now"]) == mine["now"] else knobs["now"]
        filters = self.filters
        if knobs.get("filters", mine["filters"]) != mine["filters"]:
            filters = Filters.of(knobs["filters"])
        return Settings(
            fusion=fusion,
            recency=recency,
            recency_boost=knobs.get("boost", self.recency_boost),
            depth=knobs.get("depth", self.depth),
            limit=knobs.get("limit", self.limit),
            now=now,
            filters=filters,
        )

    def code(self, retriever: HybridRetriever, query: str) -> str:
        """The recall with these settings as a line of Python."""
        changes = [f"fusion={self.fusion!r}"] if self.fusion != retriever.fusion else []
        if self.depth != retriever.depth:
            changes.append(f"depth={self.depth}")
        if self.recency_boost and self.recency != retriever.recency:
            changes.append(f"recency={self.recency!r}")
        made = f"retriever.replace({', '.join(changes)})" if changes else "retriever"
        given = [repr(query), f"limit={self.limit}", f"recency_boost={self.recency_boost}"]
        if self.now is not None:
            given.append(f"now={format_time(self.now)!r}")
        given += [f"{name}={value!r}" for name, value in plain_filters(self.filters).items()]
        return f"{made}.recall({', '.join(given)})"


def plain_filters(filters: Filters) -> dict[str, Any]:
    """Filters as plain JSON values."""
    values = filters.given()
    return {
        name: format_time(value) if isinstance(value, datetime) else list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def defaults(channels: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """The weights that each kind of fusion begins with."""
    own = {name: DEFAULT_WEIGHTS.get(name, 1.0) for name in channels}
    even = dict.fromkeys(channels, 1.0)
    return {"score": own, "rrf": even, "convex": even}


def _fusion(kind: str, old: Fusion) -> Fusion:
    if kind not in KINDS:
        raise InvalidValue(f"fusion: {kind!r} is none; expected a fusion or one of {', '.join(KINDS)}")
    return old if type(old) is KINDS[kind] else KINDS[kind](one_vote=old.one_vote)


def _turned(old: Fusion, knobs: Knobs, mine: Knobs) -> Fusion:
    wanted = {**mine, **knobs}
    if wanted["fusion"] == OWN:
        return old
    fusion: Any = _fusion(wanted["fusion"], old)
    changes: dict[str, Any] = {"weights": _short(wanted["weights"], type(fusion))}
    if bool(fusion.one_vote) != wanted["one_vote"]:
        changes["one_vote"] = ONE_VOTE if wanted["one_vote"] else ()
    if isinstance(fusion, RRF):
        changes["k"] = wanted["k"]
    return dataclasses.replace(fusion, **changes)  # type: ignore[no-any-return]


def _short(weights: Mapping[str, float], kind: type) -> dict[str, float]:
    """Weights without those that say what is so anyway."""
    if kind is ScoreFusion:
        return dict(weights)
    return {name: weight for name, weight in weights.items() if weight != 1.0}
