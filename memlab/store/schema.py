"""The tables of a store, the triggers that keep them in step, and the migrations that make them.

``memories`` and ``memory_search`` keep the columns and names of the system that this toolkit studies. Everything that
has to follow a change of a memory hangs on triggers, so that a writer who knows only SQL keeps the store whole too.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memlab.store.analysis import ANALYSIS_VERSION

if TYPE_CHECKING:
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

APPLICATION_ID = 0x4D4C4142  # "MLAB", in the header of the file
SCHEMA_VERSION = 6  # PRAGMA user_version: the number of migrations
TERMS_SINCE = 2  # the schema version that brought the term index
SIZE_SINCE = 3  # the one for large stores: many memories written around the triggers, codes of vectors
LOG_SINCE = 4  # the one that brought the query log
PROJECTIONS_SINCE = 5  # the one that keeps pictures of the vectors
LABELS_LOGGED_SINCE = 6  # the one whose change log has every change of what is looked for by words
CHANGES_KEPT = 20_000

# SQL for "this column, in the stored form of a time"; NULL when it is no time at all. The modifier makes SQLite carry
# 30 February and 24:00 over to the next day. It would read 'now', Julian days and years before 1 too: none is wanted.
_UTC = "strftime('%Y-%m-%dT%H:%M:%fZ', {0}, '+0 seconds')"
_CANONICAL = f"CASE WHEN {{0}} GLOB '[0-9][0-9][0-9][0-9]-*' AND {_UTC} >= '0001' THEN {_UTC} END"
_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

_TABLES = f"""
CREATE TABLE store_settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE encoders (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    dimension INTEGER NOT NULL CHECK (dimension > 0),
    token_limit INTEGER NOT NULL,
    document_prefix TEXT NOT NULL DEFAULT '',
    UNIQUE (fingerprint, dimension, document_prefix)
);
CREATE TABLE memories (
    id TEXT PRIMARY KEY NOT NULL CHECK (id <> ''),
    vector BLOB,
    content TEXT NOT NULL CHECK (content <> '' AND typeof(content) = 'text'),
    category TEXT NOT NULL DEFAULT 'note',
    project TEXT,
    tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags) AND json_type(tags) = 'array'),
    importance INTEGER NOT NULL DEFAULT 5
        CHECK (typeof(importance) = 'integer' AND importance BETWEEN 1 AND 10),
    created_at TEXT NOT NULL DEFAULT ({_NOW}),
    accessed_at TEXT,
    access_count INTEGER NOT NULL DEFAULT 0 CHECK (access_count >= 0),
    subcategory TEXT,
    source TEXT,
    related_files TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(related_files) AND json_type(related_files) = 'array'),
    file_checksums TEXT NOT NULL DEFAULT '{{}}'
        CHECK (json_valid(file_checksums) AND json_type(file_checksums) = 'object'),
    trashed_at TEXT,
    updated_at TEXT,
    encoder_id INTEGER REFERENCES encoders (id),
    CHECK (vector IS NULL OR (encoder_id IS NOT NULL AND typeof(vector) = 'blob'))
);
CREATE INDEX memories_project ON memories (project);
CREATE INDEX memories_category ON memories (category);
CREATE INDEX memories_created_at ON memories (created_at);
CREATE INDEX memories_trashed_at ON memories (trashed_at);
CREATE INDEX memories_pending ON memories (id) WHERE vector IS NULL;
-- Exact duplicates are looked up by the beginning and the length, then compared whole.
CREATE INDEX memories_content ON memories (substr(content, 1, 48), length(content));

