"""Stores of labelled sets, built once and kept: encoding a corpus takes minutes, opening its store none."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.encoders.base import stamp
from memlab.errors import (
    EncoderError,
    EncoderUnavailable,
    InvalidValue,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)
from memlab.evaluation.folders import LabelledSet, content_key
from memlab.evaluation.vectors import vector_file
from memlab.progress import Progress, Show
from memlab.store import AUTO, MemoryStore, PassagePolicy
from memlab.store.analysis import ANALYSIS_VERSION
from memlab.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from memlab.store.encoding import EncoderChoice

_BATCH = 512
_MANY = 1000  # texts from which on making the encoder's graph first saves more than it costs
_EVERY = 0.2  # seconds between two looks at the lock
_ANOTHER = "free or unlock it, or name another folder: cache=, --cache or MEMLAB_CACHE"


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Where stores are kept: ``cache``, else the environment's MEMLAB_CACHE, else the user's cache folder."""
    if cache is not None:
        return Path(cache).expanduser()
    if named := os.environ.get("MEMLAB_CACHE", "").strip():
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("memlab", appauthor=False)) / "evaluation"


def build_store(
    labelled: LabelledSet,
    cache: str | os.PathLike[str] | None = None,
    encoder: EncoderChoice = AUTO,
    passages: PassagePolicy | None = None,
    progress: Show = None,
) -> MemoryStore:
    """The store of a labelled set, built if it is not in the cache, opened for reading.

    What decides the name of the file: the records, the encoder's stamp and query prefix, the passage policy and the
    schema version. The file appears when it is whole. A build that was interrupted is gone on with by the next call,
    and of two calls at once one waits for the other.

    Parameters
    ----------
    labelled : LabelledSet
    cache : str or Path, optional
        See :func:`cache_folder`.
    encoder : Encoder, None or AUTO
        all-MiniLM-L6-v2 by default; ``None`` for keyword recall alone.
    passages : PassagePolicy, optional
        ``PassagePolicy()`` by default.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Raises
    ------
    EncoderError
        If the encoder cannot be had, or some content cannot be encoded: a store with holes is not kept.
    InvalidValue
        If there are no records, or one of them cannot be stored; the message names it.
    StoreError
        If the cache folder cannot be written.
    """
    if not labelled.corpus:
        raise InvalidValue(f"{labelled.name}: expected memories, found none")
    policy = PassagePolicy() if passages is None else passages
    folder = cache_folder(cache)
    path = folder / f"{_safe(labelled.name)}-{_digest(labelled, encoder, policy)}.db"

    def make(part: Path) -> None:
        # By length: batches then hold texts of one size, which is quicker and changes no vector.
        records = sorted(labelled.corpus, key=lambda record: len(record["content"]))
        if len(records) >= _MANY:
            _prepare(encoder, progress)
        with _begun(part, encoder, policy) as store:
            done = store.remember_many(records, batch_size=_BATCH, progress=progress)
            pending = 0 if encoder is None else store.stats().pending
            if pending:
                raise EncoderError(f"{labelled.name}: {pending:,} memories could not be encoded: {done.note}")

    return kept_store(path, encoder, make)


def kept_store(path: Path, encoder: EncoderChoice, make: Callable[[Path], None]) -> MemoryStore:
    """Open the store at ``path`` for reading; if it is not there, have it made first.

    Parameters
    ----------
    path : Path
        In the cache; the folder is made if it is not there.
    encoder : Encoder, None or AUTO
        To open it with.
    make : callable
        Makes the store under the temporary name it is given and closes it; what an interrupted call made is there. No
        other process makes it meanwhile.

    Raises
    ------
    StoreError
        If the folder cannot be written or the disk is full. What was made until then is gone on with next time.
    """
    if path.exists():
        with contextlib.suppress(NotAStore, StoreDamaged):  # what can be made again need not be mended
            return MemoryStore(path, encoder, read_only=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"{path.parent}: the cache folder cannot be made: {error.strerror}; {_ANOTHER}") from error
    with _writing(path.parent), _alone(path.with_suffix(".lock")):
        if path.exists():
            try:
                return MemoryStore(path, encoder, read_only=True)  # another process has made it meanwhile
            except (NotAStore, StoreDamaged):
                _remove(path)
        part = path.with_suffix(".part")
        make(part)
        log = part.with_name(f"{part.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(f"{part}: another process has the unfinished store open; try again later")
        vector_file(path).touch()  # its presence says that vectors of queries may be kept there
        part.replace(path)
    return MemoryStore(path, encoder, read_only=True)


def _prepare(encoder: EncoderChoice, progress: Show) -> None:
    """Have the fast path of all-MiniLM-L6-v2 ready; without it torch does the work, and ``memlab doctor`` says why."""
    from memlab.encoders import MiniLM

    with contextlib.suppress(EncoderError):
        chosen = MiniLM() if encoder is AUTO else getattr(encoder, "inner", encoder)
        if isinstance(chosen, MiniLM):
            shown = False if callable(progress) else progress  # a callable counts memories
            with Progress("making the encoder's graph, once", 1, shown) as bar:
                chosen.try_to_prepare()
                bar.advance()


def _begun(part: Path, encoder: EncoderChoice, policy: PassagePolicy) -> MemoryStore:
    """The store of an interrupted build, or a new one where that cannot be gone on with."""
    try:
        return MemoryStore(part, encoder, passages=policy)
    except (StoreReadOnly, StoreFull, StoreLocked, EncoderUnavailable):
        raise  # nothing is wrong with what is there
    except (StoreError, EncoderError, InvalidValue):
        if not part.exists():
            raise
        _remove(part)
        return MemoryStore(part, encoder, passages=policy)


def _remove(path: Path) -> None:
    """Take a store away that is good for nothing."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say what can be done about a cache folder that cannot be written."""
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, (str, os.PathLike)) or Path(error.filename).parent != folder:
            raise  # an encoder's, or whoever's
        raise StoreError(
            f"{folder}: the cache folder cannot be written: {error.strerror or error}; {_ANOTHER}"
        ) from error
    except StoreReadOnly as error:
        raise StoreReadOnly(f"{folder}: the cache folder cannot be written; {_ANOTHER}") from error


def _digest(labelled: LabelledSet, encoder: EncoderChoice, policy: PassagePolicy) -> str:
    made_with: dict[str, Any] = {"schema": [SCHEMA_VERSION, ANALYSIS_VERSION], "passages": asdict(policy)}
    if encoder is not None:
        if encoder is AUTO:
            from memlab.encoders import MiniLM

            chosen: Any = MiniLM()
        else:
            chosen = encoder
        made_with |= {**asdict(stamp(chosen)), "query_prefix": chosen.query_prefix}
    digest = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode())
    digest.update(content_key(labelled).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "set"


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that no other process holds; a process that dies lets go of it, on every platform."""
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise StoreReadOnly(f"{path}: the lock of the cache cannot be made: {error}") from error
    try:
        while True:
            try:
                connection.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                    raise StoreReadOnly(f"{path}: the lock of the cache cannot be taken: {error}") from error
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise StoreError(f"{path}: the lock of the cache cannot be taken: {error}") from error
                time.sleep(_EVERY)
        yield
    finally:
        connection.close()
