"""Whose turn it is to write, among the threads that share a store.

SQLite lets one writer in at a time, and those who wait look again at intervals: of fifty, one may find the door shut
each time it looks, until its patience is over, though everybody else came through. A queue is fair, and wakes the next
at once. Other processes are not in it: whoever's turn it is waits for them as SQLite does.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator


class Turns:
    """A queue of threads, first come, first served."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[object] = deque()
        self._ended = 0  # turns that came to their end

    @contextlib.contextmanager
    def mine(self, patience: float) -> Iterator[bool]:
        """Wait for the calling thread's turn and hold it.

        Parameters
        ----------
        patience : float
            Seconds without anybody's turn coming to its end. A queue that moves is worth waiting in, however long.

        Yields
        ------
        bool
            False if patience was over first: the thread holds no turn then.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket:
                    if not self._moved(ticket, patience):
                        break
                mine = self._waiting[0] is ticket
            except BaseException:
                self._leave(ticket)
                raise
            if not mine:
                self._leave(ticket)
        if not mine:
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._ended += 1
                self._leave(ticket)

    def _moved(self, ticket: object, patience: float) -> bool:
        seen = self._ended
        return self._changed.wait_for(lambda: self._ended != seen or self._waiting[0] is ticket, patience)

    def _leave(self, ticket: object) -> None:
        self._waiting.remove(ticket)
        self._changed.notify_all()
