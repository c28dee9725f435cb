"""The labeller in JupyterLab: by mouse, by keyboard, stopped and taken up again."""

from __future__ import annotations

import pytest

import memlab
from tests.browser.applications import in_both

pytestmark = pytest.mark.browser
QUERIES = {
    "q1": "how do failing webhooks retry?",
    "q2": "what is searched at night?",
    "q3": "how is money kept?",
}


@pytest.fixture
def cells(memories, lab):
    """The cells that open a labeller, and the file that it writes."""
    path = lab.folder / "qrels.tsv"
    opening = (
        "import memlab\n"
        "from memlab.encoders import HashingEncoder\n"
        f"store = memlab.MemoryStore({str(memories())!r}, HashingEncoder(384))\n"
        "retriever = memlab.HybridRetriever(store)\n"
        f"queries = {QUERIES!r}"
    )
    return [opening, f"labeller = memlab.label(retriever, queries, {str(path)!r}, by='Ada', depth=3)\nlabeller"], path


def widget(notebook, cell=1):
    node = notebook.output(cell).locator("section.ml[data-ready]")
    node.wait_for()
    return node


def asked(node, text):
    """Wait until a query is the one that is shown."""
    node.get_by_role("heading", name=text, exact=True).wait_for()


def card(node, memory_id):
    return node.locator(f".lb-card[data-id='{memory_id}']")


@in_both
def test_three_queries_are_labelled_stopped_and_taken_up_again(lab, cells) -> None:
    sources, path = cells
    notebook = lab.run("label.ipynb", *sources)
    node = widget(notebook)
    # The picture is hidden while the widget lives.
    assert not notebook.output(1).locator(".memlab-picture").is_visible()
    assert node.locator(".lb-query").inner_text() == QUERIES["q1"]
    shown = node.locator(".lb-card").evaluate_all("(cards) => cards.map((card) => card.dataset.id)")
    assert shown == notebook.ask("labeller.candidates")
    ranked = notebook.ask("retriever.recall(queries['q1'], limit=50).ids")
    assert [name for name in ranked if name in shown] != shown  # not the present order
    said = node.inner_text()
    assert "rank" not in said
    assert "0." not in said

    # By mouse: two are relevant, one of them is taken back again, the rest is not.
    yes = card(node, shown[1]).get_by_role("button", name="relevant", exact=False).nth(1)
    yes.click()
    notebook.until("labeller.qrels.as_dict()", {"q1": {shown[1]: 1}})
    assert yes.get_attribute("aria-pressed") == "true"
    assert path.read_text().splitlines()[1].startswith(f"q1\t{shown[1]}\t1\tAda\t")
    other = card(node, shown[2]).get_by_role("button").nth(1)
    other.click()
    notebook.until(f"labeller.session.grade('q1', {shown[2]!r})", 1)
    other.click()
    notebook.until(f"labeller.session.grade('q1', {shown[2]!r})", None)
    notebook.screenshot("labeller", node)
    node.get_by_role("button", name="Finish").click()
    notebook.until("labeller.progress.finished", 1)
    expected = {name: int(name == shown[1]) for name in shown}
    assert notebook.ask("labeller.qrels.as_dict()['q1']") == expected

    # By keyboard alone: the focus is on the first candidate of the next query.
    asked(node, QUERIES["q2"])
    focused = notebook.page.locator(".lb-card:focus")
    focused.wait_for()
    second = notebook.ask("labeller.candidates")
    assert focused.get_attribute("data-id") == second[0]
    press = notebook.page.keyboard.press
    press("y")
    notebook.until(f"labeller.session.grade('q2', {second[0]!r})", 1)
    press("0")
    notebook.until(f"labeller.session.grade('q2', {second[1]!r})", 0)
    press("ArrowUp")
    assert focused.get_attribute("data-id") == second[1]
    press("Backspace")
    notebook.until(f"labeller.session.grade('q2', {second[1]!r})", None)
    assert notebook.ask("labeller.progress.finished") == 1
    # No key did anything to the notebook.
    assert notebook.page.evaluate("jupyterapp.shell.currentWidget.content.widgets.length") == 2

    # Stopped: the kernel goes. Taken up again at the first query that is not finished.
    notebook.restart()
    notebook.run_all()
    node = widget(notebook)
    assert node.locator(".lb-query").inner_text() == QUERIES["q2"]
    assert notebook.ask("labeller.session.grade('q2', labeller.candidates[0])") == 1
    card(node, second[0]).focus()
    press("Enter")
    notebook.until("labeller.current", "q3")
    asked(node, QUERIES["q3"])
    node.get_by_role("button", name="None is relevant").click()
    notebook.until("list(labeller.progress)[:2]", [3, 3])
    node.get_by_text("All 3 queries are finished").wait_for()

    # What was written is what evaluation reads.
    qrels = memlab.Qrels.of(path)
    assert qrels.query_ids == ("q1", "q2", "q3")
    assert qrels.relevant("q1") == {shown[1]}
    assert qrels.relevant("q2") == {second[0]}
    assert qrels.relevant("q3") == set()
    assert notebook.ask("labeller.qrels.as_dict()") == qrels.as_dict()
    assert notebook.ask("memlab.evaluate(retriever, labeller.queries, labeller.qrels) is not None")
    assert lab.errors() == []