-- A small stable integer for each memory: the rowid of a table without INTEGER PRIMARY KEY may change in a VACUUM.
CREATE TABLE memory_numbers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE
);
CREATE VIRTUAL TABLE memory_search USING fts5 (
    id UNINDEXED, content, category, project, tags, files,
    tokenize = 'unicode61 remove_diacritics 2'
);
-- Only memories of two passages or more have rows here: a memory that fits the encoder is its own passage.
CREATE TABLE memory_passages (
    id INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    vector BLOB NOT NULL,
    encoder_id INTEGER NOT NULL REFERENCES encoders (id),
    UNIQUE (memory_id, position)
);
CREATE TABLE memory_revisions (
    memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    replaced_at TEXT NOT NULL,
    PRIMARY KEY (memory_id, revision)
);
CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY NOT NULL,
    memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL
);
CREATE INDEX idempotency_keys_memory ON idempotency_keys (memory_id);
-- What changed, in order, for vector indexes held in memory; the oldest rows are dropped as new ones come.
CREATE TABLE memory_changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL
);
-- New vectors gather here during a re-embedding, while the old ones go on answering.
CREATE TABLE staged_vectors (
    memory_id TEXT PRIMARY KEY NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);
CREATE TABLE staged_passages (
    memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (memory_id, position)
);
"""


def _search_row(row: str) -> str:
    """SQL that adds the FTS row of the trigger's ``NEW`` or of a table alias, if the memory is live."""
    return f"""
    INSERT INTO memory_search (rowid, id, content, category, project, tags, files)
    SELECT (SELECT number FROM memory_numbers WHERE id = {row}.id),
        {row}.id, {row}.content, {row}.category, {row}.project,
        (SELECT group_concat(value, ' ') FROM json_each({row}.tags)),
        (SELECT group_concat(value, ' ') FROM json_each({row}.related_files))"""


def _number_of(row: str) -> str:
    return f"(SELECT number FROM memory_numbers WHERE id = {row}.id)"


def _drop_dependents(ids: str, *tables: str) -> str:
    """SQL that deletes what hangs on the memories with these ids."""
    return "\n".join(f"    DELETE FROM {table} WHERE memory_id IN ({ids});" for table in tables)


_VECTORS = ("memory_passages", "staged_vectors", "staged_passages")
_ALL_DEPENDENT = (*_VECTORS, "memory_revisions", "idempotency_keys")


_TIMES = ("created_at", "accessed_at", "trashed_at", "updated_at")
_TIMES_CHANGED = " OR ".join(f"NEW.{c} IS NOT {_CANONICAL.format(f'NEW.{c}')}" for c in _TIMES)
_NORMALISE = f"""
    SELECT RAISE(ABORT, 'created_at, accessed_at, trashed_at and updated_at must be ISO 8601 times')
    WHERE {" OR ".join(f"(NEW.{c} IS NOT NULL AND {_CANONICAL.format(f'NEW.{c}')} IS NULL)" for c in _TIMES)};
    UPDATE memories SET {", ".join(f"{c} = {_CANONICAL.format(f'NEW.{c}')}" for c in _TIMES)}
    WHERE id = NEW.id AND ({_TIMES_CHANGED});"""


# The former text, with the time of the update where the writer gave one.
_REVISION = f"""
    INSERT INTO memory_revisions (memory_id, revision, content, replaced_at)
    SELECT NEW.id, (SELECT count(*) + 1 FROM memory_revisions WHERE memory_id = NEW.id), OLD.content,
        CASE WHEN NEW.updated_at IS NOT OLD.updated_at AND {_CANONICAL.format("NEW.updated_at")} IS NOT NULL
            THEN {_CANONICAL.format("NEW.updated_at")} ELSE {_NOW} END
    WHERE NEW.content IS NOT OLD.content;"""
_FORGET_VECTOR = """
    UPDATE memories SET vector = NULL, encoder_id = NULL
    WHERE id = NEW.id AND NEW.content IS NOT OLD.content AND vector IS OLD.vector;"""


def _any_changed(*columns: str) -> str:
    return " OR ".join(f"NEW.{c} IS NOT OLD.{c}" for c in columns)


