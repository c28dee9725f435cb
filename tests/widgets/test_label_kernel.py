"""The labeller in a real kernel: run again and again, it leaves nothing behind."""

from __future__ import annotations

SETUP = """
import tempfile, threading, ipywidgets, memlab
from memlab.encoders import HashingEncoder
folder = tempfile.TemporaryDirectory()
store = memlab.MemoryStore(folder.name + "/memory.db", HashingEncoder(64))
for number, text in enumerate(["webhooks retry", "the index is rebuilt", "a failed webhook is retried"]):
    store.remember(text, memory_id=f"m-{number}")
retriever = memlab.HybridRetriever(store)

def counts():
    return [len(ipywidgets.widgets.widget._instances), len(get_ipython().kernel.comm_manager.comms),
            threading.active_count()]
"""
CELL = "labeller = memlab.label(retriever, {'q1': 'webhook', 'q2': 'index'}, folder.name + '/qrels.tsv')\nlabeller"


def test_a_hundred_runs_leave_one_view_and_no_thread(kernel) -> None:
    kernel.run(SETUP)
    shown = kernel.run(CELL, "cell")
    before = kernel.value("counts()")
    for _ in range(100):
        shown = kernel.run(CELL, "cell")
    assert kernel.value("counts()") == before
    displayed = [got["content"]["data"] for got in shown if got["msg_type"] == "display_data"]
    assert "0 of 2 queries finished" in displayed[0]["text/html"]
    # The view that is left is the one that works.
    view = displayed[-1]["application/vnd.jupyter.widget-view+json"]["model_id"]
    asked = {"ask": "none", "body": {"query": "q1"}, "from": "v", "seq": 1}
    (answer,) = kernel.tell(view, asked)
    assert answer["content"]["data"]["content"]["body"]["current"] == "q2"
    assert kernel.value("list(labeller.progress)[:2]") == [1, 2]
    # The picture that the saved notebook keeps follows when the person pauses.
    updated, _ = kernel.tell(view, {"ask": "settled", "from": "v", "seq": 2})
    assert "1 of 2 queries finished" in updated["content"]["data"]["text/plain"]
