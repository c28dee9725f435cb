"""Encoders and passage policies side by side: what they find, how large they are, and how long they take."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memlab.encoders.base import Encoder
from memlab.errors import InvalidValue
from memlab.evaluation.benchmark import check_profiles
from memlab.evaluation.cache import build_store
from memlab.evaluation.compare import compare
from memlab.evaluation.comparison import Comparison
from memlab.evaluation.encoder_costs import Watched, busy, weights_of
from memlab.evaluation.folders import LabelledSet, labelled_set_of
from memlab.evaluation.gathering import DEFAULT_LIMIT, judged
from memlab.evaluation.measures import DEFAULT_MEASURES, needed_depth, parse_measures
from memlab.evaluation.precisions import measure_columns
from memlab.progress import Show
from memlab.retrieval.profiles import profile as profile_of
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore, PassagePolicy

if TYPE_CHECKING:
    import pandas as pd

    from memlab.sample_data import Sample


@dataclass(frozen=True)
class EncoderRow:
    """One way to make vectors.

    Attributes
    ----------
    name : str
        As in the comparison.
    encoder, passages, profile : str
        The names that were given.
    dimension, token_limit : int
    parameters : int or None
        Numbers that the model has learned; ``None`` where no file tells. 0 for an encoder without a model.
    weights_bytes : int or None
        Size of the files that they are read from.
    vector_bytes : int
        Size of the store's vectors: documents and passages, float32.
    corpus_seconds : float
        To cut and encode the corpus, without loading the model; NaN where the store came from the cache.
    query_ms : float
        To encode one query alone, the median of some; NaN where nothing had to be encoded now.
    """

    name: str
    encoder: str
    passages: str
    profile: str
    dimension: int
    token_limit: int
    parameters: int | None
    weights_bytes: int | None
    vector_bytes: int
    corpus_seconds: float = math.nan
    query_ms: float = math.nan


@dataclass(frozen=True, repr=False)
class EncoderComparison:
    """Encoders side by side; :func:`compare_encoders` makes it.

    Attributes
    ----------
    comparison : Comparison
        With everything that the measures say; the first row is the baseline unless another was named.
    rows : tuple of EncoderRow
        In the order of the comparison's systems.
    memories : int
        In each store.
    notes : tuple of str
        What was left out or odd, counted; why a time is missing.
    """

    comparison: Comparison
    rows: tuple[EncoderRow, ...]
    memories: int
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row a way to make vectors.

        Returns
        -------
        DataFrame
            ``name, encoder, passages, profile``; the mean of every measure under its name, and with `` low``, `` high``
            and `` p`` after it its 95 % interval and the p-value against the baseline after Holm; and the other
            attributes of :class:`EncoderRow`.
        """
        import pandas as pd

        names = ("name", "encoder", "passages", "profile")
        rows = []
        for row in self.rows:
            own = dict(vars(row))
            rows.append({name: own.pop(name) for name in names} | measure_columns(self.comparison, row.name) | own)
        return pd.DataFrame(rows).astype({"parameters": "Int64", "weights_bytes": "Int64"})

    def plot(self, measure: Any = None) -> Any:
        """The differences from the baseline with their intervals, as a matplotlib figure."""
        return self.comparison.plot(measure)

    def __repr__(self) -> str:
        from memlab.evaluation.study_tables import encoders_figures

        return encoders_figures(self).text()

    def _repr_html_(self) -> str:
        from memlab.evaluation.study_tables import encoders_figures

        return encoders_figures(self).html()