_INSERTED = f"""    INSERT INTO memory_revisions (memory_id, revision, content, replaced_at)
    SELECT NEW.id, (SELECT count(*) + 1 FROM memory_revisions WHERE memory_id = NEW.id), content, {_NOW}
    FROM memory_search WHERE rowid = {_number_of("NEW")} AND content IS NOT NEW.content;
    DELETE FROM memory_search WHERE rowid = {_number_of("NEW")};
{_drop_dependents("NEW.id", *_VECTORS)}
    INSERT INTO memory_numbers (id) SELECT NEW.id WHERE NOT EXISTS (SELECT 1 FROM memory_numbers WHERE id = NEW.id);
    {_search_row("NEW")}
    WHERE NEW.trashed_at IS NULL;
    INSERT INTO memory_changes (number) VALUES ({_number_of("NEW")});
    {_NORMALISE}"""


# Two traps. Inside a trigger the conflict clause of the outer statement (INSERT OR REPLACE ...) replaces the inner one,
# so nothing here relies on OR IGNORE or OR REPLACE. And the order of triggers on one event is not defined, so each
# event of which the parts must follow one another has one trigger; a new id is such an event, whatever else changes.
_TRIGGERS = f"""
-- INSERT OR REPLACE removes the old row without firing its delete trigger: its content, which the search index still
-- has, becomes a revision, and its vectors go.
CREATE TRIGGER memories_inserted AFTER INSERT ON memories BEGIN
{_INSERTED}
END;
CREATE TRIGGER memories_times_updated AFTER UPDATE OF {", ".join(_TIMES)} ON memories
WHEN {_TIMES_CHANGED} BEGIN
    {_NORMALISE}
END;
-- UPDATE OR REPLACE may have removed a memory that had the new id, again without a delete trigger.
CREATE TRIGGER memories_renamed AFTER UPDATE OF id ON memories WHEN NEW.id IS NOT OLD.id BEGIN
    INSERT INTO memory_changes (number) SELECT number FROM memory_numbers WHERE id = NEW.id;
    DELETE FROM memory_search WHERE rowid = {_number_of("NEW")};
{_drop_dependents("NEW.id", *_ALL_DEPENDENT)}
    DELETE FROM memory_numbers WHERE id = NEW.id;
    UPDATE memory_numbers SET id = NEW.id WHERE id = OLD.id;
    DELETE FROM memory_search WHERE rowid = {_number_of("NEW")};
    {_search_row("NEW")}
    WHERE NEW.trashed_at IS NULL;
    DELETE FROM memory_passages WHERE memory_id = OLD.id AND NEW.content IS NOT OLD.content;
    UPDATE memory_passages SET memory_id = NEW.id WHERE memory_id = OLD.id;
    UPDATE memory_revisions SET memory_id = NEW.id WHERE memory_id = OLD.id;
    UPDATE idempotency_keys SET memory_id = NEW.id WHERE memory_id = OLD.id;
{_drop_dependents("OLD.id", "staged_vectors", "staged_passages")}
    {_REVISION}
    {_FORGET_VECTOR}
    INSERT INTO memory_changes (number) VALUES ({_number_of("NEW")});
END;
CREATE TRIGGER memories_search_updated
AFTER UPDATE OF content, category, project, tags, related_files, trashed_at ON memories
WHEN NEW.id IS OLD.id
    AND ({_any_changed("content", "category", "project", "tags", "related_files", "trashed_at")}) BEGIN
    DELETE FROM memory_search WHERE rowid = {_number_of("NEW")};
    {_search_row("NEW")}
    WHERE NEW.trashed_at IS NULL;
END;
-- New content: the former text becomes a revision, and vectors that speak of it go.
CREATE TRIGGER memories_content_updated AFTER UPDATE OF content ON memories
WHEN NEW.id IS OLD.id AND NEW.content IS NOT OLD.content BEGIN
    {_REVISION}
{_drop_dependents("NEW.id", *_VECTORS)}
    {_FORGET_VECTOR}
END;
CREATE TRIGGER memories_vector_updated AFTER UPDATE OF vector, encoder_id, trashed_at ON memories
WHEN {_any_changed("vector", "encoder_id", "trashed_at")} BEGIN
    INSERT INTO memory_changes (number) SELECT number FROM memory_numbers WHERE id = NEW.id;
END;
CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
    DELETE FROM memory_search WHERE rowid = {_number_of("OLD")};
    INSERT INTO memory_changes (number) VALUES ({_number_of("OLD")});
{_drop_dependents("OLD.id", *_ALL_DEPENDENT)}
    DELETE FROM memory_numbers WHERE id = OLD.id;
END;
CREATE TRIGGER memory_changes_pruned AFTER INSERT ON memory_changes BEGIN
    DELETE FROM memory_changes WHERE change <= NEW.change - {CHANGES_KEPT};
END;
"""

