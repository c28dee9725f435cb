"""JSON Lines, one memory an object a line: a whole store out and in again without loss.

Every line of an export has the keys of :data:`FIELDS`; times are UTC in ISO 8601. ``revisions`` holds the former
contents, oldest first, ``idempotency_keys`` each key with the hash of the content that it stands for. With vectors
there are ``encoder`` (whose they are), ``vector`` and ``passages`` (character offsets and vector); a vector is base64
of little-endian float32.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memlab.checks import whole
from memlab.errors import EncoderError, InvalidValue, StoreError
from memlab.interchange.json_text import json_text
from memlab.interchange.lines import LineReader
from memlab.progress import Progress, Show
from memlab.store.filters import Filters
from memlab.store.records import FIELDS
from memlab.store.transfer import WholeMemory, take_in, whole_memories
from memlab.timestamps import utc_now

if TYPE_CHECKING:
    from memlab.encoders.base import EncoderStamp
    from memlab.store import MemoryStore, PassagePolicy

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class ImportResult:
    """What :func:`import_jsonl` did.

    Attributes
    ----------
    created, existing : int
        Memories that are new; that were there already, with the same content.
    vectors : int
        New ones of which the file's vectors were taken over.
    pending : int
        New ones that wait for a vector.
    note : str
        Why, if any wait.
    duplicates : dict of str to tuple of str
        New ids to the ids of live memories with the very same content. They were stored all the same.
    left_out : dict of str to int
        Names in ``metadata`` that a memory has no place for, and how many lines have them.
    """

    created: int
    existing: int
    vectors: int = 0
    pending: int = 0
    note: str = ""
    duplicates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = [f"{self.created:,} new"]
        if self.existing:
            parts.append(f"{self.existing:,} there already")
        if self.vectors:
            parts.append(f"{self.vectors:,} with their vectors")
        if self.pending:
            parts.append(f"{self.pending:,} without a vector yet ({self.note})")
        if self.duplicates:
            parts.append(f"{len(self.duplicates):,} with the same content as another")
        if self.left_out:
            parts.append("left out of metadata: " + ", ".join(self.left_out))
        return f"<ImportResult: {', '.join(parts)}>"


# -- out -------------------------------------------------------------------------------------------------------------


def export_jsonl(
    store: MemoryStore,
    target: FilePath | IO[bytes] | IO[str],
    *,
    filters: Filters | Mapping[str, Any] | None = None,
    trashed: bool = True,
    vectors: bool = False,
) -> int:
    """Write memories as JSON Lines, oldest first, all as of one commit.

    Parameters
    ----------
    store : MemoryStore
    target : str, Path or file
        A path appears whole or not at all, mode 0600; a file that was there is replaced.
    filters : Filters or mapping, optional
        Write only what passes them.
    trashed : bool
        Write the trash too.
    vectors : bool
        Write vectors and passages, so that an import need not encode again.

    Returns
    -------
    int
        How many were written.

    Raises
    ------
    InvalidValue
        If the path is a directory or the store itself.
    StoreError
        If the file cannot be written.
    """
    chosen = Filters.of(filters)
    if isinstance(target, (str, os.PathLike)):
        with _replacing(Path(target), store.path) as file:
            return _write(store, file, chosen, trashed, vectors)
    return _write(store, target, chosen, trashed, vectors)


def _write(store: MemoryStore, file: IO[bytes] | IO[str], filters: Filters, trashed: bool, vectors: bool) -> int:
    # A file tells what it takes by nothing but its class; a text file has an encoding.
    as_text = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")
    count = 0
    with whole_memories(store, filters, trashed=None if trashed else False, vectors=vectors) as memories:
        for whole in memories:
            line = json_text(line_of(whole, store.passage_policy)) + "\n"
            file.write(line if as_text else line.encode("utf-8"))  # type: ignore[arg-type]
            count += 1
    return count


def line_of(whole: WholeMemory, policy: PassagePolicy) -> dict[str, Any]:
    """The object that stands for a memory in an export."""
    values = whole.memory.as_dict()
    line: dict[str, Any] = {name: values[name] for name in FIELDS}
    line["revisions"] = [{"content": content, "replaced_at": at} for content, at in whole.revisions]
    line["idempotency_keys"] = [{"key": key, "content_hash": hashed} for key, hashed in whole.keys.items()]
    if whole.encoded is not None and whole.encoder is not None:
        line["encoder"] = encoder_facts(whole.encoder, policy)
        line["vector"] = base64.b64encode(whole.encoded.vector).decode("ascii")
        line["passages"] = [
            {"start": start, "end": end, "vector": base64.b64encode(vector).decode("ascii")}
            for start, end, vector in whole.encoded.passages
        ]
    return line


def encoder_facts(encoder: EncoderStamp, policy: PassagePolicy) -> dict[str, Any]:
    """What must be the same for vectors to be taken over, the name aside."""
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "dimension": encoder.dimension,
        "document_prefix": encoder.document_prefix,
        **asdict(policy),
    }


@contextlib.contextmanager
def _replacing(target: Path, source: Path) -> Iterator[IO[bytes]]:
    """A temporary file beside ``target`` that takes its place at the end; a device or a pipe is written to directly."""
    try:
        target = target.expanduser().resolve()
        if target.is_dir():
            raise InvalidValue(f"export: {target} is a directory; add a file name")
        if not target.parent.is_dir():
            raise InvalidValue(f"export: the folder {target.parent} does not exist; make it first")
        own = [source, *(source.with_name(source.name + end) for end in ("-wal", "-shm"))]
        if target.exists() and any(path.exists() and path.samefile(target) for path in own):
            raise InvalidValue(f"export: {target} belongs to the store itself; choose another path")
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)  # mode 0600
    except OSError as error:
        raise StoreError(f"export: {target} cannot be written: {error.strerror or error}") from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"export: {target} cannot be written: {error.strerror or error}; nothing was kept") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# -- in --------------------------------------------------------------------------------------------------------------


def import_jsonl(
    store: MemoryStore,
    source: FilePath | IO[bytes] | IO[str],
    *,
    batch_size: int = 256,
    now: datetime | str | None = None,
    progress: Show = None,
) -> ImportResult:
    """Store the memories of a JSON Lines file; nothing that is there is lost or overwritten.

    A line is an object as :func:`export_jsonl` writes it, of which only ``content`` is required; or one of a BEIR
    corpus: ``_id`` and ``text``, with ``title`` (put before the text) and ``metadata``, of which ``project``,
    ``category``, ``subcategory``, ``tags``, ``importance``, ``created_at``, ``source`` and ``related_files`` are
    carried over. A line without an id gets an idempotency key made of its text, so that importing it again adds
    nothing.

    Vectors are taken over if they are of this store's encoder (weights, dimension, prefix) and passage policy; all
    others are made anew once everything is stored. If no encoder can be had, the memories wait for their vectors.

    Parameters
    ----------
    store : MemoryStore
    source : str, Path or file
    batch_size : int
        Lines a transaction. What was stored stays if a later line is refused; mend it and import again.
    now : datetime or str, optional
        The time of memories that have none; the present by default.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Returns
    -------
    ImportResult

    Raises
    ------
    FormatError
        Naming file and line, if it is not JSON, has an unknown key or a value of the wrong kind.
    DuplicateIdError, IdempotencyError
        Naming file and line, if an id or a key stands for other content in the store.
    """
    batch_size = whole(batch_size, "batch_size", least=1)
    encoder = _encoder_of(store)
    facts = None if encoder is None else encoder_facts(encoder, store.passage_policy)
    created = existing = vectors = 0
    duplicates: dict[str, tuple[str, ...]] = {}
    with LineReader(source, facts, utc_now() if now is None else now) as reader:
        with Progress("importing", reader.total, progress) as shown:
            for batch in reader.batches(batch_size):
                done = take_in(store, batch, encoder)
                created, existing = created + done.created, existing + done.existing
                vectors += done.with_vector
                duplicates.update(done.duplicates)
                shown.advance(len(batch))
        left_out = dict(reader.left_out)
    pending, note = created - vectors, ""
    if pending:
        try:
            store.embed_pending(progress=progress)
            pending = 0
        except EncoderError as error:
            pending, note = min(pending, store.stats().pending), str(error)
    return ImportResult(created, existing, vectors, pending, note, duplicates, left_out)


def _encoder_of(store: MemoryStore) -> EncoderStamp | None:
    """Whose vectors the store takes: as recorded, or for a new store the encoder that it was opened with."""
    from memlab.encoders.base import stamp

    if (recorded := store.encoder_stamp) is not None:
        return recorded
    try:
        return stamp(store.encoder())
    except EncoderError:
        return None
