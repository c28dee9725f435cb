"""The server on HTTP: a socket of its own on this machine alone, a guard before it, a thread to run in."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hmac
import json
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.server.app import MemoryServer

PATH = "/mcp"
GONE = "memlab.gone"  # in an ASGI scope: an Event that is set when the caller has hung up
_STOPPING = 5.0  # seconds
_GRACE = 0.7  # seconds that running calls get at a stop; uvicorn would cut them off after one, with a traceback

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _CutOff(Exception):
    """The body of a request did not come to its end; there is nothing to answer, and nothing to log."""


class Guard:
    """Lets a request through to the protocol if it comes from this machine's programs and knows the token.

    A web page that a browser has open could send requests to this port. It cannot choose the Host header (a name of
    its own, pointed at 127.0.0.1, shows there) nor leave Origin out; and it does not know the token.

    Parameters
    ----------
    app : ASGI application
    names : tuple of str
        The Host headers to accept, each with the exact port.
    token : callable
        Gives the present token; empty for none.
    """

    def __init__(self, app: Any, names: tuple[str, ...], token: Callable[[], str]) -> None:
        self._app = app
        self._names = names
        self._origins = tuple(f"http://{name}" for name in names)
        self._token = token
        self._closing: asyncio.Event | None = None
        self._overdue: set[asyncio.Future[None]] = set()  # one, which is done when running calls are given up
        self.hung_up = 0  # requests whose clients went before they had their answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] == "lifespan":
            self._closing = asyncio.Event()
            self._overdue = {asyncio.get_running_loop().create_future()}
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        scope[GONE] = threading.Event()
        begun, ended, cut = False, True, threading.Event()

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal begun, ended
            if cut.is_set():
                return
            begun = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        # In a task of its own: one that waits for a worker thread does not end when it is cancelled.
        answer = asyncio.ensure_future(self._app(scope, self._until_closing(scope, receive, cut), sent))
        try:
            await asyncio.wait({answer} | self._overdue, return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and not answer.cancelled():
                answer.result()
            else:
                cut.set()
                answer.add_done_callback(lambda late: late.cancelled() or late.exception())
                if not begun:
                    await _refuse(send, 503, "the server stopped before the call had come to its end")
                    return
        except _CutOff:
            await _refuse(send, 503, "the server stopped before the request had come to its end")
            return
        finally:
            answer.cancel()
        if not ended and self.closing:
            # A stream that was cut off by the stop gets a proper end.
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def close_streams(self) -> None:
        """End the event streams that clients hold open; to be called on the loop of the server."""
        if self._closing is not None and not self._closing.is_set():
            self._closing.set()
            asyncio.get_running_loop().call_later(_GRACE, self._give_up)

    @property
    def closing(self) -> bool:
        """Whether the server is about to stop."""
        return self._closing is not None and self._closing.is_set()

    def _give_up(self) -> None:
        for waiting in self._overdue:
            waiting.set_result(None)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return 421, f"this server answers to {self._names[0]} alone"
        if any(origin.lower() not in self._origins for origin in origins):
            return 403, "requests from web pages are not answered"
        if token := self._token():
            given = headers.get("authorization", [])
            kind, _, value = (given[0] if len(given) == 1 else "").partition(" ")
            known = hmac.compare_digest(value.strip().encode("latin-1", "replace"), token.encode())
            if kind.lower() != "bearer" or not known:
                return 401, "expected the header 'Authorization: Bearer TOKEN' with the token of this server"
        if scope["path"].rstrip("/") != PATH:
            return 404, f"there is nothing here but {PATH}"
        return None

    def _until_closing(self, scope: Scope, receive: Receive, cut: threading.Event) -> Receive:
        """``receive``, which tells of a hang-up when the client does so and when the server is about to stop.

        One in the midst of a body sets ``cut`` and raises :class:`_CutOff`.
        """
        closing = self._closing
        complete = False

        async def received() -> MutableMapping[str, Any]:
            nonlocal complete
            message = await receive() if closing is None else await _first(receive, closing)
            if message["type"] == "http.disconnect":
                scope[GONE].set()
                self.hung_up += 1
                if not complete:
                    cut.set()
                    raise _CutOff
            complete = complete or not message.get("more_body", False)
            return message

        return received


async def _first(receive: Receive, closing: asyncio.Event) -> MutableMapping[str, Any]:
    message = asyncio.ensure_future(receive())
    closed = asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait({message, closed}, return_when=asyncio.FIRST_COMPLETED)
        return message.result() if message.done() else {"type": "http.disconnect"}
    finally:
        message.cancel()
        closed.cancel()


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    # What is left of the request is not read: the connection ends.
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class HttpServer:
    """One run of a server, from :meth:`start` to :meth:`stop`.

    Parameters
    ----------
    make : callable
        Makes the MCP server, on the thread that it will run on: importing the SDK takes most of a second.
    listening : socket
        From :func:`~memlab.server.sockets.bound_socket`; closed at the end. Who connects before the server is ready
        waits for it.
    token : callable
        See :class:`Guard`.
    """

    def __init__(self, make: Callable[[], MemoryServer], listening: socket.socket, token: Callable[[], str]) -> None:
        self._make = make
        self._socket = listening
        self._token = token
        address, self.port = listening.getsockname()[:2]
        self._host = f"[{address}]" if ":" in address else address
        self.url = f"http://{self._host}:{self.port}{PATH}"
        self.failure: BaseException | None = None
        self._uvicorn: Any = None
        self._guard: Guard | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"memlab-mcp-{self.port}", daemon=True)

    def start(self, seconds: float) -> bool:
        """Run in a thread; whether requests are answered already after that time at most."""
        self._thread.start()
        return self.wait(seconds)

    def wait(self, seconds: float) -> bool:
        """Wait until requests are answered, or it is clear that they will not be."""
        self._ready.wait(seconds)
        return self.serving

    @property
    def alive(self) -> bool:
        """Whether it has been started and not come to its end."""
        return self._thread.is_alive()

    @property
    def serving(self) -> bool:
        """Whether requests are answered."""
        return self.alive and self._uvicorn is not None and bool(self._uvicorn.started)

    def _run(self) -> None:
        try:
            self._prepare()
            asyncio.run(self._serve())
        except BaseException as error:
            self.failure = error
        finally:
            self._socket.close()
            self._ready.set()

    def _prepare(self) -> None:
        collecting = gc.isenabled()
        gc.disable()  # nothing that is imported is garbage, and looking for some takes a fifth of the time
        try:
            import uvicorn
            from mcp.server.transport_security import TransportSecuritySettings

            names = (f"{self._host}:{self.port}", f"localhost:{self.port}")
            app = self._make().streamable_http_app(
                streamable_http_path=PATH,
                stateless_http=True,  # a client goes on after a restart as if there had been none
                transport_security=TransportSecuritySettings(
                    allowed_hosts=list(names), allowed_origins=[f"http://{name}" for name in names]
                ),
            )
        finally:
            if collecting:
                gc.enable()
        self._guard = Guard(app, names, self._token)
        config = uvicorn.Config(
            self._guard,
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            server_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,
        )
        self._uvicorn = uvicorn.Server(config)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._stop:
            return
        serving = asyncio.ensure_future(self._uvicorn.serve(sockets=[self._socket]))
        while not self._uvicorn.started and not serving.done():
            await asyncio.sleep(0.002)
        self._ready.set()
        await serving

    def stop(self, seconds: float = _STOPPING) -> bool:
        """Stop; open streams are ended, running calls have a second to come to their end.

        Returns
        -------
        bool
            Whether the thread ended in that time. A call that is still running holds it up; nothing more is answered.
        """
        self._stop = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._loop is not None and self._guard is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._guard.close_streams)
        if threading.current_thread() is not self._thread and self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()