# The term index beside memory_search: what `memlab.store.analysis` made of each live memory. Its tokens are joined by
# spaces, and the tokenizer `ascii` cannot change them: to it all beyond ASCII belongs to a token, and the rest is in
# lower case already. SQL cannot analyse text, so the triggers take out what no longer holds and put the numbers of the
# memories that have to be analysed into memory_terms_pending; whoever writes or looks through memlab does it then.
TERMS_TABLE = """
CREATE VIRTUAL TABLE memory_terms USING fts5 (content, labels, tokenize = 'ascii');
"""
ALL_TERMS_PENDING = """
    INSERT INTO memory_terms_pending (number)
    SELECT n.number FROM memory_numbers n JOIN memories m ON m.id = n.id
    WHERE m.trashed_at IS NULL AND n.number NOT IN (SELECT number FROM memory_terms_pending);
"""
_TERMS_REST = f"""
CREATE VIRTUAL TABLE memory_terms_vocabulary USING fts5vocab (memory_terms, row);
CREATE TABLE memory_terms_pending (
    number INTEGER PRIMARY KEY
);
INSERT INTO store_settings (key, value) VALUES ('analysis_version', '{ANALYSIS_VERSION}');
{ALL_TERMS_PENDING}
"""


def _new_terms(number: str, live: str) -> str:
    """SQL that lets the memory of this number wait for its terms, if the condition says that it is live."""
    return f"""
    DELETE FROM memory_terms WHERE rowid = {number};
    DELETE FROM memory_terms_pending WHERE number = {number};
    INSERT INTO memory_terms_pending (number) SELECT {number} WHERE {number} IS NOT NULL AND {live};"""


# The order of the triggers on memories does not matter: a new memory has its number before memories_terms_inserted,
# which sees it then, or after, when memory_numbers_terms_inserted does. A new id and a deletion show on memory_numbers.
_LIVE_NUMBER = "EXISTS (SELECT 1 FROM memories WHERE id = NEW.id AND trashed_at IS NULL)"
_TERMS_TRIGGERS = f"""
CREATE TRIGGER memories_terms_inserted AFTER INSERT ON memories BEGIN
    {_new_terms(_number_of("NEW"), "NEW.trashed_at IS NULL")}
END;
CREATE TRIGGER memories_terms_updated
AFTER UPDATE OF content, category, project, tags, related_files, trashed_at ON memories
WHEN NEW.id IS OLD.id
    AND ({_any_changed("content", "category", "project", "tags", "related_files")}
        OR (NEW.trashed_at IS NULL) <> (OLD.trashed_at IS NULL)) BEGIN
    {_new_terms(_number_of("NEW"), "NEW.trashed_at IS NULL")}
END;
CREATE TRIGGER memory_numbers_terms_inserted AFTER INSERT ON memory_numbers BEGIN
    {_new_terms("NEW.number", _LIVE_NUMBER)}
END;
-- A new id, whatever else changed with it.
CREATE TRIGGER memory_numbers_terms_renamed AFTER UPDATE OF id ON memory_numbers BEGIN
    {_new_terms("NEW.number", _LIVE_NUMBER)}
END;
CREATE TRIGGER memory_numbers_terms_deleted AFTER DELETE ON memory_numbers BEGIN
    DELETE FROM memory_terms WHERE rowid = OLD.number;
    DELETE FROM memory_terms_pending WHERE number = OLD.number;
END;
"""

