"""What a memory is in Python, and the checks that stand before the store."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from memlab.checks import whole
from memlab.errors import ContentError, InvalidValue
from memlab.timestamps import format_time, from_stored, parse_time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u to misread
_PAIRS = [one + other for one in _ALPHABET for other in _ALPHABET]
DEFAULT_CATEGORY = "note"
DEFAULT_IMPORTANCE = 5

# The columns of `memories` that a Memory is read from, in the order of Memory.from_row.
COLUMNS = (
    "id",
    "content",
    "category",
    "project",
    "tags",
    "importance",
    "created_at",
    "accessed_at",
    "access_count",
    "subcategory",
    "source",
    "related_files",
    "file_checksums",
    "trashed_at",
    "updated_at",
)
# The same by the names of a Memory's fields.
FIELDS = ("memory_id", *COLUMNS[1:])
SELECT_COLUMNS = ", ".join(f"m.{name}" for name in COLUMNS)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One stored note: content and metadata.

    Attributes
    ----------
    memory_id, content, category : str
    project, subcategory, source : str or None
    tags, related_files : tuple of str
    importance : int
        1 to 10.
    created_at : datetime
        In UTC; so are the other times.
    accessed_at, trashed_at, updated_at : datetime or None
    access_count : int
        How often :meth:`MemoryStore.touch` was called for it.
    file_checksums : dict of str to str
        Checksums of the related files when they were last looked at.
    pending : bool
        Whether it still waits for a vector; until then only keywords find it.
    duplicate_of : tuple of str
        Ids of live memories that had the very same content when this one was remembered.
    created : bool
        False where ``remember`` found it in the store already, by its idempotency key or its id.
    """

    memory_id: str
    content: str
    category: str = DEFAULT_CATEGORY
    project: str | None = None
    tags: tuple[str, ...] = ()
    importance: int = DEFAULT_IMPORTANCE
    created_at: datetime
    accessed_at: datetime | None = None
    access_count: int = 0
    subcategory: str | None = None
    source: str | None = None
    related_files: tuple[str, ...] = ()
    file_checksums: Mapping[str, str] = field(default_factory=dict)
    trashed_at: datetime | None = None
    updated_at: datetime | None = None
    pending: bool = False
    duplicate_of: tuple[str, ...] = ()
    created: bool = True

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Memory:
        """Build one from a row of ``SELECT_COLUMNS, m.vector IS NULL``."""
        (memory_id, content, category, project, tags, importance, created, accessed, count, sub, source, files) = row[
            :12
        ]
        checksums, trashed, updated, pending = row[12:16]
        return cls(
            memory_id=memory_id,
            content=content,
            category=category,
            project=project,
            tags=_strings(tags),
            importance=importance,
            created_at=from_stored(created),
            accessed_at=from_stored(accessed),
            access_count=count,
            subcategory=sub,
            source=source,
            related_files=_strings(files),
            file_checksums={} if checksums == "{}" else json.loads(checksums),
            trashed_at=from_stored(trashed),
            updated_at=from_stored(updated),
            pending=bool(pending),
        )

    def as_dict(self) -> dict[str, Any]:
        """The memory as plain JSON values, times as the store keeps them."""
        values: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, datetime):
                value = format_time(value)
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            values[item.name] = value
        return values

    def __repr__(self) -> str:
        notes = [self.project or "no project", self.category, f"importance {self.importance}"]
        notes.append(f"{self.created_at:%Y-%m-%d}")
        if self.tags:
            notes.append(" ".join(f"#{tag}" for tag in self.tags))
        if self.trashed_at is not None:
            notes.append("in the trash")
        if self.pending:
            notes.append("no vector yet")
        if self.duplicate_of:
            notes.append("same content as " + ", ".join(self.duplicate_of))
        return f"<Memory {self.memory_id}: {shorten(self.content, 72)!r} ({', '.join(notes)})>"


