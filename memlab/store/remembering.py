"""How memories come in: checked, encoded outside of any transaction, written whole batches at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memlab.checks import whole
from memlab.encoders.base import EncoderStamp, FloatMatrix, check_vectors, stamp
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
)
from memlab.store.records import Draft, draft

READY = 8192
"""Memories with ready vectors a transaction, where the caller says nothing."""
ENCODED = 256
"""Memories of which the vectors are yet to be made."""


class _Batch:
    def __repr__(self) -> str:
        return f"{ENCODED} to encode, {READY} in all"


BATCH: Final[Any] = _Batch()
"""The default of ``batch_size``."""

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
        key = values.pop("idempotency_key", None)
        if values.get("created_at") is None:
            values["created_at"] = self.clock()
        if "content" not in values:
            values["content"] = None
        return draft(**values, key=key)

    def store_batch(self, drafts: Sequence[Draft], vectors: Any, first_record: int | None = None) -> Outcome:
        """Encode what is new, then write it in one transaction.

        Parameters
        ----------
        vectors : sequence or ndarray
            A ready vector for each draft, or ``None``; a matrix for vectors of all.
        first_record : int, optional
            The number of the first among many, for messages.
        """
        self.file.require_writable()
        matrix = isinstance(vectors, np.ndarray)
        given = [i for i in range(len(drafts)) if matrix or vectors[i] is not None]
        known: dict[int, str] = {}
        with self.file.read() as connection:
            self.sync(connection)
            if len(given) < len(drafts):  # what is there already need not be encoded
                known = _known(connection, drafts, first_record)
        encoded: dict[int, Encoded] = {}
        made_by: EncoderStamp | None = None
        note = ""
        given = [i for i in given if i not in known]
        if given:
            made_by = self.slot.recorded or stamp(self.slot.get())
            rows = vectors if len(given) == len(drafts) else [vectors[i] for i in given]
            checked = _checked(rows, given, made_by.dimension, first_record).astype("<f4", copy=False)
            encoded.update((i, Encoded(row.tobytes())) for i, row in zip(given, checked, strict=True))
        plain = [i for i in range(len(drafts)) if i not in known and i not in encoded]
        if plain:
            results, made, note = self.slot.encode_each([drafts[i].content for i in plain], self.policy)
            made_by = made or made_by
            encoded.update((i, result) for i, result in zip(plain, results, strict=True) if result is not None)
        with self.file.write() as connection:
            # Another process may have stored some of these, or changed the encoder, since the look above.
            known = _known(connection, drafts, first_record)
            todo = [i for i in range(len(drafts)) if i not in known]
            fresh = [drafts[i] for i in todo]
            encoder_id, note = self.encoder_for(connection, made_by, note) if encoded else (None, note)
            same = writing.same_content(connection, [new.content for new in fresh])
            writing.insert(
                connection, fresh, [encoded.get(i) if encoder_id is not None else None for i in todo], encoder_id
            )
            for i, memory_id in known.items():
                writing.keep_key(connection, drafts[i], memory_id)
        for new in fresh:
            if new.live:
                same.setdefault(new.content, []).append(new.memory_id)
        duplicates: dict[int, tuple[str, ...]] = {}
        for i, new in zip(todo, fresh, strict=True):
            of = same.get(new.content, ())
            if len(of) > new.live:
                duplicates[i] = tuple(sorted(memory_id for memory_id in of if memory_id != new.memory_id))
        waiting = sum(1 for i in todo if encoder_id is None or i not in encoded)
        return Outcome(known, duplicates, waiting, note)

    def remember_many(
        self,
        records: Iterable[str | Mapping[str, Any]],
        *,
        vectors: npt.ArrayLike | None = None,
        batch_size: int = BATCH,
        resume_key: str | None = None,
        progress: Show = None,
    ) -> BulkResult:
        """See :meth:`MemoryStore.remember_many`."""
        if isinstance(records, (str, Mapping)):
            raise InvalidValue("records: expected an iterable of contents or mappings; use remember() for one memory")
        if not isinstance(records, Iterable) or hasattr(records, "to_dict"):
            hint = "; a DataFrame goes in as frame.to_dict('records')" if hasattr(records, "to_dict") else ""
            raise InvalidValue(f"records: expected contents or mappings, found {type(records).__name__}{hint}")
        matrix = None if vectors is None else _matrix(vectors, records)
        size = None if batch_size is BATCH else whole(batch_size, "batch_size", least=1)
        encodings, ready = size or ENCODED, size or READY
        total = len(records) if isinstance(records, Sequence) else None
        ids: list[str] = []
        duplicates: dict[str, tuple[str, ...]] = {}
        created = existing = pending = 0
        note = ""
        with Progress("remembering", total, progress) as shown, self.file.roomy():
            for start, batch in _batches(records, encodings, ready, matrix is not None):
                drafts, given = self._drafts(batch, start, resume_key, matrix is None)
                rows: Any = given if matrix is None else matrix[start : start + len(batch)]
                if len(rows) < len(batch):
                    raise InvalidValue(
                        f"vectors: expected a row for each record, found {len(rows) + start:,} rows only"
                    )
                outcome = self.store_batch(drafts, rows, first_record=start)
                batch_ids = [new.memory_id for new in drafts]
                for i, memory_id in outcome.known.items():
                    batch_ids[i] = memory_id
                ids += batch_ids
                duplicates.update((batch_ids[i], of) for i, of in outcome.duplicates.items())
                existing += len(outcome.known)
                created += len(drafts) - len(outcome.known)
                pending += outcome.pending
                note = outcome.note or note
                shown.advance(len(batch))
        if matrix is not None and len(matrix) > len(ids):
            raise InvalidValue(
                f"vectors: expected a row for each record, found {len(matrix):,} rows for {len(ids):,} records, "
                "which were stored"
            )
        return BulkResult(tuple(ids), created, existing, duplicates, pending, note)

    def _drafts(
        self, batch: Sequence[Any], start: int, resume_key: str | None, may_have_vectors: bool
    ) -> tuple[list[Draft], list[Any]]:
        """The checked memories of a batch, and the vector that each record brings along or ``None``."""
        drafts, vectors = [], []
        for number, record in enumerate(batch, start):
            try:
                values = {"content": record} if isinstance(record, str) else _record(record)
                if resume_key is not None:
                    values.setdefault("idempotency_key", f"{resume_key}/{number}")
                vector = values.pop("vector", None)
                if vector is not None and not may_have_vectors:
                    raise InvalidValue("vector: given in the record and in the argument vectors")
                vectors.append(vector)
                drafts.append(self.draft(values))
            except MemlabError as error:
                error.args = (f"record {number}: {error}", *error.args[1:])
                raise
        return drafts, vectors

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
    values = {}
    for name, value in record.items():
        if name in _IGNORED or _missing(value):
            continue
        if name not in _ACCEPTED:
            raise InvalidValue(f"{name!r} is no field of a memory; the fields are {', '.join(_ACCEPTED)}")
        values[name] = value
    return values


def _missing(value: Any) -> bool:
    """Whether a value means "not given": None, and the NaN or NaT that a DataFrame puts where nothing is."""
    return value is None or (isinstance(value, (float, datetime, np.datetime64)) and value != value)


def _matrix(vectors: npt.ArrayLike, records: Iterable[Any]) -> npt.NDArray[Any]:
    try:
        matrix = np.asarray(vectors)
    except ValueError as error:
        raise InvalidValue(f"vectors: expected a matrix with a row for each record, found {error}") from error
    if matrix.ndim != 2:
        raise InvalidValue(f"vectors: expected a matrix with a row for each record, found shape {matrix.shape}")
    if isinstance(records, Sized) and len(records) != len(matrix):
        raise InvalidValue(
            f"vectors: expected a row for each record, found {len(matrix):,} rows for {len(records):,} records"
        )
    return matrix


def _checked(rows: Any, places: Sequence[int], dimension: int, first_record: int | None) -> FloatMatrix:
    """Vectors that came with their memories, as unit rows; what is wrong with one is said of its record."""
    try:
        return check_vectors(rows, len(places), dimension, "vector")
    except EncoderError:
        checked = []
        for i, row in zip(places, rows, strict=True):
            source = "vector" if first_record is None else f"record {first_record + i}: vector"
            checked.append(check_vectors([row], 1, dimension, source))
        return np.concatenate(checked)


def _known(connection: sqlite3.Connection, drafts: Sequence[Draft], first_record: int | None) -> dict[int, str]:
    """Which drafts are in the store already (or earlier in the same batch): index to memory id."""
    present = writing.present(
        connection, [new.memory_id for new in drafts], [new.key for new in drafts if new.key is not None]
    )
    known: dict[int, str] = {}
    keys: dict[str, Draft] = {}
    ids: dict[str, Draft] = {}
    for i, new in enumerate(drafts):
        try:
            memory_id = present.find(new)
            if memory_id is None:
                if new.key is not None:
                    memory_id = _seen(keys.setdefault(new.key, new), new, f"key {new.key}")
                # A draft that its key makes another one's is not stored: its id stands for nothing.
                first = ids.get(new.memory_id, new) if memory_id else ids.setdefault(new.memory_id, new)
                memory_id = _seen(first, new, f"id {new.memory_id}") or memory_id
        except MemlabError as error:
            if first_record is not None:
                error.args = (f"record {first_record + i}: {error}", *error.args[1:])
            raise
        if memory_id is not None:
            known[i] = memory_id
    return known


def _seen(first: Draft, new: Draft, name: str) -> str | None:
    """The id of the first draft under the name, if that is another one."""
    if first is new:
        return None
    if first.content != new.content:
        raise InvalidValue(f"{name} occurs twice in the records, with different content")
    return first.memory_id


def _batches(records: Iterable[Any], encodings: int, most: int, all_ready: bool) -> Iterator[tuple[int, list[Any]]]:
    """Records with the number of the first, at most ``most``, of which at most ``encodings`` bring no vector."""
    batch: list[Any] = []
    start = plain = 0
    for record in records:
        batch.append(record)
        plain += not all_ready and not (isinstance(record, Mapping) and record.get("vector") is not None)
        if plain >= encodings or len(batch) >= most:
            yield start, batch
            start += len(batch)
            batch, plain = [], 0
    if batch:
        yield start, batch


def stored_policy(connection: sqlite3.Connection) -> PassagePolicy | None:
    """The passage policy that the file records; ``None`` before the first vector."""
    text = get_setting(connection, "passages")
    return None if text is None else PassagePolicy(**json.loads(text))
