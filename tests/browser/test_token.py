"""The token of a served store: on the page when asked for, and in no saved notebook."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_the_token_is_on_the_page_and_not_in_the_file(lab) -> None:
    notebook = lab.run(
        "token.ipynb",
        "import memlab, tempfile\n"
        "store = memlab.MemoryStore(tempfile.mkdtemp() + '/memory.db', memlab.HashingEncoder(dimension=64))\n"
        "server = memlab.serve(store)",
        "server.reveal(600)",
    )
    token = notebook.ask("server.token.value")
    view = notebook.output(1)
    view.locator("section.ml[data-ready]").wait_for()
    assert token not in view.inner_text()
    view.get_by_role("button", name="Show").click()
    view.get_by_text(token).wait_for()
    notebook.screenshot("token", view)
    notebook.save()
    assert token not in notebook.path.read_text(encoding="utf-8")
    view.get_by_role("button", name="Hide").click()
    view.get_by_text("••••").first.wait_for()
    assert token not in view.inner_text()
    assert notebook.ask("server.stop()") is None
    assert lab.errors() == []
