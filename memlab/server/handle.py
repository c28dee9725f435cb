"""``memlab.serve``: a store served from a notebook, and the handle that watches and stops it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memlab.checks import whole
from memlab.errors import InvalidValue, StoreError
from memlab.retrieval import HybridRetriever
from memlab.server import card
from memlab.server.activity import Activity
from memlab.server.clients import CLIENTS, Http, Snippet, http_snippet, stdio_snippet
from memlab.server.http import HttpServer
from memlab.server.live import Live
from memlab.server.sockets import bound_socket
from memlab.server.tokens import MASK, Secret, ensure_token, is_token, keep_token, new_token, token_path
from memlab.store import MemoryStore

if TYPE_CHECKING:
    import pandas as pd
    from mcp import Client

    from memlab.retrieval import Recall
    from memlab.server.activity import Call
    from memlab.server.app import MemoryServer

_PATIENCE = 0.5  # seconds that a cell waits for a server to come up
_STARTING = 60.0

_RUNNING: dict[Path, ServerHandle] = {}
_RUNNING_LOCK = threading.RLock()


def serve(
    store: MemoryStore | HybridRetriever,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    project: str | None = None,
    read_only: bool = False,
    token: str | bool = True,
    wait: float = 0.0,
    keep: int = 200,
) -> ServerHandle:
    """Serve a store to assistants on this machine, over MCP, while the notebook goes on.

    The server runs in a thread of its own and stops with the kernel. Serving the same store again stops the former
    server and takes over its port, so a cell may be run twice.

    Parameters
    ----------
    store : MemoryStore or HybridRetriever
        A retriever with settings of its own answers with them.
    port : int
        0 for a free one; name one that the settings of a client can keep.
    host : str
        ``127.0.0.1``, ``localhost`` or ``::1``.
    project : str, optional
        Where new memories belong that name no project.
    read_only : bool
        Offer no tool that changes the store.
    token : str or bool
        A random bearer token by default, kept in a private file for the next time; a token of your own; ``False`` for
        none, for programs that cannot send one.
    wait : float
        Seconds that a recall waits for an encoder that is still loading, before it goes by keywords alone.
    keep : int
        How many calls are kept to be looked at, with their recalls.

    Returns
    -------
    ServerHandle

    Raises
    ------
    InvalidValue
        If the address is not this machine's own, the port is taken, or the token is no token.

    Examples
    --------
    >>> server = memlab.serve(store)
    >>> server                  # address, set-up lines, and each call as it arrives
    >>> server.stop()
    """
    retriever = store if isinstance(store, HybridRetriever) else None
    base = retriever.store if retriever is not None else store
    if not isinstance(base, MemoryStore):
        raise InvalidValue(f"store: expected a MemoryStore or a HybridRetriever, found {type(store).__name__}")
    handle = ServerHandle(
        base, retriever, port=port, host=host, project=project, read_only=read_only, token=token, wait=wait, keep=keep
    )
    with _RUNNING_LOCK:
        former = _RUNNING.get(base.path)
        if former is not None and former.running:
            former.stop()
            if port == 0 and former.host == host:
                handle._port = former.port
        handle.start()
    return handle


class ServerHandle:
    """A server over one store; made by :func:`serve`.

    As the last line of a cell it shows its address, its state, what to copy into each client, and every call as it
    arrives; a recall among them opens with a click.

    Attributes
    ----------
    store : MemoryStore
    host : str
    project : str or None
    read_only : bool
    """

    def __init__(
        self,
        store: MemoryStore,
        retriever: HybridRetriever | None,
        *,
        port: int,
        host: str,
        project: str | None,
        read_only: bool,
        token: str | bool,
        wait: float,
        keep: int,
    ) -> None:
        self.store = store
        self.host = host
        self.project = project
        self.read_only = read_only or store.read_only
        self._retriever = retriever
        self._wait = wait
        self._port = whole(port, "port", least=0, most=65535)
        self._run: HttpServer | None = None
        self._url = ""
        self._activity = Activity(whole(keep, "keep", least=0))
        self._token_file: Path | None = None
        self._token = self._choose_token(token)
        self._card = Live(lambda: {"text/html": self._repr_html_(), "text/plain": repr(self)})
        self._panel = Live(
            lambda: {"text/html": card.activity_html(self.calls), "text/plain": repr(self._activity.frame())}
        )
        self._activity.listen(self._changed)

    def _changed(self) -> None:
        self._card.changed()
        self._panel.changed()

    def _choose_token(self, token: str | bool) -> Secret:
        if token is False:
            return Secret("")
        if token is not True:
            if not isinstance(token, str) or not is_token(token):
                raise InvalidValue(
                    "token: expected True for a random one, False for none, or at least 16 letters, digits and -._~+/"
                )
            return Secret(token)
        value, self._token_file = ensure_token(self.store.path)
        return Secret(value)

    # -- running ---------------------------------------------------------------------------------------------------

    def start(self) -> ServerHandle:
        """Start again, on the same port and with the same token: clients go on as if nothing had been."""
        if self.running:
            return self
        run = HttpServer(self._make_server, bound_socket(self.host, self._port), lambda: self._token.value)
        self._run, self._port, self._url = run, run.port, run.url
        with _RUNNING_LOCK:
            _RUNNING[self.store.path] = self
        if not run.start(_PATIENCE):
            # The SDK is still being imported. Clients can connect already, and wait.
            threading.Thread(target=self._when_ready, args=(run,), name="memlab-mcp-ready", daemon=True).start()
        self._card.changed()
        return self

    def _make_server(self) -> MemoryServer:
        from memlab.server.app import MemoryServer
        from memlab.server.service import service_for

        service = service_for(
            self.store,
            retriever=self._retriever,
            project=self.project,
            wait=self._wait,
            read_only=self.read_only,
        )
        return MemoryServer(service, self._activity)

    def _when_ready(self, run: HttpServer) -> None:
        run.wait(_STARTING)
        self._card.changed()

    def stop(self) -> None:
        """Stop serving; the store stays open. Stopping twice is fine."""
        run, self._run = self._run, None
        if run is not None:
            run.stop()
        with _RUNNING_LOCK:
            if _RUNNING.get(self.store.path) is self:
                del _RUNNING[self.store.path]
        self._card.update()

    def restart(self) -> ServerHandle:
        """Stop and start, on the same port and with the same token."""
        self.stop()
        return self.start()

    def __enter__(self) -> ServerHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether calls are answered, or will be as soon as the server has come up."""
        return self._run is not None and self._run.alive

    @property
    def state(self) -> str:
        """``starting``, ``serving``, ``stopped``, or ``failed`` and why."""
        if self._run is None:
            return "stopped"
        if self._run.failure is not None:
            return f"failed: {type(self._run.failure).__name__}: {self._run.failure}"
        if not self._run.alive:
            return "stopped"
        return "serving" if self._run.serving else "starting"

    # -- where, and with what ----------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port, the same after a restart."""
        return self._port

    @property
    def url(self) -> str:
        """The address to give to a client."""
        return self._url

    @property
    def token(self) -> Secret:
        """The bearer token; printed or displayed it is masked, ``server.token.value`` is the token itself."""
        return self._token

    @property
    def token_file(self) -> Path | None:
        """The private file that keeps the token; ``None`` if none does."""
        return self._token_file

    def renew_token(self) -> None:
        """Take a new random token, at once; who has the old one is shut out."""
        value = new_token()
        path = token_path(self.store.path)
        self._token_file = path if keep_token(path, value, self.store.path) else None
        self._token = Secret(value)
        self._card.changed()

    def reveal(self, seconds: float = 30.0) -> None:
        """Show the token for a while; then the display hides it again, so that a saved notebook does not have it."""
        if not self._token:
            print("this server has no token")
            return
        shown = {"text/plain": f"Authorization: Bearer {self._token.value}"}
        masked = {"text/plain": f"Authorization: Bearer {MASK}"}
        state = {"bundle": shown}
        live = Live(lambda: state["bundle"])
        live.show()

        def hide() -> None:
            state["bundle"] = masked
            live.update()

        timer = threading.Timer(seconds, hide)
        timer.daemon = True
        timer.start()
        atexit.register(hide)

    def setup(self, client: str, *, stdio: bool = False) -> Snippet:
        """What to put into the settings of a client.

        Parameters
        ----------
        client : str
            ``claude-code``, ``claude-desktop``, ``codex``, ``gemini``, ``opencode``, ``vscode`` or ``cursor``.
        stdio : bool
            For a server that the client starts itself, without this notebook.

        Raises
        ------
        InvalidValue
            If the client is not known, or cannot use an address.
        """
        if stdio:
            return stdio_snippet(client, self.store.path, *(["--read-only"] if self.read_only else []))
        return http_snippet(client, Http(self._url, self._token_file, bool(self._token)))

    @contextlib.asynccontextmanager
    async def client(self, mode: str = "auto") -> AsyncIterator[Client]:
        """The SDK's own client, connected to this server: ``async with server.client() as client``.

        Parameters
        ----------
        mode : str
            ``auto`` for the newest protocol that both speak, ``legacy`` for the one with a handshake.
        """
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {self._token.value}"} if self._token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self._url, http_client=http), mode=mode) as client,
        ):
            yield client

    # -- watching --------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """The last calls, oldest first."""
        return self._activity.calls()

    @property
    def activity(self) -> pd.DataFrame:
        """The last calls, oldest first; as the last line of a cell a panel that follows them.

        Returns
        -------
        DataFrame
            ``call, at, client, tool, about, milliseconds, hits, mode, outcome``.
        """
        frame: pd.DataFrame = _activity_frame()(self._activity.frame())
        object.__setattr__(frame, "_live", self._panel)
        return frame

    def open(self, call: int | None = None) -> Recall:
        """The recall of a call, with its trace: as the last line of a cell, its hits with a bar for every contribution.

        Parameters
        ----------
        call : int, optional
            The number of the call; the last recall by default.

        Raises
        ------
        InvalidValue
            If there is no such call, or it was no recall.
        """
        recalls = [each for each in self.calls if each.recall is not None]
        numbers = ", ".join(str(each.number) for each in recalls[-10:]) or "none yet"
        chosen = recalls[-1] if call is None and recalls else next((c for c in recalls if c.number == call), None)
        if chosen is None or chosen.recall is None:
            what = "no recall" if call is None else f"no recall with the number {call}"
            raise InvalidValue(f"call: {what} is kept; there are: {numbers}")
        return chosen.recall

    # -- pictures ----------------------------------------------------------------------------------------------------

    def _facts(self) -> card.Facts:
        try:
            memories: int | None = len(self.store)
        except StoreError:  # closed
            memories = None
        return card.Facts(
            state=self.state,
            url=self._url,
            store=self.store.path.name,
            memories=memories,
            calls=self._activity.total,
            errors=self._activity.errors,
            masked=bool(self._token),
            read_only=self.read_only,
            project=self.project,
        )

    def _snippets(self) -> list[Snippet]:
        return [
            self.setup(name) if make_http else self.setup(name, stdio=True) for name, (_, make_http) in CLIENTS.items()
        ]

    def __repr__(self) -> str:
        return card.as_text(self._facts(), self._snippets())

    def _repr_html_(self) -> str:
        return card.as_html(self._facts(), self._snippets(), self.calls)

    def _ipython_display_(self) -> None:
        self._card.show()


@functools.cache
def _activity_frame() -> Any:
    """The class of :attr:`ServerHandle.activity`; pandas is not imported before somebody asks."""
    import pandas as pd

    class ActivityFrame(pd.DataFrame):
        """Calls as a frame; displayed, a panel that follows them."""

        @property
        def _constructor(self) -> Any:
            return pd.DataFrame  # what is made of it is an ordinary frame

        def _ipython_display_(self) -> None:
            object.__getattribute__(self, "_live").show()

    return ActivityFrame


@atexit.register
def _stop_all() -> None:
    with _RUNNING_LOCK:
        handles = list(_RUNNING.values())
    for handle in handles:
        handle.stop()
