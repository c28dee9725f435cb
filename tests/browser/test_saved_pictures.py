"""The static pictures in a saved notebook that nobody trusts, without a kernel; in exported HTML; and in greys."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
HOSTILE = "webhooks retry <script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \x1b[31mred"
PROBE = "window.hacked === undefined"


@pytest.fixture
def cells(memories):
    opening = (
        "import memlab\n"
        "from memlab.encoders import HashingEncoder\n"
        f"store = memlab.MemoryStore({str(memories())!r}, HashingEncoder(384))\n"
        f"store.remember({HOSTILE!r}, memory_id='<b onclick=alert(1)>h</b>')\n"
        "store.remember('failing webhooks retry ' + 'x' * 900, memory_id='y' * 180)\n"
        "recall = memlab.HybridRetriever(store).recall("
        "'how do failing webhooks retry?', limit=6, recency_boost=True, now='2027-06-01T00:00:00Z')"
    )
    return [opening, "recall", "recall.slope()"]


def seen(output):
    """The text of an output and, of its bars, how wide they are drawn and in which colours."""
    return output.evaluate(
        """(node) => ({
            text: node.innerText,
            bars: [...node.querySelectorAll('td div[title]')].map((bar) => [
                bar.getAttribute('title').split(' ')[0],
                Math.round(bar.getBoundingClientRect().width),
                getComputedStyle(bar).backgroundColor,
            ]),
            cells: [...node.querySelectorAll('td')].map((cell) => [
                getComputedStyle(cell).backgroundColor, getComputedStyle(cell).color
            ]),
        })"""
    )


def contrast(first, second):
    """The contrast ratio of two CSS colours, as WCAG 2.2 defines it."""

    def luminance(colour):
        parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_an_untrusted_notebook_without_a_kernel_still_shows_both(lab, cells) -> None:
    notebook = lab.run("pictures.ipynb", *cells)
    live = seen(notebook.output(1))
    ids = notebook.ask("recall.ids")
    scores = notebook.ask("[f'{hit.score:.4f}' for hit in recall]")
    words = notebook.ask("recall.slope().words")
    notebook.screenshot("recall", notebook.output(1).locator("table").first)
    notebook.screenshot("slope", notebook.output(2).locator("table").first)
    again = notebook.reopened()

    # A word without an end widens nothing: the texts beside it would be cut off.
    table = again.output(1).locator("table").first
    assert table.evaluate("(node) => node.getBoundingClientRect().right <= innerWidth")
    for theme in ("light", "dark"):
        lab.theme(theme)
        left = seen(again.output(1))
        for said in [*ids, *scores, "keyword #1", "recency x"]:
            assert said in left["text"], said
        # The bars are there as they were drawn: width and colour survive the sanitiser.
        assert left["bars"] == live["bars"]
        assert len(left["bars"]) > len(ids)
        assert max(width for _, width, _ in left["bars"]) > 40
        assert len({colour for _, _, colour in left["bars"]}) >= 3
        assert left["cells"]
        assert min(contrast(back, ink) for back, ink in left["cells"]) >= 4.5

        image = again.output(2).locator("img")
        assert image.get_attribute("alt") == words
        width, height = image.evaluate(
            "(image) => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"
        )
        assert width > 400
        assert height > 100
    assert "<script>window.hacked = 1</script>" in again.output(1).inner_text()
    assert again.panel.locator(".jp-OutputArea script, .jp-OutputArea b[onclick]").count() == 0
    assert lab.page.evaluate(PROBE)
    lab.theme("light")
    again.screenshot("recall-saved", again.output(1).locator("table").first)
    again.screenshot("slope-saved", again.output(2).locator("table").first)
    lab.page.evaluate("document.documentElement.style.filter = 'grayscale(1)'")
    again.screenshot("recall-grey", again.output(1).locator("table").first, ("light",))
    again.screenshot("slope-grey", again.output(2).locator("table").first, ("light",))


def test_exported_html_shows_both_and_runs_nothing_of_a_memory(lab, cells, tmp_path) -> None:
    from nbconvert import HTMLExporter

    notebook = lab.run("export.ipynb", *cells)
    scores = notebook.ask("[f'{hit.score:.4f}' for hit in recall]")
    words = notebook.ask("recall.slope().words")
    notebook.save()
    html, _ = HTMLExporter(template_name="lab").from_filename(str(notebook.path))
    path = tmp_path / "export.html"
    path.write_text(html, encoding="utf-8")
    # Without a network: nothing that the page may want from elsewhere comes.
    page = lab.page.context.new_page()
    page.route("http*://**", lambda route: route.abort())
    page.goto(path.as_uri())
    assert page.evaluate(PROBE)
    table = page.locator("table").first
    for said in scores:
        assert said in table.inner_text()
    assert page.get_by_role("img", name=words).evaluate("(image) => image.naturalWidth") > 400
    lab.pictures.mkdir(exist_ok=True)
    page.screenshot(path=lab.pictures / "export.png", full_page=True)
    page.close()


def test_a_recorded_recall_reopens_in_the_inspector(lab, cells) -> None:
    later = (
        "store.query_log.start()\n"
        "retriever = memlab.HybridRetriever(store, fusion=memlab.RRF(k=7, weights={'keyword': 2}), depth=9)\n"
        "found = retriever.recall('retry queue', limit=4, recency_boost=True, now='2027-02-03T04:05:06Z', "
        "project='billing')\n"
        "store.remember('a newer memory of the retry queue', memory_id='m-newer', project='search')\n"
        "entry = store.query_log.last"
    )
    notebook = lab.run("reopen.ipynb", cells[0], later, "inspector = memlab.reopen(store, entry.id)\ninspector")
    notebook.output(2).locator("section.ml[data-ready]").wait_for()
    assert notebook.ask("inspector.recall.ids") == notebook.ask("entry.ids") == notebook.ask("found.ids")
    assert notebook.ask("inspector.recall.trace.now == entry.now and inspector.recall.trace.depth == 9")
    assert notebook.ask("repr(inspector.recall.trace.settings['fusion'])") == notebook.ask("repr(retriever.fusion)")
    assert notebook.output(2).get_by_role("searchbox", name="Query").input_value() == "retry queue"
    assert lab.errors() == []