def test_python_and_the_view_follow_each_other_and_a_query_is_added(lab, cells) -> None:
    sources, _ = cells
    notebook = lab.run("both.ipynb", *sources)
    node = widget(notebook)
    notebook.execute("labeller.current = 'q3'")
    asked(node, QUERIES["q3"])
    notebook.execute("labeller.mark(labeller.candidates[0])")
    node.locator(".lb-card[data-mark='yes']").wait_for()
    node.get_by_role("textbox", name="Add a query").fill("what is <b>bold</b>?")
    node.get_by_role("button", name="Add").click()
    notebook.until("labeller.current", "added-1")
    assert node.locator(".lb-query").inner_text() == "what is <b>bold</b>?"
    node.get_by_role("textbox", name="Add a query").fill("webhooks")
    node.get_by_role("textbox", name="Add a query").press("Enter")
    notebook.until("labeller.current", "added-2")
    node.get_by_role("combobox", name="Go to query").select_option("q1")
    notebook.until("labeller.current", "q1")
    assert notebook.ask("len(labeller.queries)") == 5
    # A text that is longer than its box is scrolled by the keys, and is what a screen reader says of the card.
    notebook.execute(
        "store.remember('webhooks ' + 'retry again. ' * 400, memory_id='long')\nlabeller.add_query('retry')"
    )
    long = card(node, "long")
    long.focus()
    assert "retry again" in long.evaluate(
        "(card) => document.getElementById(card.getAttribute('aria-describedby')).innerText"
    )
    lab.page.keyboard.press("Tab")
    for _ in range(3):
        lab.page.keyboard.press("ArrowDown")
    lab.page.wait_for_function("document.activeElement.matches('.lb-text') && document.activeElement.scrollTop > 0")


def test_what_goes_wrong_is_said_and_nothing_is_lost(lab, cells) -> None:
    sources, path = cells
    notebook = lab.run("wrong.ipynb", *sources)
    node = widget(notebook)
    path.write_text("query-id\tcorpus-id\tscore\nq1\tm-00\t1\n")
    node.get_by_role("button", name="None is relevant").click()
    node.get_by_role("alert").get_by_text("somebody else has changed the file").wait_for()
    assert path.read_text() == "query-id\tcorpus-id\tscore\nq1\tm-00\t1\n"
    assert notebook.ask("labeller.progress.judged") == 0


def test_a_hostile_memory_is_text(lab, cells) -> None:
    sources, _ = cells
    hostile = "webhooks retry <script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \\x1b[31mred"
    notebook = lab.run(
        "hostile.ipynb", sources[0] + f"\nstore.remember({hostile!r}, memory_id='<i>h</i>');", sources[1]
    )
    node = widget(notebook)
    (shown,) = node.locator(".lb-text").filter(has_text="hacked").all_inner_texts()
    assert "<script>window.hacked = 1</script><img src=x" in shown
    assert node.locator("script, img, i").count() == 0
    assert notebook.page.evaluate("window.hacked") is None


def test_a_saved_notebook_says_how_far_it_was(lab, cells) -> None:
    sources, _ = cells
    notebook = lab.run("saved.ipynb", *sources)
    node = widget(notebook)
    node.get_by_role("button", name="None is relevant").click()
    notebook.until("labeller.progress.finished", 1)
    notebook.execute("labeller.refresh_picture()")
    again = notebook.reopened()
    picture = again.output(1).locator(".memlab-picture table, table").first
    assert "1 of 3 queries finished" in picture.inner_text()
    again.screenshot("labeller-saved", picture)
