"""Labelled sets measured with named profiles; several sets at once, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidValue
from memlab.evaluation.cache import build_store
from memlab.evaluation.evaluate import Evaluation, measured
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.gathering import DEFAULT_LIMIT, gather_all, judged, missing_memories
from memlab.evaluation.measures import needed_depth, parse_measures
from memlab.evaluation.vectors import prepared
from memlab.progress import Show
from memlab.retrieval.profiles import PROFILES, profile
from memlab.store import AUTO, MemoryStore, PassagePolicy

if TYPE_CHECKING:
    from memlab.store.encoding import EncoderChoice

# One thread a process: several that each use all cores get in each other's way.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class SetResult:
    """One labelled set, measured.

    Attributes
    ----------
    name, split : str
    memories : int
        In the store.
    evaluations : mapping of str to Evaluation
        By profile.
    notes : tuple of str
        What was left out or odd, counted.
    interrupted : bool
    """

    name: str
    split: str
    memories: int
    evaluations: Mapping[str, Evaluation]
    notes: tuple[str, ...] = ()
    interrupted: bool = False


def check_profiles(names: Sequence[str]) -> tuple[str, ...]:
    """The names without repetitions; raises :class:`InvalidValue` if one is unknown or there is none."""
    for name in names:
        if name not in PROFILES:
            raise InvalidValue(f"profiles: {name!r} is none; the profiles are {', '.join(PROFILES)}")
    if not names:
        raise InvalidValue(f"profiles: expected one or more, found none; the profiles are {', '.join(PROFILES)}")
    return tuple(dict.fromkeys(names))


def measure_set(
    labelled: LabelledSet,
    store: MemoryStore,
    profiles: Sequence[str],
    measures: Any,
    *,
    progress: Show = None,
) -> SetResult:
    """Measure profiles over one store; every channel is asked once a query.

    Parameters
    ----------
    labelled : LabelledSet
        Its corpus is not looked at: the store stands for it.
    store : MemoryStore
    profiles : sequence of str
        See :data:`memlab.retrieval.profiles.PROFILES`.
    measures : str or iterable
        See :func:`~memlab.evaluation.measures.parse_measures`.
    progress : bool or callable, optional
    """
    names, chosen = check_profiles(profiles), parse_measures(measures)
    both = judged(labelled.queries, labelled.qrels)
    notes = (*labelled.notes, *both.notes, *missing_memories(store, both.qrels))
    looked_at = needed_depth(chosen, DEFAULT_LIMIT)
    gathered = gather_all(
        {name: profile(name, store) for name in names},
        both.queries,
        limit=looked_at,
        looked_at=looked_at,
        progress=progress,
        label=labelled.name,
    )
    silent = replace(both, notes=())
    evaluations = {
        name: measured(run, silent, chosen, queries=gathered.queries, interrupted=gathered.interrupted)
        for name, run in gathered.runs.items()
    }
    said = dict.fromkeys(note for evaluation in evaluations.values() for note in evaluation.notes)
    return SetResult(labelled.name, labelled.split, len(store), evaluations, (*notes, *said), gathered.interrupted)


def measure_sets(
    sets: Sequence[LabelledSet],
    profiles: Sequence[str],
    measures: Any,
    *,
    cache: str | os.PathLike[str] | None = None,
    encoder: EncoderChoice = AUTO,
    passages: PassagePolicy | None = None,
    jobs: int = 1,
    progress: Show = None,
) -> Iterator[SetResult]:
    """Build the stores that are not in the cache yet, one after the other, then measure the sets.

    Parameters
    ----------
    sets : sequence of LabelledSet
    profiles, measures
        See :func:`measure_set`.
    cache, encoder, passages
        See :func:`~memlab.evaluation.cache.build_store`.
    jobs : int
        Most processes; with 1 everything happens in this one.
    progress : bool or callable, optional

    Yields
    ------
    SetResult
        In the order of ``sets``.
    """
    names, chosen = check_profiles(profiles), [str(measure) for measure in parse_measures(measures)]
    tasks: list[tuple[LabelledSet, Path, bool]] = []
    for labelled in sets:
        with build_store(labelled, cache, encoder, passages, progress) as store:
            both = judged(labelled.queries, labelled.qrels)
            needed = any(channel.needs_vector for name in names for channel in profile(name, store).channels)
            prepared(store, [query.text for query in both.queries], needed=needed, progress=progress)
            tasks.append((replace(labelled, corpus=()), store.path, encoder is None))
    if min(jobs, len(tasks)) < 2:
        for labelled, path, plain in tasks:
            with MemoryStore(path, None if plain else encoder, read_only=True) as store:
                yield measure_set(labelled, store, names, chosen, progress=progress)
        return
    with _one_thread(), ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_in_process, labelled, path, plain, names, chosen) for labelled, path, plain in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _in_process(
    labelled: LabelledSet, path: Path, plain: bool, profiles: Sequence[str], measures: Sequence[str]
) -> SetResult:
    with MemoryStore(path, None if plain else AUTO, read_only=True) as store:
        return measure_set(labelled, store, profiles, measures, progress=False)


@contextmanager
def _one_thread() -> Iterator[None]:
    """For the processes that are started within: numpy with one thread, unless the environment says otherwise."""
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
