"""Memories as items of an answer, and the budget that an answer has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memlab.errors import InvalidValue
from memlab.retrieval import Hit
from memlab.retrieval.render import age_words
from memlab.server.models import Contribution, HitItem, Item, StaleItem
from memlab.server.text import clean, cut, line
from memlab.store import Memory
from memlab.timestamps import age_days, format_time, parse_day_or_time

MOST_NAMES = 50  # tags or files of one memory in an answer
_ItemT = TypeVar("_ItemT", Item, HitItem, StaleItem)


def names(values: Iterable[str], most: int = 200) -> list[str]:
    """Names, each on one line and of a bounded length."""
    return [line(value, most) for value in list(values)[:MOST_NAMES]]


def fields_of(memory: Memory, now: datetime, most: int) -> dict[str, Any]:
    """What an :class:`Item` says of a memory; ``most`` characters of its content."""
    content, short = cut(memory.content, most)
    days = age_days(memory.created_at, now)
    return {
        "id": line(memory.memory_id),
        "origin": f"stored note; source: {line(memory.source or 'unknown', 80)}",
        "content": content,
        "project": line(memory.project) if memory.project else None,
        "category": line(memory.category),
        "subcategory": line(memory.subcategory) if memory.subcategory else None,
        "tags": names(memory.tags),
        "importance": memory.importance,
        "created_at": format_time(memory.created_at),
        "updated_at": format_time(memory.updated_at) if memory.updated_at else None,
        "trashed_at": format_time(memory.trashed_at) if memory.trashed_at else None,
        "age": age_words(days),
        "age_days": round(days, 3),
        "related_files": names(memory.related_files, 500) or None,
        "characters": len(clean(memory.content)) if short else None,
        "pending": memory.pending or None,
    }


def item(memory: Memory, now: datetime, most: int) -> Item:
    """A memory as an item."""
    return Item(**fields_of(memory, now, most))


def hit_item(hit: Hit, now: datetime, most: int) -> HitItem:
    """A hit as an item; its score is the sum of the contributions times the recency factor, to the last bit."""
    return HitItem(
        **fields_of(hit.memory, now, most),
        rank=hit.rank,
        score=hit.score,
        recency_factor=hit.place.recency_factor,
        contributions=[
            Contribution(channel=part.channel, rank=part.rank, raw_score=part.raw_score, contribution=part.contribution)
            for part in hit.place.contributions
        ],
    )


def fitting(items: Sequence[_ItemT], most: int) -> tuple[list[_ItemT], list[str]]:
    """Those that fit into ``most`` bytes of JSON, best first, and the ids of the others: an item fits whole or not.

    A large one makes room for those after it, so that one memory cannot keep all others out of every answer.
    """
    kept: list[_ItemT] = []
    dropped: list[str] = []
    for each in items:
        size = size_of(each)
        if size > most:
            dropped.append(each.id)
            continue
        most -= size
        kept.append(each)
    return kept, dropped


def size_of(each: Item | StaleItem) -> int:
    """Bytes of JSON."""
    return len(each.model_dump_json(exclude_none=True).encode())


def moment(text: str, name: str) -> datetime | None:
    """A time as a client writes it: a day alone means its beginning in UTC; ``None`` if none is given."""
    text = text.strip()
    if not text:
        return None
    try:
        return parse_day_or_time(text)
    except InvalidValue:
        raise InvalidValue(
            f"{name}: expected a day, for example 2026-03-04 (from its beginning in UTC), or an ISO 8601 time with a "
            f"zone, for example 2026-03-04T09:12:41Z; found {line(text, 60)!r}"
        ) from None


def bounded(value: int, name: str, least: int, most: int, notes: list[str]) -> int:
    """``value`` within bounds; a larger one is lowered with a note, a smaller one is refused."""
    if value < least:
        raise InvalidValue(f"{name}: expected a whole number from {least} to {most}, found {line(str(value), 40)}")
    if value > most:
        notes.append(f"{name}: {line(str(value), 40)} was lowered to {most}, the most there is")
        return most
    return value
