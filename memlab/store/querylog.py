"""The query log: what was asked of a store and what it answered, kept in its file if somebody wants that.

A recall only leaves word here. A thread writes down what has gathered, after a short pause and in one transaction: no
recall waits for the disk or for another writer, and none fails because the log could not be written.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlab.checks import whole
from memlab.errors import InvalidValue
from memlab.store.logged import COLUMNS, KEEP, KEEP_DAYS, LoggedQuery, Retention, entry_of, row_of
from memlab.timestamps import format_time, parse_time

if TYPE_CHECKING:
    import pandas as pd

    from memlab.store.connection import StoreFile

# Seconds from the first recall that waits until it is written down, with all that came meanwhile. Not too often: what
# recalls keep of the file as it was (see memlab.store.kept) is forgotten whenever something is written.
_PAUSE = 2.0
_MOST_WAITING = 2_000
SOURCE: ContextVar[str] = ContextVar("SOURCE", default="")
"""Who asks, where that is known better than by whoever turned the log on; see :func:`asked_by`."""


@contextlib.contextmanager
def asked_by(source: str) -> Iterator[None]:
    """What is recorded meanwhile was asked by this one."""
    before = SOURCE.set(source)
    try:
        yield
    finally:
        SOURCE.reset(before)


@dataclass(eq=False)
class _Waiting:
    recorded_at: datetime
    source: str
    make: Callable[[], LoggedQuery] = field(repr=False)


class QueryLog:
    """The recalls that were recorded in a store, and the switch that has them recorded.

    Off until :meth:`start` is called, for this store object and as long as it is open; what was recorded stays in the
    file, within the bounds that were given, until it is erased.

    Attributes
    ----------
    lost : int
        Recalls that could not be written down.
    trouble : str
        Why the last of them could not.

    Examples
    --------
    >>> store.query_log.start(keep_days=30)
    >>> retriever.recall("how do we back off failing webhooks?")
    >>> store.query_log.frame
    >>> memlab.replay(store, store.query_log.last)
    """

    def __init__(self, file: StoreFile, clock: Callable[[], datetime]) -> None:
        from memlab.store.connection import on_fork

        self._file = file
        self._clock = clock
        self._source = ""
        self._retention: Retention | None = None
        self.lost = 0
        self.trouble = ""
        self._forget_waiting()
        on_fork(self)
        _OPEN.add(self)

    def _forget_waiting(self) -> None:
        self._state = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._writing = self._hurry = False
        self._thread: threading.Thread | None = None

    _after_fork = _forget_waiting  # the parent writes down what waits

    # -- the switch --------------------------------------------------------------------------------------------------

    @property
    def recording(self) -> bool:
        """Whether recalls are recorded now."""
        return self._retention is not None

    def start(
        self, source: str = "notebook", *, keep_days: float | None = KEEP_DAYS, keep: int | None = KEEP
    ) -> QueryLog:
        """Record every recall on this store from now on.

        Parameters
        ----------
        source : str
            Noted with each.
        keep_days : float or None
            What is older is deleted as new recalls are recorded; ``None`` keeps it.
        keep : int or None
            Of more than this the oldest are deleted.

        Raises
        ------
        StoreReadOnly
            If the store cannot be written.
        InvalidValue
            If a bound is no number of 0 or more.
        """
        if not isinstance(source, str):
            raise InvalidValue(f"source: expected text, found {type(source).__name__}")
        self._file.require_writable()
        self._source, self._retention = source, Retention(keep_days, keep)
        return self

    def stop(self) -> QueryLog:
        """Record no more; what is recorded stays."""
        self._retention = None
        self.flush()
        return self

    # -- writing -----------------------------------------------------------------------------------------------------

    def add(self, make: Callable[[], LoggedQuery]) -> None:
        """Have the thread write down what ``make`` gives; raises nothing, and does nothing while the log is off."""
        if self._retention is None:
            return
        try:
            waiting = _Waiting(self._clock(), SOURCE.get() or self._source, make)
            with self._state:
                if len(self._waiting) >= _MOST_WAITING:
                    self._lose(1, f"{_MOST_WAITING:,} recalls were waiting to be written down")
                    return
                self._waiting.append(waiting)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="memlab-query-log", daemon=True)
                    self._thread.start()
        except Exception as error:  # a recall must not fail for its log: no more threads can be had, say
            self._lose(1, str(error))

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything is written down; whether it was within that time."""
        if not self._file.closed and self._file.in_transaction:
            return False  # the caller's own, which the thread would wait for
        with self._state:
            self._hurry = self._thread is not None
            self._state.notify_all()
            return self._state.wait_for(lambda: not self._waiting and not self._writing, seconds)

    def close(self) -> None:
        """Write down what waits and record no more."""
        self._retention = None
        if self._thread is not None:
            self.flush()
        _OPEN.discard(self)

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._hurry, _PAUSE)
                batch, self._waiting = self._waiting, []
                self._writing = bool(batch)
                self._hurry = False
                if not batch:
                    self._thread = None
                    return
            try:
                self._write(batch)
            finally:
                with self._state:
                    self._writing = False
                    self._state.notify_all()

    def _write(self, batch: list[_Waiting]) -> None:
        rows = []
        for one in batch:
            try:
                rows.append(row_of(one.make(), one.recorded_at, one.source))
            except Exception as error:  # somebody's own channel or fusion may raise anything
                self._lose(1, str(error))
        retention = self._retention
        try:
            with self._file.write_aside() as connection:
                marks = ", ".join("?" * len(COLUMNS.split(", ")))
                connection.executemany(f"INSERT INTO query_log ({COLUMNS}) VALUES ({marks})", rows)
                if retention is not None:
                    retention.apply(connection, self._clock())
        except Exception as error:  # locked, full, damaged, closed: the log is not worth an end of the thread
            self._lose(len(rows), str(error))

    def _lose(self, count: int, why: str) -> None:
        self.lost += count
        self.trouble = why

    # -- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._reading() as connection:
            return 0 if connection is None else int(connection.execute("SELECT count(*) FROM query_log").fetchone()[0])

    def __bool__(self) -> bool:
        return True  # an empty log is still a log

    def __getitem__(self, number: int) -> LoggedQuery:
        """The recall with this number (the ``id`` of the frame)."""
        found = self._select("WHERE id = ?", [whole(number, "id", least=0)])
        if not found:
            raise InvalidValue(f"query log: nothing is recorded under {number}; store.query_log.frame lists what is")
        return found[0]

    def __iter__(self) -> Iterator[LoggedQuery]:
        return iter(self._select("ORDER BY id", []))

    @property
    def last(self) -> LoggedQuery | None:
        """The newest recall, if there is one."""
        found = self._select("ORDER BY id DESC LIMIT 1", [])
        return found[0] if found else None

    @property
    def frame(self) -> pd.DataFrame:
        """What is recorded, newest first.

        Returns
        -------
        DataFrame
            Indexed by ``id``: ``recorded_at, source, query, filters, limit, recency_boost, now, mode, note, encoder,
            milliseconds, hits, memory_ids, scores, settings``; ``hits`` is how many there were.
        """
        import pandas as pd

        entries = self._select("ORDER BY id DESC", [])
        columns = {
            name: [getattr(entry, name) for entry in entries]
            for name in ("recorded_at", "source", "query", "filters", "limit", "recency_boost", "now", "mode", "note")
        }
        columns["filters"] = [entry.filters.given() for entry in entries]
        columns["encoder"] = [entry.encoder for entry in entries]
        columns["milliseconds"] = [entry.milliseconds for entry in entries]
        columns["hits"] = [len(entry.hits) for entry in entries]
        columns["memory_ids"] = [entry.ids for entry in entries]
        columns["scores"] = [tuple(score for _, score in entry.hits) for entry in entries]
        columns["settings"] = [dict(entry.settings) for entry in entries]
        index = pd.Index([entry.id for entry in entries], name="id", dtype="int64")
        frame = pd.DataFrame(columns, index=index)
        for name in ("recorded_at", "now"):
            frame[name] = pd.to_datetime(frame[name], utc=True)
        return frame

    def _select(self, rest: str, values: list[Any]) -> list[LoggedQuery]:
        with self._reading() as connection:
            if connection is None:
                return []
            return [entry_of(row) for row in connection.execute(f"SELECT {COLUMNS} FROM query_log {rest}", values)]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A read transaction; ``None`` where an older memlab made the file and nobody could add the table."""
        if self._thread is not None:
            self.flush()
        with self._file.read() as connection:
            there = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'query_log'")
            yield connection if there.fetchone() else None

    # -- erasing -----------------------------------------------------------------------------------------------------

    def prune(self, *, keep_days: float | None = KEEP_DAYS, keep: int | None = KEEP) -> int:
        """Delete what is older than ``keep_days`` and, of more than ``keep``, the oldest; how many were."""
        bounds = Retention(keep_days, keep)
        with self._erasing() as connection:
            return bounds.apply(connection, self._clock())

    def erase(self, ids: int | Iterable[int] | None = None, *, before: datetime | str | None = None) -> int:
        """Delete the recalls with these numbers, those recorded before a time, or all; how many were.

        Their text is overwritten in the file. Backups that were made before still have it.
        """
        condition, values = "1", list[Any]()
        if ids is not None:
            numbers = [ids] if isinstance(ids, int) else list(ids)
            condition += " AND id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps([whole(one, "ids", least=0) for one in numbers]))
        if before is not None:
            condition += " AND recorded_at < ?"
            values.append(format_time(parse_time(before, "before")))
        with self._erasing() as connection:
            return connection.execute(f"DELETE FROM query_log WHERE {condition}", values).rowcount

    @contextlib.contextmanager
    def _erasing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction whose deleted rows are overwritten, in the file and in its log."""
        self.flush()
        with self._file.overwriting(), self._file.write_aside() as connection:
            yield connection

    def __repr__(self) -> str:
        if self._file.closed:
            return "<QueryLog (closed)>"
        state = f"recording as {self._source!r}" if self.recording else "off; start() records recalls"
        lost = f", {self.lost:,} lost: {self.trouble}" if self.lost else ""
        return f"<QueryLog {len(self):,} recorded, {state}{lost}>"


_OPEN: weakref.WeakSet[QueryLog] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    """The threads end with the process: what waits is written down before."""
    for log in list(_OPEN):
        if log._thread is not None:
            with contextlib.suppress(Exception):
                log.flush(2.0)
