"""The map in a real JupyterLab: hover, click, encircle, ask, search, save; and what hostile memories do to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.applications import in_both
from tests.browser.lab import Lab, Notebook

pytestmark = pytest.mark.browser

STORE = """
import memlab
store = memlab.sample().build("memory.db", memlab.HashingEncoder(), progress=False)
retriever = memlab.HybridRetriever(store)
"""
MAP = "view = memlab.map(retriever, method='pca')\nview"
HOSTILE = """
import memlab
store = memlab.MemoryStore("memory.db", memlab.HashingEncoder())
bad = ['<script>window.hacked = 1</script> tag', '<img src=x onerror="window.hacked = 2"> picture',
       '\\x1b[31mred\\x1b[0m \\u202eturned round', '"]}</script><svg onload="window.hacked = 3"> shape']
names = ['<b onmouseover="window.hacked = 4">bold</b>', 'plain']
for at in range(40):
    text = f"{bad[at % 4]} number {at}"
    store.remember(text, project=names[at % 2], category=bad[0][:30], memory_id=f"<i>m-{at}</i>")
view = memlab.map(memlab.HybridRetriever(store), "picture", method="pca")
view
"""


@pytest.fixture
def shown(lab: Lab) -> Callable[..., tuple[Notebook, Any]]:
    """Run cells of which the last shows a map; the notebook, and the map's element once it is ready."""

    def show(*cells: str) -> tuple[Notebook, Any]:
        notebook = lab.run("map.ipynb", *cells)
        view = notebook.output(len(cells) - 1).locator(".ml[data-ready]")
        view.wait_for()
        view.locator(".mm-faith span").filter(has_text="nearest").wait_for()
        return notebook, view

    return show


def spot(view: Any, row: int) -> tuple[float, float]:
    """Where a memory is in the page."""
    x, y = view.locator(".ml-root").evaluate(
        "(root, row) => { const m = root.memlabMap; return m.place(m.points[2 * row], m.points[2 * row + 1]); }", row
    )
    box = view.locator(".mm-stage").bounding_box()
    return box["x"] + x, box["y"] + y


def at(view: Any, x: float, y: float) -> int:
    """Which memory the pointer is on there."""
    box = view.locator(".mm-stage").bounding_box()
    return view.locator(".ml-root").evaluate(
        "(root, [x, y]) => root.memlabMap.under(x, y)", [x - box["x"], y - box["y"]]
    )


def ink(view: Any) -> int:
    """How many pixels of the points' canvas are not ground."""
    return view.locator("canvas.mm-points").evaluate(
        """(canvas) => {
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const words = new Uint32Array(data.buffer), ground = words[0];
            return words.reduce((count, word) => count + (word !== ground), 0);
        }"""
    )