def compare_encoders(
    labelled_set: LabelledSet | Sample | str | os.PathLike[str],
    encoders: Mapping[str, Encoder | str],
    *,
    passages: Mapping[str, PassagePolicy] | None = None,
    cache: str | os.PathLike[str] | None = None,
    measures: str | Iterable[Any] = DEFAULT_MEASURES,
    profile: str | Sequence[str] = "vector",
    baseline: str | None = None,
    progress: Show = None,
) -> EncoderComparison:
    """Compare encoders over one labelled set, each with every passage policy.

    A store is built for each, see :func:`~memlab.evaluation.cache.build_store`; a second call takes them from the cache
    and loads no model. Times are those of this call on this machine; what else it does makes them longer.

    Parameters
    ----------
    labelled_set : LabelledSet, Sample or path
    encoders : mapping of str to (Encoder or str)
        A name for the table to an encoder, or to what :func:`~memlab.encoders.encoder_from_name` takes; ``"minilm"``
        and ``"hashing"`` are short for all-MiniLM-L6-v2 and ``HashingEncoder()``.
    passages : mapping of str to PassagePolicy, optional
        ``{"passages": PassagePolicy(), "truncated": PassagePolicy(aggregate="truncate")}``; by default
        ``PassagePolicy()`` alone.
    cache : str or Path, optional
        See :func:`~memlab.evaluation.cache.cache_folder`.
    measures : str or iterable
        Names of ir-measures.
    profile : str or sequence of str
        Which retrievers, see :data:`memlab.retrieval.profiles.PROFILES`; the vectors alone by default.
    baseline : str, optional
        The row that the others are compared with, by its name: ``"minilm"``, and with several policies or profiles
        ``"minilm, truncated, vector"``. The first by default.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Returns
    -------
    EncoderComparison

    Raises
    ------
    InvalidValue
        If there are fewer than two rows, or something is no encoder, policy or profile.
    EncoderError
        If an encoder cannot be had, or cannot encode some memory.

    Examples
    --------
    >>> policies = {"passages": PassagePolicy(), "truncated": PassagePolicy(aggregate="truncate")}
    >>> compare_encoders(memlab.sample(), {"minilm": "minilm", "hashing": "hashing"}, passages=policies)
    """
    labelled = labelled_set_of(labelled_set)
    chosen = {name: _encoder(name, encoder) for name, encoder in _named(encoders, "encoders").items()}
    policies = _policies(passages)
    profiles = check_profiles((profile,) if isinstance(profile, str) else tuple(profile))
    parsed = parse_measures(measures)
    texts = [query.text for query in judged(labelled.queries, labelled.qrels).queries]
    systems: dict[str, HybridRetriever] = {}
    rows: list[EncoderRow] = []
    untimed: dict[str, list[str]] = {}
    other_work = busy()
    with ExitStack() as opened:
        watched: dict[str, Watched] = {}
        for name, encoder in chosen.items():
            for policy_name, policy in policies.items():
                watch = Watched(encoder)
                store = opened.enter_context(build_store(labelled, cache, watch, policy, progress))
                seconds, note = _corpus_seconds(watch, store, policy)
                parameters, weights_bytes = weights_of(encoder)
                for profile_name in profiles:
                    row_name = ", ".join(
                        [name, *([policy_name] if len(policies) > 1 else []), *([profile_name] if profiles[1:] else [])]
                    )
                    systems[row_name] = profile_of(profile_name, store)
                    watched[row_name] = watch
                    rows.append(
                        EncoderRow(
                            row_name,
                            name,
                            policy_name,
                            profile_name,
                            encoder.dimension,
                            encoder.token_limit,
                            parameters,
                            weights_bytes,
                            _vector_bytes(store),
                            seconds,
                        )
                    )
                    if note:
                        untimed.setdefault(f"no time for the corpus, {note}", []).append(row_name)
        _check_rows(systems, baseline)
        memories = len(next(iter(systems.values())).store)
        limit = needed_depth(parsed, DEFAULT_LIMIT)
        comparison = compare(
            systems, labelled.queries, labelled.qrels, parsed, baseline=baseline, limit=limit, progress=progress
        )
        for place, row in enumerate(rows):
            watch = watched[row.name]
            if watch.loaded:
                rows[place] = replace(row, query_ms=watch.single_ms(texts))
            else:
                untimed.setdefault("no time for a query, their vectors came from the cache", []).append(row.name)
    notes = [f"{why}: {'; '.join(names)}" for why, names in untimed.items()]
    if other_work and any(watch.loaded for watch in watched.values()):
        notes.append(f"{other_work}; the times are longer than they need be, small ones above all")
    return EncoderComparison(comparison, tuple(rows), memories, (*labelled.notes, *comparison.notes, *notes))


def _corpus_seconds(watch: Watched, store: MemoryStore, policy: PassagePolicy) -> tuple[float, str]:
    """How long the whole corpus took, or NaN and why nobody can tell."""
    if not watch.documents:
        return math.nan, "the stores came from the cache"
    with store.view() as view:
        snapshot = view.snapshot
        whole = len(snapshot.documents) - len(snapshot.several_passages) + len(snapshot.passages)
    if watch.documents < whole:
        return math.nan, "builds that were begun before were gone on with"
    return watch.seconds, ""


def _vector_bytes(store: MemoryStore) -> int:
    with store.view() as view:
        return 4 * view.snapshot.dimension * (len(view.documents) + len(view.passages))


def _named(given: Mapping[str, Any], what: str) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(f"{what}: expected {{name: ...}} with one or more, found {given!r:.200}")
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(f"{what}: expected names that are text, found {name!r}")
    return dict(given)


def _encoder(name: str, given: Any) -> Encoder:
    from memlab.encoders import HashingEncoder, MiniLM, encoder_from_name

    if isinstance(given, str):
        short: dict[str, Callable[[], Encoder]] = {"minilm": MiniLM, "hashing": HashingEncoder}
        return short[given.lower()]() if given.lower() in short else encoder_from_name(given)
    if not isinstance(given, Encoder):
        raise InvalidValue(f"encoders: {name}: expected an Encoder or the name of one, found {type(given).__name__}")
    return given


def _policies(passages: Mapping[str, PassagePolicy] | None) -> dict[str, PassagePolicy]:
    if passages is None:
        return {"passages": PassagePolicy()}
    policies = _named(passages, "passages")
    for name, policy in policies.items():
        if not isinstance(policy, PassagePolicy):
            raise InvalidValue(f"passages: {name}: expected a PassagePolicy, found {policy!r}")
    return policies


def _check_rows(systems: Mapping[str, Any], baseline: str | None) -> None:
    if len(systems) < 2:
        raise InvalidValue(
            f"expected two rows or more, found {', '.join(systems)}; give several encoders, policies or profiles"
        )
    if baseline is not None and baseline not in systems:
        raise InvalidValue(f"baseline: expected one of {', '.join(systems)}, found {baseline!r}")
