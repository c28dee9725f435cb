"""The SQL that recall and listings read with, over one read transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memlab.encoders.base import EncoderStamp, FloatMatrix
from memlab.store.filters import Filters
from memlab.store.index import IntArray, Snapshot
from memlab.store.records import SELECT_COLUMNS, Memory, is_storable

SEARCH_COLUMNS = ("content", "category", "project", "tags", "files")
TERM_COLUMNS = ("content", "labels")  # of the term index; labels are category, project, tags and files


@dataclass(frozen=True)
class KeywordRow:
    """One memory that matched, its bm25 with the sign turned round: larger is better."""

    number: int
    memory_id: str
    score: float


@dataclass
class ReadView:
    """What one recall reads: everything as of the same commit.

    Attributes
    ----------
    connection : sqlite3.Connection
        With a read transaction open.
    snapshot : Snapshot
        The vectors as of that commit.
    encoder : EncoderStamp or None
        Whose vectors they are.
    searched : int
        How many memories are not in the trash.
    filters : Filters
    terms_ready : bool
        Whether the term index has every live memory: not in a file of schema version 1 that is open for reading only,
        nor after a foreign program's write that could not be indexed yet. If not, :meth:`terms`, :meth:`pair_scores`
        and :meth:`document_frequencies` must not be asked.
    """

    connection: sqlite3.Connection
    snapshot: Snapshot
    encoder: EncoderStamp | None = None
    searched: int = 0
    filters: Filters = field(default_factory=Filters)
    terms_ready: bool = False
    _allowed: IntArray | None = None
    _scanned: tuple[FloatMatrix, FloatMatrix] | None = None

    def allowed(self) -> IntArray | None:
        """Numbers of the live memories that pass the filters, ascending; ``None`` when there are no filters."""
        if not self.filters:
            return None
        if self._allowed is None:
            where, values = self.filters.sql()
            rows = self.connection.execute(
                "SELECT n.number FROM memories m JOIN memory_numbers n ON n.id = m.id "
                f"WHERE m.trashed_at IS NULL AND {where} ORDER BY n.number",
                values,
            )
            self._allowed = np.fromiter((row[0] for row in rows), dtype=np.int64)
        return self._allowed

    def document_scores(self, vector: FloatMatrix, rows: IntArray | None) -> FloatMatrix:
        """Cosines in float32 of the document vectors of ``rows``; a whole scan is made once for all channels.

        Parameters
        ----------
        vector : ndarray of float32, shape (dimension,)
        rows : ndarray of int64 or None
            Indices into ``snapshot.documents``; ``None`` for all.

        Returns
        -------
        ndarray of float32, shape (len(rows),)
        """
        documents = self.snapshot.documents
        # Gathering most of a matrix costs more than scanning it.
        if rows is not None and len(rows) * 4 <= len(documents.owners):
            return documents.scores(vector, rows)
        if self._scanned is None or self._scanned[0] is not vector:
            self._scanned = (vector, documents.scores(vector, None))
        return self._scanned[1] if rows is None else self._scanned[1][rows]

    def keyword(
        self,
        match: str,
        depth: int,
        weights: Mapping[str, float] | None = None,
        only: int | None = None,
        among: Sequence[int] | None = None,
    ) -> list[KeywordRow]:
        """The best ``depth`` memories for an FTS5 expression, by bm25, ties by id.

        Parameters
        ----------
        match : str
            An FTS5 expression of quoted terms; never a user's text.
        weights : mapping of str to float, optional
            bm25 column weights by :data:`SEARCH_COLUMNS`, 1 where not named.
        only : int, optional
            Look at this memory alone.
        among : sequence of int, optional
            Look at these memories alone, which are known to pass the filters.
        """
        given = weights or {}
        # The first weight belongs to the column `id`, which is not indexed.
        numbers = ", ".join(repr(float(given.get(name, 1.0))) for name in SEARCH_COLUMNS)
        score = f"bm25(memory_search, 0.0, {numbers})"
        return self._matching("memory_search", score, match, depth, only, among)

    def terms(
        self,
        tokens: Sequence[str],
        depth: int,
        *,
        weights: Mapping[str, float] | None = None,
        only: int | None = None,
        among: Sequence[int] | None = None,
    ) -> list[KeywordRow]:
        """The best ``depth`` memories that have any of these tokens, by bm25, ties by id.

        Parameters
        ----------
        tokens : sequence of str
            From :func:`memlab.store.analysis.query_tokens`.
        weights : mapping of str to float, optional
            bm25 column weights by :data:`TERM_COLUMNS`, 1 where not named.
        only, among
            As in :meth:`keyword`.
        """
        if not tokens:
            return []
        given = weights or {}
        numbers = ", ".join(repr(float(given.get(name, 1.0))) for name in TERM_COLUMNS)
        match = " OR ".join(map(_quoted, tokens))
        return self._matching("memory_terms", f"bm25(memory_terms, {numbers})", match, depth, only, among)

    def pair_scores(self, pairs: Sequence[tuple[str, str]], numbers: Sequence[int]) -> dict[int, float]:
        """By number, bm25 (larger is better) for tokens that follow one another, of those memories that have any.

        Parameters
        ----------
        pairs : sequence of (str, str)
            From :func:`memlab.store.analysis.query_tokens`.
        numbers : sequence of int
            The memories to look at.
        """
        if not pairs or not len(numbers):
            return {}
        match = " OR ".join(_quoted(f"{first} {second}") for first, second in pairs)
        rows = self.connection.execute(
            "SELECT rowid, -bm25(memory_terms) FROM memory_terms "
            "WHERE memory_terms MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            (match, _json(numbers)),
        )
        return dict(rows.fetchall())

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many live memories each token stands, content and labels taken together."""
        rows = self.connection.execute(
            "SELECT term, doc FROM memory_terms_vocabulary WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps(list(tokens)),),
        )
        return {**dict.fromkeys(tokens, 0), **dict(rows.fetchall())}

    def _matching(
        self, table: str, score: str, match: str, depth: int, only: int | None, among: Sequence[int] | None
    ) -> list[KeywordRow]:
        """The best ``depth`` rows of an FTS5 table by ``score``, an SQL expression that is smaller for better ones."""
        where = f"{table} MATCH ?"
        values: list[Any] = [match]
        if only is not None:
            where, values = where + " AND rowid = ?", [*values, only]
        allowed = self.allowed() if among is None else np.array(among, np.int64)
        if allowed is not None:
            # The plus keeps FTS5 from running the MATCH once for every allowed rowid.
            where, values = (
                where + " AND +rowid IN (SELECT value FROM json_each(?))",
                [*values, _json(allowed.tolist())],
            )
        sql = f"SELECT rowid, {score} AS score FROM {table} WHERE {where} ORDER BY score LIMIT ?"
        take = depth + 16
        while True:
            rows = self.connection.execute(sql, [*values, take]).fetchall()
            # Memories that tie with the last place must all be seen before the id may decide between them.
            if len(rows) < take or rows[-1][1] > rows[depth - 1][1]:
                break
            take *= 4
        if len(rows) > depth:
            rows = [row for row in rows if row[1] <= rows[depth - 1][1]]
        ids = self.ids([row[0] for row in rows])
        found = [KeywordRow(number, ids[number], -score) for number, score in rows]
        return sorted(found, key=lambda row: (-row.score, row.memory_id))[:depth]

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Memory ids by number."""
        rows = self.connection.execute(
            "SELECT number, id FROM memory_numbers WHERE number IN (SELECT value FROM json_each(?))", (_json(numbers),)
        )
        return dict(rows.fetchall())

    def number(self, memory_id: str) -> int | None:
        """The number of a memory, or ``None`` if no memory has the id."""
        row = self.connection.execute("SELECT number FROM memory_numbers WHERE id = ?", (memory_id,)).fetchone()
        return None if row is None else int(row[0])

    def facts(self, numbers: Sequence[int]) -> dict[int, tuple[str, str, int]]:
        """By number: id, created_at as stored, and access count; what ranking needs and no more."""
        rows = self.connection.execute(
            "SELECT n.number, m.id, m.created_at, m.access_count FROM memory_numbers n JOIN memories m ON m.id = n.id "
            "WHERE n.number IN (SELECT value FROM json_each(?))",
            (_json(numbers),),
        )
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def failing_conditions(self, memory_id: str) -> list[str]:
        """Names of the filters that keep this memory out."""
        return [
            name
            for name, (sql, values) in self.filters.conditions().items()
            if self.connection.execute(
                f"SELECT 1 FROM memories m WHERE m.id = ? AND {sql}", [memory_id, *values]
            ).fetchone()
            is None
        ]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _json(numbers: Sequence[int]) -> str:
    return f"[{','.join(str(int(number)) for number in numbers)}]"


def spans(connection: sqlite3.Connection, positions: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Character offsets of one passage of each memory: memory id to position, to (start, end)."""
    result: dict[str, tuple[int, int]] = {}
    for memory_id, position in positions.items():
        row = connection.execute(
            "SELECT start_offset, end_offset FROM memory_passages WHERE memory_id = ? AND position = ?",
            (memory_id, position),
        ).fetchone()
        if row is not None:
            result[memory_id] = (row[0], row[1])
    return result


