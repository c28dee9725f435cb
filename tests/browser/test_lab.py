"""The helpers themselves: without them, no other test here means anything."""

from __future__ import annotations

import pytest

from tests.browser.lab import KernelError

pytestmark = pytest.mark.browser


def test_a_notebook_is_run_asked_saved_and_reopened_untrusted_without_a_kernel(lab) -> None:
    notebook = lab.run(
        "first.ipynb",
        "from IPython.display import HTML\nx = 20 + 1\nHTML('<b id=\"kept\">kept</b><script>window.ran = 1</script>')",
        "import ipywidgets\nslider = ipywidgets.IntSlider(7, description='here')\nslider",
    )
    assert notebook.ask("x * 2") == 42
    with pytest.raises(KernelError, match="ZeroDivisionError"):
        notebook.ask("1 / 0")
    # A widget talks to the kernel, both ways.
    handle = notebook.output(1).get_by_role("slider")
    handle.focus()
    handle.press("ArrowRight")
    notebook.until("slider.value", 8)
    assert notebook.page.evaluate("window.ran") == 1
    again = notebook.reopened()
    assert again.output(0).locator("b").inner_text() == "kept"
    assert again.output(0).locator("script").count() == 0
    with pytest.raises(KernelError, match="no kernel"):
        again.ask("x")
    assert lab.errors() == []


def test_a_cell_that_raises_is_told(lab) -> None:
    with pytest.raises(KernelError, match="a reason"):
        lab.run("raises.ipynb", "raise ValueError('a reason')")
