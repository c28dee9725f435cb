"""The panel of a server's calls in a real JupyterLab: a call arrives, and opens in the inspector below it."""

from __future__ import annotations

import pytest

from tests.browser.applications import in_both

pytestmark = pytest.mark.browser

SERVE = """
import memlab
store = memlab.MemoryStore({path!r}, memlab.HashingEncoder(384))
server = memlab.serve(store)
async def call(tool, **arguments):
    async with server.client() as client:
        await client.call_tool(tool, arguments)
"""


@in_both
def test_a_call_arrives_and_opens_in_the_inspector(lab, memories):
    notebook = lab.run(
        "activity.ipynb",
        SERVE.format(path=str(memories())),
        "server.activity",
        "await call('recall', query='failing webhooks', limit=3)\nawait call('recall', query='invoices by country')",
    )
    panel = notebook.output(1).locator(".ml[data-ready]").first
    panel.get_by_role("button", name="open call 2 in the inspector").wait_for()
    assert panel.locator("tbody tr").count() == 2
    for number, query in ((1, "failing webhooks"), (2, "invoices by country")):
        panel.get_by_role("button", name=f"open call {number} in the inspector").click()
        inspector = notebook.output(1).locator(".ml[data-ready]", has=lab.page.locator(".in-query"))
        inspector.locator(".in-hit").first.wait_for()
        lab.page.wait_for_function("query => document.querySelector('.in-query')?.value === query", arg=query)
        assert inspector.count() == 1
        assert inspector.locator(".in-badge").inner_text() == "as recorded"
        order = inspector.locator(".in-hit").evaluate_all("items => items.map(item => item.dataset.id)")
        assert order == notebook.ask(f"server.open({number}).recall.ids")
    assert not notebook.output(1).locator(".memlab-picture:visible").count()
    notebook.screenshot("activity", notebook.output(1))
    notebook.run_cell(1)
    panel.wait_for()
    assert notebook.output(1).locator(".in-query").count() == 0
    notebook.execute("server.stop()")
    assert lab.errors() == []