def count(connection: sqlite3.Connection, where: str) -> int:
    """Number of rows of ``memories`` for a condition."""
    return int(connection.execute(f"SELECT count(*) FROM memories WHERE {where}").fetchone()[0])


def fetch(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Memory]:
    """Memories by id, in the order of ``ids``, without those that do not exist."""
    found: dict[str, Memory] = {}
    ids = [memory_id for memory_id in ids if is_storable(memory_id)]
    for start in range(0, len(ids), 500):
        part = list(ids[start : start + 500])
        marks = ", ".join("?" * len(part))
        rows = connection.execute(
            f"SELECT {SELECT_COLUMNS}, m.vector IS NULL FROM memories m WHERE m.id IN ({marks})", part
        )
        found.update((row[0], Memory.from_row(row)) for row in rows)
    return {memory_id: found[memory_id] for memory_id in ids if memory_id in found}


def select(
    connection: sqlite3.Connection,
    filters: Filters,
    *,
    trashed: bool | None = False,
    limit: int | None = None,
    newest_first: bool = True,
) -> list[Memory]:
    """Memories that pass the filters, by time and then id.

    Parameters
    ----------
    trashed : bool or None
        ``False`` for live ones, ``True`` for the trash, ``None`` for both.
    """
    where, values = filters.sql()
    if trashed is not None:
        where += f" AND m.trashed_at IS {'NOT ' if trashed else ''}NULL"
    direction = "DESC" if newest_first else "ASC"
    sql = (
        f"SELECT {SELECT_COLUMNS}, m.vector IS NULL FROM memories m WHERE {where} "
        f"ORDER BY m.created_at {direction}, m.id LIMIT ?"
    )
    return [Memory.from_row(row) for row in connection.execute(sql, [*values, -1 if limit is None else limit])]
