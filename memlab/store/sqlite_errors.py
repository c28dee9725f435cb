"""SQLite's errors in plain words, as memlab's own kinds."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from memlab.errors import StoreClosed, StoreDamaged, StoreError, StoreFull, StoreLocked, StoreReadOnly


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what SQLite says of the store at ``path`` as an error of memlab's that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        _raise_for(error, path)


def raise_locked(path: Path, error: BaseException | None = None) -> NoReturn:
    """Raise :class:`StoreLocked`."""
    raise StoreLocked(
        f"{path}: another writer held the store for longer than the busy timeout; try again, "
        "or open it with a larger busy_timeout"
    ) from error


def _raise_for(error: sqlite3.DatabaseError, path: Path) -> NoReturn:
    """Turn an error of SQLite into one of memlab's that says what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF
    undecodable = code is None and "Could not decode" in str(error)
    if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or undecodable:
        raise StoreDamaged(
            f"{path}: SQLite finds the file damaged ({error}); keep a copy of it and restore a backup"
        ) from error
    if kind == sqlite3.SQLITE_FULL:
        raise StoreFull(
            f"{path}: the disk is full; nothing of this write was kept. Free some space and try again"
        ) from error
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise_locked(path, error)
    if kind == sqlite3.SQLITE_READONLY:
        raise StoreReadOnly(f"{path}: the file cannot be written; open it with read_only=True") from error
    if kind == sqlite3.SQLITE_CANTOPEN:
        raise StoreError(
            f"{path}: cannot be opened ({error}); check that its folder exists and can be written"
        ) from error
    if kind == sqlite3.SQLITE_IOERR:
        raise StoreError(f"{path}: reading or writing failed ({error}); nothing of this write was kept") from error
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        raise StoreClosed(f"{path}: the store is closed; open it again with memlab.MemoryStore(path)") from error
    raise StoreError(f"{path}: SQLite: {error}") from error
