"""Sweep settings: every combination measured over the same queries, with the channels asked once."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.evaluation.cache import cache_folder, kept_store
from memlab.evaluation.evaluate import Evaluation, measured
from memlab.evaluation.gathering import DEFAULT_LIMIT, gather_all, judged, missing_memories
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import DEFAULT_MEASURES, check_limit, parse_measures
from memlab.evaluation.queries import queries_of
from memlab.evaluation.vectors import share
from memlab.progress import Show
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore, PassagePolicy
from memlab.store.analysis import ANALYSIS_VERSION
from memlab.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

Setting = dict[str, Any]


def _of_fusion(name: str) -> Callable[[HybridRetriever, Any], HybridRetriever]:
    def change(retriever: HybridRetriever, value: Any) -> HybridRetriever:
        fusion = retriever.fusion
        if not dataclasses.is_dataclass(fusion) or name not in {item.name for item in dataclasses.fields(fusion)}:
            raise InvalidValue(f"grid: {fusion!r} has no {name}; leave it out, or sweep such a fusion on its own")
        return retriever.replace(fusion=dataclasses.replace(fusion, **{name: value}))

    return change


def _of_recency(name: str) -> Callable[[HybridRetriever, Any], HybridRetriever]:
    def change(retriever: HybridRetriever, value: Any) -> HybridRetriever:
        recency = retriever.recency or RecencyRanker()
        return retriever.replace(recency=dataclasses.replace(recency, **{name: value}))

    return change


def _boosted(retriever: HybridRetriever, boost: bool) -> HybridRetriever:
    if boost and retriever.recency is None:
        raise InvalidValue("grid: recency_boost: this retriever has recency=None; give it a RecencyRanker() first")
    return retriever.replace(recency_boost=boost)


# In the order in which they are applied: k and weights are those of the fusion that was swept in.
_CHANGES: dict[str, Callable[[HybridRetriever, Any], HybridRetriever]] = {
    "fusion": lambda retriever, value: retriever.replace(fusion=value),
    "k": _of_fusion("k"),
    "weights": _of_fusion("weights"),
    "depth": lambda retriever, value: retriever.replace(depth=value),
    "half_life_days": _of_recency("half_life_days"),
    "strength": _of_recency("strength"),
    "recency_boost": lambda retriever, value: _boosted(retriever, bool(value)),
}
SETTINGS = (*_CHANGES, "passages")
"""What can be swept."""


@dataclass(frozen=True, repr=False)
class Sweep:
    """Settings with their figures; :func:`sweep` makes it.

    Attributes
    ----------
    settings : tuple of dict
        One a combination: name of the setting to value.
    evaluations : tuple of Evaluation
        One a combination, all over the same queries.
    notes : tuple of str
        What was left out or odd, counted.
    interrupted : bool
        Whether it was stopped: the figures are then of the queries that were finished.
    """

    settings: tuple[Setting, ...]
    evaluations: tuple[Evaluation, ...]
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(self.settings[0])

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return self.evaluations[0].measures

    @property
    def table(self) -> pd.DataFrame:
        """Tidy: one row a combination, a column for each setting, and one for the mean of each measure."""
        import pandas as pd

        rows = [
            {**setting, **{measure: evaluation.mean(measure) for measure in self.measures}}
            for setting, evaluation in zip(self.settings, self.evaluations, strict=True)
        ]
        return pd.DataFrame(
            {name: pd.Series([row[name] for row in rows], dtype=_dtype(rows, name)) for name in rows[0]}
        )

    def best(self, measure: Any = None) -> Setting:
        """The combination with the largest mean; of equal ones the first.

        Parameters
        ----------
        measure : str, optional
            The first by default.

        Raises
        ------
        InvalidValue
            If it was not measured.
        """
        return dict(self.settings[self.best_place(measure)])

    def best_place(self, measure: Any = None) -> int:
        """The row of :attr:`table` that :meth:`best` gives."""
        wanted = self.measures[0] if measure is None else measure
        means = [evaluation.mean(wanted) for evaluation in self.evaluations]
        return means.index(max(means))

    def plot(self) -> Any:
        """The means over the settings, as a matplotlib figure that a saved notebook keeps as a picture."""
        from memlab.evaluation import plots

        return plots.sweep(self)

    def __len__(self) -> int:
        return len(self.settings)

    def __repr__(self) -> str:
        from memlab.evaluation.tables import sweep_text

        return sweep_text(self)

    def _repr_html_(self) -> str:
        from memlab.evaluation.tables import sweep_html

        return sweep_html(self)


def _dtype(rows: Sequence[Setting], name: str) -> str | None:
    kinds = {type(row[name]) for row in rows}
    return None if kinds <= {int, float} or kinds in ({str}, {bool}) else "object"


def sweep(
    retriever: HybridRetriever,
    grid: Mapping[str, Iterable[Any]],
    queries: Any,
    qrels: Any,
    measures: str | Iterable[Any] = DEFAULT_MEASURES,
    *,
    limit: int = DEFAULT_LIMIT,
    now: datetime | str | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Show = None,
) -> Sweep:
    """Measure every combination of settings.

    The best of many settings looks better than it is: settle on one with some queries and measure it with others.

    Parameters
    ----------
    retriever : HybridRetriever
        What is not in the grid stays as it is here.
    grid : mapping of str to iterable
        ``{"k": [2, 10, 60], "weights": [{}, {"keyword": 2}]}``. Names: ``fusion`` (Fusion objects), ``k``, ``weights``
        (mappings), ``depth``, ``half_life_days``, ``strength``, ``recency_boost``, and ``passages`` (PassagePolicy
        objects: the store is copied into the cache and embedded anew, once for each). Where ``half_life_days`` or
        ``strength`` is swept and ``recency_boost`` is not, the boost is on.
    queries, qrels, measures
        See :func:`~memlab.evaluation.evaluate.evaluate`.
    limit : int
        Hits of a query that measures without a cutoff look at, and the largest cutoff that a measure may have.
    now : datetime or str, optional
        The moment that ages are counted from, for the queries that have none of their own.
    cache : str or Path, optional
        Where stores of other passage policies are kept, see :func:`~memlab.evaluation.cache.cache_folder`.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Returns
    -------
    Sweep

    Raises
    ------
    InvalidValue
        If the grid is empty, names something else, a value cannot be used, or a measure looks at more than ``limit``
        hits.
    """
    settings = _combinations(grid)
    chosen = parse_measures(measures)
    looked_at = check_limit(chosen, whole(limit, "limit", least=1))
    both = judged(queries_of(queries), Qrels.of(qrels))
    notes = (*both.notes, *missing_memories(retriever.store, both.qrels))
    opened: dict[PassagePolicy, MemoryStore] = {}
    try:
        retrievers = {
            str(place): _changed(retriever, setting, opened, cache, progress) for place, setting in enumerate(settings)
        }
        gathered = gather_all(
            retrievers,
            both.queries,
            limit=looked_at,
            looked_at=looked_at,
            now=now,
            progress=progress,
            label="sweeping",
        )
    finally:
        for store in opened.values():
            store.close()
    judged_here = dataclasses.replace(both, notes=())
    evaluations = tuple(
        measured(run, judged_here, chosen, queries=gathered.queries, interrupted=gathered.interrupted)
        for run in gathered.runs.values()
    )
    said = dict.fromkeys(note.split(": ", 1)[-1] for run in gathered.runs.values() for note in run.notes)
    if gathered.interrupted:
        said[f"stopped after {len(gathered.queries):,} of {len(both.queries):,} queries; the figures are of those"] = (
            None
        )
    return Sweep(settings, evaluations, (*notes, *said), gathered.interrupted)


def _combinations(grid: Mapping[str, Iterable[Any]]) -> tuple[Setting, ...]:
    if not isinstance(grid, Mapping) or not grid:
        found = "none" if isinstance(grid, Mapping) else type(grid).__name__
        raise InvalidValue(f"grid: expected {{name: [value, ...]}} with names of {', '.join(SETTINGS)}; found {found}")
    values: dict[str, list[Any]] = {}
    for name, given in grid.items():
        if name not in SETTINGS:
            raise InvalidValue(f"grid: {name!r} is no setting; the settings are {', '.join(SETTINGS)}")
        if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
            raise InvalidValue(f"grid: {name}: expected a list of values, found {given!r}; for one write [{given!r}]")
        values[name] = list(given)
        if not values[name]:
            raise InvalidValue(f"grid: {name}: expected one or more values, found none")
    if "recency_boost" not in values and values.keys() & {"half_life_days", "strength"}:
        values["recency_boost"] = [True]
    return tuple(dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values()))


def _changed(
    retriever: HybridRetriever,
    setting: Setting,
    opened: dict[PassagePolicy, MemoryStore],
    cache: str | os.PathLike[str] | None,
    progress: Show,
) -> HybridRetriever:
    for name, change in _CHANGES.items():
        if name in setting:
            retriever = change(retriever, setting[name])
    policy = setting.get("passages")
    if policy is None or policy == retriever.store.passage_policy:
        return retriever
    if not isinstance(policy, PassagePolicy):
        raise InvalidValue(f"grid: passages: expected PassagePolicy objects, found {policy!r}")
    if policy not in opened:
        opened[policy] = reembedded(retriever.store, policy, cache, progress)
    return retriever.replace(store=opened[policy])


def reembedded(
    store: MemoryStore, policy: PassagePolicy, cache: str | os.PathLike[str] | None = None, progress: Show = None
) -> MemoryStore:
    """A copy of a store in the cache, with vectors by another passage policy; the store itself is left alone.

    Raises
    ------
    EncoderError
        If the store's encoder cannot be had.
    """
    stamped, encoder = store.encoder_stamp, store.encoder()
    made_by, prefix = None if stamped is None else asdict(stamped), encoder.query_prefix
    digest = hashlib.sha256(json.dumps([SCHEMA_VERSION, ANALYSIS_VERSION, asdict(policy), made_by, prefix]).encode())
    for memory in sorted(store.find(), key=lambda memory: memory.memory_id):
        digest.update(json.dumps(memory.as_dict(), sort_keys=True, default=str).encode("utf-8", "surrogatepass"))

    def make(part: Path) -> None:
        if not part.exists():
            store.backup(part)
        with MemoryStore(part, encoder) as copy:
            copy.reembed(encoder, passages=policy, progress=progress)

    path = cache_folder(cache) / f"{store.path.stem[:40]}-{digest.hexdigest()[:16]}.db"
    copy = kept_store(path, encoder, make)
    share(store, copy)
    return copy
