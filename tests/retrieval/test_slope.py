"""The slope chart and the picture of a recall: what they say, and what is left of them where much is dropped."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pandas as pd
import pytest

from memlab.retrieval import HybridRetriever, RecencyRanker

NOW = "2026-07-01T00:00:00Z"
# What code hosts and notebooks that are not trusted leave standing; everything else goes, with the style of the rest.
TAGS = {"table", "tbody", "tr", "td", "div", "span", "b", "br", "code", "img"}
ATTRIBUTES = {"alt", "src", "title", "colspan"}


class Sanitised(HTMLParser):
    """The text and the images that a strict sanitiser keeps."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.images: list[dict[str, str]] = []
        self.dropped: list[str] = []
        self.rows = 0
        self._silent = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.dropped.append(tag)
            self._silent += tag in ("script", "style", "svg")
            return
        self.rows += tag == "tr"
        kept = {name: value or "" for name, value in attrs if name in ATTRIBUTES}
        self.dropped += [name for name, _ in attrs if name not in ATTRIBUTES and name != "style"]
        if tag == "img":
            self.images.append(kept)

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style", "svg")

    def handle_data(self, data):
        if not self._silent:
            self.text += data


@pytest.fixture
def recall(make_store):
    store = make_store()
    store.remember("webhooks retry with full jitter", memory_id="m-1", created_at="2025-01-01T00:00:00Z")
    store.remember("a failed webhook is retried; " + "other things. " * 400, memory_id="m-2", created_at=NOW)
    store.remember("<script>alert('webhook')</script><img src=x onerror=alert(1)> \x1b[31m", memory_id="<b>m-3</b>")
    store.remember("invoices are numbered by year", memory_id="m-4", created_at=NOW)
    retriever = HybridRetriever(store, recency=RecencyRanker(half_life_days=30, strength=5))
    return retriever.recall("failing webhooks retry", now=NOW, recency_boost=True)


def test_the_steps_are_the_ranks_of_the_trace(recall) -> None:
    frame = recall.slope().frame
    assert list(frame.columns) == ["memory_id", "list", "rank", "final", "gain", "vote"]
    assert len(frame) == len(recall) * 4
    expected = recall.contributions.set_index(["memory_id", "channel"])
    for row in frame.itertuples():
        assert row.final == recall.ids.index(row.memory_id) + 1
        key = (row.memory_id, row.list)
        if key in expected.index:
            assert row.gain == expected.loc[key, "contribution"]
            assert row.rank == expected.loc[key, "rank"]
        elif row.list != "recency":
            assert row.vote == "none"
            assert pd.isna(row.rank)


def test_the_order_before_recency_is_that_of_the_fused_scores(recall) -> None:
    frame = recall.slope().frame
    before = frame[frame["list"] == "recency"].set_index("memory_id")["rank"]
    ranked = sorted(recall.trace.ranked, key=lambda row: (-row.fused, row.memory_id))
    assert dict(before) == {row.memory_id: rank for rank, row in enumerate(ranked, 1) if row.memory_id in before.index}
    assert list(before) != sorted(before)  # the boost did change the order
    assert "recency" not in set(HybridRetriever(recall._store).recall("webhook", now=NOW).slope().frame["list"])


def test_the_words_say_every_rank(recall) -> None:
    words, text = recall.slope().words, repr(recall.slope())
    for hit in recall:
        for part in hit.place.contributions:
            if part.rank is not None:
                assert f"{part.channel} #{part.rank}" in words
    assert words.count("Final rank") == len(recall) == len(text.splitlines()) - 2
    assert "\x1b" not in words + text


def test_the_svg_is_whole_and_holds_no_markup_of_a_memory(recall) -> None:
    root = ET.fromstring(recall.slope().svg)
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds <= {"svg", "rect", "line", "circle", "text", "tspan"}
    shown = "".join(root.itertext())
    assert "<script>" in shown
    assert "\x1b" not in shown
    lines = [element for element in root.iter() if element.get("stroke-linecap")]
    steps = [step for step in recall.slope().steps if step.rank is not None]
    assert len(lines) == 2 * len(steps)
    assert any(line.get("stroke-dasharray") for line in lines) == any(step.vote == "not counted" for step in steps)


def test_characters_that_no_xml_may_have_do_not_break_the_picture(make_store) -> None:
    store = make_store()
    store.remember("webhook retry \ufffe\uffff\x00\x01\ud7ff\U0001f600 <svg>", memory_id="m\uffff")
    slope = HybridRetriever(store).recall("webhook \uffff").slope()
    assert "webhook retry \ufffd\ufffd" in "".join(ET.fromstring(slope.svg).itertext())
    assert "\uffff" not in slope._repr_html_()


def test_a_sanitised_slope_chart_still_has_its_picture_or_its_words(recall) -> None:
    left = Sanitised(recall.slope()._repr_html_())
    assert left.dropped == []
    (image,) = left.images
    kind, _, data = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data).decode() == recall.slope().svg
    assert image["alt"] == recall.slope().words


def test_a_sanitised_picture_of_a_recall_still_says_all_numbers(recall) -> None:
    left = Sanitised(recall._repr_html_())
    assert left.dropped == []
    assert left.images == []
    assert left.rows == len(recall) + 1
    for hit in recall:
        assert f"{hit.score:.4f}" in left.text
        assert hit.memory_id in left.text
        for part in hit.place.contributions:
            assert f"{part.channel} #{part.rank or '–'} " in left.text
        assert f"recency x{hit.place.recency_factor:.3f}" in left.text
    assert "<script>alert('webhook')</script>" in left.text  # as text


def test_bars_are_told_apart_without_colour(recall) -> None:
    html = recall._repr_html_()
    for width, colour, letter in re.findall(r"width:([\d.]+)%;.*?background:(#\w+);.*?>(\w?)</div>", html):
        assert (letter != "") == (float(width) >= 6), (width, colour)
    assert len(set(re.findall(r">(\w)</div>", html))) >= 2


def test_no_hits(make_store) -> None:
    slope = HybridRetriever(make_store()).recall("webhook").slope()
    assert "No hits" in repr(slope)
    assert "No hits" in slope._repr_html_()
    assert slope.frame.empty
    ET.fromstring(slope.svg)
