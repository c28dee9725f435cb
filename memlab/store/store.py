"""The memory store: one SQLite file, and everything that may be done to the memories in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.checks import whole
from memlab.encoders.base import EncoderStamp, FloatMatrix, stamp
from memlab.errors import EncoderError, InvalidValue, MemlabError
from memlab.progress import Show
from memlab.store import maintenance, projections, reading, termindex, writing
from memlab.store.connection import StoreFile
from memlab.store.encoding import (
    AUTO,
    Encoded,
    EncoderChoice,
    EncoderSlot,
    PassagePolicy,
    recorded_encoder,
)
from memlab.store.filters import Filters
from memlab.store.index import VectorIndex
from memlab.store.keywords import KeywordIndex
from memlab.store.querylog import QueryLog
from memlab.store.records import (
    KEEP,
    Memory,
    changed_columns,
    check_ids,
    check_text,
)
from memlab.store.remembering import BATCH, BulkResult, Writer, stored_policy
from memlab.timestamps import format_time, from_stored, parse_time, utc_now

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from sqlite_utils import Database

    from memlab.encoders.base import Encoder
    from memlab.store.projections import KeptProjection


@dataclass(frozen=True)
class Revision:
    """One state of a memory's content: ``replaced_at`` is ``None`` for the present one."""

    memory_id: str
    revision: int
    content: str
    replaced_at: datetime | None


@dataclass(frozen=True)
class StoredPassage:
    """A passage with its text: ``content[start:end]``."""

    memory_id: str
    position: int
    start: int
    end: int
    text: str


