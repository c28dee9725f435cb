"""The handle of a served store: where it listens, what it shows, and how it ends."""

from __future__ import annotations

import atexit
import contextlib
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from memlab.checks import whole
from memlab.errors import InvalidValue, StoreError
from memlab.retrieval import HybridRetriever
from memlab.server import card
from memlab.server.activity import Activity
from memlab.server.clients import CLIENTS, Http, Snippet, http_snippet, stdio_snippet
from memlab.server.http import HttpServer
from memlab.server.live import Live, in_notebook
from memlab.server.panel import ActivityPanel
from memlab.server.sockets import bound_socket
from memlab.server.tokens import Secret, ensure_token, is_token, keep_token, new_token, token_path
from memlab.store import MemoryStore

if TYPE_CHECKING:
    import pandas as pd
    from mcp import Client

    from memlab.server.activity import Call
    from memlab.server.app import MemoryServer
    from memlab.widgets.inspector import Inspector

_PATIENCE = 0.5  # seconds that a cell waits for a server to come up
_STARTING = 60.0

_RUNNING: dict[Path, ServerHandle] = {}  # by the store's path
_RUNNING_LOCK = threading.RLock()


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
        self._panel = ActivityPanel(self._activity, self.open)
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
        return self if self.running else self.start_on(bound_socket(self.host, self._port))

    def start_on(self, listening: socket.socket) -> ServerHandle:
        """Start on a socket of :func:`~memlab.server.sockets.bound_socket`."""
        run = HttpServer(self._make_server, listening, lambda: self._token.value)
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
        """Show the token: in a notebook behind a button, on the page alone and in no output; printed elsewhere.

        Parameters
        ----------
        seconds : float
            How long it stays on the page.
        """
        if not self._token:
            print("this server has no token")
        elif not in_notebook():
            print(f"Authorization: Bearer {self._token.value}")
        else:
            from memlab.server.reveal import TokenView

            TokenView(self._token, self._token_file, seconds).show()

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
        return self._activity.live_frame(self._panel)

    def open(self, call: int | None = None) -> Inspector:
        """The recall of a call in the inspector: with its query, settings and ``now``, and what was found then.

        ``server.open(3).recall`` is the recall itself, with its trace.

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
        from memlab.widgets.inspector import inspect

        return inspect(chosen.recall)

    # -- pictures ----------------------------------------------------------------------------------------------------

    def _facts(self) -> card.Facts:
        try:
            memories: int | None = len(self.store)
        except (StoreError, sqlite3.Error):  # closed, locked, or gone
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


def running(store: Path) -> ServerHandle | None:
    """The handle that serves a store now."""
    with _RUNNING_LOCK:
        handle = _RUNNING.get(store)
    return handle if handle is not None and handle.running else None


@atexit.register
def _stop_all() -> None:
    with _RUNNING_LOCK:
        handles = list(_RUNNING.values())
    for handle in handles:
        handle.stop()
