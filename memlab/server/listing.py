"""The tools that look at the store as a whole: memories, category and sync."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memlab.errors import InvalidValue, StoreReadOnly
from memlab.server.items import bounded, fitting, item, names, size_of
from memlab.server.models import (
    CategoryResult,
    Count,
    Item,
    MemoriesResult,
    Revision,
    StaleItem,
    Stats,
    SyncResult,
)
from memlab.server.service import Service
from memlab.server.text import cut, line
from memlab.server.tools import (
    BYTES,
    HIT_CHARACTERS,
    LEAST_BYTES,
    MOST_BYTES,
    MOST_NAME,
    Bytes,
    Category,
    Limit,
    Project,
    why_empty,
)
from memlab.store import Memory
from memlab.timestamps import format_time

WHOLE = 100_000  # characters of a memory that was asked for by its id
LIST_CHARACTERS = 400
MOST_LISTED = 200

Action = Literal["recent", "get", "by-project", "by-category", "trash", "stats", "history"]


def memories(
    service: Service,
    action: Annotated[
        Action,
        Field(
            description="recent: newest first. get: one memory whole. by-project, by-category: those of one, or counts "
            "of all. trash: what was forgotten. stats: totals. history: the former texts of one memory."
        ),
    ] = "recent",
    memory_id: Annotated[str, Field(description="The exact id, for get and history.")] = "",
    project: Project = "",
    category: Category = "",
    limit: Limit = 20,
    max_bytes: Bytes = BYTES,
) -> MemoriesResult:
    """List memories without a question: recent ones, one by its id, those of a project or category, counts, history."""
    notes: list[str] = []
    limit = bounded(limit, "limit", 1, MOST_LISTED, notes)
    budget = bounded(max_bytes, "max_bytes", LEAST_BYTES, MOST_BYTES, notes)
    resolved = service.reading(project)
    notes += [resolved.note] if resolved.note else []
    result = MemoriesResult(
        action=action,
        project=line(resolved.name or ""),
        items=[],
        counts=[],
        revisions=[],
        dropped=[],
        shortened=[],
        notes=notes,
    )
    if action in ("get", "history"):
        if not memory_id:
            raise InvalidValue(f"memories: action {action!r} needs memory_id; recall or action 'recent' gives ids")
        return _one(service, result, memory_id, history=action == "history", budget=budget)
    if action == "stats":
        return _stats(service, result, resolved.name)
    if action == "by-project" and resolved.name is None:
        return _counted(service.store.projects(**({"category": category} if category else {})), result)
    if action == "by-category" and not category:
        if resolved.name is None:
            return _counted(service.store.categories(), result)
        result.notes += why_empty(service, resolved.name)
        return _counted(service.store.categories(project=resolved.name), result)
    given = {name: value for name, value in (("project", resolved.name), ("category", category)) if value}
    found = service.store.find(given, trashed=action == "trash", limit=limit + 1)
    if len(found) > limit:
        result.notes.append(f"there are more than {limit}; raise limit to see them")
    if not found:
        result.notes += why_empty(service, resolved.name, category) if action != "trash" else []
    return _listed(service, result, found[:limit], LIST_CHARACTERS, budget)


def _listed(service: Service, result: MemoriesResult, found: list[Memory], most: int, budget: int) -> MemoriesResult:
    now = service.now()
    result.items, result.dropped = fitting([item(memory, now, most) for memory in found], budget)
    result.shortened = [each.id for each in result.items if each.characters is not None]
    if result.dropped:
        result.notes.append(f"{len(result.dropped)} more did not fit into max_bytes={budget}; raise it")
    return result


def _one(service: Service, result: MemoriesResult, memory_id: str, *, history: bool, budget: int) -> MemoriesResult:
    memory = service.store.get(memory_id)
    if not history:
        # What was asked for by name comes whole, as far as an answer may go.
        found = _whole(service, memory)
        result.items = [found]
        if found.characters is not None:
            result.shortened = [found.id]
            result.notes.append(
                f"this is the beginning of {found.characters:,} characters, the most that fits into an answer"
            )
        return result
    spent = 0
    states = service.store.history(memory_id)
    short: list[int] = []
    for state in reversed(states):
        content, is_short = cut(state.content, HIT_CHARACTERS)
        spent += len(content.encode())
        if spent > budget and result.revisions:
            result.notes.append(f"{len(states) - len(result.revisions)} older ones did not fit into max_bytes={budget}")
            break
        replaced = format_time(state.replaced_at) if state.replaced_at else None
        result.revisions.append(Revision(revision=state.revision, content=content, replaced_at=replaced))
        short += [state.revision] if is_short else []
    if short:
        result.notes.append(
            f"revisions cut to {HIT_CHARACTERS:,} characters: {', '.join(map(str, short))}; of the present text, "
            "action 'get' shows all"
        )
    return result


def _whole(service: Service, memory: Memory) -> Item:
    """A memory with as much of its content as an answer may have bytes: in some scripts a character has four."""
    now, most = service.now(), WHOLE
    while size_of(found := item(memory, now, most)) > MOST_BYTES and most > HIT_CHARACTERS:
        most = most * 3 // 4
    return found


def _stats(service: Service, result: MemoriesResult, project: str | None) -> MemoriesResult:
    found = service.store.stats()
    if project is not None:
        there = service.store.projects().get(project, 0)
        result.notes.append(f"the figures are those of the whole store; {there:,} memories are of {line(project)!r}")
        result.project = ""
    result.stats = Stats(
        memories=found.memories,
        trashed=found.trashed,
        pending=found.pending,
        projects=len(service.store.projects()),
        categories=len(service.store.categories()),
        encoder=line(found.encoder or ""),
        file_bytes=found.file_bytes,
    )
    return result


def _counted(tally: dict[str, int], result: MemoriesResult) -> MemoriesResult:
    result.counts = counts(tally)
    if len(tally) > MOST_LISTED:
        result.notes.append(f"these are the {MOST_LISTED} largest of {len(tally):,}")
    return result


def counts(tally: dict[str, int], most: int = MOST_LISTED) -> list[Count]:
    """Names with their numbers, most first."""
    return [Count(name=line(name), memories=number) for name, number in list(tally.items())[:most]]


def category(
    service: Service,
    action: Annotated[
        Literal["list", "create", "update", "delete"],
        Field(
            description="list: all with counts. update: give the memories of one another category (new_name). "
            "delete: the same, to 'note' unless new_name says another. create: needs nothing, see the answer."
        ),
    ] = "list",
    name: Annotated[str, Field(description="The category; for all actions but list.")] = "",
    new_name: Annotated[
        str, Field(description="For update and delete: the category that its memories get.", max_length=MOST_NAME)
    ] = "",
) -> CategoryResult:
    """List the categories, or rename, merge or dissolve one. No memory is lost: it only gets another category."""
    store = service.store
    there = store.categories()
    notes: list[str] = []
    moved = 0
    if action != "list":
        if not name:
            raise InvalidValue(
                f"category: action {action!r} needs name; there are: {', '.join(names(list(there)[:30]))}"
            )
        if action == "create":
            known = "it is there already" if name in there else "nothing was stored"
            notes.append(f"a category comes into being with the first memory that is remembered in it; {known}")
        else:
            target = new_name or ("note" if action == "delete" else "")
            if not target or target == name:
                raise InvalidValue(f"category: action {action!r} needs new_name, another category than {line(name)!r}")
            if service.read_only:
                raise StoreReadOnly("category: this server is read-only, so only action 'list' is possible")
            if name not in there:
                raise InvalidValue(
                    f"category: there is no {line(name)!r}; there are: {', '.join(names(list(there)[:30]))}"
                )
            moved = store.change_category(name, target)
            there = store.categories()
    return CategoryResult(action=action, categories=counts(there), moved=moved, notes=notes)


def sync(
    service: Service,
    project: Project = "",
    categories: Annotated[list[str], Field(description="Only these categories. A list, or 'a, b'.")] = [],  # noqa: B006
    limit: Limit = 20,
    max_bytes: Bytes = BYTES,
) -> SyncResult:
    """Find memories whose related files changed or vanished since they were stored, so that they may be out of date.

    For each: read the file, then change the memory with reflect, or forget it.
    """
    notes: list[str] = []
    limit = bounded(limit, "limit", 1, MOST_LISTED, notes)
    budget = bounded(max_bytes, "max_bytes", LEAST_BYTES, MOST_BYTES, notes)
    resolved = service.reading(project)
    notes += [resolved.note] if resolved.note else []
    given = {key: value for key, value in (("project", resolved.name), ("category", categories)) if value}
    files = service.files.fresh()
    stale: list[StaleItem] = []
    looked = seen = unknown = 0
    unreadable: dict[str, None] = {}
    for memory in service.store.find(given):
        if not (memory.related_files or memory.file_checksums):
            continue
        found = files.compare(memory)
        looked, seen, unknown = looked + 1, seen + found.files, unknown + found.unknown
        unreadable.update(dict.fromkeys(found.unreadable))
        if found.changed or found.vanished:
            stale.append(
                StaleItem(
                    id=line(memory.memory_id),
                    origin=f"stored note; source: {line(memory.source or 'unknown', 80)}",
                    content=cut(memory.content, LIST_CHARACTERS)[0],
                    project=line(memory.project) if memory.project else None,
                    category=line(memory.category),
                    changed=names(found.changed, 500),
                    vanished=names(found.vanished, 500),
                )
            )
    if unreadable:
        some = ", ".join(names(list(unreadable)[:10], 300))
        notes.append(f"cannot be read, so nobody can say whether they changed: {some}")
    if not looked:
        for name in categories or [""]:
            notes += [note for note in why_empty(service, resolved.name, name) if note not in notes]
    kept, dropped = fitting(stale[:limit], budget)
    dropped += [each.id for each in stale[limit:]]
    if dropped:
        notes.append(f"{len(dropped)} more are stale; deal with these first, or raise limit and max_bytes")
    return SyncResult(
        project=line(resolved.name or ""),
        memories=looked,
        files=seen,
        unknown=unknown + len(unreadable),
        stale=kept,
        dropped=dropped[:MOST_LISTED],
        notes=notes,
    )
