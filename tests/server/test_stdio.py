"""`memlab mcp` as a process of its own, on stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from tests.server.conftest import answer

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "MEMLAB_DEBUG": ""}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and process trees")


@pytest.fixture
def db(tmp_path):
    """A store with the hashing encoder, which needs no weights."""
    path = tmp_path / "memory.db"
    with MemoryStore(path, HashingEncoder(64)) as store:
        store.remember("webhooks retry with jitter")
    return path


def parameters(db, *arguments, **settings):
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "memlab.cli", "mcp", "--db", str(db), *arguments],
        env=ENVIRONMENT,
        **settings,
    )


class Process:
    """A server, spoken to line by line."""

    def __init__(self, db, *arguments, env=None, **settings):
        self.popen: Any = subprocess.Popen(
            [sys.executable, "-m", "memlab.cli", "mcp", "--db", str(db), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, **(env or {})},
            **{"stderr": subprocess.PIPE, **settings},
        )

    def send(self, message):
        self.popen.stdin.write((message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")
        self.popen.stdin.flush()

    def read(self):
        return json.loads(self.popen.stdout.readline())

    def ask(self, method, number=2, **params):
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.read()

    def initialize(self):
        self.send(INITIALIZE)
        reply = self.read()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return reply

    def hang_up(self):
        self.popen.stdin.close()
        self.popen.stdin = None

    def ends(self):
        return self.popen.wait(60)


@pytest.fixture
def start(db):
    """Start servers that are gone when the test is over."""
    started = []

    def make(*arguments, path=db, **settings):
        started.append(Process(path, *arguments, **settings))
        return started[-1]

    yield make
    for process in started:
        process.popen.kill()
        process.popen.communicate()


def test_the_tools_work_in_both_eras(db, era, tmp_path):
    async def talk():
        async with Client(parameters(db, cwd=tmp_path), mode=era) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            made = answer(await client.call_tool("remember", {"content": "café 漢字 👩‍💻", "tags": "a, b"}))
            found = answer(await client.call_tool("recall", {"query": "café"}))
            wrong = answer(await client.call_tool("forget", {"memory_id": "nobody"}))
            return tools, made, found, wrong

    tools, made, found, wrong = anyio.run(talk)
    assert len(tools) == 8
    assert not made.failed
    assert found.data["hits"][0]["content"] == "café 漢字 👩‍💻"
    assert wrong.failed
    with MemoryStore(db, None, read_only=True) as store:
        assert made.data["id"] in store


def test_nothing_but_the_protocol_comes_out_of_stdout(start, tmp_path, db):
    # What is printed while modules are imported, or at the very end, must not reach the wire.
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    (noisy / "sitecustomize.py").write_text(
        "import atexit, builtins, os, sys\n"
        "real = builtins.__import__\n"
        "def noisy(name, *rest, **more):\n"
        "    if name.startswith('mcp'):\n"
        "        print('printed'); os.write(1, b'written'); os.system('echo a child')\n"
        "        builtins.__import__ = real\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = noisy\n"
        "atexit.register(print, 'at the end')\n"
    )
    process = start(env={"PYTHONPATH": os.pathsep.join([str(noisy), str(ROOT)])})
    assert process.initialize()["result"]["serverInfo"]["name"] == "memlab"
    assert process.ask("tools/list")["id"] == 2
    out, err = process.popen.communicate(timeout=60)
    assert out == b""
    assert b"printed" in err
    assert b"a child" in err
    assert process.popen.returncode == 0


CALL = '{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"remember","arguments":{%s}}}'


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("{this is no JSON", None, -32700),
        ('["neither"]', None, -32600),
        ("{}", None, -32600),
        ('{"jsonrpc":"1.0","id":3,"method":"ping"}', 3, -32600),
        ('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[]}', 3, -32600),
        ("[" * 100_000, None, -32700),
        # Half of a surrogate pair: what is left of an emoji that was cut in two.
        (CALL % r'"content":"\ud83d"', "mine", -32700),
        (CALL % '"content":"a\tb"', "mine", -32700),
        (CALL % f'"content":"much", "importance": 1{"0" * 4250}1', "mine", None),
    ],
)
def test_a_line_that_is_no_message_is_answered(start, line, number, code):
    process = start()
    process.initialize()
    process.send(line)
    reply = process.read()
    assert reply["id"] == number
    assert reply.get("error", {}).get("code") == code
    assert process.ask("ping", number=7) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_blank_lines_and_broken_answers_are_passed_over(start):
    process = start()
    process.initialize()
    for line in ("", "\r", '{"jsonrpc":"2.0","id":9,"result":5}', '{"jsonrpc":"2.0","id":[],"error":{}}'):
        process.send(line)
    assert process.ask("ping", number=7) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@posix
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_standard_stream_that_is_closed_is_no_crash(start, closed, db):
    process = start(preexec_fn=lambda: os.close(closed))
    if closed == 2:
        process.initialize()
        assert "id" in process.ask("tools/call", name="remember", arguments={"content": "no stderr"})
    if closed:
        process.hang_up()
    assert process.ends() == 0
    assert process.popen.stderr.read() == b""
    with MemoryStore(db, None, read_only=True) as store:
        assert store.check().ok


@posix
def test_it_leaves_on_a_signal_without_stderr(start):
    process = start(preexec_fn=lambda: os.close(2))
    process.initialize()
    process.popen.send_signal(signal.SIGTERM)
    assert process.ends() == 0


@pytest.mark.parametrize("more", [[], ["--http"]])
def test_a_log_file_that_cannot_be_written_is_said(start, tmp_path, more):
    process = start("--log-file", str(tmp_path / "nowhere" / "log.txt"), *more)
    assert process.ends() == 1
    assert b"cannot be written" in (said := process.popen.stderr.read())
    assert b"Traceback" not in said


def test_it_leaves_at_the_end_of_stdin(start):
    process = start()
    process.initialize()
    process.hang_up()
    assert process.ends() == 0
    assert process.popen.stderr.read() == b""


@posix
def test_it_leaves_when_nobody_reads_the_answers(start):
    process = start()
    process.initialize()
    process.popen.stdout.close()
    process.popen.stdout = None
    with contextlib.suppress(BrokenPipeError):
        process.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
    assert process.ends() == 0
    assert process.popen.stderr.read() == b""


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_it_leaves_on_a_signal(start, name):
    process = start()
    process.initialize()
    process.popen.send_signal(getattr(signal, name))
    assert process.ends() == 0
    assert process.popen.stderr.read() == b""


@posix
def test_it_leaves_when_its_parent_dies(db, tmp_path):
    # The grandparent (this test) holds the other end of both pipes, so there is no end of stdin to notice.
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen({[sys.executable, '-m', 'memlab.cli', 'mcp', '--db', str(db)]!r})\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "child.wait()\n"
    )
    parent: Any = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    )
    try:
        assert int(parent.stderr.readline())
        parent.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        parent.stdin.flush()
        assert b"memlab" in parent.stdout.readline()
        parent.kill()
        assert parent.stdout.read() == b""  # comes to its end when the server, the last one to hold it, is gone
    finally:
        parent.kill()
        parent.communicate()


def test_a_client_that_never_reads_stderr_holds_nothing_up(start):
    process = start("--log-level", "debug")
    process.initialize()
    for number in range(2, 400):  # each leaves some lines in the log, many times what a pipe holds
        assert process.ask("resources/read", number, uri=f"memlab://{'x' * 500}")["id"] == number
    process.hang_up()
    assert process.ends() == 0
    assert len(process.popen.stderr.read()) > 1000


@posix
def test_over_http_too_stderr_that_is_never_read_holds_nothing_up(start, tmp_path):
    data = {name: str(tmp_path) for name in ("XDG_DATA_HOME", "HOME")}
    process = start("--http", "--no-token", "--log-level", "debug", env=data)
    url = process.popen.stdout.readline().decode().split()[0]
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(timeout=30, headers=headers) as client:
        for _ in range(150):  # some 1.3 kB of log each, and a pipe holds 64
            assert client.post(url, json=INITIALIZE).status_code == 200
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(20) == 0
    assert len(process.popen.stderr.read()) > 10_000


@posix
def test_a_port_that_is_taken_is_said_on_the_command_line(start, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start("--http", "--no-token", "--port", str(taken.getsockname()[1]))
        assert process.ends() == 1
    assert b"cannot be had" in process.popen.stderr.read()


def test_a_log_file_takes_what_stderr_would(start, tmp_path):
    log = tmp_path / "log.txt"
    process = start("--log-level", "debug", "--log-file", str(log))
    process.initialize()
    process.hang_up()
    assert process.ends() == 0
    assert process.popen.stderr.read() == b""
    assert "DEBUG" in log.read_text()


def test_utf8_whatever_the_locale(start):
    process = start(env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"})
    process.initialize()
    got = process.ask("tools/call", name="remember", arguments={"content": "café 漢字 👩‍💻"})
    assert not got["result"].get("isError")
    found = process.ask("tools/call", 3, name="recall", arguments={"query": "漢字"})
    assert found["result"]["structuredContent"]["hits"][0]["content"] == "café 漢字 👩‍💻"


def test_a_path_is_used_or_refused(start, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("not a store")
    process = start(path=other)
    assert process.ends() == 1
    assert b"notes.txt" in process.popen.stderr.read()
    assert process.popen.stdout.read() == b""
    assert other.read_text() == "not a store"


def test_read_only(start, db):
    process = start("--read-only")
    process.initialize()
    names = [tool["name"] for tool in process.ask("tools/list")["result"]["tools"]]
    assert names == ["recall", "memories", "category", "sync"]
    missing = start("--read-only", path=db.with_name("nobody.db"))
    assert missing.ends() == 1
    assert not db.with_name("nobody.db").exists()


def test_the_project_is_that_of_the_working_folder_unless_named(start, tmp_path):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    for arguments, expected in (((), "shop"), (("--project", "other"), "other"), (("--project", ""), "")):
        process = start(*arguments, cwd=tmp_path / "shop")
        process.initialize()
        got = process.ask("tools/call", name="remember", arguments={"content": "x"})
        assert got["result"]["structuredContent"]["project"] == expected


def test_nothing_heavy_is_imported(tmp_path, db):
    script = (
        "import sys, threading\n"
        "import memlab.server.app\n"
        "heavy = {'pandas', 'torch', 'sentence_transformers', 'transformers', 'sqlite_utils', 'IPython'}\n"
        "sys.exit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env={**os.environ, **ENVIRONMENT}, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_several_servers_on_one_store_lose_nothing_and_see_each_other(db):
    async def talk():
        async with Client(parameters(db)) as one, Client(parameters(db), mode="legacy") as two:
            with MemoryStore(db) as here:
                kept = []

                async def write(client, who):
                    for i in range(15):
                        got = answer(await client.call_tool("remember", {"content": f"{who} {i} zebra"}))
                        assert not got.failed, got.text
                        kept.append(got.data["id"])

                def write_here():
                    return [here.remember(f"notebook {i} zebra").memory_id for i in range(15)]

                async with anyio.create_task_group() as group:
                    group.start_soon(write, one, "first")
                    group.start_soon(write, two, "second")
                    kept += await anyio.to_thread.run_sync(write_here)
                assert len(here) == 46
                for client in (one, two):
                    stats = answer(await client.call_tool("memories", {"action": "stats"}))
                    assert stats.data["stats"]["memories"] == 46
                    got = answer(await client.call_tool("recall", {"query": "zebra", "limit": 50, "max_bytes": 200000}))
                    assert {hit["id"] for hit in got.data["hits"]} >= set(kept)
                # What one forgets, the next call of the others no longer finds.
                await one.call_tool("forget", {"memory_id": kept[0]})
                got = answer(await two.call_tool("recall", {"query": "zebra", "limit": 50, "max_bytes": 200000}))
                found = {hit["id"] for hit in got.data["hits"]}
                assert found >= set(kept[1:])
                assert kept[0] not in found
                assert here.check().ok

    anyio.run(talk)


def test_recalls_are_recorded_if_that_is_wanted(start, db):
    for wanted in ([], ["--log-queries"]):
        process = start(*wanted)
        process.initialize()
        process.ask("tools/call", 3, name="recall", arguments={"query": "webhooks"})
        process.hang_up()
        assert process.ends() == 0
        with MemoryStore(db, HashingEncoder(64)) as store:
            recorded = [(entry.query, entry.source, entry.limit) for entry in store.query_log]
        assert recorded == ([("webhooks", "mcp a test 1", 5)] if wanted else [])
    assert start("--log-queries", "--read-only").ends() == 2
