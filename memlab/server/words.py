"""Answers as compact text, for clients that show their model no structure. Says the same as the structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memlab.server.models import (
    CategoryResult,
    Count,
    HitItem,
    Item,
    MemoriesResult,
    RecallResult,
    ReflectResult,
    RememberResult,
    Result,
    SyncResult,
    TrashResult,
)
from memlab.server.text import IS_DATA, line, quoted

_QUERY = 200  # characters of a query that its answer repeats


def as_text(result: Result) -> str:
    """An answer in a few lines; notes come last."""
    lines = _WORDS[type(result)](result)
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _recall(result: RecallResult) -> list[str]:
    head = [f"{result.found} found in {result.searched:,} memories", result.mode]
    if result.project:
        head.append(f"project {result.project}")
    lines = [f"recall of {line(result.query, _QUERY)!r}: {' · '.join(head)}"]
    if result.mode_reason:
        lines.append(f"not hybrid: {result.mode_reason}")
    if result.hits:
        lines.append(IS_DATA)
    for hit in result.hits:
        lines += _item(hit, f"{hit.rank}. ", f" · score {hit.score:.4f}")
        lines.append(f"   {_contributions(hit)}")
    return [*lines, *_left_out(result.dropped, result.shortened)]


def _contributions(hit: HitItem) -> str:
    parts = [
        f"{part.channel} {f'#{part.rank}' if part.rank else 'beyond depth'} {part.contribution:+.4f} "
        f"({part.raw_score:.4g})"
        for part in hit.contributions
    ]
    if hit.recency_factor != 1.0:
        parts.append(f"recency x{hit.recency_factor:.3f}")
    return ", ".join(parts)


def _item(item: Item, lead: str = "- ", score: str = "") -> list[str]:
    about = [part for part in (item.project, item.category, item.subcategory) if part]
    facts = [
        " / ".join(about),
        f"importance {item.importance}",
        f"age {item.age} ({item.age_days:.1f} days, {item.created_at})",
    ]
    facts += [f"changed {item.updated_at}"] if item.updated_at else []
    facts += [" ".join(f"#{tag}" for tag in item.tags)] if item.tags else []
    facts += [f"in the trash since {item.trashed_at}"] if item.trashed_at else []
    facts += ["no vector yet"] if item.pending else []
    facts += [f"cut short, {item.characters:,} characters in all"] if item.characters else []
    facts += [f"files {', '.join(item.related_files)}"] if item.related_files else []
    return [f"{lead}{item.id}{score} · {' · '.join(facts)}", f"   {item.origin}:", quoted(item.content)]


def _left_out(dropped: Iterable[str], shortened: Iterable[str]) -> list[str]:
    lines = []
    if gone := list(dropped):
        lines.append(f"left out for size: {', '.join(gone)}")
    if short := list(shortened):
        lines.append(f"cut short: {', '.join(short)} (memories with action get shows all)")
    return lines


def _remember(result: RememberResult) -> list[str]:
    where = f" in project {result.project}" if result.project else " in no project"
    said = "remembered" if result.created else "known already"
    tags = f", tags {', '.join(result.tags)}" if result.tags else ""
    lines = [f"{said}: {result.id}{where}, category {result.category}, importance {result.importance}{tags}"]
    return [*lines, "no vector yet: only keywords find it for now"] if result.pending else lines


def _reflect(result: ReflectResult) -> list[str]:
    return [f"changed; revision {result.revision} of the text. {IS_DATA}", *_item(result.memory)]


def _trash(result: TrashResult) -> list[str]:
    now = "in the trash; restore brings it back" if result.in_trash else "back from the trash, recall finds it"
    return [f"{result.id} is {now}" if result.changed else f"{result.id} was so already: nothing changed"]


def _memories(result: MemoriesResult) -> list[str]:
    head = f"{result.action}{f', project {result.project}' if result.project else ''}"
    if result.stats is not None:
        stats = result.stats
        return [
            f"{stats.memories:,} memories in {stats.projects} projects and {stats.categories} categories, "
            f"{stats.trashed:,} in the trash, {stats.pending:,} without a vector, {stats.file_bytes:,} bytes; "
            f"encoder: {stats.encoder or 'none yet'}"
        ]
    lines = [f"{head}: {len(result.items) or len(result.counts) or len(result.revisions)}"]
    if result.items or result.revisions:
        lines.append(IS_DATA)
    for item in result.items:
        lines += _item(item)
    for state in result.revisions:
        lines.append(f"- revision {state.revision}, {f'until {state.replaced_at}' if state.replaced_at else 'now'}")
        lines.append(quoted(state.content))
    short = () if result.action == "get" else result.shortened  # where its note says it
    return [*lines, *_counted(result.counts), *_left_out(result.dropped, short)]


def _counted(counts: Iterable[Count]) -> list[str]:
    return [f"- {count.name}: {count.memories:,}" for count in counts]


def _category(result: CategoryResult) -> list[str]:
    moved = f", {result.moved:,} memories moved" if result.moved else ""
    return [f"{result.action}: {len(result.categories)} categories{moved}", *_counted(result.categories)]


def _sync(result: SyncResult) -> list[str]:
    lines = [
        f"{len(result.stale) + len(result.dropped)} of {result.memories:,} memories with files are stale "
        f"({result.files:,} files, {result.unknown:,} of unknown state)"
    ]
    if result.stale:
        lines.append(IS_DATA)
    for each in result.stale:
        states = [f"{path} changed" for path in each.changed] + [f"{path} vanished" for path in each.vanished]
        about = " / ".join(part for part in (each.project, each.category) if part)
        lines += [f"- {each.id} · {about} · {', '.join(states)}", f"   {each.origin}:", quoted(each.content)]
    return [*lines, *_left_out(result.dropped, ())]


_WORDS: dict[type[Result], Callable[[Any], list[str]]] = {
    RecallResult: _recall,
    RememberResult: _remember,
    ReflectResult: _reflect,
    TrashResult: _trash,
    MemoriesResult: _memories,
    CategoryResult: _category,
    SyncResult: _sync,
}
