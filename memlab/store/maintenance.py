"""Looking after a store: figures, checks, copies and new vectors."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from memlab.encoders.base import Encoder, EncoderStamp, stamp
from memlab.errors import InvalidValue, StoreError
from memlab.progress import Progress, Show
from memlab.store import codetable, reading, termindex, writing
from memlab.store.connection import StoreFile
from memlab.store.encoding import (
    PassagePolicy,
    encode_contents,
    get_setting,
    record_encoder,
    recorded_encoder,
    set_setting,
)


@dataclass(frozen=True)
class StoreStats:
    """Figures of a store.

    Attributes
    ----------
    memories, trashed, pending : int
        Live memories; those in the trash; those of both that wait for a vector.
    passages : int
        Passages of memories that have two or more.
    revisions : int
        Former contents that are kept.
    categories, projects : int
        Different ones among live memories.
    oldest, newest : str or None
        Creation times.
    encoder : str or None
        Whose vectors these are.
    dimension : int or None
    file_bytes : int
        The file and its write-ahead log.
    """

    path: str
    memories: int
    trashed: int
    pending: int
    passages: int
    revisions: int
    categories: int
    projects: int
    oldest: str | None
    newest: str | None
    encoder: str | None
    dimension: int | None
    file_bytes: int


@dataclass(frozen=True)
class CheckReport:
    """What :meth:`MemoryStore.check` found.

    Attributes
    ----------
    problems : tuple of str
        Empty for a sound store.
    memories, trashed, pending, passages, staged, unindexed : int
        Counts. Pending memories, staged vectors and memories that wait for their place in the term index are work to
        do, not faults.
    """

    problems: tuple[str, ...]
    memories: int
    trashed: int
    pending: int
    passages: int
    staged: int
    unindexed: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __repr__(self) -> str:
        head = "sound" if self.ok else "NOT sound"
        work = f"{self.pending:,} pending" + (f", {self.staged:,} staged" if self.staged else "")
        work += f", {self.unindexed:,} not in the term index yet" if self.unindexed else ""
        lines = [f"<CheckReport {head}: {self.memories:,} memories, {self.trashed:,} in the trash, {work}>"]
        return "\n".join([*lines, *(f"  - {problem}" for problem in self.problems)])


def stats(connection: sqlite3.Connection, path: Path) -> StoreStats:
    """Count what is in the store."""
    row = connection.execute(
        "SELECT count(DISTINCT category), count(DISTINCT project), min(created_at), max(created_at) "
        "FROM memories WHERE trashed_at IS NULL"
    ).fetchone()
    _, encoder = recorded_encoder(connection)
    size = 0
    for suffix in ("", "-wal"):
        with contextlib.suppress(OSError):
            size += path.with_name(path.name + suffix).stat().st_size
    return StoreStats(
        path=str(path),
        memories=reading.count(connection, "trashed_at IS NULL"),
        trashed=reading.count(connection, "trashed_at IS NOT NULL"),
        pending=reading.count(connection, "vector IS NULL"),
        passages=_count(connection, "memory_passages"),
        revisions=_count(connection, "memory_revisions"),
        categories=row[0],
        projects=row[1],
        oldest=row[2],
        newest=row[3],
        encoder=encoder.name if encoder else None,
        dimension=encoder.dimension if encoder else None,
        file_bytes=size,
    )


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


# -- check -----------------------------------------------------------------------------------------------------------

_FTS_FAULTS: Mapping[str, str] = {
    "live memories are missing from the search index": """
        SELECT n.id FROM memories m JOIN memory_numbers n ON n.id = m.id
        WHERE m.trashed_at IS NULL AND n.number NOT IN (SELECT rowid FROM memory_search)""",
    "rows of the search index belong to no live memory": """
        SELECT s.id FROM memory_search s LEFT JOIN memory_numbers n ON n.number = s.rowid
        LEFT JOIN memories m ON m.id = n.id WHERE m.id IS NULL OR m.trashed_at IS NOT NULL""",
    "memories have other words in the search index than in their row": """
        SELECT m.id FROM memory_search s JOIN memory_numbers n ON n.number = s.rowid JOIN memories m ON m.id = n.id
        WHERE s.id IS NOT m.id OR s.content IS NOT m.content OR s.category IS NOT m.category
            OR s.project IS NOT m.project
            OR s.tags IS NOT (SELECT group_concat(value, ' ') FROM json_each(m.tags))
            OR s.files IS NOT (SELECT group_concat(value, ' ') FROM json_each(m.related_files))""",
    "memories have no number": "SELECT id FROM memories WHERE id NOT IN (SELECT id FROM memory_numbers)",
}
_LIVE_NUMBERS = """
    SELECT n.number FROM memories m JOIN memory_numbers n ON n.id = m.id WHERE m.trashed_at IS NULL"""
_TERM_FAULTS: Mapping[str, str] = {
    "live memories are missing from the term index": """
        SELECT n.id FROM memories m JOIN memory_numbers n ON n.id = m.id
        WHERE m.trashed_at IS NULL AND n.number NOT IN (SELECT rowid FROM memory_terms)
            AND n.number NOT IN (SELECT number FROM memory_terms_pending)""",
    "rows of the term index belong to no live memory": f"""
        SELECT rowid FROM memory_terms WHERE rowid NOT IN ({_LIVE_NUMBERS})""",
}


def check(connection: sqlite3.Connection, encoder: EncoderStamp | None) -> CheckReport:
    """Look for anything that contradicts anything; reads only."""
    problems: list[str] = []
    damage = [row[0] for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
    problems += [f"SQLite: {line}" for line in damage]
    orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    if orphans:
        problems.append(f"{len(orphans):,} rows refer to rows that do not exist, for example in {orphans[0][0]}")
    if _standing_aside(connection):
        problems.append("bulk_write has a row, so that indexes do not follow new memories; delete it, then reindex()")
    for what, sql in _FTS_FAULTS.items():
        problems += _fault(what, [row[0] for row in connection.execute(sql)])
    unindexed = 0
    if termindex.exists(connection):
        if termindex.of_this_version(connection):
            for what, sql in _TERM_FAULTS.items():
                problems += _fault(what, [row[0] for row in connection.execute(sql)])
            problems += _fault("memories have other terms than their text gives", list(termindex.differing(connection)))
            unindexed = _count(connection, "memory_terms_pending")
        else:
            unindexed = reading.count(connection, "trashed_at IS NULL")
        problems += _index_faults(connection)
    problems += _vector_faults(connection, encoder)
    problems += codetable.faults(connection)
    problems += _passage_faults(connection)
    return CheckReport(
        problems=tuple(problems),
        memories=reading.count(connection, "trashed_at IS NULL"),
        trashed=reading.count(connection, "trashed_at IS NOT NULL"),
        pending=reading.count(connection, "vector IS NULL"),
        passages=_count(connection, "memory_passages"),
        staged=_count(connection, "staged_vectors"),
        unindexed=unindexed,
    )


def _standing_aside(connection: sqlite3.Connection) -> bool:
    """Whether a row in ``bulk_write`` was committed, which memlab never does."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'bulk_write'").fetchone()
    return known is not None and _count(connection, "bulk_write") > 0


