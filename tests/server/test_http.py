"""The server on HTTP: who is let in, what a fault is answered with, and that nothing stops it but its owner."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client

from memlab.server.handle import ServerHandle
from memlab.server.serving import serve
from tests.server.conftest import HeldEncoder, answer

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}},
}
JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    """Tokens go into a folder of the test's own."""
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def handle(store):
    with serve(store) as server:
        yield server


def connected(handle: ServerHandle, mode: str = "auto") -> Any:
    return handle.client(mode)


def post(handle, body=INITIALIZE, token=None, **headers):
    """A request with the right token unless another is given; ``None`` among the headers leaves one out."""
    given = {**JSON, "Authorization": f"Bearer {handle.token.value if token is None else token}", **headers}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with httpx2.Client(timeout=60) as client:
        return client.post(
            handle.url, content=content, headers={name: value for name, value in given.items() if value is not None}
        )


def alive(handle):
    reply = post(handle)
    return reply.status_code == 200 and "memlab" in reply.text


def test_the_tools_work_in_both_eras(handle, era):
    async def talk():
        async with connected(handle, era) as client:
            tools = (await client.list_tools()).tools
            made = answer(await client.call_tool("remember", {"content": "café 漢字"}))
            found = answer(await client.call_tool("recall", {"query": "café"}))
            wrong = answer(await client.call_tool("forget", {"memory_id": "nobody"}))
            return tools, made, found, wrong

    tools, made, found, wrong = anyio.run(talk)
    assert len(tools) == 8
    assert found.data["hits"][0]["id"] == made.data["id"]
    assert wrong.failed


# -- who is let in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "example.org"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "127.0.0.1.example.org:PORT"}, 421),
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:PORT"}, 403),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic TOKEN"}, 401),
        ({"Authorization": "Bearer TOKENx"}, 401),
        ({"Authorization": "TOKEN"}, 401),
        ({"Host": "example.org", "Origin": "https://example.org", "Authorization": None}, 421),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_who_is_turned_away(handle, store, headers, status):
    filled = {
        name: value and value.replace("PORT", str(handle.port)).replace("TOKEN", handle.token.value)
        for name, value in headers.items()
    }
    body = {**INITIALIZE, "method": "tools/call", "params": {"name": "remember", "arguments": {"content": "x"}}}
    reply = post(handle, body, **filled)
    assert reply.status_code == status
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert handle.token.value not in reply.text
    if status in (401, 403, 421):
        assert reply.json()["error"]["message"]
    assert alive(handle)
    assert len(store) == 0


@pytest.mark.parametrize("headers", [{}, {"Host": "localhost:PORT"}, {"Origin": "http://localhost:PORT"}])
def test_who_is_let_in(handle, headers):
    filled = {name: value.replace("PORT", str(handle.port)) for name, value in headers.items()}
    assert post(handle, **filled).status_code == 200


def test_a_browser_is_told_nothing_of_other_origins(handle):
    with httpx2.Client() as client:
        reply = client.options(
            handle.url, headers={"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
        )
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


def test_other_paths_are_not_there_even_without_a_token(handle):
    with httpx2.Client() as client:
        base = handle.url.removesuffix("/mcp")
        assert client.get(base + "/").status_code == 401
        reply = client.get(
            base + "/.well-known/oauth-protected-resource", headers={"Authorization": f"Bearer {handle.token.value}"}
        )
    assert (reply.status_code, reply.headers["content-type"]) == (404, "application/json")


def test_two_host_headers_are_one_too_many(handle):
    with socket.create_connection(("127.0.0.1", handle.port), timeout=60) as raw:
        hosts = f"Host: 127.0.0.1:{handle.port}\r\nHost: 127.0.0.1:{handle.port}\r\n"
        raw.sendall(f"POST /mcp HTTP/1.1\r\n{hosts}Content-Length: 0\r\n\r\n".encode())
        status = int(raw.makefile("rb").readline().split()[1])
    assert status in (400, 421)
    assert alive(handle)


# -- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{this is no JSON", 400),
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b'{"jsonrpc": "2.0"}', 400),
        (b"[" * 100_000, 400),
        (b"x" * (4 * 1024 * 1024 + 1), 413),
    ],
)
def test_a_body_that_is_no_message(handle, body, status):
    assert post(handle, body).status_code == status
    assert alive(handle)


def test_a_body_too_large_whose_length_is_not_told(handle):
    def chunks():
        for _ in range(80):
            yield b"x" * 65536

    with httpx2.Client(timeout=60) as client, contextlib.suppress(httpx2.TransportError):
        headers = {**JSON, "Authorization": f"Bearer {handle.token.value}"}
        assert client.post(handle.url, content=chunks(), headers=headers).status_code == 413
    assert alive(handle)


def test_an_unknown_method_is_an_error_of_the_protocol(handle):
    reply = post(
        handle, {"jsonrpc": "2.0", "id": 1, "method": "memories/steal"}, **{"MCP-Protocol-Version": "2025-11-25"}
    )
    assert '"code":-32601' in reply.text
    assert alive(handle)


def test_a_hundred_calls_at_once(handle, store, era):
    async def talk():
        async with connected(handle, era) as client:
            got = []

            async def one(number):
                if number % 2:
                    got.append(answer(await client.call_tool("remember", {"content": f"note {number}"})))
                else:
                    got.append(answer(await client.call_tool("recall", {"query": "note"})))

            with anyio.fail_after(120):
                async with anyio.create_task_group() as group:
                    for number in range(100):
                        group.start_soon(one, number)
            return got

    got = anyio.run(talk)
    assert not [each.text for each in got if each.failed]
    assert sorted(each.data["id"] for each in got if "id" in each.data) == sorted(m.memory_id for m in store.find())
    assert len(store) == 50
    assert store.check().ok


