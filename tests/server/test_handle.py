"""The handle of a served store: what it shows, what it hides, and how it ends."""

from __future__ import annotations

import gc
import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pytest
from mcp import MCPError
from mcp.types import PromptReference

import memlab
from memlab.errors import InvalidValue
from memlab.retrieval import RRF, HybridRetriever
from memlab.server import live
from memlab.server.reveal import TokenView
from memlab.server.tokens import Secret, ensure_token, keep_token, kept_token, token_path
from tests.server.conftest import answer
from tests.server.test_http import alive, connected, data_folder, post

__all__ = ["data_folder"]  # a fixture that every test here uses by itself

ROOT = Path(__file__).parents[2]


@pytest.fixture
def handle(store):
    store.remember("webhooks retry with full jitter", project="billing", tags=["retry"])
    with memlab.serve(store) as server:
        yield server


def recall(handle, query="webhooks", **arguments):
    async def talk():
        async with connected(handle) as client:
            return answer(await client.call_tool("recall", {"query": query, **arguments}))

    return anyio.run(talk)


# -- the token -------------------------------------------------------------------------------------------------------


def test_the_token_is_shown_nowhere(handle):
    recall(handle)
    token = handle.token.value
    assert len(token) >= 43
    shown = [repr(handle), handle._repr_html_(), repr(handle.token), repr(handle.activity), repr(handle.open())]
    shown += [str(handle.setup(name)) for name in ("claude-code", "codex", "gemini", "opencode", "vscode", "cursor")]
    shown += [repr(vars(handle)), handle.activity.to_html()]
    assert not [each for each in shown if token in each]
    assert "••••" in repr(handle)
    assert "••••" in handle._repr_html_()


def test_the_token_is_kept_in_a_private_file(handle, store, data_folder):
    assert kept_token(handle.token_file) == handle.token.value
    assert data_folder in handle.token_file.parents
    if os.name == "posix":
        assert stat.S_IMODE(handle.token_file.stat().st_mode) == 0o600
    before = handle.token.value
    handle.stop()
    with memlab.serve(store) as again:
        assert again.token.value == before


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_token_that_others_could_read_is_not_used_again(tmp_path):
    path = token_path(tmp_path / "memory.db")
    assert keep_token(path, "x" * 40, tmp_path / "memory.db")
    path.chmod(0o644)
    assert kept_token(path) is None
    path.chmod(0o600)
    path.write_text("two words that are no token at all")
    assert kept_token(path) is None


