"""What memories can be told apart by on a map: each a column of small codes with the names of its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.errors import InvalidValue
from memlab.projection.clusters import Clusters
from memlab.store import MemoryStore
from memlab.timestamps import from_stored

Codes = npt.NDArray[np.uint8]

COLUMNS = ("project", "category", "age", "importance", "source", "cluster")
MOST_VALUES = 8
"""Values with a code of their own; rarer ones share the last."""


@dataclass(frozen=True)
class Column:
    """One value for every memory.

    Attributes
    ----------
    name : str
        One of :data:`COLUMNS`.
    ordered : bool
        Whether the values have an order, as importance has.
    values : tuple of str
        By code.
    counts : tuple of int
        Memories with each value.
    codes : ndarray of uint8, shape (n,)
    """

    name: str
    ordered: bool
    values: tuple[str, ...]
    counts: tuple[int, ...]
    codes: Codes


def columns(store: MemoryStore, ids: Sequence[str]) -> dict[str, Column]:
    """The columns that are in the store itself (all but ``cluster``), for these memories in this order."""
    with store.view() as view:
        facts = view.labels()
    rows = [facts.get(memory_id, (None, None, None, None, None)) for memory_id in ids]
    project, category, source, importance, created = zip(*rows, strict=True) if rows else ((),) * 5
    return {
        "project": _names("project", [value or "no project" for value in project]),
        "category": _names("category", [value or "no category" for value in category]),
        "age": _ages([from_stored(value) if value else None for value in created]),
        "importance": _importance([value or 5 for value in importance]),
        "source": _names("source", [value or "no source" for value in source]),
    }


def cluster_column(found: Clusters, ids: Sequence[str]) -> Column:
    """Groups as a column; memories that are in none are the last value."""
    group = dict(zip(found.ids, found.labels.tolist(), strict=True))
    return _names("cluster", [found.names[group[key]] if key in group else "no vector" for key in ids])


def _column(name: str, ordered: bool, values: Sequence[str], codes: npt.NDArray[Any]) -> Column:
    counts = np.bincount(codes, minlength=len(values)) if len(codes) else np.zeros(len(values), int)
    return Column(name, ordered, tuple(values), tuple(counts.tolist()), codes.astype(np.uint8))


def _names(name: str, given: Sequence[str]) -> Column:
    """The most frequent values, and the rest together."""
    different, places, counts = np.unique(np.array(given, object), return_inverse=True, return_counts=True)
    by_count = sorted(range(len(different)), key=lambda at: (-counts[at], different[at]))
    single = by_count if len(by_count) <= MOST_VALUES else by_count[: MOST_VALUES - 1]
    values = [str(different[at]) for at in single]
    code = np.full(len(different), len(single), np.int64)
    code[single] = np.arange(len(single))
    if len(single) < len(different):
        values.append(f"{len(different) - len(single)} others")
    return _column(name, False, values, code[places] if len(given) else np.empty(0, np.int64))


def _importance(given: Sequence[int]) -> Column:
    levels = sorted(set(given), reverse=True)
    if len(levels) <= MOST_VALUES:
        code = {level: at for at, level in enumerate(levels)}
        return _column("importance", True, [str(level) for level in levels], np.array([code[v] for v in given], int))
    values = ["9-10", "7-8", "5-6", "3-4", "1-2"]
    return _column("importance", True, values, np.array([(10 - level) // 2 for level in given], int))


_PERIODS: tuple[tuple[str, float, Callable[[datetime], str]], ...] = (
    ("day", 8, lambda time: f"{time:%Y-%m-%d}"),
    ("month", 31 * 8, lambda time: f"{time:%Y-%m}"),
    ("quarter", 92 * 8, lambda time: f"{time:%Y} Q{(time.month + 2) // 3}"),
    ("year", 365 * 8, lambda time: f"{time:%Y}"),
)


def _ages(given: Sequence[datetime | None]) -> Column:
    """By day, month, quarter or year of creation, whichever gives at most eight values; the newest first."""
    known = [time for time in given if time is not None]
    if not known:
        return _column("age", True, ["unknown"] if given else [], np.zeros(len(given), int))
    span = (max(known) - min(known)).total_seconds() / 86400
    for _, most, words in _PERIODS:
        values = sorted({words(time) for time in known}, reverse=True)
        if span <= most and len(values) <= MOST_VALUES:
            break
    if len(values) > MOST_VALUES:
        kept = values[: MOST_VALUES - 1]
        values = [*kept, f"before {kept[-1]}"]
    code = {value: at for at, value in enumerate(values)}
    return _column("age", True, values, np.array([code.get(words(t), len(values) - 1) if t else 0 for t in given], int))


def check_column(name: object) -> str:
    """One of :data:`COLUMNS`, or :class:`InvalidValue`."""
    if name not in COLUMNS:
        raise InvalidValue(f"colour: expected one of {', '.join(COLUMNS)}, found {name!r}")
    return str(name)


__all__ = ["COLUMNS", "Column", "check_column", "cluster_column", "columns"]
