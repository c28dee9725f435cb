"""Times and rates: measured on a monotonic clock, told as median and 95th percentile with the number of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

_Item = TypeVar("_Item")
BLOCK = 10  # runs of one side before it is the other's turn
LEAST = 5


@dataclass(frozen=True)
class Spread:
    """What some runs came to.

    Attributes
    ----------
    p50, p95 : float
        Median and 95th percentile. Of rates and sizes too: the 95th percentile is then the better end.
    least : float
        The smallest: of times what other work on the machine disturbed least.
    runs : int
    """

    p50: float
    p95: float
    least: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value or more."""
        p50, p95 = np.percentile(np.asarray(values, np.float64), [50, 95]).tolist()
        return cls(p50, p95, float(min(values)), len(values))


_RATES = ("notes/s", "rows/s")


@dataclass(frozen=True)
class Figure:
    """One measured quantity.

    Attributes
    ----------
    key : str
        Stable, for scripts.
    label : str
        For people.
    unit : str
        ``ms``, ``MB``, ``notes/s`` or ``rows/s``; of the last two more is better, of the others less.
    value : Spread
    against : str
        What else was measured in turn with it; empty if nothing was.
    reference : Spread or None
        What that came to.
    kept : float or None
        Share of the right answer that was kept, 0 to 1.
    kept_of : str
        What the right answer is.
    """

    key: str
    label: str
    unit: str
    value: Spread
    against: str = ""
    reference: Spread | None = None
    kept: float | None = None
    kept_of: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better the median is than the reference's; below 1 it is worse."""
        if self.reference is None or not self.value.p50 or not self.reference.p50:
            return None
        times = self.reference.p50 / self.value.p50
        return 1 / times if self.unit in _RATES else times

    def as_dict(self) -> dict[str, Any]:
        """The figure as plain JSON values."""
        return {
            "key": self.key,
            "label": self.label,
            "unit": self.unit,
            **vars(self.value),
            "reference": {"name": self.against, **vars(self.reference)} if self.reference else None,
            "ratio": self.ratio,
            "kept": None if self.kept is None else {"share": self.kept, "of": self.kept_of},
        }


@dataclass
class Deal:
    """Hands out each item once, so that no cache knows it.

    Attributes
    ----------
    items : list
    """

    items: list[Any]
    _next: int = field(default=0, init=False)

    def take(self, count: int) -> list[Any]:
        """The next ones; fewer where there are no more."""
        found = self.items[self._next : self._next + count]
        self._next += len(found)
        return found

    @property
    def left(self) -> int:
        """How many have not been handed out."""
        return len(self.items) - self._next


def blocks(items: Sequence[_Item], seconds: float, size: int = BLOCK) -> Iterator[Sequence[_Item]]:
    """Blocks of items until the time is used up; at least :data:`LEAST` items, if there are so many."""
    ends = perf_counter() + seconds
    for start in range(0, len(items), size):
        if start >= LEAST and perf_counter() > ends:
            return
        yield items[start : start + size]


def milliseconds(work: Callable[..., object], *arguments: object, **named: object) -> float:
    """How long one call takes."""
    started = perf_counter()
    work(*arguments, **named)
    return 1000 * (perf_counter() - started)


def rate(work: Callable[..., object], items: Sequence[object], **named: object) -> float:
    """How many items a second one call with all of them comes to."""
    return 1000 * len(items) / milliseconds(work, items, **named)
