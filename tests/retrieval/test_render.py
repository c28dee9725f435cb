from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import RRF, ConvexFusion, HybridRetriever, KeywordChannel, MemoryStore, RecencyRanker, ScoreFusion
from memlab.retrieval.render import LOOKS, cells, excerpt, shares, visible, words_of

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


def test_text_has_every_number_in_words(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @10", "cache of pages @0")
    retriever = HybridRetriever(store, fusion=RRF(), recency=RecencyRanker())
    text = repr(retriever.recall("retry @0", now=NOW, recency_boost=True))
    assert "hybrid · 2 hits of 2 memories" in text
    assert "keyword #1 +0.0164" in text
    assert "vector #2 +0.0161" in text
    assert "recency x1.150 +0.0049" in text
    for name in ("keyword", "vector", "recency"):
        assert LOOKS[name].char in text


def test_bars_are_as_long_as_the_shares(hashed: MemoryStore) -> None:
    recall = HybridRetriever(hashed).recall("webhook retries", now=NOW, recency_boost=True)
    html = recall._repr_html_()
    widths = [float(x) for x in re.findall(r"width:([\d.]+)%", html)]
    top = recall[0].score
    expected = [100 * value / top for hit in recall for _, value in shares(hit)]
    assert widths == pytest.approx(expected, abs=0.006)
    assert sum(widths[: len(shares(recall[0]))]) == pytest.approx(100, abs=0.02)


@given(st.lists(st.floats(0, 1), max_size=5), st.integers(1, 80))
def test_cells_add_up(widths: list[float], total: int) -> None:
    scale = max(1.0, sum(widths))
    drawn = cells((width / scale for width in widths), total)
    assert sum(drawn) == min(total, round(sum(width / scale * total for width in widths)))
    assert all(abs(n - width / scale * total) <= 1 for n, width in zip(drawn, widths, strict=True))


def test_an_empty_store_is_said_to_be_empty(make_store: Callable[..., MemoryStore]) -> None:
    assert "no hits: the store has no memories" in repr(HybridRetriever(make_store()).recall("retry"))


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred\x1b[0m retry \u202eabc"


def test_stored_text_is_shown_never_obeyed(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.remember(HOSTILE, memory_id="<b>id", project="<i>p</i>", category="<u>c", tags=["<s>"])
    recall = HybridRetriever(store).recall("retry <script>alert(3)</script>", now=NOW)
    html = recall._repr_html_()
    assert recall.ids == ("<b>id",)
    tags = set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", html))
    assert tags == {"table", "tbody", "tr", "td", "div", "span", "b", "br", "code"}
    # the query, the rank, the score, and the query's words: script twice, alert twice, retry
    assert html.count("<b>") == html.count("</b>") == 3 + 5
    for drawn in (html, repr(recall)):
        assert "\x1b" not in drawn
        assert "\u202e" not in drawn
    assert visible("a\x1b[31m\x07b\u202e\n\tc") == "a\ufffd[31m\ufffdb\ufffd\n\tc"


def test_html_needs_neither_style_sheets_nor_scripts(hashed: MemoryStore) -> None:
    html = HybridRetriever(hashed).recall("webhook", now=NOW)._repr_html_()
    for word in ("<style", "<svg", "<script", "class=", "http"):
        assert word not in html


def test_as_dict_is_plain_json(hashed: MemoryStore) -> None:
    import json

    recall = HybridRetriever(hashed).recall("webhook", now=NOW, tags=["webhooks"], created_after="2026-01-01T00:00:00Z")
    text = json.dumps(recall.as_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["filters"] == {"tags": ["webhooks"], "created_after": "2026-01-01T00:00:00.000Z"}
    assert [hit["memory"]["memory_id"] for hit in back["hits"]] == list(recall.ids)
    assert back["hits"][0]["score"] == recall[0].score


def test_the_excerpt_shows_where_the_words_are(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(encoder=None)
    store.remember("Nothing to see here. " * 60 + "The CACHÉ keeps foo.bar for an hour. " + "And so on it goes. " * 60)
    recall = HybridRetriever(store).recall("foo.bar cache", now=NOW)
    part = excerpt(recall[0], 120, words_of(recall))
    assert part.before
    assert part.after
    assert len(part.text) <= 120
    assert {part.text[a:b] for a, b in part.marked} == {"CACHÉ", "foo.bar"}
    html = recall._repr_html_()
    assert "<b>CACHÉ</b>" in html
    assert "<b>foo.bar</b>" in html
    assert "CACHÉ keeps foo.bar" in repr(recall)


def test_words_of_the_same_stem_are_marked_where_stems_were_looked_for(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(encoder=None)
    store.remember("Retries of webhooks; 数据库连接池。 A retry_policy, but no entry.")
    found = HybridRetriever(store).recall("retry webhook 连接", now=NOW)
    part = excerpt(found[0], 200, words_of(found))
    assert [part.text[a:b] for a, b in part.marked] == ["Retries", "webhooks", "连接", "retry"]
    plain = HybridRetriever(store, channels=(KeywordChannel(),)).recall("retry webhook 连接", now=NOW)
    part = excerpt(plain[0], 200, words_of(plain))
    assert [part.text[a:b] for a, b in part.marked] == ["连接", "retry"]


def test_a_memory_beyond_the_depth_has_no_rank_to_show(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @10", "cache of retry pages @0")
    recall = HybridRetriever(store, fusion=ScoreFusion(), depth=1).recall("retry jitter @0", now=NOW)
    assert "vector #\u2013 +" in repr(recall)
    assert "vector #\u2013 +" in recall._repr_html_()


def test_an_excerpt_of_a_passage_stays_within_it(hashed: MemoryStore) -> None:
    recall = HybridRetriever(hashed).recall("webhook retries", now=NOW, limit=50)
    inside = [hit for hit in recall if hit.passage]
    assert inside
    for hit in inside:
        start, end = hit.passage or (0, 0)
        assert excerpt(hit, 60).text[:20] in " ".join(hit.content[start:end].split())


def test_a_text_of_one_word_is_shown_as_readily(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("x " * 12_500, encoder=None)
    assert "x x x" in repr(HybridRetriever(store).recall("x", now=NOW))


def test_counted_and_not_counted(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("talk of one thing lies @90 here. " * 3 + "the buried fact lies @1 there.", "x @3", "y @80")
    recall = HybridRetriever(store, fusion=ConvexFusion()).recall("@0", now=NOW)
    text = repr(recall)
    assert "vector #2 (not counted)" in text or "vector #3 (not counted)" in text
    assert "vector #3 +0.0000" in text or "vector #2 +0.0000" in text  # the lowest of the list, counted as 0
