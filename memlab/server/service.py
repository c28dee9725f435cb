"""What the tools work on: a store, a retriever over it, the server's project, and an encoder that loads behind them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic

from memlab.errors import MemlabError
from memlab.retrieval import HybridRetriever
from memlab.server.files import Files
from memlab.server.projects import Projects, Resolved
from memlab.store import MemoryStore
from memlab.timestamps import utc_now

_EMBED_AT_ONCE = 500  # memories; more of them are a task for `memlab reembed`


class Warmup:
    """Loads the encoder of a store in a thread of its own, so that nobody waits for it who need not.

    What is stored meanwhile goes through a second store on the same file and gets its vectors afterwards.

    Parameters
    ----------
    store : MemoryStore
    embed_pending : bool
        Whether to give vectors to memories that waited for one before, once the encoder is there.
    """

    def __init__(self, store: MemoryStore, *, embed_pending: bool = False) -> None:
        self._store = store
        self._owed = embed_pending and not store.read_only
        self._lock = threading.Lock()
        self._started: float | None = None
        self._done = threading.Event()
        self._meanwhile: MemoryStore | None = None

    def start(self) -> None:
        """Begin to load; a second call does nothing."""
        with self._lock:
            if self._started is not None:
                return
            self._started = monotonic()
        if not self._store.wants_encoder:
            self._done.set()
            return
        threading.Thread(target=self._load, name="memlab-encoder", daemon=True).start()

    def _load(self) -> None:
        try:
            # What is missing is remembered by the store, and said with every recall.
            with contextlib.suppress(MemlabError):
                self._store.encoder()
        finally:
            self._done.set()
        if self._owed:
            self._embed()

    def _embed(self) -> None:
        with contextlib.suppress(MemlabError):
            if 0 < self._store.stats().pending <= _EMBED_AT_ONCE:
                self._store.embed_pending()

    def wait(self, seconds: float) -> bool:
        """Whether loading has come to its end, well or not; waits for it at most so long."""
        self.start()
        return self._done.wait(max(0.0, seconds))

    @contextlib.contextmanager
    def writable(self, seconds: float) -> Iterator[MemoryStore]:
        """A store to write to without waiting for the encoder longer than ``seconds``."""
        if self.wait(seconds):
            yield self._store
            return
        with self._lock:
            if self._meanwhile is None:
                self._meanwhile = self._store.without_encoder()
        try:
            yield self._meanwhile
        finally:
            self._owed = True
            if self._done.is_set():  # the thread may have looked for pending memories before this one was there
                threading.Thread(target=self._embed, name="memlab-encoder", daemon=True).start()

    def close(self) -> None:
        """Close the second store, if there is one."""
        with self._lock:
            if self._meanwhile is not None:
                self._meanwhile.close()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return 0.0 if self._started is None else monotonic() - self._started


@dataclass(frozen=True)
class Service:
    """Everything a tool needs.

    Parameters
    ----------
    store : MemoryStore
    retriever : HybridRetriever, optional
        Over the store; its defaults otherwise.
    projects : Projects
    files : Files
        Where relative paths start, and checksums.
    wait : float
        Seconds that a recall waits for an encoder that is still loading, before it goes by keywords alone.
    read_only : bool
        Whether nothing may be changed, although the store could be.
    client : callable
        Who is calling, for the source of a new memory; empty if nobody knows.
    now : callable
        Gives the present as an aware datetime.
    """

    store: MemoryStore
    retriever: HybridRetriever
    projects: Projects = field(default_factory=Projects)
    files: Files = field(default_factory=lambda: Files(Path.cwd()))
    warmup: Warmup | None = None
    wait: float = 0.0
    read_only: bool = False
    client: Callable[[], str] = lambda: ""
    now: Callable[[], datetime] = utc_now

    @contextlib.contextmanager
    def writable(self) -> Iterator[MemoryStore]:
        """The store to write new text to: while the encoder loads, one that does not wait for it."""
        if self.warmup is None:
            yield self.store
            return
        with self.warmup.writable(self.wait) as store:
            yield store

    def reading(self, project: str) -> Resolved:
        """The project to look in."""
        return self.projects.for_reading(project, self.store.projects() if project.strip() else ())

    def writing(self, project: str) -> Resolved:
        """The project to store under."""
        return self.projects.for_writing(project, self.store.projects())


def service_for(
    store: MemoryStore,
    *,
    retriever: HybridRetriever | None = None,
    project: str | None = None,
    base: Path | None = None,
    wait: float = 0.0,
    read_only: bool = False,
    embed_pending: bool = False,
) -> Service:
    """A service over a store; the encoder is loaded when the first client has its first answer.

    Parameters
    ----------
    retriever : HybridRetriever, optional
        Over the same store; the defaults otherwise.
    project : str, optional
        The server's own.
    base : Path, optional
        What relative paths start from; the working folder by default.
    wait, read_only, embed_pending
        See :class:`Service` and :class:`Warmup`.
    """
    return Service(
        store,
        HybridRetriever(store) if retriever is None else retriever,
        projects=Projects(project or None),
        files=Files(Path.cwd() if base is None else base),
        warmup=Warmup(store, embed_pending=embed_pending),
        wait=wait,
        read_only=read_only or store.read_only,
    )