class MemoryStore:
    """Memories in one SQLite file.

    Safe to use from several threads, and from several processes on the same file.

    Parameters
    ----------
    path : str or Path
        The file, made on first use (mode 0600). It is used or refused, never replaced by another.
    encoder : Encoder, None or AUTO
        By default the store's own; for a new store all-MiniLM-L6-v2, loaded when first needed. ``None`` for keyword
        recall alone.
    passages : PassagePolicy, optional
        How content becomes vectors; what the store was made with by default.
    read_only : bool
        Open without the means to write.
    busy_timeout : float
        Seconds that a writer waits for another.
    clock : callable, optional
        Gives the present as an aware datetime.

    Raises
    ------
    NotAStore, StoreTooNew, StoreDamaged, StoreReadOnly
        If the file is not one that can be used; it is left as it was.
    EncoderMismatch
        If an encoder was named and the store's vectors are another one's.

    Examples
    --------
    >>> store = MemoryStore("memory.db")
    >>> store.remember("Webhooks retry with full jitter, capped at 5 min.", project="billing", importance=7)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoder: EncoderChoice = AUTO,
        *,
        passages: PassagePolicy | None = None,
        read_only: bool = False,
        busy_timeout: float = 5.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._file = StoreFile(path, read_only=read_only, busy_timeout=busy_timeout)
        self._clock = clock
        self._index = VectorIndex()
        self._query_log = QueryLog(self._file, clock)
        self._keywords = KeywordIndex()
        try:
            with self._file.read() as connection:
                _, recorded = recorded_encoder(connection)
                recorded_policy = stored_policy(connection)
            slot = EncoderSlot(encoder, recorded)
            slot.check_choice()
            if passages is not None and recorded_policy is not None and passages != recorded_policy:
                raise InvalidValue(
                    f"passages: the vectors of this store were made with {recorded_policy}, found {passages}; leave "
                    "the argument out, or change them with reembed(passages=...)"
                )
            self._writer = Writer(self._file, slot, passages or recorded_policy or PassagePolicy(), clock)
        except BaseException:
            self._file.close()
            raise

    # -- the store itself ------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def read_only(self) -> bool:
        """Whether the store was opened without the means to write."""
        return self._file.read_only

    @property
    def db(self) -> Database:
        """A sqlite-utils ``Database`` on the calling thread's connection, for looking around with SQL."""
        from sqlite_utils import Database

        return Database(self._file.connection(), recursive_triggers=False)

    @property
    def query_log(self) -> QueryLog:
        """The recalls that were recorded in this store, and the switch that has them recorded: off by default."""
        return self._query_log

    @property
    def encoder_stamp(self) -> EncoderStamp | None:
        """Whose vectors the store holds, as recorded in the file; ``None`` before the first vector."""
        with self._file.read() as connection:
            return recorded_encoder(connection)[1]

    @property
    def wants_encoder(self) -> bool:
        """Whether the store was opened with an encoder (the default too), not with ``encoder=None``."""
        return self._writer.slot.choice is not None

    @property
    def passage_policy(self) -> PassagePolicy:
        """How content becomes vectors."""
        return self._writer.policy

    def encoder(self) -> Encoder:
        """The encoder, loaded now if it was not yet; raises :class:`EncoderError` if it cannot be had."""
        return self._writer.slot.get()

    def encode_query(self, text: str) -> FloatMatrix:
        """The vector of a query, float32, shape (dimension,); raises :class:`EncoderError`."""
        return self._writer.slot.encode_queries([text])[0][0]  # type: ignore[no-any-return]

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Vectors of queries, float32, shape (len(texts), dimension); raises :class:`EncoderError`."""
        return self._writer.slot.encode_queries(texts)[0]

    def encode_query_stamped(self, text: str) -> tuple[FloatMatrix, EncoderStamp]:
        """A query's vector, float32, shape (dimension,), and whose it is; raises :class:`EncoderError`.

        The stamp goes along because another process may re-embed the store before the vector is compared.
        """
        with self._file.read() as connection:
            self._writer.sync(connection)
        vectors, made_by = self._writer.slot.encode_queries([text])
        return vectors[0], made_by

    def without_encoder(self) -> MemoryStore:
        """A second store on the same file that loads no encoder: what it stores waits for :meth:`embed_pending`.

        For writing while the encoder of this one is still being loaded. To be closed by itself.
        """
        return MemoryStore(
            self.path, None, read_only=self.read_only, busy_timeout=self._file.busy_timeout, clock=self._clock
        )

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self._query_log.close()
        self._file.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Memories that are not in the trash."""
        with self._file.read() as connection:
            return reading.count(connection, "trashed_at IS NULL")

    def __bool__(self) -> bool:
        return True  # an empty store is still a store

    def __contains__(self, memory_id: object) -> bool:
        with self._file.read() as connection:
            return isinstance(memory_id, str) and memory_id in reading.fetch(connection, [memory_id])

    def __repr__(self) -> str:
        if self._file.closed:
            return f"<MemoryStore {self.path} (closed)>"
        stats = self.stats()
        parts = [f"{stats.memories:,} memories"]
        if stats.trashed:
            parts.append(f"{stats.trashed:,} in the trash")
        if stats.pending:
            parts.append(f"{stats.pending:,} without a vector yet")
        parts.append(stats.encoder or "no vectors yet")
        return f"<MemoryStore {self.path}: {', '.join(parts)}>"

    # -- remembering -----------------------------------------------------------------------------------------------

    def remember(
        self,
        content: str,
        *,
        project: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | str | None = None,
        importance: int | None = None,
        subcategory: str | None = None,
        source: str | None = None,
        related_files: Iterable[str] | None = None,
        file_checksums: Mapping[str, str] | None = None,
        created_at: datetime | str | None = None,
        memory_id: str | None = None,
        idempotency_key: str | None = None,
        vector: Any = None,
    ) -> Memory:
        """Store one memory.

        If no encoder can be had it is stored all the same, found by its words, and waits for a vector (``pending``).

        Parameters
        ----------
        content : str
            Any text that is not blank.
        project, category, subcategory, source : str, optional
            The category is ``note`` by default.
        tags : iterable of str, optional
        importance : int, optional
            1 to 10, 5 by default.
        related_files : iterable of str, optional
        file_checksums : mapping of str to str, optional
        created_at : datetime or str, optional
            With a zone; now by default.
        memory_id : str, optional
            Made up by default.
        idempotency_key : str, optional
            The same key with the same content gives back the memory that was stored first.
        vector : array_like, shape (dimension,), optional
            A document vector made elsewhere with this store's encoder; no passages are made then.

        Returns
        -------
        Memory
            ``duplicate_of`` names live memories with the very same content, ``created`` is False where the key or the
            id was known.

        Raises
        ------
        InvalidValue
            If a value cannot be stored.
        IdempotencyError, DuplicateIdError
            If the key or the id stands for other content.
        EncoderError
            If ``vector`` does not fit the store.
        """
        new = self._writer.draft(
            dict(
                content=content,
                project=project,
                category=category,
                tags=tags,
                importance=importance,
                subcategory=subcategory,
                source=source,
                related_files=related_files,
                file_checksums=file_checksums,
                created_at=created_at,
                memory_id=memory_id,
                idempotency_key=idempotency_key,
            )
        )
        outcome = self._writer.store_batch([new], [vector])
        known = outcome.known.get(0)
        with self._file.read() as connection:
            memory = reading.fetch(connection, [known or new.memory_id])[known or new.memory_id]
        return replace(memory, created=known is None, duplicate_of=outcome.duplicates.get(0, ()))

    def remember_many(
        self,
        records: Iterable[str | Mapping[str, Any]],
        *,
        vectors: npt.ArrayLike | None = None,
        batch_size: int = BATCH,
        resume_key: str | None = None,
        progress: Show = None,
    ) -> BulkResult:
        """Store many memories: encoded in batches, each batch one transaction.

        Parameters
        ----------
        records : iterable of str or mapping
            Contents, or mappings with the arguments of :meth:`remember` (``content`` is required). The DataFrame of
            :meth:`memories` can be given as ``frame.to_dict("records")``.
        vectors : array_like, shape (n, dimension), optional
            A document vector for each record, made elsewhere with this store's encoder; in place of ``vector`` in the
            records.
        batch_size : int
            Records a transaction; by default 256 of which the vectors are yet to be made, 8,192 with ready ones. What
            was committed stays if the work is interrupted.
        resume_key : str, optional
            Makes a repetition of the same call go on where it stopped: record ``i`` gets the idempotency key
            ``resume_key/i``. Records with an id of their own resume without it.
        progress : bool or callable, optional
            See :class:`memlab.progress.Progress`.

        Returns
        -------
        BulkResult

        Raises
        ------
        InvalidValue, IdempotencyError, DuplicateIdError
            Naming the record. The batch it is in is not stored, those before are.
        EncoderError
            If a vector does not fit the store; the same holds.
        """
        return self._writer.remember_many(
            records, vectors=vectors, batch_size=batch_size, resume_key=resume_key, progress=progress
        )

    def embed_pending(self, *, batch_size: int = 256, progress: Show = None) -> int:
        """Give vectors to the memories that wait for one; returns how many got theirs.

        Raises
        ------
        EncoderError
            If the encoder cannot be had or fails; what was done before stays.
        """
        return self._writer.embed_pending(batch_size=batch_size, progress=progress)

    # -- changing --------------------------------------------------------------------------------------------------

    def update(
        self,
        memory_id: str,
        content: str = KEEP,
        *,
        project: str | None = KEEP,
        category: str = KEEP,
        tags: Iterable[str] | str | None = KEEP,
        add_tags: Iterable[str] | str | None = KEEP,
        importance: int = KEEP,
        subcategory: str | None = KEEP,
        source: str | None = KEEP,
        related_files: Iterable[str] | None = KEEP,
        file_checksums: Mapping[str, str] | None = KEEP,
    ) -> Memory:
        """Change a memory; what is not given stays. The former content becomes a revision, see :meth:`history`.

        ``add_tags`` go to the ``tags`` that are given, or else to those there are at the moment of writing: of two
        writers that each add one, neither loses its own.

        Raises
        ------
        UnknownMemory
            If there is none with this id, or it is in the trash.
        InvalidValue
            If a value cannot be stored, or nothing to change is given.
        """
        self._file.require_writable()
        columns = changed_columns(
            dict(
                content=content,
                project=project,
                category=category,
                tags=tags,
                add_tags=add_tags,
                importance=importance,
                subcategory=subcategory,
                source=source,
                related_files=related_files,
                file_checksums=file_checksums,
            )
        )
        more_tags = columns.pop("add_tags", None)
        encoded: Encoded | None = None
        made_by: EncoderStamp | None = None
        with self._file.read() as connection:
            writing.require(connection, memory_id, live=True)
            self._writer.sync(connection)
        if "content" in columns:
            # Without an encoder the new text is kept and waits for its vector; the old vector speaks of the old text.
            with contextlib.suppress(EncoderError):
                (encoded,), made_by = self._writer.slot.encode_contents([columns["content"]], self._writer.policy)
        with self._file.write() as connection:
            writing.require(connection, memory_id, live=True)
            if more_tags is not None:
                columns["tags"] = writing.with_tags(connection, memory_id, more_tags, columns.get("tags"))
            writing.change_columns(connection, memory_id, {**columns, "updated_at": format_time(self._clock())})
            if encoded is not None:
                encoder_id, _ = self._writer.encoder_for(connection, made_by, "")
                if encoder_id is not None:
                    writing.set_vectors(connection, [(memory_id, columns["content"], encoded)], encoder_id)
            return reading.fetch(connection, [memory_id])[memory_id]

    def change_category(self, name: str, new_name: str) -> int:
        """Give the live memories of a category another one: all of them, or after an error none.

        Returns
        -------
        int
            How many memories it was.

        Raises
        ------
        InvalidValue
            If a name cannot be stored.
        """
        name, new_name = check_text(name, "name"), check_text(new_name, "new_name")
        with self._file.write() as connection:
            changed = connection.execute(
                "UPDATE memories SET category = ?, updated_at = ? WHERE category = ? AND trashed_at IS NULL",
                (new_name, format_time(self._clock()), name),
            )
            return changed.rowcount

    def touch(self, memory_ids: str | Iterable[str]) -> None:
        """Count one access to each memory, now. Recall itself never does: reading takes no write lock.

        Raises
        ------
        UnknownMemory
            If an id does not exist; none is counted then.
        """
        ids = check_ids(memory_ids)
        now = format_time(self._clock())
        with self._file.write() as connection:
            for memory_id in ids:
                writing.require(connection, memory_id)
            connection.executemany(
                "UPDATE memories SET access_count = access_count + 1, accessed_at = ? WHERE id = ?",
                [(now, memory_id) for memory_id in ids],
            )

    def forget(self, memory_id: str) -> Memory:
        """Move a memory to the trash: no recall finds it, :meth:`restore` brings it back.

        Raises
        ------
        UnknownMemory
            If there is none with this id. One that is in the trash already stays as it is.
        """
        return self._set_trashed(memory_id, format_time(self._clock()))

    def restore(self, memory_id: str) -> Memory:
        """Bring a memory back from the trash.

        Raises
        ------
        UnknownMemory
            If there is none with this id. One that is not in the trash stays as it is.
        """
        return self._set_trashed(memory_id, None)

    def _set_trashed(self, memory_id: str, trashed_at: str | None) -> Memory:
        with self._file.write() as connection:
            writing.require(connection, memory_id)
            memory = reading.fetch(connection, [memory_id])[memory_id]
            if (memory.trashed_at is None) == (trashed_at is None):
                return memory
            writing.change_columns(connection, memory_id, {"trashed_at": trashed_at})
            return reading.fetch(connection, [memory_id])[memory_id]

    def purge(
        self, memory_ids: str | Iterable[str] | None = None, *, trashed_before: datetime | str | None = None
    ) -> int:
        """Delete memories from the trash for good: those named, or all (that were put there before a time).

        Returns
        -------
        int
            How many were deleted.

        Raises
        ------
        UnknownMemory
            If an id does not exist.
        InvalidValue
            If a memory is not in the trash; forget it first. Nothing is deleted then.
        """
        bound = None if trashed_before is None else format_time(parse_time(trashed_before, "trashed_before"))
        with self._file.write() as connection:
            if memory_ids is None:
                condition = "trashed_at IS NOT NULL"
                values: list[Any] = []
                if bound is not None:
                    condition, values = "trashed_at < ?", [bound]
                return connection.execute(f"DELETE FROM memories WHERE {condition}", values).rowcount
            ids = check_ids(memory_ids)
            for memory_id in ids:
                writing.require(connection, memory_id)
                memory = reading.fetch(connection, [memory_id])[memory_id]
                if memory.trashed_at is None:
                    raise InvalidValue(f"purge: memory {memory_id} is not in the trash; forget({memory_id!r}) it first")
            return sum(
                connection.execute(
                    "DELETE FROM memories WHERE id = :id AND (:bound IS NULL OR trashed_at < :bound)",
                    {"id": memory_id, "bound": bound},
                ).rowcount
                for memory_id in ids
            )

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory:
        """One memory, in the trash or not; raises :class:`UnknownMemory`."""
        with self._file.read() as connection:
            writing.require(connection, memory_id)
            return reading.fetch(connection, [memory_id])[memory_id]

    def read_hits(self, wanted: Mapping[str, int | None]) -> dict[str, tuple[Memory, tuple[int, int] | None]]:
        """Live memories by id, each with the character offsets of one of its passages; what a recall shows.

        Parameters
        ----------
        wanted : mapping of str to int or None
            Memory id to the position of a passage, if one is to be shown.
        """
        with self._file.read() as connection:
            found = reading.fetch(connection, list(wanted))
            spans = reading.spans(connection, {key: at for key, at in wanted.items() if at is not None})
        return {key: (memory, spans.get(key)) for key, memory in found.items() if memory.trashed_at is None}

    def get_many(self, memory_ids: Iterable[str]) -> list[Memory]:
        """The memories that exist among those named, in that order."""
        with self._file.read() as connection:
            return list(reading.fetch(connection, check_ids(memory_ids)).values())

    def find(
        self,
        filters: Filters | Mapping[str, Any] | None = None,
        *,
        trashed: bool | None = False,
        limit: int | None = None,
        **given: Any,
    ) -> list[Memory]:
        """Memories by metadata, newest first: ``find(project="billing", tags=["retry"], limit=20)``.

        Parameters
        ----------
        filters : Filters or mapping, optional
            Or its fields as keyword arguments.
        trashed : bool or None
            ``True`` looks in the trash, ``None`` everywhere.
        limit : int, optional

        Raises
        ------
        InvalidValue
            If a filter is unknown or has a value of the wrong kind.
        """
        chosen = Filters.of(filters, **given)
        if limit is not None:
            limit = whole(limit, "limit", least=0)
        with self._file.read() as connection:
            return reading.select(connection, chosen, trashed=trashed, limit=limit)

    def memories(
        self, filters: Filters | Mapping[str, Any] | None = None, *, trashed: bool | None = False, **given: Any
    ) -> pd.DataFrame:
        """All memories that pass the filters as a frame, newest first.

        Returns
        -------
        DataFrame
            ``memory_id, content, category, project, tags, importance, created_at`` and the other fields of
            :class:`Memory`; times are ``datetime64`` in UTC.
        """
        import pandas as pd

        found = self.find(filters, trashed=trashed, **given)
        names = [name for name in Memory.__dataclass_fields__ if name not in ("duplicate_of", "created")]
        frame = pd.DataFrame({name: [getattr(memory, name) for memory in found] for name in names}, columns=names)
        for name in ("created_at", "accessed_at", "trashed_at", "updated_at"):
            frame[name] = pd.to_datetime(frame[name], utc=True)
        return frame

    def history(self, memory_id: str) -> list[Revision]:
        """Every content the memory has had, oldest first; the last is the present one.

        Raises
        ------
        UnknownMemory
            If there is none with this id.
        """
        with self._file.read() as connection:
            writing.require(connection, memory_id)
            rows = connection.execute(
                "SELECT revision, content, replaced_at FROM memory_revisions WHERE memory_id = ? ORDER BY revision",
                (memory_id,),
            ).fetchall()
            present = connection.execute("SELECT content FROM memories WHERE id = ?", (memory_id,)).fetchone()[0]
        past = [Revision(memory_id, number, content, from_stored(at)) for number, content, at in rows]
        return [*past, Revision(memory_id, len(past) + 1, present, None)]

    def passages(self, memory_id: str) -> list[StoredPassage]:
        """The passages of a memory; one that fits the encoder is its own passage.

        Raises
        ------
        UnknownMemory
            If there is none with this id.
        """
        with self._file.read() as connection:
            writing.require(connection, memory_id)
            content = connection.execute("SELECT content FROM memories WHERE id = ?", (memory_id,)).fetchone()[0]
            rows = connection.execute(
                "SELECT position, start_offset, end_offset FROM memory_passages WHERE memory_id = ? ORDER BY position",
                (memory_id,),
            ).fetchall() or [(0, 0, len(content))]
        return [StoredPassage(memory_id, at, start, end, content[start:end]) for at, start, end in rows]

    def vectors(self) -> tuple[list[str], FloatMatrix]:
        """Ids of the live memories that have a vector, and the vectors, float32, shape (n, dimension)."""
        with self.view() as view:
            numbers, _, matrix = view.documents.matrix()
            ids = view.ids(numbers.tolist())
        return [ids[number] for number in numbers.tolist()], matrix

    def keep_projection(
        self, encoder_id: int, settings: str, picture: KeptProjection, change: int, *, new: bool
    ) -> None:
        """Keep where memories lie in a picture of their vectors, see :mod:`memlab.projection`.

        Parameters
        ----------
        encoder_id, change : int
            Of the view whose vectors were projected; memories that changed since are left out.
        settings : str
            JSON; a picture is found again by it.
        picture : KeptProjection
        new : bool
            Whether it takes the place of a former picture, or adds memories to it.
        """
        with self._file.write() as connection:
            if connection.execute("SELECT 1 FROM encoders WHERE id = ?", (encoder_id,)).fetchone() is None:
                return  # re-embedded meanwhile
            if new:
                projections.keep(connection, encoder_id, settings, format_time(self._clock()), picture, change)
            else:
                projections.add(connection, encoder_id, settings, picture, change)

    def categories(self, **given: Any) -> dict[str, int]:
        """Live memories a category, most first; of those that pass the filters: ``categories(project="billing")``."""
        return self._tally("category", **given)

    def projects(self, **given: Any) -> dict[str, int]:
        """Live memories a project, most first; of those that pass the filters."""
        return self._tally("project", **given)

    def sources(self) -> dict[str, int]:
        """Live memories a source, most first."""
        return self._tally("source")

    def tags(self) -> dict[str, int]:
        """Live memories a tag, most first."""
        return self._tally("value", "memories m, json_each(m.tags)")

    def _tally(self, column: str, table: str = "memories m", **given: Any) -> dict[str, int]:
        where, values = Filters.of(None, **given).sql()
        with self._file.read() as connection:
            rows = connection.execute(
                f"SELECT {column}, count(*) AS n FROM {table} WHERE m.trashed_at IS NULL AND {column} IS NOT NULL "
                f"AND {where} GROUP BY {column} ORDER BY n DESC, {column}",
                values,
            ).fetchall()
        return dict(rows)

    def stats(self) -> maintenance.StoreStats:
        """How much of what is in the store."""
        with self._file.read() as connection:
            return maintenance.stats(connection, self.path)

    @contextlib.contextmanager
    def view(self, filters: Filters | None = None) -> Iterator[reading.ReadView]:
        """One consistent look at rows, search index and vectors; what retrieval reads through.

        Takes no write lock, except for a short one where another program has written memories whose terms are not in
        the term index yet.
        """
        indexing, coding = (0, 0) if self.read_only else (3, 1)  # attempts
        for _ in range(20):
            nested, keep = self._file.in_transaction, not self._file.may_roll_back
            with self._file.read() as connection:
                ready = termindex.ready(connection)
                encoder_id, recorded = recorded_encoder(connection)
                code = bool(coding) and not nested and self._index.wants_codes(connection, encoder_id)
                if nested or not (code or (indexing and not ready)):
                    dimension = recorded.dimension if recorded else 1
                    snapshot = self._index.snapshot(connection, encoder_id, dimension, keep=keep)
                    if snapshot is None and nested:
                        # The transaction is the caller's and cannot be begun anew: a look of its own.
                        snapshot = self._index.snapshot(connection, encoder_id, dimension, keep=False)
                    if snapshot is not None:
                        self._writer.slot.follow(recorded)
                        live = snapshot.live
                        keywords = None if nested else self._keywords
                        yield reading.ReadView(
                            connection, snapshot, recorded, live, filters or Filters(), ready, keep, keywords
                        )
                        return
                    continue
            if indexing and not ready:
                indexing = indexing - 1 if self._file.try_to_index_terms() else 0
            if code:
                coding = 0
                self._file.try_to_make_codes(anew=self._index.damaged)
                self._index.damaged = False
        raise MemlabError(
            f"{self.path}: could not get a steady view in 20 attempts while other threads wrote; try again"
        )  # pragma: no cover - needs a writer between every two statements

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a consistent copy of the store to ``path`` (mode 0600), while others may go on writing.

        Raises
        ------
        InvalidValue
            If ``path`` exists and ``overwrite`` is not set, or is the store itself.
        """
        with self._file.read() as connection:
            return maintenance.backup(connection, self.path, Path(path), overwrite=overwrite)

    def check(self) -> maintenance.CheckReport:
        """Verify the file: SQLite's integrity, search and term index against rows, vectors, passages, pending count."""
        with self._file.read() as connection:
            _, recorded = recorded_encoder(connection)
            return maintenance.check(connection, recorded)

    def reindex(self, *, progress: Show = None) -> int:
        """Make the term index and the codes of the vectors anew, where :meth:`check` says that one of them is wrong.

        Nothing else needs it: an index made by another version of memlab is noticed and made anew by itself.

        Returns
        -------
        int
            How many memories were indexed.
        """
        return maintenance.reindex(self._file, progress=progress)

    def reembed(
        self,
        encoder: Encoder | None = None,
        *,
        passages: PassagePolicy | None = None,
        batch_size: int = 256,
        progress: Show = None,
    ) -> int:
        """Make all vectors anew, with another encoder or another passage policy.

        The new vectors gather aside and are taken over all at once at the end; until then the old ones answer. Stopped
        half-way, a call with the same encoder goes on where it was.

        Parameters
        ----------
        encoder : Encoder, optional
            The present one by default.
        passages : PassagePolicy, optional
            The present one by default.

        Returns
        -------
        int
            How many memories have new vectors.

        Raises
        ------
        EncoderError
            If the encoder cannot be had or fails; the old vectors stay in use.
        """
        self._file.require_writable()
        batch_size = whole(batch_size, "batch_size", least=1)
        chosen = self._writer.slot.get() if encoder is None else encoder
        policy = passages or self._writer.policy
        count = maintenance.reembed(self._file, chosen, policy, batch_size=batch_size, progress=progress)
        self._writer.policy = policy
        self._writer.slot = EncoderSlot(chosen, stamp(chosen))
        return count


# Fields of a Memory that a record may carry along (an export has them) and that say nothing new.


__all__ = ["AUTO", "BulkResult", "MemoryStore", "Revision", "StoredPassage"]
