"""The tools that remember and recall: functions on a :class:`Service` that give back models. Nothing of MCP is in here.

A parameter's annotation is its entry in the tool's schema: plain scalars and lists of strings, ``""`` for what is not
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from memlab.errors import InvalidValue, UnknownMemory
from memlab.retrieval import HybridRetriever
from memlab.server.items import MOST_NAMES, bounded, fitting, hit_item, item, moment, names
from memlab.server.models import RecallResult, ReflectResult, RememberResult, TrashResult
from memlab.server.service import Service
from memlab.server.text import line
from memlab.store import Memory
from memlab.store.querylog import asked_by

MOST_CONTENT = 200_000  # characters of a new memory
MOST_QUERY = 10_000  # characters
MOST_NAME = 200  # characters of a name that is stored: as many as an answer shows
HIT_CHARACTERS = 4_000  # of a hit's content
MOST_HITS = 50
LEAST_BYTES, MOST_BYTES, BYTES = 500, 200_000, 16_000

Query = Annotated[str, Field(description="What you want to know, in plain words.")]
Project = Annotated[
    str, Field(description="Only this project; 'current' is the server's own. Empty: all projects.", max_length=500)
]
Category = Annotated[str, Field(description="Only this category. Empty: all.")]
Tags = Annotated[list[str], Field(description="Only with these tags, see tag_match. A list, or 'a, b'.")]
Limit = Annotated[int, Field(description="Most memories in the answer.", ge=0)]
Bytes = Annotated[
    int, Field(description="Budget of the answer: whole memories that do not fit are left out and named.", ge=0)
]
MemoryId = Annotated[str, Field(description="The exact id, such as recall gives it.")]


def recall(
    service: Service,
    query: Query,
    project: Project = "",
    category: Category = "",
    tags: Tags = [],  # noqa: B006 - the schema shows it as the default; never changed
    tag_match: Annotated[Literal["any", "all"], Field(description="One of the tags, or all of them.")] = "any",
    min_importance: Annotated[int, Field(description="At least this important, 1 to 10.", ge=0)] = 1,
    after: Annotated[str, Field(description="Made at this time or later: 2026-07-01, or ISO 8601 with a zone.")] = "",
    before: Annotated[str, Field(description="Made before this time.")] = "",
    recency_boost: Annotated[bool, Field(description="Prefer newer memories.")] = False,
    limit: Limit = 5,
    max_bytes: Bytes = BYTES,
) -> RecallResult:
    """Find what is remembered about something, best first.

    Use it before you answer a question or begin a task that earlier decisions, preferences or facts may bear on.
    Hybrid: by keywords and by meaning. Each hit says which channels found it and what they added to its score.
    """
    notes: list[str] = []
    if not query.strip():
        raise InvalidValue("query is blank; say in plain words what you want to know, or list memories with memories")
    if len(query) > MOST_QUERY:
        notes.append(f"query: only the first {MOST_QUERY:,} of {len(query):,} characters were used")
        query = query[:MOST_QUERY]
    limit = bounded(limit, "limit", 1, MOST_HITS, notes)
    budget = bounded(max_bytes, "max_bytes", LEAST_BYTES, MOST_BYTES, notes)
    resolved = service.reading(project)
    filters: dict[str, Any] = {
        "project": resolved.name,
        "category": category or None,
        "tags": tags or None,
        "created_after": (since := moment(after, "after")),
        "created_before": (until := moment(before, "before")),
        # 0 and 1 both mean any.
        "min_importance": min_importance if min_importance > 1 else None,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    if tags:
        given["tag_match"] = tag_match
    retriever, loading = _retriever(service)
    with asked_by(f"mcp {line(service.client(), 80)}".rstrip()):
        found = retriever.recall(query, limit=limit, recency_boost=recency_boost, now=service.now(), **given)
    items = [hit_item(hit, found.trace.now, HIT_CHARACTERS) for hit in found]
    hits, dropped = fitting(items, budget)
    notes += [note for note in (resolved.note,) if note]
    if dropped:
        notes.append(f"{len(dropped)} more did not fit into max_bytes={budget}; raise it, or get them by id")
    if not found:
        notes += why_empty(service, resolved.name, category, tags)
        if since is not None and until is not None and since >= until:
            notes.append("nothing can be made after 'after' and before 'before' as they are given: swap them")
        if query.strip() in service.store:
            notes.append("the query is the id of a memory: memories with action 'get' shows it")
    result = RecallResult(
        query=line(query, 500),
        project=line(resolved.name or ""),
        mode=found.trace.mode,
        mode_reason=loading or ("" if found.trace.mode == "hybrid" else line(found.trace.note, 500)),
        searched=found.trace.searched,
        found=len(found),
        hits=hits,
        dropped=dropped,
        shortened=[hit.id for hit in hits if hit.characters is not None],
        notes=notes,
    )
    result._recall = found
    return result


def _retriever(service: Service) -> tuple[HybridRetriever, str]:
    """The retriever to use now, and why it is a lesser one."""
    warmup = service.warmup
    if warmup is None or warmup.wait(service.wait):
        return service.retriever, ""
    keyword = [channel.name for channel in service.retriever.channels if not channel.needs_vector]
    if not keyword:
        warmup.wait(60.0)  # there is nothing else to answer with
        return service.retriever, ""
    reason = f"the encoder is still loading (since {warmup.seconds:.1f} s); ask again in a moment for a hybrid recall"
    return service.retriever.only(*keyword), reason


def why_empty(service: Service, project: str | None, category: str = "", tags: Sequence[str] = ()) -> list[str]:
    """Names among the filters that no memory has, with those there are."""
    said = []
    for what, wanted, known in (
        ("project", [project] if project else [], service.store.projects),
        ("category", [category] if category else [], service.store.categories),
        ("tag", tags, service.store.tags),
    ):
        for name in wanted:
            if name not in (there := known()):
                some = ", ".join(names(list(there)[:12]))
                said.append(f"no memory has the {what} {line(name)!r}; there are: {some or 'none'}")
    return said


def remember(
    service: Service,
    content: Annotated[
        str,
        Field(description="One fact, decision or preference, understandable by itself. Plain text or Markdown."),
    ],
    category: Annotated[
        str,
        Field(description="For example decision, fact, preference, issue. Empty: note.", max_length=MOST_NAME),
    ] = "",
    project: Annotated[
        str, Field(description="Empty: the server's own project. 'none': no project.", max_length=500)
    ] = "",
    tags: Annotated[list[str], Field(description="Short words to filter by. A list, or 'a, b'.")] = [],  # noqa: B006
    importance: Annotated[int, Field(description="1 to 10.", ge=0, le=10)] = 5,
    subcategory: Annotated[str, Field(description="A finer category.", max_length=MOST_NAME)] = "",
    source: Annotated[
        str,
        Field(
            description="Where it comes from: user-told, self-discovered, a document. Empty: your client's name.",
            max_length=MOST_NAME,
        ),
    ] = "",
    related_files: Annotated[
        list[str], Field(description="Files it is about; sync tells later which of them changed. A list, or 'a, b'.")
    ] = [],  # noqa: B006
    idempotency_key: Annotated[
        str,
        Field(
            description="The same key with the same content stores it once, however often it is said.",
            max_length=MOST_NAME,
        ),
    ] = "",
) -> RememberResult:
    """Store one memory for later conversations.

    Use it when the user states a preference or a decision, when you find out something that took effort, or when you
    are asked to. Recall first: a memory that has become wrong is better changed with reflect than contradicted.
    """
    _check_lengths(content, tags)
    resolved = service.writing(project)
    looked = service.files.fresh().look(related_files)
    with service.writable() as store:
        memory = store.remember(
            content,
            project=resolved.name,
            category=category or None,
            tags=tags or None,
            importance=importance or None,
            subcategory=subcategory or None,
            source=source or service.client() or None,
            related_files=looked.paths or None,
            file_checksums=looked.checksums or None,
            idempotency_key=idempotency_key or None,
        )
    notes = [resolved.note] if resolved.note else []
    if looked.missing:
        notes.append(f"no checksum, so sync cannot follow them: {', '.join(names(looked.missing, 300))}")
    if memory.duplicate_of:
        notes.append(f"{', '.join(names(memory.duplicate_of))} has the same content; forget one of them if that is one")
    if not memory.created:
        notes.append("the idempotency key was known: nothing was added")
    return RememberResult(
        id=line(memory.memory_id),
        created=memory.created,
        project=line(memory.project or ""),
        category=line(memory.category),
        tags=names(memory.tags),
        importance=memory.importance,
        pending=memory.pending,
        duplicate_of=names(memory.duplicate_of),
        related_files=names(memory.related_files, 500),
        notes=notes,
    )


def reflect(
    service: Service,
    memory_id: MemoryId,
    content: Annotated[str, Field(description="The new text. Empty: as it was.")] = "",
    importance: Annotated[int, Field(description="1 to 10. 0: as it was.", ge=0, le=10)] = 0,
    tags: Annotated[list[str], Field(description="All tags anew. Empty: as they were.")] = [],  # noqa: B006
    add_tags: Annotated[list[str], Field(description="Tags to add to those there are.")] = [],  # noqa: B006
    category: Annotated[str, Field(description="Empty: as it was.", max_length=MOST_NAME)] = "",
    subcategory: Annotated[str, Field(description="Empty: as it was.", max_length=MOST_NAME)] = "",
    project: Annotated[str, Field(description="Empty: as it was. 'none': no project.", max_length=500)] = "",
    source: Annotated[str, Field(description="Empty: as it was.", max_length=MOST_NAME)] = "",
    related_files: Annotated[
        list[str], Field(description="All related files anew; their checksums are taken now. Empty: as they were.")
    ] = [],  # noqa: B006
) -> ReflectResult:
    """Change a memory: its text, importance, tags, category, project or files. What is not given stays as it was.

    The former text is kept and shown by memories(action='history'). After you have looked at a memory that sync calls
    stale, give its related_files again (or its new text) and it counts as up to date.
    """
    _check_lengths(content, [*tags, *add_tags])
    before = live(service, memory_id)
    changes: dict[str, Any] = {
        "content": content,
        "importance": importance,
        "tags": tags,
        "add_tags": add_tags,  # to those there are when it is stored: another client may add some at the same time
        "category": category,
        "subcategory": subcategory,
        "source": source,
    }
    changes = {name: value for name, value in changes.items() if value}
    notes = []
    if project:
        resolved = service.writing(project)
        changes["project"] = resolved.name
        notes += [resolved.note] if resolved.note else []
    # New text was written with the files as they are now.
    if related_files or (content and before.related_files):
        looked = service.files.fresh().look(related_files or before.related_files)
        changes |= {"related_files": looked.paths, "file_checksums": looked.checksums}
        if related_files and looked.missing:
            notes.append(f"no checksum, so sync cannot follow them: {', '.join(names(looked.missing, 300))}")
    if not changes:
        raise InvalidValue("reflect: nothing to change was given; give content, importance, tags, category or project")
    with service.writable() as store:
        memory = store.update(memory_id, **changes)
    revision = len(service.store.history(memory_id))
    return ReflectResult(memory=item(memory, service.now(), HIT_CHARACTERS), revision=revision, notes=notes)


def forget(service: Service, memory_id: MemoryId) -> TrashResult:
    """Move one memory to the trash: no recall finds it any more; restore brings it back.

    Takes one exact id, never a description: recall first, and be sure that it is the one.
    """
    before = service.store.get(memory_id)
    memory = service.store.forget(memory_id)
    return TrashResult(id=line(memory.memory_id), in_trash=True, changed=before.trashed_at is None)


def restore(service: Service, memory_id: MemoryId) -> TrashResult:
    """Bring one memory back from the trash, by its exact id; memories(action='trash') lists what is in it."""
    before = service.store.get(memory_id)
    memory = service.store.restore(memory_id)
    return TrashResult(id=line(memory.memory_id), in_trash=False, changed=before.trashed_at is not None)


def live(service: Service, memory_id: str) -> Memory:
    """A memory that is not in the trash."""
    memory = service.store.get(memory_id)
    if memory.trashed_at is not None:
        raise UnknownMemory(f"memory {line(memory_id)} is in the trash; restore it first")
    return memory


def _check_lengths(content: str, tags: Sequence[str]) -> None:
    longest = max(map(len, tags), default=0)
    if len(tags) > MOST_NAMES or longest > MOST_NAME:
        raise InvalidValue(
            f"tags: expected at most {MOST_NAMES} of at most {MOST_NAME} characters, found {len(tags)}, the longest of "
            f"{longest}"
        )
    if len(content) > MOST_CONTENT:
        raise InvalidValue(
            f"content: expected at most {MOST_CONTENT:,} characters, found {len(content):,}; "
            "a memory is one fact, so store the parts that matter, each by itself"
        )
