"""The inspector in a real JupyterLab: typed at, its knobs moved, read back in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.applications import in_both

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.lab import Notebook

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'> webhooks \x1b[31mred"
TAG = '<img src=x onerror="window.hacked=3">'
SETUP = """
import threading, ipywidgets, memlab
store = memlab.MemoryStore({path!r}, memlab.HashingEncoder(384))
retriever = memlab.HybridRetriever(store)
def counts():
    return [len(ipywidgets.widgets.widget._instances), len(get_ipython().kernel.comm_manager.comms),
            threading.active_count()]
"""
QUERY = "failing webhooks retry"


def shown(lab, memories, code: str = f"inspector = memlab.inspect(retriever, {QUERY!r})\ninspector") -> Any:
    """A notebook with an inspector in its second cell, and the live widget."""
    notebook = lab.run("inspector.ipynb", SETUP.format(path=str(memories())), code)
    return notebook, live(notebook)


def live(notebook: Notebook, cell: int = 1) -> Locator:
    widget = notebook.output(cell).locator(".ml[data-ready]")
    widget.wait_for()
    return widget


def order(widget: Locator) -> list[str]:
    return widget.locator(".in-hit").evaluate_all("items => items.map(item => item.dataset.id)")


def slider(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


@in_both
def test_a_query_is_typed_a_knob_moved_and_both_are_read_in_python(lab, memories):
    notebook, widget = shown(lab, memories, "inspector = memlab.inspect(retriever)\ninspector")
    assert "24 memories" in widget.locator(".in-about").inner_text()
    query = widget.get_by_role("searchbox", name="Query")
    query.press_sequentially(QUERY, delay=5)
    notebook.until("inspector.query", QUERY)
    widget.locator(".in-hit").first.wait_for()
    before = order(widget)
    assert before == notebook.ask("inspector.recall.ids")
    assert widget.locator(".ml-unseen").inner_text() == f"{len(before)} hits"
    knob = slider(widget, "keyword")
    knob.focus()
    knob.press("ArrowLeft")
    notebook.until("inspector.settings.fusion.weights['keyword']", 0.41)
    knob.evaluate("node => { node.value = 0; node.dispatchEvent(new Event('input')); }")
    notebook.until("inspector.settings.fusion.weights['keyword']", 0)
    lab.page.wait_for_function(
        "ids => JSON.stringify([...document.querySelectorAll('.in-hit')].map((i) => i.dataset.id)) !== ids",
        arg=str(before).replace("'", '"').replace(" ", ""),
    )
    assert order(widget) == notebook.ask("inspector.recall.ids") != before
    assert order(widget) == notebook.ask(f"retriever.only('vector', 'passage').recall({QUERY!r}, limit=10).ids")
    assert knob.evaluate("node => node === document.activeElement"), "the slider keeps the focus"
    assert lab.errors() == []


def test_fusion_recency_time_and_filters(lab, memories):
    notebook, widget = shown(lab, memories)
    widget.get_by_role("button", name="RRF").click()
    notebook.until("inspector.recall.trace.fusion", "RRF(k=60)")
    number = widget.get_by_role("spinbutton", name="k, exact", exact=True)
    number.fill("7")
    notebook.until("inspector.recall.trace.fusion", "RRF(k=7)")
    widget.get_by_role("checkbox", name="newer memories get a bonus").check()
    widget.get_by_role("spinbutton", name="half-life, exact").fill("3")
    notebook.until("inspector.recall.trace.recency", "RecencyRanker(half_life_days=3, strength=0.3)")
    now = slider(widget, "now: the moment that ages are counted from")
    now.focus()
    now.press("ArrowRight")
    notebook.until("inspector.settings.now is not None", True)
    present = widget.get_by_role("button", name="present")
    present.press("Enter")
    notebook.until("inspector.settings.now", None)
    assert present.is_disabled()
    lab.page.wait_for_function("document.activeElement.matches('input[type=range]')")
    widget.locator("summary", has_text="project").click()
    widget.get_by_role("checkbox", name="billing 12").check()
    notebook.until("inspector.settings.filters.project", ["billing"])
    lab.page.wait_for_function(
        "[...document.querySelectorAll('.in-hit .in-facts')].every((n) => n.textContent.includes('billing'))"
    )
    assert widget.get_by_role("checkbox", name="billing 12").is_visible(), "the list stays open"
    notebook.execute("store.remember('A note of a new project.', project='ledger')")
    widget.get_by_role("searchbox", name="Query").fill("failing webhooks")
    widget.get_by_role("checkbox", name="ledger 1").wait_for()
    widget.get_by_role("button", name="as given").click()
    notebook.until("inspector.recall.trace.fusion", "ScoreFusion()")
    assert notebook.ask("bool(inspector.settings.filters)") is False
    assert lab.errors() == []


def test_a_hit_opens_by_keyboard_and_tells_its_sum(lab, memories):
    notebook, widget = shown(lab, memories)
    widget.get_by_role("searchbox", name="Query").press("ArrowDown")
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("Enter")
    second = notebook.ask("inspector.recall.ids[1]")
    notebook.until("inspector.selected", second)
    opened = widget.locator(f".in-hit[data-id={second}]")
    opened.locator(".in-fulltext").wait_for()
    assert opened.locator(".in-fulltext").inner_text() == notebook.ask("inspector.hit.content")
    assert f"{notebook.ask('inspector.hit.score'):.6f}" in opened.locator(".in-sum").inner_text()
    assert opened.locator(".in-near li").count() == 5
    assert opened.locator(".in-hit-row").get_attribute("aria-expanded") == "true"
    # It stays open while the order changes under it.
    widget.get_by_role("button", name="RRF").click()
    notebook.until("inspector.recall.trace.fusion", "RRF(k=60)")
    lab.page.wait_for_function("document.querySelector('.in-hit[data-open] .in-sum')?.textContent.includes('1 / (60')")
    lab.page.locator(".in-hit[data-open] .in-hit-row").focus()
    lab.page.keyboard.press("Enter")
    notebook.until("inspector.selected", None)
    assert widget.locator(".in-detail:visible").count() == 0
    # Letters are no notebook commands in here: the cell is still there.
    lab.page.keyboard.press("x")
    assert lab.page.evaluate("jupyterapp.shell.currentWidget.content.model.cells.length") == 2
    assert lab.errors() == []


def test_why_not_by_words_and_its_remedy(lab, memories):
    notebook, widget = shown(lab, memories, f"inspector = memlab.inspect(retriever, {QUERY!r}, limit=3)\ninspector")
    box = widget.get_by_role("searchbox", name="Why not this one?")
    box.fill("backoff doubles from one second")
    box.press("Enter")
    choice = widget.locator(".in-choices button").first
    choice.wait_for()
    assert choice.inner_text() == "m-10"
    choice.press("Enter")
    remedy = widget.get_by_role("button", name="try it").first
    remedy.wait_for()
    # The choice is gone; a letter that is typed now must not be a command of the notebook.
    lab.page.wait_for_function("document.activeElement.closest('.in-why-answer')")
    remedy.press("Enter")
    notebook.until("'m-10' in inspector.recall.ids", True)
    lab.page.wait_for_function("document.querySelector('.in-why-answer').textContent.includes('is among the hits')")
    widget.locator(".in-hit[data-id=m-10] .in-fulltext").wait_for()
    assert lab.errors() == []


def test_two_settings_side_by_side(lab, memories):
    notebook, widget = shown(lab, memories)
    widget.get_by_role("button", name="Compare A | B").click()
    widget.locator(".in-compare").wait_for()
    knob = slider(widget, "keyword")
    knob.evaluate("node => { node.value = 0; node.dispatchEvent(new Event('input')); }")
    notebook.until("inspector.settings_b.fusion.weights['keyword']", 0)
    assert notebook.ask("inspector.settings.fusion.weights['keyword']") == 0.42
    lab.page.wait_for_function("document.querySelectorAll('.in-line[data-move=up]').length > 0")
    ups = notebook.ask("sum(int(b < a <= 10) for a, b in zip(inspector.moves.rank_a, inspector.moves.rank_b))")
    assert widget.locator(".in-line[data-move=up]").count() == ups > 0
    assert "▲" in widget.locator(".in-short").last.inner_text()
    widget.locator(".in-short-row").last.click()
    widget.locator(".in-apart .in-sum").wait_for()
    notebook.until("inspector.selected == inspector.recall_b.ids[-1]", True)
    widget.get_by_role("button", name="Compare A | B").click()
    notebook.until("inspector.settings_b", None)
    assert lab.errors() == []


def test_what_python_sets_is_shown(lab, memories):
    notebook, widget = shown(lab, memories)
    notebook.execute("inspector.update(query='search index', fusion='rrf', k=5, limit=4)")
    lab.page.wait_for_function("document.querySelectorAll('.in-hit').length === 4")
    assert widget.get_by_role("searchbox", name="Query").input_value() == "search index"
    assert widget.get_by_role("spinbutton", name="k, exact", exact=True).input_value() == "5"
    notebook.execute("inspector.selected = inspector.recall.ids[2]")
    widget.locator(".in-hit[data-open] .in-fulltext").wait_for()
    assert widget.locator(".in-hit[data-open]").get_attribute("data-id") == notebook.ask("inspector.recall.ids[2]")


def test_a_hostile_memory_does_nothing(lab, memories):
    notebook, widget = shown(lab, memories)
    notebook.execute(
        f"store.remember({HOSTILE!r}, memory_id='<b>id</b>', project='<i>p</i>', tags=[{TAG!r}])\n"
        "inspector.query = 'webhooks red'; inspector.selected = '<b>id</b>'"
    )
    item = widget.locator('.in-hit[data-id="<b>id</b>"]')
    item.locator(".in-fulltext").wait_for()
    assert (
        "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>"
        in item.locator(".in-fulltext").inner_text()
    )
    notebook.execute("inspector.settings_b = {'limit': 3, 'fusion': 'rrf'}")
    widget.locator(".in-compare").wait_for()
    notebook.execute("inspector.refresh_picture(); inspector.show()")
    notebook.run_cell(1)
    live(notebook)
    assert lab.page.evaluate("window.hacked") is None
    assert widget.locator("img, script, i").count() == 0
    assert lab.errors() == []


def test_errors_are_shown_where_the_person_looks(lab, memories):
    notebook, widget = shown(lab, memories)
    notebook.execute("store.close()")
    widget.get_by_role("searchbox", name="Query").fill("something else")
    alert = widget.get_by_role("alert")
    lab.page.wait_for_function("document.querySelector('.ml-trouble[data-shown]')")
    assert "closed" in alert.inner_text()
    assert notebook.ask("type(inspector.error).__name__") == "StoreClosed"


def test_the_picture_gives_way_to_the_view_and_is_what_a_saved_notebook_keeps(lab, memories):
    notebook, widget = shown(lab, memories)
    picture = notebook.output(1).locator(".memlab-picture")
    assert picture.count() == 1
    assert not picture.is_visible()
    widget.get_by_role("searchbox", name="Query").fill("invoices by country")
    # The picture follows when the person pauses.
    lab.page.wait_for_function("document.querySelector('.memlab-picture').textContent.includes('invoices by country')")
    assert not picture.is_visible()
    again = notebook.reopened()
    kept = again.output(1).locator(".memlab-picture, table").first
    kept.wait_for()
    assert "invoices by country" in kept.inner_text()
    assert again.output(1).locator(".ml[data-ready]").count() == 0
    again.screenshot("inspector-saved", again.output(1))


def test_a_page_that_is_loaded_again_goes_on_where_it_was(lab, memories):
    notebook, widget = shown(lab, memories)
    widget.get_by_role("button", name="RRF").click()
    notebook.until("inspector.recall.trace.fusion", "RRF(k=60)")
    before = notebook.ask("counts()")
    notebook.save()
    lab.page.reload()
    lab.page.wait_for_function("window.jupyterapp && document.querySelector('#jp-main-dock-panel')")
    lab.page.evaluate("jupyterapp.restored")
    again = lab.open(notebook.path)
    widget = live(again)
    assert widget.get_by_role("button", name="RRF").get_attribute("aria-pressed") == "true"
    assert order(widget) == again.ask("inspector.recall.ids")
    assert not again.output(1).locator(".memlab-picture").is_visible()
    assert again.ask("counts()[0]") == before[0]
    widget.get_by_role("searchbox", name="Query").fill("search index")
    again.until("inspector.query", "search index")


def test_a_hundred_runs_of_its_cell_leave_nothing_behind(lab, memories):
    notebook, _ = shown(lab, memories, f"memlab.inspect(retriever, {QUERY!r})")
    before = notebook.ask("counts()")
    for _ in range(100):
        notebook.run_cell(1)
    widget = live(notebook)
    assert notebook.ask("counts()") == before
    assert lab.page.locator(".ml").count() == 1
    assert not notebook.output(1).locator(".memlab-picture").is_visible()
    widget.get_by_role("searchbox", name="Query").fill("search")
    widget.locator("mark", has_text="search").first.wait_for()
    assert lab.errors() == []


def test_it_looks_right_in_light_and_dark(lab, memories):
    notebook, widget = shown(lab, memories, f"inspector = memlab.inspect(retriever, {QUERY!r}, limit=6)\ninspector")
    widget.locator(".in-hit-row").nth(1).click()
    widget.locator(".in-fulltext").wait_for()
    for width in (1070, 770):
        lab.page.set_viewport_size({"width": width, "height": 1500})
        notebook.screenshot(f"inspector-{width - 168}", widget)
        wide = widget.evaluate(
            "node => [...node.querySelectorAll('.in-top, .in-body, .in-hit, .in-detail, .in-why')]"
            ".filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.className)"
        )
        assert wide == [], "nothing sticks out"
    notebook.execute(
        "inspector.selected = None\n"
        "inspector.settings_b = inspector.settings.replace(fusion='rrf', k=3, weights={'keyword': 0.2})"
    )
    widget.locator(".in-compare").wait_for()
    notebook.screenshot("inspector-compare", widget)
    # A long id leaves room for the button beside it, and the moves stay in their rows.
    notebook.execute(f"store.remember('failing webhooks', memory_id='y' * 180); inspector.query = '{QUERY} failing'")
    notebook.execute("inspector.selected = 'y' * 180")
    widget.locator(".in-apart header button").wait_for()
    lab.page.set_viewport_size({"width": 500, "height": 1500})
    out = widget.evaluate(
        "node => [...node.querySelectorAll('.in-move, .in-apart header button')].filter((each) => "
        "each.getBoundingClientRect().right > each.closest('.in-short-row, .in-apart').getBoundingClientRect().right)"
    )
    assert out == []
    # Foreground and background differ, whatever the theme.
    for theme in ("light", "dark"):
        lab.theme(theme)
        lab.page.wait_for_function("theme => document.querySelector('.ml').dataset.theme === theme", arg=theme)
        ink, ground = widget.evaluate("node => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]")
        assert abs(luminance(ink) - luminance(ground)) > 0.5


def test_no_label_of_a_setting_is_cut_off(lab, memories):
    _, widget = shown(lab, memories, "inspector = memlab.inspect(retriever, now='2026-12-01T08:17:00Z')\ninspector")
    cut = widget.evaluate(
        "node => [...node.querySelectorAll('.in-panel .in-field > span, .in-panel .in-travel-head > *, .in-label')]"
        ".filter((each) => each.scrollWidth > each.clientWidth + 1 || "
        "each.getBoundingClientRect().right > each.closest('.in-panel-body').getBoundingClientRect().right + 1)"
        ".map((each) => each.textContent)"
    )
    assert cut == []


def luminance(colour: str) -> float:
    channels = [float(part) for part in colour.strip("rgba()").split(",")[:3]]
    return sum(weight * channel / 255 for weight, channel in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
