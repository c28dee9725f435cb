"""A store's open file: one connection a thread, and transactions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

from memlab.errors import (
    NotAStore,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)
from memlab.store import codetable, schema, termindex
from memlab.store.admission import (
    check_header,
    check_tables,
    checked_path,
    create_private,
    identity,
    refuse,
    refuse_foreign,
)
from memlab.store.kept import Kept
from memlab.store.sqlite_errors import raise_locked, translated
from memlab.store.turns import Turns

BEFORE_COMMIT: ContextVar[Callable[[], None] | None] = ContextVar("BEFORE_COMMIT", default=None)
"""Called before every commit of :meth:`StoreFile.write` in the context that sets it; what it raises undoes the
transaction. A server uses it to store nothing for a caller who has gone."""
_READERS_PATIENCE = 0.25  # seconds that a reader waits for a writer before it goes without the term index

_BULK_CACHE = -65536  # as SQLite wants it: KiB, negative


class _Connection(sqlite3.Connection):
    """A connection that can be held weakly, so that those of ended threads are closed and forgotten."""

    thread = 0  # the one it belongs to
    uses = 0  # transactions that are open on it now

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.passing: dict[str, Any] = {}  # what memlab.store.reading found to pass filters...
        self.passing_seen: tuple[int, int] = (-1, -1)  # ... when the data was of this version
        self.frequencies: Kept[str, int] = Kept()  # in how many memories common tokens stand
        self.facts: Kept[int, tuple[str, str, int]] = Kept(20_000)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class _Forked(Protocol):
    def _after_fork(self) -> None: ...


_FORKED: weakref.WeakSet[_Forked] = weakref.WeakSet()
_INHERITED: list[_Connection] = []  # in use when the process forked; they must neither be used nor closed here


class StoreFile:
    """The file of a store and the connections to it.

    Parameters
    ----------
    path : str or Path
        Used or refused, never replaced by another one.
    read_only : bool
        Open without the means to write. The file must exist.
    busy_timeout : float
        Seconds that a writer waits for another writer.

    Raises
    ------
    NotAStore
        If the path is a directory, another kind of file, or absent where it must exist.
    StoreTooNew, StoreDamaged, StoreReadOnly
        As named. The file is left as it was.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, busy_timeout: float = 5.0) -> None:
        self.path = checked_path(path)
        self.read_only = read_only
        self.busy_timeout = busy_timeout
        self._uri_suffix = "?mode=ro" if read_only else "?mode=rw"
        self._local = threading.local()
        self._open: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._lock = threading.Condition(threading.Lock())  # tells of connections that are no longer in use
        self._closed = False
        self._turns = Turns()
        check_header(self.path, read_only)
        refuse_foreign(self.path)
        if not read_only and not self.path.exists():
            create_private(self.path)
        try:
            self._prepare()
        except UnicodeDecodeError as error:  # names in the schema, or what SQLite says about it
            self.close()
            raise StoreDamaged(f"{self.path}: the schema is not readable ({error}); restore a backup") from error
        except BaseException:
            self.close()
            raise
        on_fork(self)

    # -- opening ---------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Check that the file is a store of this version; make the tables of an empty one."""
        with translated(self.path):
            connection = self._first_connection()
            # One transaction: another process may be making the store right now.
            connection.execute("BEGIN")
            application, version, tables = identity(connection)
            connection.execute("ROLLBACK")
        refuse(self.path, application, version, tables)
        if application == schema.APPLICATION_ID:
            check_tables(self.path, version, tables)
        elif self.read_only:
            raise NotAStore(f"{self.path}: the file is empty; open it once without read_only to make a store of it")
        if self.read_only:
            return
        with translated(self.path):
            self._switch_log_on(connection)
        if version != schema.SCHEMA_VERSION:
            with self._changing() as connection:
                schema.migrate(connection)

    def _switch_log_on(self, connection: sqlite3.Connection) -> None:
        """Set WAL mode: it belongs to the file (a backup comes without it) and cannot be set inside a transaction."""
        give_up = time.monotonic() + self.busy_timeout
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # SQLite does not wait here: two processes that both hold a shared lock would wait for each other.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.005)

    def _first_connection(self) -> sqlite3.Connection:
        try:
            connection = self.connection()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            # A WAL store on a medium nobody can write needs no locks, but SQLite must be told so.
            unwritable = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not (self.read_only and unwritable and not self.path.with_name(self.path.name + "-wal").exists()):
                raise
            self._local.__dict__.clear()
            self._uri_suffix = "?mode=ro&immutable=1"
            return self.connection()

    def connection(self) -> _Connection:
        """The connection of the calling thread, opened on first use.

        Raises
        ------
        StoreClosed
            After :meth:`close`.
        """
        if self._closed:
            self._raise_closed()
        # A connection must not cross a fork, so the process id is part of the key.
        held: tuple[int, _Connection] | None = getattr(self._local, "held", None)
        if held is not None and held[0] == os.getpid():
            return held[1]
        connection = sqlite3.connect(
            self.path.as_uri() + self._uri_suffix,
            uri=True,
            timeout=self.busy_timeout,
            isolation_level=None,  # transactions are begun and ended here, by name
            check_same_thread=False,  # close() may be called from another thread
            factory=_Connection,
        )
        connection.thread = threading.get_ident()
        connection.execute("PRAGMA foreign_keys = ON")
        if not self.read_only:
            # FULL: what was acknowledged is on the disk, a power cut included.
            connection.execute("PRAGMA synchronous = FULL")
        with self._lock:
            if held is not None:
                self._open.discard(held[1])
            self._open.add(connection)
        self._local.held = (os.getpid(), connection)
        return connection

    def close(self) -> None:
        """Close the connections of all threads. Further use raises :class:`StoreClosed`; closing twice is fine.

        SQLite crashes if a connection is closed under a running statement: what other threads are doing at this moment
        comes to its end first, or after the busy timeout closes its connection itself.
        """
        here = threading.get_ident()
        with self._lock:
            self._closed = True
            self._lock.wait_for(
                lambda: all(not connection.uses or connection.thread == here for connection in self._open),
                self.busy_timeout,
            )
            idle = [connection for connection in self._open if not connection.uses or connection.thread == here]
            self._open = weakref.WeakSet(connection for connection in self._open if connection not in idle)
        for connection in idle:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[_Connection]:
        """The connection of the calling thread, safe from being closed by another."""
        connection = self.connection()
        with self._lock:
            if self._closed:
                self._raise_closed()
            connection.uses += 1
        try:
            yield connection
        finally:
            with self._lock:
                connection.uses -= 1
                last = self._closed and not connection.uses
                if last:
                    connection.close()
                self._lock.notify_all()

    def _raise_closed(self) -> NoReturn:
        raise StoreClosed(f"{self.path}: the store is closed; open it again with memlab.MemoryStore(path)")

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def _after_fork(self) -> None:
        """In the child of a fork: drop the parent's connections, which SQLite must not use on both sides.

        They go before a new one is opened, or SQLite would believe that it holds the locks of the parent. One that
        was in use at that moment cannot be closed and is kept out of the way.
        """
        inherited = list(self._open)
        self._lock = threading.Condition(threading.Lock())
        self._turns = Turns()  # the threads that waited did not come along
        self._local, self._open = threading.local(), weakref.WeakSet()
        for connection in inherited:
            try:
                if connection.uses or connection.in_transaction:
                    _INHERITED.append(connection)
                else:
                    connection.close()
            except sqlite3.Error:
                _INHERITED.append(connection)

    # -- transactions ----------------------------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is in a transaction already."""
        with translated(self.path):
            return self.connection().in_transaction

    @property
    def may_roll_back(self) -> bool:
        """Whether it is in a transaction that can have changes, not in one of :meth:`read`."""
        return self.in_transaction and not getattr(self._local, "reading", False)

    @contextlib.contextmanager
    def read(self) -> Iterator[_Connection]:
        """A read transaction: every statement inside sees the same commit. Takes no write lock."""
        with translated(self.path), self._in_use() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            self._local.reading = True
            try:
                yield connection
            finally:
                self._local.reading = False
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def require_writable(self) -> None:
        """Raise :class:`StoreReadOnly` for a store opened read-only; before work that would be in vain."""
        if self.read_only:
            raise StoreReadOnly(f"{self.path}: the store was opened with read_only=True; open it without to write")

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of it is committed, or after any exception nothing.

        The term index and the codes of the vectors follow in it; of a store without codes that has become large, the
        codes are made after it.
        """
        self.require_writable()
        with translated(self.path), self._in_use() as connection:
            outermost = not connection.in_transaction
            many = outermost and termindex.many_pending(connection)
        if many:
            sum(self.index_terms())
        with self._changing() as connection:
            yield connection
            termindex.update(connection)
            more = codetable.update(connection)
            # Not before the upkeep of indexes, which is nobody's: what was committed must not seem undone.
            if (check := BEFORE_COMMIT.get()) is not None:
                check()
        if more and outermost:
            with contextlib.suppress(StoreLocked, StoreFull):  # what was to be written is; the next writer goes on
                sum(self.make_codes())

    @contextlib.contextmanager
    def write_aside(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that changes no memory, so that no index has to follow."""
        with self._changing() as connection:
            yield connection

    @contextlib.contextmanager
    def overwriting(self) -> Iterator[None]:
        """What is deleted meanwhile is overwritten, in the file and in its log (unless somebody still reads there)."""
        with translated(self.path), self._in_use() as connection:
            before = connection.execute("PRAGMA secure_delete").fetchone()[0]
            connection.execute("PRAGMA secure_delete = ON").fetchone()
            try:
                yield
                connection.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchone()
            finally:
                connection.execute(f"PRAGMA secure_delete = {before}").fetchone()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[_Connection]:
        self.require_writable()
        with translated(self.path), self._in_use() as connection, self._turn(connection):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some errors (a full disk) make SQLite roll back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _turn(self, connection: _Connection) -> Iterator[None]:
        """Wait until no other thread writes through this object, as long as the queue of them moves."""
        if connection.in_transaction:  # of the caller's own making; to wait in it could wait for ever
            yield
            return
        with self._turns.mine(getattr(self._local, "patience", self.busy_timeout)) as mine:
            if not mine:
                raise_locked(self.path)
            if self._closed:
                self._raise_closed()
            yield

    def start_terms_anew(self) -> None:
        """Empty the term index, so that every live memory waits for its terms."""
        with self._changing() as connection:
            termindex.start_anew(connection)

    def index_terms(self) -> Iterator[int]:
        """Index all memories that wait for their terms, in short transactions; tells how many after each."""
        while True:
            with self._changing() as connection:
                done = termindex.update(connection, batches=1)
            if not done:
                return
            yield done

    def make_codes(self, *, anew: bool = False) -> Iterator[int]:
        """Bring the codes of the vectors up to date in short transactions; tells 1 after each."""
        if anew:
            with self._changing() as connection:
                codetable.drop(connection)
        more = True
        while more:
            with self._changing() as connection:
                more = codetable.update(connection)
            yield 1

    def try_to_index_terms(self) -> bool:
        """Index terms as a reader, who can do without: False if another writer holds the store or nobody can write.

        What another program wrote and could not analyse itself is little as a rule, so the wait is short too.
        """
        return self._try(self.index_terms())

    def try_to_make_codes(self, *, anew: bool) -> bool:
        """Make codes in the same way."""
        return self._try(self.make_codes(anew=anew))

    def _try(self, work: Iterator[int]) -> bool:
        try:
            with self._patience(min(self.busy_timeout, _READERS_PATIENCE)):
                sum(work)
        except (StoreLocked, StoreFull, StoreReadOnly):
            return False
        return True

    @contextlib.contextmanager
    def roomy(self) -> Iterator[None]:
        """A page cache for the calling thread's connection that holds what a bulk write changes."""
        with translated(self.path), self._in_use() as connection:
            before = connection.execute("PRAGMA cache_size").fetchone()[0]
            connection.execute(f"PRAGMA cache_size = {_BULK_CACHE}")
            try:
                yield
            finally:
                connection.execute(f"PRAGMA cache_size = {before}")

    @contextlib.contextmanager
    def _patience(self, seconds: float) -> Iterator[None]:
        """Another busy timeout for the calling thread."""
        with translated(self.path), self._in_use() as connection:
            connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            self._local.patience = seconds
            try:
                yield
            finally:
                del self._local.patience
                connection.execute(f"PRAGMA busy_timeout = {round(1000 * self.busy_timeout)}")


def on_fork(holder: _Forked) -> None:
    """Have ``holder._after_fork()`` called in the child of a fork, as long as the holder lives."""
    _FORKED.add(holder)


def _fork_in_child() -> None:
    for holder in list(_FORKED):
        holder._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fork_in_child)
