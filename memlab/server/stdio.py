"""The server on stdin and stdout: nothing but the protocol on the wire, never held up by stderr, gone when it should.

What has to be seen to, each of it met in practice:

- whatever prints while modules are imported, or a child process, would write into the wire: stdout is kept aside until
  the protocol begins, and again when it has ended;
- a client that never reads stderr fills its pipe, and the next warning would block for good: a thread drains it;
- Ctrl-C and SIGTERM must end the process at once, whatever a worker thread is doing;
- a client that dies may leave the pipes open in another process: the parent's id is watched.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidValue

if TYPE_CHECKING:
    from memlab.store import MemoryStore

_POLL = 0.5  # seconds between two looks at the parent
_LAST_WORDS = 0.2  # seconds that stderr gets at the end
_CLOSING = 0.5  # seconds that the store gets


@contextlib.contextmanager
def wire_kept_clean() -> Iterator[Wire]:
    """Keep stdout aside: what is printed goes to stderr, until :meth:`Wire.open`."""
    open_what_is_closed()
    wire = Wire()
    try:
        yield wire
    finally:
        wire.close()


def open_what_is_closed() -> None:
    """Point those of the three standard streams at nothing that the parent has closed.

    Otherwise the next file to be opened gets their number, and what is said to stderr goes there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


class Wire:
    """File descriptor 1, kept for the protocol."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._kept = os.dup(1)
        os.dup2(2, 1)

    @property
    def unread(self) -> bool:
        """Whether the reader of stdout is gone for good; False where the system cannot say."""
        if not hasattr(select, "poll"):
            return False
        looking = select.poll()
        looking.register(self._kept, 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in looking.poll(0))

    def open(self) -> None:
        """Give stdout back to the protocol."""
        sys.stdout.flush()  # what was printed until now has gone to stderr
        os.dup2(self._kept, 1)

    def close(self) -> None:
        """Point stdout at nothing: what is printed at the very end is no message."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)


class DrainedStderr:
    """Puts a pipe in the place of stderr, and passes on what comes out of it as long as somebody takes it.

    One thread empties the pipe, another writes to the old stderr and may wait there for ever; between them is a queue
    that drops what finds no room. So a write to stderr never waits, on any system.
    """

    def __init__(self, room: int = 256) -> None:
        self._old = os.dup(2)
        self._chunks: queue.Queue[bytes] = queue.Queue(room)
        out, into = os.pipe()
        os.dup2(into, 2)
        os.close(into)
        threading.Thread(target=self._empty, args=(out,), name="memlab-stderr", daemon=True).start()
        threading.Thread(target=self._pass_on, name="memlab-stderr-out", daemon=True).start()

    def _empty(self, out: int) -> None:
        while chunk := os.read(out, 65536):
            with contextlib.suppress(queue.Full):
                self._chunks.put_nowait(chunk)

    def _pass_on(self) -> None:
        while True:
            chunk = self._chunks.get()
            with contextlib.suppress(OSError):
                os.write(self._old, chunk)
            self._chunks.task_done()

    def last_words(self) -> None:
        """Wait a little for what was said last."""
        sys.stderr.flush()
        end = time.monotonic() + _LAST_WORDS
        time.sleep(0.01)  # the pipe is being emptied
        while self._chunks.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.005)

    def restore(self) -> None:
        """Give stderr back, after the last words; for a process that goes on."""
        self.last_words()
        os.dup2(self._old, 2)


def set_up_logging(level: str, file: Path | None) -> None:
    """Send log records to a file, or to stderr; raises :class:`InvalidValue` for a file that cannot be written."""
    handler: logging.Handler
    try:
        handler = logging.StreamHandler() if file is None else logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"log file: {file} cannot be written ({error.strerror}); name another one") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


def leave(store: MemoryStore | None, stderr: DrainedStderr | None, code: int = 0) -> None:
    """End the process now: whatever a worker thread is in the midst of is undone by SQLite."""
    try:
        if store is not None:
            closing = threading.Thread(target=store.close, daemon=True)
            closing.start()
            closing.join(_CLOSING)
        if stderr is not None:
            stderr.last_words()
    finally:
        os._exit(code)


def end_on_signals(store: MemoryStore, stderr: DrainedStderr | None) -> None:
    """Leave on SIGINT, SIGTERM and, where there is one, SIGHUP."""

    def handle(*_: Any) -> None:
        leave(store, stderr)

    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, handle)


def end_with_client(store: MemoryStore, stderr: DrainedStderr | None, wire: Wire) -> None:
    """Leave when the process that started this one is gone, or nobody can read the answers any more."""
    parent = os.getppid()
    if os.name == "nt":
        return  # Windows gives no new parent; its pipes close instead

    def watch() -> None:
        while os.getppid() == parent and not wire.unread:
            time.sleep(_POLL)
        leave(store, stderr)

    threading.Thread(target=watch, name="memlab-parent", daemon=True).start()


def serve_stdio(
    store: MemoryStore,
    wire: Wire,
    stderr: DrainedStderr | None,
    *,
    project: str | None,
    wait: float,
) -> None:
    """Serve until stdin ends, then leave; does not return.

    Parameters
    ----------
    store : MemoryStore
        Closed at the end.
    wire : Wire
        From :func:`wire_kept_clean`.
    stderr : DrainedStderr or None
    project : str or None
        The server's own.
    wait : float
        Seconds that a recall waits for an encoder that is still loading.
    """
    end_on_signals(store, stderr)
    end_with_client(store, stderr, wire)
    gc.disable()  # nothing that is imported is garbage, and looking for some takes a fifth of the time
    from memlab.server.activity import Activity
    from memlab.server.app import MemoryServer
    from memlab.server.service import service_for

    service = service_for(store, project=project, wait=wait, embed_pending=True)
    server = MemoryServer(service, Activity(keep=0))
    gc.freeze()
    gc.enable()
    code = 0
    wire.open()
    try:
        server.run("stdio")
    except* (BrokenPipeError, KeyboardInterrupt):
        pass  # the client has gone, and nobody is left to tell
    except* BaseException:
        logging.getLogger(__name__).exception("the server stopped")
        code = 1
    finally:
        wire.close()
        leave(store, stderr, code)