@in_both
def test_hover_click_and_encircle_reach_python(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    page = notebook.page
    view.scroll_into_view_if_needed()
    assert ink(view) > 5000
    x, y = spot(view, 100)
    row = at(view, x, y)
    page.mouse.move(x, y)
    card = view.locator(".mm-card")
    card.wait_for()
    memory_id, content = notebook.ask(f"[view.projection.ids[{row}], store.get(view.projection.ids[{row}]).content]")
    assert memory_id in card.inner_text()
    assert content[:40] in card.inner_text()
    assert notebook.ask("len(view.selected)") == 0
    page.mouse.click(x, y)
    notebook.until("view.selected['memory_id'].tolist()", [memory_id])
    view.locator(".mm-panel:visible .mm-go").filter(has_text=content[:30]).wait_for()

    box = view.locator(".mm-stage").bounding_box()
    x0, y0, x1, y1 = (
        box["x"] + 0.3 * box["width"],
        box["y"] + 0.3 * box["height"],
        box["x"] + 0.6 * box["width"],
        box["y"] + 0.7 * box["height"],
    )
    page.keyboard.down("Shift")
    page.mouse.move(x0, y0)
    page.mouse.down()
    for corner in ((x1, y0), (x1, y1), (x0, y1), (x0, y0 + 8)):
        page.mouse.move(*corner, steps=8)
    page.mouse.up()
    page.keyboard.up("Shift")
    inside = view.locator(".ml-root").evaluate(
        """(root, [x0, y0, x1, y1]) => {
            const m = root.memlabMap, rows = [];
            for (let i = 0; i < m.points.length / 2; i += 1) {
                const [x, y] = m.place(m.points[2 * i], m.points[2 * i + 1]);
                if (x > x0 && x < x1 && y > y0 && y < y1) rows.push(i);
            }
            return rows;
        }""",
        [x0 - box["x"] + 3, y0 - box["y"] + 3, x1 - box["x"] - 3, y1 - box["y"] - 3],
    )
    assert len(inside) > 10
    found = notebook.until("view.selected['memory_id'].tolist()", lambda ids: len(ids) >= len(inside))
    ids = notebook.ask("list(view.projection.ids)")
    assert {ids[row] for row in inside} <= set(found)
    assert len(found) < len(inside) + 60
    assert lab.errors() == []


def test_what_is_set_in_python_is_shown(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    notebook.execute("view.selected = ['m-003', 'm-007']")
    view.get_by_role("tab", name="Selected 2").wait_for()
    notebook.execute("view.colour = 'category'")
    view.locator(".mm-entry").filter(has_text="decision").wait_for()
    colour = view.get_by_label("Colour and shape by")
    assert colour.input_value() == "category"
    # What the view has already it shows at once: Python may be busy with finding groups.
    wanted = notebook.ask("list(view._columns['importance'].values)")
    colour.select_option("importance")
    assert view.locator(".mm-entry .mm-value").all_inner_texts() == wanted
    notebook.until("view.colour", "importance")
    notebook.execute("view.recall = retriever.recall('webhook retry')")
    view.locator(".mm-panel:visible .mm-go").first.wait_for()
    assert view.locator(".mm-ask").input_value() == "webhook retry"
    hits = notebook.ask("list(view.recall.ids)")
    shown_ids = view.locator(".mm-panel:visible .mm-facts code").all_inner_texts()
    assert shown_ids == hits
    assert lab.errors() == []


def test_a_query_and_each_channel(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    before = view.locator("canvas.mm-overlay").evaluate("(canvas) => canvas.toDataURL()")
    view.locator(".mm-ask").fill("how do we back off failing webhooks?")
    view.locator(".mm-ask").press("Enter")
    rows = view.locator(".mm-panel:visible .mm-go")
    rows.first.wait_for()
    hits = notebook.until("list(view.recall.ids) if view.recall else []", lambda ids: len(ids) == 5)
    assert view.locator(".mm-panel:visible .mm-facts code").all_inner_texts() == hits
    drawn = view.locator("canvas.mm-overlay").evaluate("(canvas) => canvas.toDataURL()")
    assert drawn != before
    view.get_by_role("button", name="keyword").click()
    keyword = notebook.ask("[h.memory_id for h in view.recall.trace.channel('keyword').hits[:10]]")
    assert view.locator(".mm-panel:visible .mm-facts code").all_inner_texts() == keyword
    assert view.locator("canvas.mm-overlay").evaluate("(canvas) => canvas.toDataURL()") != drawn
    notebook.screenshot("map-channel", view)
    assert lab.errors() == []


def test_search_legend_and_lists(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    full = ink(view)
    view.get_by_label("Find memories with this text").fill("webhook")
    count = notebook.ask(
        "sum('webhook' in m.content.lower() or any('webhook' in t for t in m.tags) for m in store.find())"
    )
    view.locator(".mm-said").filter(has_text=f"{count} found").wait_for()
    view.get_by_label("Find memories with this text").fill("")
    entry = view.locator(".mm-entry").first
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    notebook.page.wait_for_timeout(100)
    assert ink(view) < full
    entry.click()
    view.get_by_role("tab", name="Alone").click()
    view.locator(".mm-panel:visible .mm-go").first.wait_for()
    lonely = notebook.ask("view.outliers['memory_id'].iloc[0]")
    view.locator(".mm-panel:visible .mm-go").first.click()
    notebook.until("view.selected['memory_id'].tolist()", [lonely])
    view.get_by_role("tab", name="Alike").click()
    view.locator(".mm-panel:visible .mm-hint").filter(has_text="say nearly the same").wait_for()
    assert lab.errors() == []


def test_by_keyboard_alone(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    stage = view.locator(".mm-stage")
    stage.focus()
    frame = "(root) => ({ ...root.memlabMap.frame })"
    root = view.locator(".ml-root")
    before = root.evaluate(frame)
    for key in ("+", "+", "ArrowRight", "ArrowUp"):
        stage.press(key)
    after = root.evaluate(frame)
    assert after["scale"] > before["scale"] * 1.5
    assert after["x"] > before["x"]
    assert after["y"] > before["y"]
    stage.press("n")
    stage.press("n")
    view.locator(".mm-card").wait_for()
    stage.press("Enter")
    notebook.until("len(view.selected)", 1)
    spoken = view.locator(".ml-unseen[role=status]").inner_text()
    assert spoken
    stage.press("Escape")
    notebook.until("len(view.selected)", 0)
    stage.press("l")
    notebook.until("len(view.selected)", lambda count: 1 < count < 600)
    stage.press("0")
    assert root.evaluate(frame)["scale"] == pytest.approx(before["scale"])
    # In command mode "x" would cut the cell.
    stage.press("x")
    assert notebook.page.evaluate("jupyterapp.shell.currentWidget.content.widgets.length") == 2
    assert lab.errors() == []


def test_the_wheel_zooms_about_the_pointer_and_dragging_moves(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    page = notebook.page
    out = """(root) => {
        const m = root.memlabMap, { width, height } = root.querySelector('.mm-stage').getBoundingClientRect();
        let count = 0;
        for (let i = 0; i < m.points.length / 2; i += 1) {
            const [x, y] = m.place(m.points[2 * i], m.points[2 * i + 1]);
            count += x < 0 || y < 0 || x > width || y > height;
        }
        return [count, height];
    }"""
    page.set_viewport_size({"width": 700, "height": 1100})
    page.wait_for_function("document.querySelector('.mm-stage').getBoundingClientRect().height < 400")
    page.wait_for_timeout(100)
    assert view.locator(".ml-root").evaluate(out) == [0, 360], "what was in sight stays in sight"
    page.set_viewport_size({"width": 1280, "height": 1100})
    page.wait_for_timeout(100)
    view.scroll_into_view_if_needed()
    x, y = spot(view, 50)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(100)
    assert spot(view, 50) == pytest.approx((x, y), abs=1)
    page.mouse.move(x + 60, y + 60)
    page.mouse.down()
    page.mouse.move(x + 100, y + 90, steps=4)
    page.mouse.up()
    assert spot(view, 50) == pytest.approx((x + 40, y + 30), abs=1)
    assert notebook.ask("len(view.selected)") == 0
    assert lab.errors() == []


def test_hostile_memories_are_shown_as_text(lab, shown) -> None:
    notebook, view = shown(HOSTILE)
    page = notebook.page
    view.scroll_into_view_if_needed()
    for row in range(4):
        page.mouse.move(*spot(view, row))
        view.locator(".mm-card").wait_for()
        page.wait_for_timeout(50)
    view.locator(".mm-stage").focus()
    page.keyboard.press("l")
    notebook.until("len(view.selected)", 40)
    panel = view.locator(".mm-panel:visible")
    panel.locator(".mm-go").first.wait_for()
    assert "<script>window.hacked = 1</script> tag" in panel.inner_text()
    assert "\x1b" not in panel.inner_text()
    assert "\u202e" not in panel.inner_text()
    for tab in ("Query", "Alike", "Alone"):
        view.get_by_role("tab", name=tab).click()
        view.locator(".mm-panel:visible .mm-go").first.wait_for()
    for colour, words in (
        ("category", "<script>window.hacked = 1</scr"),
        ("cluster", "onerror"),
        ("project", '<b onmouseover="window.hacked = 4">bold</b>'),
    ):
        view.get_by_label("Colour and shape by").select_option(colour)
        view.locator(".mm-entry").filter(has_text=words).first.wait_for()
    assert page.evaluate("window.hacked") is None
    assert view.locator("script, .ml-root img, .ml-root b, .ml-root i").count() == 0
    assert lab.errors() == []


def test_a_saved_notebook_keeps_the_last_view(lab, shown) -> None:
    notebook, view = shown(STORE, MAP)
    first = notebook.ask("len(view.picture()['image/png'])")
    picture = "view._drawn is not None and len(view._drawn)"
    size = notebook.until(picture, lambda found: bool(found))
    assert notebook.output(1).locator("img").first.is_hidden()
    view.get_by_role("button", name="Zoom in").click()
    notebook.until(picture, lambda found: bool(found) and found != size)
    kept = notebook.ask("__import__('base64').b64encode(view.picture()['image/png']).decode()")
    assert first != size
    again = notebook.reopened()
    image = again.output(1).locator("img").first
    image.wait_for()
    assert image.is_visible()
    assert kept in image.get_attribute("src").replace("\n", "")
    assert image.evaluate("(node) => node.naturalWidth") > 600
    notebook.screenshot("map-saved", again.cell(1), themes=("light",))


def test_running_the_cell_again_leaks_nothing(lab, shown) -> None:
    counts = (
        "[len(__import__('ipywidgets').widgets.widget._instances), "
        "len(get_ipython().kernel.comm_manager.comms), __import__('threading').active_count()]"
    )
    notebook, view = shown(STORE, MAP)
    notebook.run_cell(1)
    view.wait_for()
    before = notebook.ask(counts)
    for _ in range(100):
        notebook.run_cell(1)
    view.wait_for()
    assert notebook.ask(counts) == before
    assert notebook.panel.locator(".ml[data-ready]").count() == 1
    assert lab.errors() == []