def _strings(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(json.loads(stored))


class Draft(NamedTuple):
    """A checked memory on its way into the store: every value in the form that the column holds."""

    memory_id: str
    content: str
    columns: tuple[Any, ...]  # in the order of DRAFT_COLUMNS
    key: str | None

    @property
    def live(self) -> bool:
        """Whether it does not go straight to the trash."""
        return self.columns[_TRASHED_AT] is None


DRAFT_COLUMNS = (
    "category",
    "project",
    "tags",
    "importance",
    "created_at",
    "subcategory",
    "source",
    "related_files",
    "file_checksums",
    "accessed_at",
    "access_count",
    "trashed_at",
    "updated_at",
)
_TRASHED_AT = DRAFT_COLUMNS.index("trashed_at")


def draft(
    content: str,
    *,
    created_at: datetime | str,
    memory_id: str | None = None,
    category: str | None = None,
    project: str | None = None,
    tags: Iterable[str] | str | None = None,
    importance: int | None = None,
    subcategory: str | None = None,
    source: str | None = None,
    related_files: Iterable[str] | None = None,
    file_checksums: Mapping[str, str] | None = None,
    key: str | None = None,
    accessed_at: datetime | str | None = None,
    access_count: int = 0,
    trashed_at: datetime | str | None = None,
    updated_at: datetime | str | None = None,
) -> Draft:
    """Check what a caller gave for a new memory; raises :class:`InvalidValue` before anything is written."""
    return Draft(
        memory_id=new_id() if memory_id is None else check_text(memory_id, "memory_id"),
        content=check_content(content),
        columns=(
            DEFAULT_CATEGORY if category is None else check_text(category, "category"),
            None if project is None else optional_text(project, "project"),
            "[]" if tags is None else _json(check_strings(tags, "tags")),
            DEFAULT_IMPORTANCE if importance is None else check_importance(importance),
            _time(created_at, "created_at"),
            None if subcategory is None else optional_text(subcategory, "subcategory"),
            None if source is None else optional_text(source, "source"),
            "[]" if related_files is None else _json(check_strings(related_files, "related_files")),
            "{}" if file_checksums is None else _json(check_checksums(file_checksums)),
            None if accessed_at is None else _time(accessed_at, "accessed_at"),
            0 if access_count == 0 and type(access_count) is int else whole(access_count, "access_count", least=0),
            None if trashed_at is None else _time(trashed_at, "trashed_at"),
            None if updated_at is None else _time(updated_at, "updated_at"),
        ),
        key=None if key is None else optional_text(key, "key"),
    )


class _Keep:
    def __repr__(self) -> str:
        return "unchanged"


KEEP: Final[Any] = _Keep()
"""An argument of an update that was not given; ``None`` means "clear"."""


def changed_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to set for an update, checked and in the form that they hold; what is :data:`KEEP` is left out."""
    checks: dict[str, Callable[[Any], Any]] = {
        "content": check_content,
        "project": lambda value: optional_text(value, "project"),
        "category": lambda value: check_text(value, "category"),
        "tags": lambda value: _json(check_strings(value, "tags")),
        "add_tags": lambda value: _json(check_strings(value, "add_tags")),
        "importance": check_importance,
        "subcategory": lambda value: optional_text(value, "subcategory"),
        "source": lambda value: optional_text(value, "source"),
        "related_files": lambda value: _json(check_strings(value, "related_files")),
        "file_checksums": lambda value: _json(check_checksums(value)),
    }
    columns = {name: check(values[name]) for name, check in checks.items() if values[name] is not KEEP}
    if not columns:
        raise InvalidValue(f"update: nothing to change was given; expected any of {', '.join(checks)}")
    return columns


_json = json.JSONEncoder(ensure_ascii=False).encode


def _time(value: datetime | str, name: str) -> str:
    # Many memories of one import have the same time; equal texts are, equal datetimes need not be the same moment.
    if type(value) is str:
        return _time_of_text(value, name)
    if type(value) is datetime and value.tzinfo is UTC:
        return format_time(value)
    return format_time(parse_time(value, name))


@lru_cache(maxsize=4096)
def _time_of_text(text: str, name: str) -> str:
    return format_time(parse_time(text, name))


def new_id() -> str:
    """A new memory id: ``m-`` and 50 random bits, short enough to type."""
    bits = secrets.randbits(50)
    return "m-" + "".join([_PAIRS[bits >> shift & 1023] for shift in (40, 30, 20, 10, 0)])


def check_content(content: object) -> str:
    """Content as given, or :class:`ContentError` if it is not storable text."""
    if not isinstance(content, str):
        raise ContentError(f"content: expected text, found {type(content).__name__}")
    if not content or content.isspace():
        raise ContentError("content: expected some text, found " + ("nothing" if not content else "only white space"))
    return _storable(content, "content")


def check_text(value: object, name: str) -> str:
    """A non-blank string without surrounding white space."""
    if not isinstance(value, str):
        raise InvalidValue(f"{name}: expected text, found {type(value).__name__} {value!r}")
    stripped = value.strip()
    if not stripped:
        raise InvalidValue(f"{name}: expected some text, found {value!r}")
    if "\x00" in stripped:
        raise InvalidValue(f"{name}: expected text without NUL characters, found {value!r}")
    return _storable(stripped, name)


def optional_text(value: object, name: str) -> str | None:
    """``None`` and blank text mean "not given"."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return check_text(value, name)


def _storable(text: str, name: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ContentError(
            f"{name}: the character at offset {error.start} is half of a surrogate pair and cannot be stored as UTF-8; "
            "decode the text properly, or replace it with text.encode('utf-8', 'replace').decode()"
        ) from None
    return text


def check_ids(memory_ids: object) -> list[str]:
    """Ids from one id or several, each once; whether they exist is for the caller to see."""
    if isinstance(memory_ids, str):
        return [memory_ids]
    if not isinstance(memory_ids, Iterable):
        raise InvalidValue(f"memory_ids: expected an id or several, found {memory_ids!r}")
    try:
        return list(dict.fromkeys(memory_ids))
    except TypeError:
        raise InvalidValue(f"memory_ids: expected an id or several, found {memory_ids!r}") from None


def is_storable(value: object) -> bool:
    """Whether SQLite can hold (and so look up) the value as text."""
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_importance(value: object) -> int:
    """A whole number from 1 to 10."""
    if type(value) is int and 1 <= value <= 10:
        return value
    return whole(value, "importance", least=1, most=10)


def check_strings(values: object, name: str) -> list[str]:
    """Strings without repetition, in the order given; a single string is one of them."""
    if values is None:
        return []
    if isinstance(values, str):
        values = [values]
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise InvalidValue(f"{name}: expected strings, for example ['retry', 'http'], found {values!r}")
    return list(dict.fromkeys(check_text(value, f"{name}: each") for value in values))


def check_checksums(values: object) -> dict[str, str]:
    """A mapping of path to checksum."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InvalidValue(f"file_checksums: expected a mapping of path to checksum, found {values!r}")
    return {check_text(k, "file_checksums: path"): check_text(v, "file_checksums: checksum") for k, v in values.items()}


def shorten(text: str, width: int) -> str:
    """``text`` on one line, at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
