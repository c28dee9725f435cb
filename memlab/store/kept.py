"""What was read from a file and holds as long as nobody writes to it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def state_seen(connection: sqlite3.Connection) -> tuple[int, int]:
    """What moves with every write that a connection sees.

    ``PRAGMA data_version`` moves when another connection has committed, ``total_changes`` when this one has changed
    anything; both stand still only if every row is as it was.
    """
    return connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes


@dataclass
class Kept(Generic[Key, Value]):
    """Values of one connection by key, forgotten after any write.

    Parameters
    ----------
    most : int
        Values that are kept; when there are more, all are forgotten.
    """

    most: int = 10_000
    state: tuple[int, int] = (-1, -1)
    known: dict[Key, Value] = field(default_factory=dict)

    def of(self, connection: sqlite3.Connection) -> dict[Key, Value]:
        """What is known of the state that the read transaction of ``connection`` sees; to be added to."""
        state = state_seen(connection)
        if state != self.state or len(self.known) > self.most:
            self.state, self.known = state, {}
        return self.known