PRUNE_CHANGES = f"DELETE FROM memory_changes WHERE change <= (SELECT max(change) FROM memory_changes) - {CHANGES_KEPT}"


def gather(index: str) -> str:
    """SQL that lets a search index gather 8 MB in memory, not 1, before it writes a segment.

    A batch of a bulk write makes one segment then instead of five, and fewer have to be merged: a sixth less time.
    """
    return f"INSERT INTO {index} ({index}, rank) VALUES ('hashsize', {8 << 20});"


# memlab writes many new memories at once without triggers (see memlab.store.bulk): it puts a row into bulk_write, which
# these look at, and takes it out before it commits, so that no other connection ever sees one. The terms are part of
# the one trigger now, which knows the number: what was done for it twice is done once.
_BULK = f"""
{gather("memory_search")}
{gather("memory_terms")}
CREATE TABLE bulk_write (
    active INTEGER PRIMARY KEY
);
DROP TRIGGER memories_inserted;
DROP TRIGGER memories_terms_inserted;
DROP TRIGGER memory_numbers_terms_inserted;
DROP TRIGGER memory_changes_pruned;
CREATE TRIGGER memories_inserted AFTER INSERT ON memories WHEN NOT EXISTS (SELECT 1 FROM bulk_write) BEGIN
{_INSERTED}
    {_new_terms(_number_of("NEW"), "NEW.trashed_at IS NULL")}
END;
CREATE TRIGGER memory_changes_pruned AFTER INSERT ON memory_changes WHEN NOT EXISTS (SELECT 1 FROM bulk_write) BEGIN
    DELETE FROM memory_changes WHERE change <= NEW.change - {CHANGES_KEPT};
END;
"""

# Codes of vectors, see memlab.store.codetable; a row has those of the memories of 64 numbers: where they are, whose
# (the number's last six bits), which passage each is of, the vector's rowid, and the codes. Empty in a small store.
_CODES = """
CREATE TABLE document_codes (
    block INTEGER PRIMARY KEY,
    owners BLOB NOT NULL,
    labels BLOB NOT NULL,
    places BLOB NOT NULL,
    codes BLOB NOT NULL
);
CREATE TABLE passage_codes (
    block INTEGER PRIMARY KEY,
    owners BLOB NOT NULL,
    labels BLOB NOT NULL,
    places BLOB NOT NULL,
    codes BLOB NOT NULL
);
"""

# What was asked and answered, see memlab.store.querylog. Numbers are not used again once a row is erased.
_QUERY_LOG = """
CREATE TABLE query_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded_at TEXT NOT NULL,
    source TEXT NOT NULL,
    query TEXT NOT NULL,
    filters TEXT NOT NULL CHECK (json_valid(filters)),
    hit_limit INTEGER NOT NULL,
    recency_boost INTEGER NOT NULL,
    now TEXT NOT NULL,
    mode TEXT NOT NULL,
    note TEXT NOT NULL,
    encoder TEXT,
    settings TEXT NOT NULL CHECK (json_valid(settings)),
    milliseconds REAL NOT NULL,
    hits TEXT NOT NULL CHECK (json_valid(hits))
);
CREATE INDEX query_log_recorded_at ON query_log (recorded_at);
"""

