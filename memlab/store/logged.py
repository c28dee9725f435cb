"""One recall as the query log keeps it, as a row and as an object, and how much of the log stays."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memlab.checks import number, whole
from memlab.store.filters import Filters
from memlab.timestamps import format_time, from_stored, parse_time

KEEP_DAYS, KEEP = 90.0, 10_000
COLUMNS = (
    "id, recorded_at, source, query, filters, hit_limit, recency_boost, now, mode, note, encoder, settings, "
    "milliseconds, hits"
)


@dataclass(frozen=True)
class LoggedQuery:
    """One recall as it was recorded.

    Attributes
    ----------
    query : str
        As it was asked; NUL and lone surrogates, which no recall reads, are blanks.
    filters : Filters
    limit : int
    recency_boost : bool
        Whether the boost was on.
    now : datetime
        The moment that ages were counted from.
    mode, note : str
        As in the trace.
    encoder : str or None
        Whose query vector it was.
    settings : mapping of str to Any
        The retriever as JSON values; ``memlab.replay`` and ``memlab.reopen`` make one of them again.
    milliseconds : float
        What the recall took.
    hits : tuple of (str, float)
        Memory ids with their scores, best first.
    id : int
        Number in the log; 0 for one that is not in it yet.
    recorded_at : datetime or None
    source : str
        Who asked.
    """

    query: str
    filters: Filters
    limit: int
    recency_boost: bool
    now: datetime
    mode: str
    note: str
    encoder: str | None
    settings: Mapping[str, Any]
    milliseconds: float
    hits: tuple[tuple[str, float], ...]
    id: int = 0
    recorded_at: datetime | None = None
    source: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The memory ids of the hits, best first."""
        return tuple(memory_id for memory_id, _ in self.hits)


@dataclass(frozen=True)
class Retention:
    """How much of the log stays: both bounds hold.

    Parameters
    ----------
    days : float or None
        Age; ``None`` for no bound.
    count : int or None
    """

    days: float | None = KEEP_DAYS
    count: int | None = KEEP

    def __post_init__(self) -> None:
        if self.days is not None:
            object.__setattr__(self, "days", number(self.days, "keep_days"))
        if self.count is not None:
            object.__setattr__(self, "count", whole(self.count, "keep", least=0))

    def apply(self, connection: sqlite3.Connection, now: datetime) -> int:
        """Delete what is older or more; how many were."""
        gone = 0
        if self.days is not None:
            with contextlib.suppress(OverflowError):  # longer than there have been years
                bound = format_time(now - timedelta(days=self.days))
                gone += connection.execute("DELETE FROM query_log WHERE recorded_at < ?", (bound,)).rowcount
        if self.count is not None:
            newest = "(SELECT id FROM query_log ORDER BY id DESC LIMIT 1 OFFSET ?)"
            gone += connection.execute(f"DELETE FROM query_log WHERE id <= {newest}", (self.count,)).rowcount
        return gone


def row_of(entry: LoggedQuery, recorded_at: datetime, source: str) -> tuple[Any, ...]:
    """The values of :data:`COLUMNS` for a recall that was recorded now, by this one."""
    filters = {
        name: format_time(value) if isinstance(value, datetime) else value
        for name, value in entry.filters.given().items()
    }
    return (
        None,
        format_time(recorded_at),
        _storable(source),
        _storable(entry.query),
        _json(filters),
        entry.limit,
        int(entry.recency_boost),
        format_time(entry.now),
        entry.mode,
        _storable(entry.note),
        entry.encoder,
        _json(entry.settings),
        entry.milliseconds,
        _json(entry.hits),
    )


def entry_of(row: tuple[Any, ...]) -> LoggedQuery:
    """A recall from the values of :data:`COLUMNS`."""
    at, recorded_at, source, query, filters, limit, boost, now, mode, note, encoder, settings, took, hits = row
    return LoggedQuery(
        query=query,
        filters=Filters.of(json.loads(filters)),
        limit=limit,
        recency_boost=bool(boost),
        now=parse_time(now, "now"),
        mode=mode,
        note=note,
        encoder=encoder,
        settings=json.loads(settings),
        milliseconds=took,
        hits=tuple((memory_id, score) for memory_id, score in json.loads(hits)),
        id=at,
        recorded_at=from_stored(recorded_at),
        source=source,
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))  # beyond ASCII as escapes, lone surrogates too


def _storable(text: str) -> str:
    """``text`` with a blank for each character that SQLite would not give back: what recall makes of them too."""
    return "".join(" " if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in text)
