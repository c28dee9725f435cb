"""Pictures of the vectors that are kept in the file: where each memory lies in two dimensions.

Coordinates are kept, not models. A row of ``projections`` says how a picture was made and of whose vectors, those of
``projected_memories`` where each memory lies in it. Triggers take out the place of a vector that changed, whoever
changed it, so what is there belongs to the vectors that are there.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.store.blocks import BoolArray, FloatArray, IntArray
from memlab.store.vectorfile import log_reaches, number_list


@dataclass(frozen=True)
class KeptProjection:
    """Where memories lie in one picture.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,)
        Memory numbers, ascending.
    coordinates : ndarray of float64, shape (n, 2)
    placed : ndarray of bool, shape (n,)
        True for memories that came after the picture was made.
    axes : ndarray of float32, shape (3, dimension), or None
        Of a linear picture: the mean of the vectors, and the two axes they were projected on.
    """

    numbers: IntArray
    coordinates: FloatArray
    placed: BoolArray
    axes: FloatMatrix | None = None


def exist(connection: sqlite3.Connection) -> bool:
    """Whether the file's schema has a place for them."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'projected_memories'").fetchone() is not None


def find(connection: sqlite3.Connection, encoder_id: int | None, settings: str) -> KeptProjection | None:
    """The picture of this encoder's vectors with these settings, if there is one."""
    if not exist(connection):
        return None
    row = connection.execute(
        "SELECT id, CAST(axes AS BLOB) FROM projections WHERE encoder_id = ? AND settings = ?", (encoder_id, settings)
    ).fetchone()
    if row is None:
        return None
    found = np.fromiter(
        connection.execute(
            "SELECT number, x, y, placed FROM projected_memories WHERE projection_id = ? ORDER BY number", (row[0],)
        ),
        dtype=[("number", np.int64), ("x", np.float64), ("y", np.float64), ("placed", np.bool_)],
    )
    axes = None
    if row[1] is not None and len(row[1]) % 12 == 0:
        axes = np.frombuffer(row[1], "<f4").reshape(3, -1).astype(np.float32)
    return KeptProjection(found["number"], np.stack([found["x"], found["y"]], axis=1), found["placed"], axes)


def keep(
    connection: sqlite3.Connection, encoder_id: int, settings: str, made_at: str, kept: KeptProjection, change: int
) -> None:
    """Keep a picture in place of a former one with the same settings.

    Parameters
    ----------
    change : int
        The last change of the store that the picture knows of: memories that changed since are left out.
    """
    connection.execute("DELETE FROM projections WHERE encoder_id = ? AND settings = ?", (encoder_id, settings))
    connection.execute(
        "INSERT INTO projections (encoder_id, settings, made_at, axes) VALUES (?, ?, ?, ?)",
        (encoder_id, settings, made_at, None if kept.axes is None else kept.axes.astype("<f4").tobytes()),
    )
    add(connection, encoder_id, settings, kept, change)


def add(connection: sqlite3.Connection, encoder_id: int, settings: str, kept: KeptProjection, change: int) -> None:
    """Add memories to a picture, those that have no place in it yet; does nothing if the picture is gone."""
    row = connection.execute(
        "SELECT id FROM projections WHERE encoder_id = ? AND settings = ?", (encoder_id, settings)
    ).fetchone()
    if row is None or not log_reaches(connection, change):
        return
    changed = {
        number for (number,) in connection.execute("SELECT number FROM memory_changes WHERE change > ?", (change,))
    }
    # A memory that was purged meanwhile has no number any more.
    there = {
        number
        for (number,) in connection.execute(
            "SELECT n.number FROM json_each(?) j CROSS JOIN memory_numbers n ON n.number = j.value",
            (number_list(kept.numbers),),
        )
    }
    rows = zip(kept.numbers.tolist(), kept.coordinates.tolist(), kept.placed.tolist(), strict=True)
    connection.executemany(
        "INSERT INTO projected_memories (number, projection_id, x, y, placed) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        [(n, row[0], x, y, placed) for n, (x, y), placed in rows if n in there and n not in changed],
    )
