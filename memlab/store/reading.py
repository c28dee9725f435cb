"""The SQL that recall and listings read with, over one read transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from memlab.encoders.base import EncoderStamp
from memlab.store.blocks import Block, BoolArray, CodedBlock, FloatArray, IntArray
from memlab.store.filters import Filters
from memlab.store.index import Snapshot
from memlab.store.kept import Kept, state_seen
from memlab.store.keywords import InMemory, KeywordIndex
from memlab.store.lookup import InFile, Lookup
from memlab.store.records import SELECT_COLUMNS, Memory, is_storable
from memlab.store.vectorfile import DOCUMENTS, PASSAGES, Kind
from memlab.store.vectors import Vectors

SEARCH_COLUMNS = ("content", "category", "project", "tags", "files")
TERM_COLUMNS = ("content", "labels")  # of the term index; labels are category, project, tags and files

Made = TypeVar("Made")
Facts = tuple[str, str, int]
"""Id, created_at as stored, and access count."""
_FACTS = (
    "SELECT n.number, m.id, m.created_at, m.access_count FROM json_each(?) j "
    "CROSS JOIN memory_numbers n ON n.number = j.value CROSS JOIN memories m ON m.id = n.id"
)
_IDS = "SELECT n.number, n.id FROM json_each(?) j CROSS JOIN memory_numbers n ON n.number = j.value"
_FEW = 1000  # memories of which the facts are read where an id is wanted: they will be wanted too


@dataclass(frozen=True)
class KeywordRow:
    """One memory that matched, its bm25 with the sign turned round: larger is better."""

    number: int
    memory_id: str
    score: float


@dataclass(frozen=True)
class Scored:
    """Scores of memories.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,)
        Ascending.
    scores : ndarray of float64, shape (n,)
        Larger is better.
    """

    numbers: IntArray
    scores: FloatArray

    @classmethod
    def none(cls) -> Scored:
        """Nobody's."""
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))

    def places(self, numbers: IntArray) -> tuple[IntArray, BoolArray]:
        """Where these numbers stand, and whether they do."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), dtype=bool)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return at, self.numbers[at] == numbers

    def of(self, numbers: Sequence[int]) -> Scored:
        """Those of these memories that have a score."""
        wanted = np.unique(np.array(numbers, np.int64))
        at, known = self.places(wanted)
        return Scored(wanted[known], self.scores[at[known]])

    def plus(self, other: Scored, weight: float) -> Scored:
        """``scores + weight * other's scores``, of the memories that are here."""
        at, known = other.places(self.numbers)
        scores = self.scores.copy()
        scores[known] += weight * other.scores[at[known]]
        return Scored(self.numbers, scores)


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
    settled : bool
        Whether what the transaction sees is committed, so that later ones may use what was found out in it.
    index : KeywordIndex or None
        The search indexes in memory, once they are made.
    """

    connection: sqlite3.Connection
    snapshot: Snapshot
    encoder: EncoderStamp | None = None
    searched: int = 0
    filters: Filters = field(default_factory=Filters)
    terms_ready: bool = False
    settled: bool = False
    index: KeywordIndex | None = None
    _allowed: IntArray | None = None
    _frequencies: Kept[str, int] = field(default_factory=Kept)
    _facts: Kept[int, Facts] = field(default_factory=Kept)
    _kept: dict[Any, Any] = field(default_factory=dict)
    _scans: dict[tuple[str, str, str], Scored] = field(default_factory=dict)

    def frequencies(self) -> dict[str, int]:
        """In how many memories common tokens stand, as far as that was counted in what is seen; to be added to."""
        kept = getattr(self.connection, "frequencies", None) if self.settled else None
        return (kept or self._frequencies).of(self.connection)

    def lookup(self) -> Lookup:
        """Who has which token and word: from memory if that is what the file has now, or else from the file."""
        if (
            self.index is not None
            and self.settled
            and self.terms_ready
            and (held := self.index.held(self.connection)) is not None
        ):
            return InMemory(held, self.connection)
        return InFile(self.connection, self.frequencies())

    def hold_postings(self, seconds: float) -> None:
        """Go on with the index in memory, if it is not made yet, after an answer that took so long."""
        if self.index is not None and self.settled and self.terms_ready:
            self.index.advance(self.connection, seconds)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` makes, made once a view for all who ask by the same key."""
        if key not in self._kept:
            self._kept[key] = make()
        made: Made = self._kept[key]
        return made

    def allowed(self) -> IntArray | None:
        """Numbers of the live memories that pass the filters, ascending; ``None`` when there are no filters."""
        if not self.filters:
            return None
        if self._allowed is None:
            self._allowed = _remembered(self) if self.settled else self.read_passing()
        return self._allowed

    def read_passing(self) -> IntArray:
        """The same, read from the file."""
        where, values = self.filters.sql()
        rows = self.connection.execute(
            "SELECT n.number FROM memories m JOIN memory_numbers n ON n.id = m.id "
            f"WHERE m.trashed_at IS NULL AND {where}",
            values,
        )
        return np.sort(np.fromiter((row[0] for row in rows), dtype=np.int64))

    @cached_property
    def documents(self) -> Vectors:
        """The document vectors."""
        return self._vectors(DOCUMENTS, self.snapshot.documents)

    @cached_property
    def passages(self) -> Vectors:
        """The vectors of passages, of memories that have several."""
        return self._vectors(PASSAGES, self.snapshot.passages)

    def _vectors(self, kind: Kind, block: Block | CodedBlock) -> Vectors:
        return Vectors(block, self.connection, kind, self.snapshot.encoder_id, self.snapshot.dimension)

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
        return self.best(_part(self.all_words(match, weights), only, among), depth)

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
        return self.best(_part(self.all_terms(tokens, weights), only, among), depth)

    def pair_scores(self, pairs: Sequence[tuple[str, str]], numbers: Sequence[int]) -> dict[int, float]:
        """By number, bm25 (larger is better) for tokens that follow one another, of those memories that have any.

        Parameters
        ----------
        pairs : sequence of (str, str)
            From :func:`memlab.store.analysis.query_tokens`.
        numbers : sequence of int
            The memories to look at.
        """
        found = self.all_pairs(pairs).of(numbers)
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def all_terms(self, tokens: Sequence[str], weights: Mapping[str, float] | None = None) -> Scored:
        """The same scores as :meth:`terms`, of every memory that has one."""
        if not tokens:
            return Scored.none()
        given = weights or {}
        numbers = ", ".join(repr(float(given.get(name, 1.0))) for name in TERM_COLUMNS)
        return self._scan("memory_terms", f"bm25(memory_terms, {numbers})", " OR ".join(map(_quoted, tokens)))

    def all_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scored:
        """The same scores as :meth:`pair_scores`, of every memory that has one."""
        if not pairs:
            return Scored.none()
        match = " OR ".join(_quoted(f"{first} {second}") for first, second in pairs)
        return self._scan("memory_terms", "bm25(memory_terms)", match)

    def all_words(self, match: str, weights: Mapping[str, float] | None = None) -> Scored:
        """The same scores as :meth:`keyword`, of every memory that has one."""
        given = weights or {}
        # The first weight belongs to the column `id`, which is not indexed.
        numbers = ", ".join(repr(float(given.get(name, 1.0))) for name in SEARCH_COLUMNS)
        return self._scan("memory_search", f"bm25(memory_search, 0.0, {numbers})", match)

    def document_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many live memories each token stands, content and labels taken together."""
        rows = self.connection.execute(
            "SELECT term, doc FROM memory_terms_vocabulary WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps(list(tokens)),),
        )
        return {**dict.fromkeys(tokens, 0), **dict(rows.fetchall())}

    def _scan(self, table: str, score: str, match: str) -> Scored:
        """Every live memory that matches and passes the filters; made once a view, whoever asks."""
        key = (table, score, match)
        if key not in self._scans:
            where, values = f"{table} MATCH ?", [match]
            allowed = self.allowed()
            if allowed is not None:
                # The plus keeps FTS5 from running the MATCH once for every allowed rowid.
                where += " AND +rowid IN (SELECT value FROM json_each(?))"
                values.append(_json(allowed.tolist()))
            # Unordered: sorting costs SQLite more than numpy, and several ask for parts of the same.
            rows = self.connection.execute(f"SELECT rowid, -{score} FROM {table} WHERE {where}", values)
            pairs = np.fromiter(rows, dtype=[("number", np.int64), ("score", np.float64)])
            pairs = pairs[np.argsort(pairs["number"], kind="stable")]
            self._scans[key] = Scored(pairs["number"], pairs["score"])
        return self._scans[key]

    def best(self, scored: Scored, depth: int) -> list[KeywordRow]:
        """The ``depth`` memories with the highest scores, ties by id."""
        numbers, scores = scored.numbers, scored.scores
        if 0 < depth < len(scores):
            # Memories that tie with the last place must all be seen before the id may decide between them.
            kept = scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth]
            numbers, scores = numbers[kept], scores[kept]
        ids = self.ids(numbers.tolist())
        scored_ones = zip(numbers.tolist(), scores.tolist(), strict=True)
        rows = [(-score, ids[number], number) for number, score in scored_ones if number in ids]
        return [KeywordRow(number, memory_id, -score) for score, memory_id, number in sorted(rows)[:depth]]

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Memory ids by number."""
        if len(numbers) <= _FEW:
            return {number: facts[0] for number, facts in self.facts(numbers).items()}
        found = dict(self.connection.execute(_IDS, (_json(numbers),)).fetchall())
        return {number: found[number] for number in numbers if number in found}

    def number(self, memory_id: str) -> int | None:
        """The number of a memory, or ``None`` if no memory has the id."""
        row = self.connection.execute("SELECT number FROM memory_numbers WHERE id = ?", (memory_id,)).fetchone()
        return None if row is None else int(row[0])

    def facts(self, numbers: Sequence[int]) -> dict[int, Facts]:
        """By number: id, created_at as stored, and access count; what ranking needs and no more."""
        kept = getattr(self.connection, "facts", None) if self.settled else None
        known: dict[int, Facts] = (kept or self._facts).of(self.connection)
        if missing := [number for number in numbers if number not in known]:
            rows = self.connection.execute(_FACTS, (_json(missing),))
            known.update((row[0], row[1:]) for row in rows)
        return {number: known[number] for number in numbers if number in known}

    def labels(self) -> dict[str, tuple[str | None, str, str | None, int, str]]:
        """By id, of every live memory: project, category, source, importance, and created_at as stored."""
        rows = self.connection.execute(
            "SELECT id, project, category, source, importance, created_at FROM memories WHERE trashed_at IS NULL"
        )
        return {row[0]: row[1:] for row in rows}

    def containing(self, text: str) -> list[str]:
        """Ids of the live memories whose content, project, category or tags have this text, in upper or lower case."""
        wanted = text.casefold()
        rows = self.connection.execute(
            "SELECT id, content, project, category, tags FROM memories WHERE trashed_at IS NULL"
        )
        return [row[0] for row in rows if any(part and wanted in part.casefold() for part in row[1:])]

    def repeated_contents(self) -> list[tuple[str, str]]:
        """Content and id of the live memories whose very content others have too, by number."""
        # Grouped by what the index over contents has, so that only contents that begin alike are read.
        return self.connection.execute(
            "SELECT m.content, m.id FROM memories m JOIN memory_numbers n ON n.id = m.id "
            "JOIN (SELECT substr(content, 1, 48) AS head, length(content) AS size FROM memories "
            "GROUP BY substr(content, 1, 48), length(content) HAVING count(*) > 1) g "
            "ON substr(m.content, 1, 48) = g.head AND length(m.content) = g.size "
            "WHERE m.trashed_at IS NULL AND EXISTS (SELECT 1 FROM memories o WHERE substr(o.content, 1, 48) = g.head "
            "AND length(o.content) = g.size AND o.content = m.content AND o.id <> m.id AND o.trashed_at IS NULL) "
            "ORDER BY n.number"
        ).fetchall()

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


_MOST_LISTS, _MOST_NUMBERS = 16, 2_000_000


def _remembered(view: ReadView) -> IntArray:
    """What passes the filters of a view, read only if anything was written since the connection's last look."""
    connection = view.connection
    lists: dict[str, IntArray] | None = getattr(connection, "passing", None)
    if lists is None:  # a connection of somebody else's
        return view.read_passing()
    seen = state_seen(connection)
    if seen != connection.passing_seen:  # type: ignore[attr-defined]
        lists.clear()
        connection.passing_seen = seen  # type: ignore[attr-defined]
    key = repr(view.filters.sql())
    found = lists.pop(key, None)
    if found is None:
        found = view.read_passing()
        found.flags.writeable = False
    lists[key] = found  # the newest at the end
    while len(lists) > 1 and (len(lists) > _MOST_LISTS or sum(map(len, lists.values())) > _MOST_NUMBERS):
        del lists[next(iter(lists))]
    return found


def _part(scored: Scored, only: int | None, among: Sequence[int] | None) -> Scored:
    if only is not None:
        return scored.of([only])
    return scored if among is None else scored.of(among)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _json(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


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
