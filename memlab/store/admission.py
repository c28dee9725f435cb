"""Which files may be opened as a store: what is refused, and why, before anything of it is changed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from memlab.errors import InvalidValue, NotAStore, StoreDamaged, StoreError, StoreReadOnly, StoreTooNew
from memlab.store import schema

_MAGIC = b"SQLite format 3\x00"


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a file that is there or may be made; raises :class:`InvalidValue` or :class:`StoreError`."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or text == ":memory:" or "\x00" in text:
        raise InvalidValue(
            f"path: expected the path of a file, found {text!r}; "
            "for a store that goes away, use one in a temporary folder"
        )
    try:
        resolved = Path(text).expanduser().absolute()
        os.fsencode(resolved)
        if resolved.is_dir():
            raise NotAStore(
                f"{resolved}: expected a file, found a directory; add a file name, such as {resolved / 'memory.db'}"
            )
        if not resolved.parent.is_dir():
            raise NotAStore(f"{resolved}: the folder {resolved.parent} does not exist; make it first")
        if resolved.exists() and not resolved.is_file():
            raise NotAStore(f"{resolved}: expected a file, found a device, pipe or socket")
    except OSError as error:
        raise StoreError(f"{text}: cannot be used as a path: {error.strerror}") from error
    except (RuntimeError, ValueError) as error:  # no such user for ~user; characters that no file name can have
        raise InvalidValue(f"path: {text!r} cannot be used: {error}") from error
    return resolved


def check_header(path: Path, read_only: bool) -> None:
    """Refuse what is no SQLite file before SQLite touches it, and what cannot be written if it must be."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        if read_only:
            raise NotAStore(f"{path}: no such file; a store opened with read_only=True must exist") from None
        if not os.access(path.parent, os.W_OK):
            raise StoreReadOnly(f"{path}: the folder cannot be written, so no store can be made there") from None
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    if head and head != _MAGIC:
        raise NotAStore(f"{path}: expected a memlab store, found a file that is not SQLite; it was not touched")
    if not read_only and not os.access(path, os.W_OK):
        raise StoreReadOnly(
            f"{path}: the file cannot be written; open it with read_only=True, or change its permissions"
        )


def identity(connection: sqlite3.Connection) -> tuple[int, int, set[str]]:
    """Application id, user version and table names."""
    return (
        connection.execute("PRAGMA application_id").fetchone()[0],
        connection.execute("PRAGMA user_version").fetchone()[0],
        {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")},
    )


def refuse(path: Path, application: int, version: int, tables: set[str]) -> None:
    """Raise for what :func:`identity` tells of another program's database, or of a newer version's store."""
    if application == schema.APPLICATION_ID:
        if version > schema.SCHEMA_VERSION:
            raise StoreTooNew(
                f"{path}: expected a store of schema version {schema.SCHEMA_VERSION} or older, found "
                f"version {version}; upgrade memlab (pip install -U memlab). The file was not touched"
            )
    elif tables or application or version:
        hint = (
            "it has a table named memories: export it from the program that made it and use `memlab import`"
            if "memories" in tables
            else "give another path; the file was not touched"
        )
        raise NotAStore(f"{path}: expected a memlab store, found another SQLite database; {hint}")


def check_tables(path: Path, version: int, tables: set[str]) -> None:
    """Raise :class:`StoreDamaged` if a store lacks tables that its version has."""
    needed = {"memories", "memory_search", "memory_numbers"}
    if version >= schema.TERMS_SINCE:
        needed |= {"memory_terms", "memory_terms_pending", "memory_terms_vocabulary"}
    if version >= schema.SIZE_SINCE:
        needed |= {"bulk_write", "document_codes", "passage_codes"}
    if version >= schema.LOG_SINCE:
        needed.add("query_log")
    if version >= schema.PROJECTIONS_SINCE:
        needed |= {"projections", "projected_memories"}
    if not needed <= tables:
        raise StoreDamaged(f"{path}: the file says it is a memlab store but its tables are missing; restore a backup")


def refuse_foreign(path: Path) -> None:
    """Refuse what is no store of this version through a connection that cannot change it.

    Closing one that can would write the log of a killed program into its database. What is in doubt passes here.
    """
    try:
        if not path.stat().st_size:
            return
        wal = path.with_name(path.name + "-wal")
        has_log = wal.exists() and wal.stat().st_size > 0
        # Without a log the file is all there is, and reading it so leaves no other file beside it.
        mode = "?mode=ro" if has_log else "?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(path.as_uri() + mode, uri=True)) as connection:
            found = identity(connection)
    except (OSError, sqlite3.Error, UnicodeDecodeError):
        return
    refuse(path, *found)


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read: SQLite gives its WAL the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process was quicker
    except OSError as error:
        raise StoreError(f"{path}: cannot be made: {error.strerror}") from error
