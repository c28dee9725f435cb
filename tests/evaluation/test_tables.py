from __future__ import annotations

import re
from typing import Any

import pytest

from memlab import RRF, ConvexFusion, HybridRetriever
from memlab.evaluation.compare import compare
from memlab.evaluation.evaluate import evaluate
from memlab.evaluation.findings import figure, listed, p_words, span
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.layout import strip
from memlab.evaluation.runs import Run
from memlab.evaluation.sweep import Sweep, sweep
from tests.evaluation.rankings import FIRST, MIXED, QRELS, QUERIES, SECOND

HOSTILE = "<script>alert(1)</script><b>\x1b[31m\u202ex"


@pytest.fixture
def swept(retriever: HybridRetriever, small: LabelledSet) -> Sweep:
    grid: dict[str, list[Any]] = {"k": [1, 2, 5, 10, 20, 60, 100], "weights": [{}, {"keyword": 2}, {"vector": 2}]}
    return sweep(retriever, grid, small.queries, small.qrels, "nDCG@10,R@5")


def pictures(retriever: HybridRetriever, small: LabelledSet, swept: Sweep) -> list[Any]:
    return [
        evaluate(retriever, small.queries, small.qrels, "nDCG@10,NumRet", name=HOSTILE),
        compare({HOSTILE: SECOND, "b": FIRST, "c": MIXED}, QUERIES, {**QRELS, "x<b>": {"m": 1}}, "RR@10,NumRet"),
        compare({"a": SECOND, HOSTILE: MIXED}, QUERIES, QRELS, "RR@10"),
        swept,
    ]


def test_html_is_a_table_with_inline_styles(retriever: HybridRetriever, small: LabelledSet, swept: Sweep) -> None:
    for one in pictures(retriever, small, swept):
        html = one._repr_html_()
        assert set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", html)) <= {"table", "tbody", "tr", "td", "div", "span", "b"}
        assert not re.search(r"<style|<svg|<script|class=|http|\x1b|\u202e|nan", html)
        assert "\x1b" not in repr(one)
        for opened in ("table", "tbody", "tr", "td", "div", "span", "b"):
            assert len(re.findall(f"<{opened}[ >]", html)) == html.count(f"</{opened}>")
        for style in re.findall(r'<td[^>]* style="([^"]*)"', html):  # a dark theme hides neither
            assert "background:#ffffff" in style
            assert "color:#1b1b1b" in style


def test_text_and_html_have_the_same_figures(retriever: HybridRetriever, small: LabelledSet, swept: Sweep) -> None:
    for one in pictures(retriever, small, swept):
        html = re.sub(r"<[^>]+>", " ", one._repr_html_())
        for number in re.findall(r"(?<![\w.])[+-]?\d+\.\d", repr(one)):
            assert number in html


def test_strips_are_as_long_as_the_figures() -> None:
    html = strip([(0.0, 0.5, "#111111"), (0.4, 0.6, "#222222")], [(0.5, "#333333")])
    pieces = [(float(w), c) for w, c in re.findall(r"width:([\d.]+)%;background:(#\d+)", html)]
    total: dict[str, float] = {}
    for width, colour in pieces:
        total[colour] = total.get(colour, 0) + width
    assert total["#111111"] == pytest.approx(40, abs=0.01)
    assert total["#222222"] == pytest.approx(20 - 1.8, abs=0.01)
    assert total["#333333"] == pytest.approx(1.8, abs=0.01)
    assert pieces[0][0] == pytest.approx(40, abs=0.01)
    assert pieces[0][1] == "#111111"


@pytest.mark.parametrize("at", [0.0, 0.003, 0.37, 0.99999, 1.0])
def test_a_strip_never_breaks_its_line(at: float) -> None:
    html = strip([(0.0, at, "#1"), (at / 3, at, "#2")], [(at, "#3"), (0.5, "#4")])
    assert 99.9 < sum(map(float, re.findall(r"width:([\d.e-]+)%", html))) <= 100


def test_the_table_of_an_evaluation() -> None:
    lines = repr(evaluate(Run.of(SECOND, "second"), QUERIES, QRELS, "RR@10,R@1")).splitlines()
    assert lines[0].startswith("second: 20 queries · means with 95 % intervals")
    assert lines[1].split() == ["measure", "mean", "95", "%", "interval"]
    assert lines[2].split() == ["RR@10", "50.0", "50.0", "to", "50.0"]
    assert lines[3].split() == ["R@1", "0.0", "0.0", "to", "16.1"]  # not 0.0 to 0.0: twenty failures are not all


def test_the_table_of_a_sweep(swept: Sweep) -> None:
    lines = repr(swept).splitlines()
    assert lines[0].startswith("the best 20 of 21 settings · 12 queries · best first in nDCG@10")
    assert "looks better than it is" in lines[0]
    assert lines[1].split() == ["k", "weights", "nDCG@10", "R@5"]
    assert lines[2].split()[-2].endswith("*")
    assert len(lines) == 22
    assert f"{100 * swept.table['R@5'].max():.1f}*" in repr(swept)


def test_settings_may_be_objects(retriever: HybridRetriever, small: LabelledSet) -> None:
    grid: dict[str, list[Any]] = {"fusion": [RRF(), ConvexFusion()], "recency_boost": [True, False]}
    text = repr(sweep(retriever, grid, small.queries, small.qrels, "R@5"))
    assert "ConvexFusion()" in text
    assert "RRF(k=60)" in text


def test_figures_in_words() -> None:
    assert [figure(x, 100, sign=True) for x in (0.0123, -0.0123, 0.0, -0.00001)] == ["+1.2", "-1.2", "0.0", "0.0"]
    assert figure(float("nan")) == span(float("nan"), float("nan")) == "–"
    assert [p_words(p) for p in (1, 0.31, 0.0499, 0.0012, 0.0001)] == [
        "p = 1.00", "p = 0.31", "p = 0.050", "p = 0.001", "p < 0.001",
    ]  # fmt: skip
    assert [listed("abcd"[:n]) for n in (1, 2, 3, 4)] == ["a", "a and b", "a, b and c", "4 systems (a, b, c, …)"]