def test_tokens_of_temporary_stores_go_with_them(tmp_path, data_folder, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    gone, there, elsewhere = (tmp_path / name for name in ("temporary/gone.db", "temporary/there.db", "kept/gone.db"))
    there.parent.mkdir()
    there.touch()
    paths: dict[Path, Any] = {store: ensure_token(store)[1] for store in (gone, there, elsewhere)}
    ensure_token(tmp_path / "another.db")
    assert {store: path.exists() for store, path in paths.items()} == {gone: False, there: True, elsewhere: True}
    assert not list(paths[gone].parent.glob(f"{paths[gone].name}*"))


def test_a_new_token_shuts_the_old_one_out(handle):
    old = handle.token.value
    handle.renew_token()
    assert post(handle, token=old).status_code == 401
    assert alive(handle)
    assert kept_token(handle.token_file) == handle.token.value


def test_a_token_of_ones_own_and_none(make_store):
    with memlab.serve(make_store("one.db"), token="a-token-of-my-own") as server:
        assert post(server, token="a-token-of-my-own").status_code == 200
        assert server.token_file is None
        assert server.token.value == "a-token-of-my-own"
    with memlab.serve(make_store("two.db"), token=False) as server:
        assert post(server, Authorization=None).status_code == 200
        assert "no token" in repr(server)
    wrong: Any
    for wrong in ("short", "with a blank in it somewhere", "naïve-but-long-enough", 17):
        with pytest.raises(InvalidValue, match="token: expected True"):
            memlab.serve(make_store("three.db"), token=wrong)


def test_without_a_place_to_keep_it_the_token_is_random(store, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    with memlab.serve(store) as server:
        assert server.token_file is None
        assert alive(server)
        assert "$MEMLAB_TOKEN" in str(server.setup("claude-code"))


def test_a_secret_is_its_text_only_when_asked():
    secret = Secret("abc")
    assert (secret.value, secret == Secret("abc"), bool(Secret(""))) == ("abc", True, False)
    assert "abc" not in f"{secret} {secret!r} {[secret]}"


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.168.1.7", "example.org", "::"])
def test_an_address_that_others_can_reach_is_refused(store, host):
    with pytest.raises(InvalidValue, match="to this machine alone"):
        memlab.serve(store, host=host)


def test_a_port_that_is_taken_is_an_error_in_the_cell(store):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidValue, match=f"port: {port} on 127.0.0.1 cannot be had"):
            memlab.serve(store, port=port)
    wrong: Any
    for wrong in (-1, 65536, True, "8080"):
        with pytest.raises(InvalidValue, match="port: expected a whole number"):
            memlab.serve(store, port=wrong)


@pytest.mark.parametrize("wrong", [{"host": "0.0.0.0"}, {"port": "taken"}, {"port": -1}, {"token": "short"}])
def test_a_mistake_in_the_cell_leaves_the_former_server_alone(handle, store, wrong):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        if wrong.get("port") == "taken":
            wrong = {"port": taken.getsockname()[1]}
        with pytest.raises(InvalidValue):
            memlab.serve(store, **{"port": handle.port, **wrong})
        assert handle.running
        assert alive(handle)


def test_another_port_ends_the_former_server(handle, store):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with memlab.serve(store, port=port) as other:
        assert (handle.running, other.running, other.port) == (False, True, port)


def test_what_is_no_store_is_refused():
    with pytest.raises(InvalidValue, match="expected a MemoryStore or a HybridRetriever"):
        memlab.serve("memory.db")  # type: ignore[arg-type]


def test_running_the_cell_again_takes_over_the_port(handle, store):
    again = memlab.serve(store)
    assert (again.port, handle.state, again.state) == (handle.port, "stopped", "serving")
    assert alive(again)
    again.stop()


def test_stop_can_be_said_twice_and_start_brings_it_back(handle):
    port = handle.port
    handle.stop()
    handle.stop()
    assert (handle.state, handle.running) == ("stopped", False)
    assert "stopped" in handle._repr_html_()
    handle.start()
    assert handle.port == port
    assert alive(handle)


def test_it_stops_with_the_process(tmp_path):
    script = (
        "import memlab, memlab.encoders\n"
        f"store = memlab.MemoryStore({str(tmp_path / 'memory.db')!r}, memlab.HashingEncoder(64))\n"
        "server = memlab.serve(store)\n"
        "print(server.url)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    port = int(re.findall(r":(\d+)/mcp", done.stdout)[0])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_a_handle_that_failed_says_so(store, monkeypatch):
    monkeypatch.setattr("memlab.server.service.service_for", lambda *_, **__: 1 / 0)
    server = memlab.serve(store)
    assert server._run is not None
    server._run.wait(60)
    assert server.state == "failed: ZeroDivisionError: division by zero"
    assert "failed" in server._repr_html_()
    server.stop()


# -- watching --------------------------------------------------------------------------------------------------------


def test_every_call_is_seen(handle):
    recall(handle, "webhooks retry")
    recall(handle, "<script>alert(1)</script> \x1b[31m")

    async def wrong():
        async with connected(handle) as client:
            await client.call_tool("forget", {"memory_id": "nobody"})

    anyio.run(wrong)
    frame = handle.activity
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["tool"]) == ["recall", "recall", "forget"]
    assert list(frame["call"]) == [1, 2, 3]
    assert list(frame["outcome"]) == ["ok", "ok", "error"]
    assert frame["hits"].tolist()[0] == 1
    assert (frame["milliseconds"] > 0).all()
    assert str(frame["at"].dtype).startswith("datetime64")
    assert set(frame["client"]) == {"mcp 0.1.0"}
    assert type(frame[frame["hits"] > 0]) is pd.DataFrame
    assert "\x1b" not in frame["about"].iloc[1]


def test_a_recall_opens_with_its_trace(handle):
    found = recall(handle, "webhooks retry", recency_boost=True)
    opened = handle.open().recall
    assert opened.ids == tuple(hit["id"] for hit in found.data["hits"])
    assert [hit.score for hit in opened] == [hit["score"] for hit in found.data["hits"]]
    assert opened.trace.recency
    assert opened.explain(opened.ids[0])
    again = handle.open(1)
    assert (again.query, again.settings.now) == ("webhooks retry", opened.trace.now)
    assert again.recall.trace.ranked == opened.trace.ranked
    with pytest.raises(InvalidValue, match="no recall with the number 7 is kept; there are: 1"):
        handle.open(7)


def test_nothing_to_open_yet(handle):
    with pytest.raises(InvalidValue, match="no recall is kept; there are: none yet"):
        handle.open()


def test_the_card_shows_the_calls_and_opens_their_recalls(handle):
    for number in range(15):
        recall(handle, f"webhooks {number} <b>&</b>")
    shown = handle._repr_html_()
    assert handle.url in shown
    assert "15 calls" in shown
    assert "webhooks 14 &lt;b&gt;&amp;&lt;/b&gt;" in shown
    assert "<b>&</b>" not in shown
    assert shown.count("click a recall to open it") == 1
    assert "and 3 before them" in shown
    assert "with full jitter" in shown  # a hit, in one of those that can be opened
    assert len(shown) < 200_000
    assert "<script" not in shown
    assert "<style" not in shown


def test_what_is_kept_is_bounded(store):
    store.remember("webhooks")
    with memlab.serve(store, keep=2) as server:
        for number in range(3):
            recall(server, f"webhooks {number}")
        assert list(server.activity["call"]) == [2, 3]
        assert "3 calls" in repr(server)


class Display:
    """Stands for a notebook's display and remembers what it shows."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, bundle, raw, display_id):
        self.shown.append(bundle)
        return self

    def update(self, bundle, raw):
        self.shown[-1] = bundle


@pytest.fixture
def notebook(monkeypatch):
    """As if there were a kernel; updates come at once."""
    display = Display()
    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(live.Live, "changed", live.Live.update)
    return display


def test_the_displayed_card_follows_the_calls(handle, notebook):
    handle._ipython_display_()
    assert "No calls yet" in notebook.shown[0]["text/html"]
    recall(handle, "webhooks")
    assert "1 call" in notebook.shown[0]["text/html"]
    handle.stop()
    assert "stopped" in notebook.shown[0]["text/html"]


def test_the_displayed_activity_is_text_without_a_notebook(handle, capsys):
    recall(handle, "webhooks")
    handle.activity._ipython_display_()
    assert "hybrid" in capsys.readouterr().out


def test_a_revealed_token_is_in_no_output_and_in_no_state_of_the_widget(handle, notebook):
    sent = []

    class View:
        comm = object()

        def send(self, content, buffers=None):
            sent.append(content)

    view = TokenView(handle.token, handle.token_file, 30)
    assert handle.token.value not in str(view.picture())
    assert str(handle.token_file) in view.picture()["text/plain"]
    view._receive(View(), {"ask": "hello", "from": "page", "seq": 1}, [])
    assert sent[-1]["body"]["seconds"] == 30
    assert handle.token.value not in str(sent)
    view._receive(View(), {"ask": "token", "from": "page", "seq": 2}, [])
    assert sent[-1]["body"] == {"token": handle.token.value}


def test_without_a_notebook_a_revealed_token_is_printed(handle, capsys):
    handle.reveal()
    assert capsys.readouterr().out == f"Authorization: Bearer {handle.token.value}\n"


def test_elsewhere_it_is_shown_as_text(handle, capsys):
    handle._ipython_display_()
    assert "memlab MCP server · serving" in capsys.readouterr().out


# -- settings --------------------------------------------------------------------------------------------------------


def test_a_retriever_answers_with_its_own_settings(store):
    store.remember("webhooks retry")
    with memlab.serve(HybridRetriever(store, fusion=RRF(k=10))) as server:
        recall(server)
        assert "RRF" in server.open().recall.trace.fusion


def test_a_read_only_server_over_a_store_that_can_be_written(store):
    with memlab.serve(store, read_only=True) as server:

        async def talk():
            async with connected(server) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

        assert anyio.run(talk) == ["recall", "memories", "category", "sync"]
    store.remember("still writable here")


def test_a_store_that_cannot_be_counted_is_no_crash_of_the_card(handle, monkeypatch):
    def unreadable(_store):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(type(handle.store), "__len__", unreadable)
    assert "serving" in repr(handle)
    assert " memories" not in handle._repr_html_()


def test_a_closed_store_is_said_not_crashed(make_store):
    store = make_store()
    with memlab.serve(store) as server:
        store.close()
        got = recall(server)
        assert got.failed
        assert "closed" in got.text

        async def read(client):
            with pytest.raises(MCPError, match="the store is closed"):
                await client.read_resource("memlab://store")
            with pytest.raises(MCPError, match="the store is closed"):
                await client.read_resource("memlab://memories/x")
            ref = PromptReference(type="ref/prompt", name="memory_guide")
            return (await client.complete(ref, {"name": "project", "value": ""})).completion.values

        async def talk():
            async with connected(server) as client:
                return await read(client)

        assert anyio.run(talk) == []
        assert "memories" not in repr(server).splitlines()[1].split("·")[1]


def test_a_stopped_server_leaves_no_thread(store):
    import threading

    server = memlab.serve(store)
    assert alive(server)
    server.stop()
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("memlab-mcp")]
