"""How memories come in: checked, encoded outside of any transaction, written whole batches at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from memlab.checks import whole
from memlab.encoders.base import EncoderStamp, check_vectors, stamp
from memlab.errors import EncoderError, InvalidValue, MemlabError
from memlab.progress import Progress, Show
from memlab.store import reading, writing
from memlab.store.connection import StoreFile
from memlab.store.encoding import (
    Encoded,
    EncoderSlot,
    PassagePolicy,
    get_setting,
    mismatch,
    record_encoder,
    recorded_encoder,
    set_setting,
    vector_bytes,
)
from memlab.store.records import Draft, draft

_DRAFT_ARGUMENTS = (
    "memory_id",
    "category",
    "project",
    "tags",
    "importance",
    "subcategory",
    "source",
    "related_files",
    "file_checksums",
)
# Fields of a Memory that a record may carry along (an export has them) and that say nothing new.
_IGNORED = ("pending", "duplicate_of", "created")
_ACCEPTED = (
    "content",
    *_DRAFT_ARGUMENTS,
    "created_at",
    "idempotency_key",
    "vector",
    "accessed_at",
    "access_count",
    "trashed_at",
    "updated_at",
)


@dataclass(frozen=True)
class BulkResult:
    """What :meth:`MemoryStore.remember_many` did.

    Attributes
    ----------
    memory_ids : tuple of str
        One a record, in order.
    created, existing : int
        How many were new; how many were there already, by key or id.
    duplicates : dict of str to tuple of str
        New memory id to the ids of live memories with the very same content. They were stored all the same.
    pending : int
        How many new ones wait for a vector.
    note : str
        Why, if any wait.
    """

    memory_ids: tuple[str, ...]
    created: int
    existing: int
    duplicates: Mapping[str, tuple[str, ...]]
    pending: int
    note: str = ""

    def __repr__(self) -> str:
        parts = [f"{self.created:,} new"]
        if self.existing:
            parts.append(f"{self.existing:,} there already")
        if self.duplicates:
            parts.append(f"{len(self.duplicates):,} with the same content as another")
        if self.pending:
            parts.append(f"{self.pending:,} without a vector yet ({self.note})")
        return f"<BulkResult: {', '.join(parts)}>"


@dataclass(frozen=True)
class Outcome:
    """What became of one batch.

    Attributes
    ----------
    known : dict of int to str
        Index in the batch to the id of the memory that was there already.
    duplicates : dict of int to tuple of str
        Index to the ids of live memories with the very same content.
    pending : int
        How many wait for a vector.
    note : str
        Why, if any do.
    """

    known: dict[int, str]
    duplicates: dict[int, tuple[str, ...]]
    pending: int
    note: str


@dataclass
class Writer:
    """Brings memories into a store's file.

    Attributes
    ----------
    file : StoreFile
    slot : EncoderSlot
        The encoder.
    policy : PassagePolicy
        How content becomes vectors.
    clock : callable
        Gives the present as an aware datetime.
    """

    file: StoreFile
    slot: EncoderSlot
    policy: PassagePolicy
    clock: Callable[[], datetime]

    def sync(self, connection: sqlite3.Connection) -> None:
        """Take over the encoder and the passage policy that the file records: another process may have re-embedded."""
        self.slot.follow(recorded_encoder(connection)[1])
        self.policy = stored_policy(connection) or self.policy

    def encoder_for(
        self, connection: sqlite3.Connection, made_by: EncoderStamp | None, note: str
    ) -> tuple[int | None, str]:
        """The id to stamp vectors of ``made_by`` with; ``None`` if the store has moved to another encoder."""
        assert made_by is not None
        encoder_id, recorded = recorded_encoder(connection)
        if recorded is None:
            encoder_id = record_encoder(connection, made_by)
            set_setting(connection, "encoder_id", str(encoder_id))
            set_setting(connection, "passages", json.dumps(asdict(self.policy)))
            self.slot.follow(made_by)
        elif not recorded.compatible(made_by):
            return None, str(mismatch(recorded, made_by))
        return encoder_id, note

    def draft(self, values: dict[str, Any]) -> Draft:
        """Check the arguments of :meth:`MemoryStore.remember`, given by name; takes what it needs out of ``values``."""
        created_at = values.pop("created_at", None)
        values.setdefault("content", None)
        key = values.pop("idempotency_key", None)
        for name in _DRAFT_ARGUMENTS:
            values.setdefault(name, None)
        return draft(**values, key=key, created_at=self.clock() if created_at is None else created_at)

    def store_batch(self, drafts: Sequence[Draft], vectors: Sequence[Any], first_record: int | None = None) -> Outcome:
        """Encode what is new, then write it in one transaction."""
        self.file.require_writable()
        with self.file.read() as connection:
            self.sync(connection)
            known = _known(connection, drafts, first_record)
        todo = [i for i in range(len(drafts)) if i not in known]
        encoded: dict[int, Encoded] = {}
        made_by: EncoderStamp | None = None
        note = ""
        given = [i for i in todo if vectors[i] is not None]
        if given:
            made_by = self.slot.recorded or stamp(self.slot.get())
            for i in given:
                source = "vector" if first_record is None else f"record {first_record + i}: vector"
                row = check_vectors([vectors[i]], 1, made_by.dimension, source)[0]
                encoded[i] = Encoded(vector_bytes(row))
        plain = [i for i in todo if vectors[i] is None]
        if plain:
            results, made, note = self.slot.encode_each([drafts[i].content for i in plain], self.policy)
            made_by = made or made_by
            encoded.update((i, result) for i, result in zip(plain, results, strict=True) if result is not None)
        duplicates: dict[int, tuple[str, ...]] = {}
        with self.file.write() as connection:
            # Another process may have stored some of these, or changed the encoder, since the look above.
            known = _known(connection, drafts, first_record)
            todo = [i for i in todo if i not in known]
            encoder_id, note = self.encoder_for(connection, made_by, note) if encoded else (None, note)
            writing.insert(
                connection,
                [drafts[i] for i in todo],
                [encoded.get(i) if encoder_id is not None else None for i in todo],
                encoder_id,
            )
            for i, memory_id in known.items():
                writing.keep_key(connection, drafts[i], memory_id)
            for i in todo:
                if same := writing.exact_duplicates(connection, drafts[i].content, drafts[i].memory_id):
                    duplicates[i] = same
        waiting = sum(1 for i in todo if encoder_id is None or i not in encoded)
        return Outcome(known, duplicates, waiting, note)

    def remember_many(
        self,
        records: Iterable[str | Mapping[str, Any]],
        *,
        batch_size: int = 256,
        resume_key: str | None = None,
        progress: Show = None,
    ) -> BulkResult:
        """See :meth:`MemoryStore.remember_many`."""
        if isinstance(records, (str, Mapping)):
            raise InvalidValue("records: expected an iterable of contents or mappings; use remember() for one memory")
        if not isinstance(records, Iterable) or hasattr(records, "to_dict"):
            hint = "; a DataFrame goes in as frame.to_dict('records')" if hasattr(records, "to_dict") else ""
            raise InvalidValue(f"records: expected contents or mappings, found {type(records).__name__}{hint}")
        batch_size = whole(batch_size, "batch_size", least=1)
        total = len(records) if isinstance(records, Sequence) else None
        ids: list[str] = []
        duplicates: dict[str, tuple[str, ...]] = {}
        created = existing = pending = 0
        note = ""
        with Progress("remembering", total, progress) as shown:
            for start, batch in _batches(records, batch_size):
                drafts, vectors = [], []
                for offset, record in enumerate(batch):
                    try:
                        values = {"content": record} if isinstance(record, str) else _record(record)
                        if resume_key is not None:
                            values.setdefault("idempotency_key", f"{resume_key}/{start + offset}")
                        vectors.append(values.pop("vector", None))
                        drafts.append(self.draft(values))
                    except MemlabError as error:
                        error.args = (f"record {start + offset}: {error}", *error.args[1:])
                        raise
                outcome = self.store_batch(drafts, vectors, first_record=start)
                batch_ids = [outcome.known.get(i, new.memory_id) for i, new in enumerate(drafts)]
                ids += batch_ids
                duplicates.update((batch_ids[i], of) for i, of in outcome.duplicates.items())
                existing += len(outcome.known)
                created += len(drafts) - len(outcome.known)
                pending += outcome.pending
                note = outcome.note or note
                shown.advance(len(batch))
        return BulkResult(tuple(ids), created, existing, duplicates, pending, note)

    def embed_pending(self, *, batch_size: int = 256, progress: Show = None) -> int:
        """See :meth:`MemoryStore.embed_pending`."""
        self.file.require_writable()
        batch_size = whole(batch_size, "batch_size", least=1)
        done = 0
        with self.file.read() as connection:
            total = reading.count(connection, "vector IS NULL")
            self.sync(connection)
        with Progress("embedding", total, progress) as shown:
            after = failed = ""
            while True:
                with self.file.read() as connection:
                    rows = connection.execute(
                        "SELECT id, content FROM memories WHERE vector IS NULL AND id > ? ORDER BY id LIMIT ?",
                        (after, batch_size),
                    ).fetchall()
                if not rows:
                    break
                after = rows[-1][0]
                results, made_by, note = self.slot.encode_each([content for _, content in rows], self.policy)
                ready = [(*row, result) for row, result in zip(rows, results, strict=True) if result is not None]
                if made_by is None or not ready:
                    self.slot.get()  # if it cannot be had at all, its own error says so
                    raise EncoderError(note)
                with self.file.write() as connection:
                    encoder_id, moved = self.encoder_for(connection, made_by, "")
                    if encoder_id is None:
                        raise EncoderError(moved)
                    done += writing.set_vectors(connection, ready, encoder_id)
                failed = note or failed
                shown.advance(len(rows))
        if failed:
            raise EncoderError(f"{done:,} memories got their vectors; others could not be encoded: {failed}")
        return done


def _record(record: object) -> dict[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidValue(f"expected a content or a mapping, found {type(record).__name__}")
    values = {name: value for name, value in record.items() if name not in _IGNORED and not _missing(value)}
    for name in values:
        if name not in _ACCEPTED:
            raise InvalidValue(f"{name!r} is no field of a memory; the fields are {', '.join(_ACCEPTED)}")
    return values


def _missing(value: Any) -> bool:
    """Whether a value means "not given": None, and the NaN or NaT that a DataFrame puts where nothing is."""
    return value is None or (isinstance(value, (float, datetime, np.datetime64)) and value != value)


def _known(connection: sqlite3.Connection, drafts: Sequence[Draft], first_record: int | None) -> dict[int, str]:
    """Which drafts are in the store already (or earlier in the same batch): index to memory id."""
    known: dict[int, str] = {}
    seen: dict[str, int] = {}
    for i, new in enumerate(drafts):
        try:
            memory_id = writing.already_there(connection, new)
            if memory_id is None:
                for name in filter(None, (new.key and f"key {new.key}", f"id {new.memory_id}")):
                    if name in seen:
                        if drafts[seen[name]].content != new.content:
                            raise InvalidValue(f"{name} occurs twice in the records, with different content")
                        memory_id = drafts[seen[name]].memory_id
                    seen.setdefault(name, i)
        except MemlabError as error:
            if first_record is not None:
                error.args = (f"record {first_record + i}: {error}", *error.args[1:])
            raise
        if memory_id is not None:
            known[i] = memory_id
    return known


def _batches(records: Iterable[Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    batch: list[Any] = []
    start = 0
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield start, batch
            start += size
            batch = []
    if batch:
        yield start, batch


def stored_policy(connection: sqlite3.Connection) -> PassagePolicy | None:
    """The passage policy that the file records; ``None`` before the first vector."""
    text = get_setting(connection, "passages")
    return None if text is None else PassagePolicy(**json.loads(text))
