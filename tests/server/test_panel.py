"""The live panel of a server's calls, in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.widgets.kernel import Kernel, running_kernel

SERVE = """
import threading, ipywidgets, memlab
from memlab import HashingEncoder, MemoryStore
store = MemoryStore({path!r}, HashingEncoder(64))
store.remember("Webhooks retry with full jitter.", memory_id="m-1")
store.remember("<script>bad()</script> the index is rebuilt at night", memory_id="m-2")
server = memlab.serve(store)
async def call(tool, **arguments):
    async with server.client() as client:
        await client.call_tool(tool, arguments)
def counts():
    return [len(ipywidgets.widgets.widget._instances), len(get_ipython().kernel.comm_manager.comms)]
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with running_kernel() as started:
        started.run(SERVE.format(path=str(tmp_path_factory.mktemp("panel") / "memory.db")))
        started.run("await call('recall', query='failing webhooks')\nawait call('recall', query='night')")
        yield started
        started.run("server.stop()")


def shown(messages):
    return [got["content"] for got in messages if got["msg_type"] == "display_data"]


def view_of(messages):
    kind = "application/vnd.jupyter.widget-view+json"
    return next(each["data"][kind]["model_id"] for each in shown(messages) if kind in each["data"])


def answer(messages):
    (found,) = [
        got["content"]["data"]["content"]
        for got in messages
        if got["msg_type"] == "comm_msg" and "to" in got["content"]["data"]["content"]
    ]
    return found


def test_the_panel_begins_with_the_calls_newest_first(kernel):
    out = kernel.run("server.activity", "panel")
    assert "failing webhooks" in shown(out)[0]["data"]["text/html"]
    assert len(shown(out)) == 4  # picture, view, and a place for what is opened
    rows = answer(kernel.tell(view_of(out), {"ask": "hello", "from": "v", "seq": 1}))["body"]["calls"]
    assert [(row["call"], row["about"], row["openable"]) for row in rows] == [
        (2, "night", True),
        (1, "failing webhooks", True),
    ]


def test_a_call_opens_in_the_inspector_below_and_closes_with_the_cell(kernel):
    out = kernel.run("server.activity", "panel")
    places = [each["transient"]["display_id"] for each in shown(out)[2:]]
    before = kernel.value("counts()")
    told = kernel.tell(view_of(out), {"ask": "open", "body": {"call": 1}, "from": "v", "seq": 1})
    assert answer(told)["body"] == {"opened": 1}
    updates = [got["content"] for got in told if got["msg_type"] == "update_display_data"]
    assert {each["transient"]["display_id"] for each in updates} == set(places)
    assert "retry with full jitter" in updates[0]["data"]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in updates[-1]["data"]
    assert kernel.value("server._panel.inspector.query") == "failing webhooks"
    one = kernel.value("counts()")
    kernel.tell(view_of(out), {"ask": "open", "body": {"call": 2}, "from": "v", "seq": 2})
    assert kernel.value("counts()") == one, "the one that was open before is closed"
    kernel.run("server.activity", "panel")
    assert kernel.value("counts()") == before


def test_a_call_that_comes_is_told(kernel):
    out = kernel.run("server.activity", "panel")
    kernel.run("await call('recall', query='<b>later</b>')")
    told = kernel.run("server._panel.update()")
    pushed = [got["content"]["data"]["content"] for got in told if got["msg_type"] == "comm_msg"]
    assert pushed[-1]["push"] == "calls"
    assert pushed[-1]["body"][0]["about"] == "<b>later</b>"
    picture = [got["content"]["data"]["text/html"] for got in told if got["msg_type"] == "update_display_data"][-1]
    assert "&lt;b&gt;later" in picture
    assert view_of(out)


def test_a_call_that_is_no_recall_is_refused_in_words(kernel):
    out = kernel.run("server.activity", "panel")
    told = answer(kernel.tell(view_of(out), {"ask": "open", "body": {"call": 99}, "from": "v", "seq": 1}))
    assert "no recall with the number 99" in told["error"]["message"]
