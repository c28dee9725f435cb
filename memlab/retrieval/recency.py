"""Recency: a factor on the fused score that falls with age. Pure, no store in sight."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memlab.checks import number
from memlab.timestamps import age_days


def half_life_decay(age: float, half_life_days: float) -> float:
    """``0.5 ** (age / half_life_days)``: 1 at age 0 (days), a half after one half-life."""
    return float(0.5 ** (age / half_life_days))


@dataclass(frozen=True, repr=False)
class RecencyRanker:
    """Multiplies scores by ``1 + strength * 0.5 ** (age_days / half_life_days)``.

    Parameters
    ----------
    half_life_days : float
        After this many days half of the boost is left.
    strength : float
        The boost at age 0: 0.15 is 15 %.

    Raises
    ------
    InvalidValue
        If the half-life is not above 0, or the strength negative.
    """

    half_life_days: float = 14.0
    strength: float = 0.15

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_life_days", number(self.half_life_days, "half_life_days", above_zero=True))
        object.__setattr__(self, "strength", number(self.strength, "strength"))

    def factor(self, created_at: datetime, now: datetime) -> float:
        """The recency factor of a memory made at ``created_at``; a time after ``now`` counts as age 0."""
        return 1.0 + self.strength * half_life_decay(age_days(created_at, now), self.half_life_days)

    def __repr__(self) -> str:
        return f"RecencyRanker(half_life_days={self.half_life_days:g}, strength={self.strength:g})"