def _index_faults(connection: sqlite3.Connection) -> list[str]:
    """What FTS5 finds wrong in the term index. It says so to a writer alone, so a copy is made that goes away."""
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as copy:
        connection.backup(copy)
        try:
            copy.execute("INSERT INTO memory_terms (memory_terms) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            return ["the term index is damaged; reindex() makes it anew"]
    return []


def reindex(file: StoreFile, *, progress: Show) -> int:
    """Make the term index anew, and the codes of the vectors."""
    file.start_terms_anew()
    sum(file.make_codes(anew=True))
    with file.read() as connection:
        total = _count(connection, "memory_terms_pending")
    count = 0
    with Progress("indexing", total, progress) as shown:
        for done in file.index_terms():
            shown.advance(done)
            count += done
    return count


def _fault(what: str, ids: list[str]) -> list[str]:
    if not ids:
        return []
    more = ", …" if len(ids) > 3 else ""
    return [f"{len(ids):,} {what}: {', '.join(map(str, ids[:3]))}{more}"]


def _vector_faults(connection: sqlite3.Connection, encoder: EncoderStamp | None) -> list[str]:
    active, _ = recorded_encoder(connection)
    foreign: list[str] = []
    wrong_length: list[str] = []
    unusable: list[str] = []
    rows = connection.execute(
        "SELECT id, encoder_id, vector FROM memories WHERE vector IS NOT NULL "
        "UNION ALL SELECT memory_id || ' passage ' || position, encoder_id, vector FROM memory_passages"
    )
    for name, encoder_id, vector in rows:
        if encoder is None or encoder_id != active:
            foreign.append(name)
        elif len(vector) != 4 * encoder.dimension:
            wrong_length.append(name)
        else:
            norm = float(np.linalg.norm(np.frombuffer(vector, "<f4")))
            if not abs(norm - 1.0) < 1e-3:  # also true of NaN
                unusable.append(name)
    return [
        *_fault("vectors were made by another encoder than the store's", foreign),
        *_fault("vectors have another length than the encoder's dimension", wrong_length),
        *_fault("vectors are not of length 1", unusable),
    ]


def _passage_faults(connection: sqlite3.Connection) -> list[str]:
    """Passages must cover the content from end to end, without gaps."""
    rows = connection.execute(
        "SELECT p.memory_id, p.position, p.start_offset, p.end_offset, m.content "
        "FROM memory_passages p JOIN memories m ON m.id = p.memory_id ORDER BY p.memory_id, p.position"
    )
    faulty: list[str] = []
    current, expected, reached, length = "", 0, 0, 0
    for memory_id, position, start, end, content in rows:
        if memory_id != current:
            if current and reached != length:
                faulty.append(current)
            current, expected, reached, length = memory_id, 0, 0, len(content)
        if position != expected or start > reached or end <= start or end > length:
            faulty.append(memory_id)
        expected, reached = expected + 1, end
    if current and reached != length:
        faulty.append(current)
    return _fault("memories have passages that do not cover their content", list(dict.fromkeys(faulty)))


# -- backup ----------------------------------------------------------------------------------------------------------


def backup(connection: sqlite3.Connection, source: Path, target: Path, *, overwrite: bool) -> Path:
    """Copy the store as of the open read transaction; the target appears whole or not at all."""
    target = target.expanduser().absolute()
    if target.is_dir():
        raise InvalidValue(f"backup: {target} is a directory; add a file name")
    if not target.parent.is_dir():
        raise InvalidValue(f"backup: the folder {target.parent} does not exist; make it first")
    if target.exists():
        if target.samefile(source):
            raise InvalidValue(f"backup: {target} is the store itself; choose another path")
        if not overwrite:
            raise InvalidValue(
                f"backup: {target} exists already; choose another path, or say that it may be replaced "
                "(overwrite=True; in a terminal --overwrite)"
            )
    # mkstemp gives mode 0600, in the same folder so that the last step is one rename.
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise StoreError(f"backup: cannot write in {target.parent}: {error.strerror}") from error
    os.close(handle)
    part = Path(name)
    try:
        copy = sqlite3.connect(part)
        try:
            connection.backup(copy)
            # One file to move about; opening it as a store switches the log on again.
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
        # A log that a killed process left beside the former target would be replayed on top of the new one.
        for suffix in ("-wal", "-shm", "-journal"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return target


# -- new vectors -----------------------------------------------------------------------------------------------------

_UNSTAGED = (
    "SELECT m.id, m.content FROM memories m "
    "WHERE NOT EXISTS (SELECT 1 FROM staged_vectors s WHERE s.memory_id = m.id) ORDER BY m.id LIMIT ?"
)


def reembed(file: StoreFile, encoder: Encoder, policy: PassagePolicy, *, batch_size: int, progress: Show) -> int:
    """Stage new vectors for every memory, then take them over in one transaction; resumable."""
    wanted = stamp(encoder)
    goal = json.dumps(
        {
            "fingerprint": wanted.fingerprint,
            "prefix": wanted.document_prefix,
            "token_limit": wanted.token_limit,
            **asdict(policy),
        }
    )
    with file.write() as connection:
        if get_setting(connection, "reembed") != goal:
            connection.execute("DELETE FROM staged_vectors")
            connection.execute("DELETE FROM staged_passages")
            set_setting(connection, "reembed", goal)
        total = _count(connection, "memories")
        staged = _count(connection, "staged_vectors")
    with Progress(f"re-embedding with {wanted.name}", total, progress) as shown:
        shown.advance(staged)
        while True:
            with file.read() as connection:
                rows = connection.execute(_UNSTAGED, (batch_size,)).fetchall()
            if rows:
                encoded = encode_contents(encoder, [content for _, content in rows], policy)
                with file.write() as connection:
                    _still(connection, goal)
                    writing.stage(connection, [(row[0], row[1], made) for row, made in zip(rows, encoded, strict=True)])
                shown.advance(len(rows))
                continue
            with file.write() as connection:
                _still(connection, goal)
                # Memories that came in since the last look go another round.
                if not connection.execute(_UNSTAGED, (1,)).fetchone():
                    return _take_over(connection, wanted, policy)


def _still(connection: sqlite3.Connection, goal: str) -> None:
    if get_setting(connection, "reembed") != goal:
        raise StoreError("another re-embedding of this store began meanwhile; let it finish, then start this one again")


def _take_over(connection: sqlite3.Connection, wanted: EncoderStamp, policy: PassagePolicy) -> int:
    encoder_id = record_encoder(connection, wanted)
    codetable.drop(connection)
    # Other passages need not mean another document vector, which alone the triggers see.
    with_passages = (
        "INSERT INTO memory_changes (number) SELECT number FROM memory_numbers "
        "WHERE id IN (SELECT memory_id FROM memory_passages)"
    )
    connection.execute(with_passages)
    connection.execute("DELETE FROM memory_passages")
    changed = connection.execute(
        "UPDATE memories SET encoder_id = ?, "
        "vector = (SELECT vector FROM staged_vectors WHERE memory_id = memories.id)",
        (encoder_id,),
    ).rowcount
    connection.execute(
        "INSERT INTO memory_passages (memory_id, position, start_offset, end_offset, vector, encoder_id) "
        "SELECT memory_id, position, start_offset, end_offset, vector, ? FROM staged_passages",
        (encoder_id,),
    )
    connection.execute(with_passages)
    connection.execute("DELETE FROM staged_vectors")
    connection.execute("DELETE FROM staged_passages")
    connection.execute("DELETE FROM store_settings WHERE key = 'reembed'")
    set_setting(connection, "encoder_id", str(encoder_id))
    set_setting(connection, "passages", json.dumps(asdict(policy)))
    connection.execute("DELETE FROM encoders WHERE id <> ?", (encoder_id,))
    return changed