# Pictures of the vectors, see memlab.store.projections. A place belongs to one vector: it goes when the vector changes,
# also where INSERT OR REPLACE puts another memory in the place of one without firing its delete trigger. Memories that
# memlab writes in bulk are new and have no place yet.
_PROJECTIONS = f"""
CREATE TABLE projections (
    id INTEGER PRIMARY KEY,
    encoder_id INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
    settings TEXT NOT NULL CHECK (json_valid(settings)),
    made_at TEXT NOT NULL,
    axes BLOB,
    UNIQUE (encoder_id, settings)
);
CREATE TABLE projected_memories (
    number INTEGER NOT NULL,
    projection_id INTEGER NOT NULL REFERENCES projections (id) ON DELETE CASCADE,
    x REAL NOT NULL,
    y REAL NOT NULL,
    placed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (number, projection_id)
) WITHOUT ROWID;
CREATE INDEX projected_memories_projection ON projected_memories (projection_id);
CREATE TRIGGER memories_projection_updated AFTER UPDATE OF vector, encoder_id ON memories
WHEN ({_any_changed("vector", "encoder_id")}) AND EXISTS (SELECT 1 FROM projections) BEGIN
    DELETE FROM projected_memories WHERE number IN (SELECT number FROM memory_numbers WHERE id IN (OLD.id, NEW.id));
END;
CREATE TRIGGER memories_projection_inserted AFTER INSERT ON memories
WHEN NOT EXISTS (SELECT 1 FROM bulk_write) AND EXISTS (SELECT 1 FROM projections) BEGIN
    DELETE FROM projected_memories WHERE number = {_number_of("NEW")};
END;
CREATE TRIGGER memory_numbers_projection_deleted AFTER DELETE ON memory_numbers BEGIN
    DELETE FROM projected_memories WHERE number = OLD.number;
END;
"""

# The change log had what concerns vectors; an index of words in memory (memlab.store.keywords) must hear of a new
# project or tag too, and of a new text for a memory that waits for its vector.
_LABELS_LOGGED = f"""
CREATE TRIGGER memories_labels_logged
AFTER UPDATE OF content, category, project, tags, related_files ON memories
WHEN NEW.id IS OLD.id AND NEW.trashed_at IS NULL
    AND ({_any_changed("content", "category", "project", "tags", "related_files")}) BEGIN
    INSERT INTO memory_changes (number) SELECT number FROM memory_numbers WHERE id = NEW.id;
END;
"""


def _statements(script: str) -> Iterator[str]:
    """The statements of a script (sqlite-utils asks after every character whether one is complete: half a second)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# The migrations, in order, by the names under which sqlite-utils records them.
STEPS = {
    "m001_foundation": _TABLES + _TRIGGERS,
    "m002_terms": TERMS_TABLE + _TERMS_REST + _TERMS_TRIGGERS,
    "m003_size": _BULK + _CODES,
    "m004_query_log": _QUERY_LOG,
    "m005_projections": _PROJECTIONS,
    "m006_labels_logged": _LABELS_LOGGED,
}
# Where sqlite-utils keeps the record, as it makes the table itself.
_RECORD = """
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
"""


@functools.cache
def migrations() -> Migrations:
    """The migrations of the store, in order (sqlite-utils is imported here: it brings pandas with it)."""
    from sqlite_utils.migrations import Migrations

    steps = Migrations("memlab")
    for name in STEPS:

        def run(db: Database, name: str = name) -> None:
            for statement in _statements(STEPS[name]):
                db.execute(statement)

        steps(name=name)(run)
    return steps


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to :data:`SCHEMA_VERSION` inside the caller's transaction.

    Does nothing if it is there already, so two processes that open a new file at once may both call it.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        _make(connection)
    else:
        from sqlite_utils import Database

        migrations().apply(Database(connection, recursive_triggers=False, execute_plugins=False))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _make(connection: sqlite3.Connection) -> None:
    """Make the schema of an empty file and the record of the migrations, as :func:`migrations` would, without pandas.

    A new store must not cost a second of imports: an assistant's server makes one while its client waits.
    """
    for statement in _statements(_RECORD):
        connection.execute(statement)
    for name, script in STEPS.items():
        for statement in _statements(script):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('memlab', ?, ?)",
            (name, str(datetime.now(UTC))),
        )