def test_a_call_that_is_cancelled_half_way_stores_nothing(make_store):
    encoder = HeldEncoder()
    store = make_store(encoder=encoder)
    with serve(store) as handle:

        async def talk():
            async with connected(handle) as client:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, "remember", {"content": "given up"})
                    assert await anyio.to_thread.run_sync(encoder.asked.wait, 60)
                    group.cancel_scope.cancel()
                ended = threading.Event()
                handle._activity.listen(ended.set)
                with anyio.fail_after(60):
                    # The server hears of it when it next looks at the connection; then the encoder may go on.
                    while not _gone(handle):
                        await anyio.sleep(0.01)
                encoder.go.set()
                assert await anyio.to_thread.run_sync(ended.wait, 60)
                return answer(await client.call_tool("remember", {"content": "kept"}))

        assert not anyio.run(talk).failed
        assert [memory.content for memory in store.find()] == ["kept"]
        assert [call.outcome for call in handle.calls] == ["cancelled", "ok"]


def _gone(handle):
    """Whether the server knows that a client has hung up."""
    return handle._run._guard.hung_up > 0


# -- stopping --------------------------------------------------------------------------------------------------------


def test_an_open_stream_ends_with_the_server(handle, caplog):
    with httpx2.Client(timeout=60) as client:
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {handle.token.value}"}
        with client.stream("GET", handle.url, headers=headers) as stream:
            assert stream.status_code == 200
            stopper = threading.Thread(target=handle.stop)
            stopper.start()
            assert b"".join(stream.iter_raw()).strip(b": \r\nping-0123456789T.+Z") == b""
            stopper.join(60)
    assert not handle.running
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_call_that_still_runs_at_the_stop_is_given_up(make_store, era, caplog):
    encoder = HeldEncoder()
    store = make_store(encoder=encoder)
    handle = serve(store)
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body["params"] = {"name": "remember", "arguments": {"content": "given up"}}
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {handle.token.value}"}
    if era == "auto":
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "remember"}
        own = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body["params"]["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}
    answers = []

    def ask():
        with httpx2.Client(timeout=60) as client:
            answers.append(client.post(handle.url, json=body, headers=headers))

    asking = threading.Thread(target=ask)
    asking.start()
    assert encoder.asked.wait(60)
    handle.stop()
    assert not handle.running
    asking.join(60)
    encoder.go.set()
    # A stream that has begun can only end; otherwise the status says it.
    (got,) = answers
    assert got.status_code == 503 or (got.status_code == 200 and "remembered" not in got.text)
    with handle.start():
        assert alive(handle)
    assert [memory.content for memory in store.find()] == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("who", ["server", "client"])
def test_a_body_that_never_ends_holds_nothing_up(handle, caplog, who):
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{handle.port}\r\nAuthorization: Bearer {handle.token.value}\r\n"
    head += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", handle.port), timeout=60) as slow:
        # The go-ahead is sent when the body is waited for.
        slow.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert slow.recv(65536).startswith(b"HTTP/1.1 100")
        slow.sendall(b"{")
        if who == "server":
            handle.stop()
            assert slow.recv(65536).startswith(b"HTTP/1.1 503")
    handle.stop()
    assert not handle.running
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_clients_go_on_after_a_restart_on_the_same_port(handle, era):
    async def talk():
        async with connected(handle, era) as client:
            await client.call_tool("remember", {"content": "before"})
            port = handle.port
            await anyio.to_thread.run_sync(handle.restart)
            assert handle.port == port
            return answer(await client.call_tool("recall", {"query": "before"}))

    assert len(anyio.run(talk).data["hits"]) == 1


def test_calls_are_answered_while_a_cell_runs(handle):
    """The server has a thread of its own: this one is busy, as a cell would be."""
    done = threading.Event()

    def ask():
        assert alive(handle)
        done.set()

    asking = threading.Thread(target=ask)
    asking.start()
    count = 0
    while not done.is_set():
        count += 1
    asking.join(60)
    assert count


def test_several_stores_at_once(make_store):
    with serve(make_store("one.db")) as one, serve(make_store("two.db")) as two:
        assert one.port != two.port
        assert one.token != two.token
        assert post(one).status_code == post(two).status_code == 200
        assert post(one, token=two.token.value).status_code == 401


def test_stdio_http_and_a_notebook_write_to_one_store(tmp_path, era):
    from memlab.encoders import HashingEncoder
    from memlab.store import MemoryStore
    from tests.server.test_stdio import parameters

    db = tmp_path / "memory.db"
    with MemoryStore(db, HashingEncoder(64)) as store, serve(store) as handle:
        store.remember("first")

        async def talk():
            async with connected(handle) as over_http, Client(parameters(db)) as one, Client(parameters(db)) as two:

                async def write(client, who):
                    for number in range(8):
                        made = answer(await client.call_tool("remember", {"content": f"{who} {number}"}))
                        assert not made.failed, made.text

                async with anyio.create_task_group() as group:
                    for who, client in (("http", over_http), ("one", one), ("two", two)):
                        group.start_soon(write, client, who)
                    await anyio.to_thread.run_sync(lambda: [store.remember(f"here {number}") for number in range(8)])
                counted = []
                for client in (over_http, one, two):
                    stats = answer(await client.call_tool("memories", {"action": "stats"}))
                    counted.append(stats.data["stats"]["memories"])
                return counted

        assert anyio.run(talk) == [33, 33, 33]
        assert len(store) == 33
        assert store.check().ok
