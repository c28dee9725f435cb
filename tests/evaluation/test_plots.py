from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pytest

from memlab import RRF, ConvexFusion, HybridRetriever
from memlab.errors import InvalidValue
from memlab.evaluation.compare import compare
from memlab.evaluation.evaluate import evaluate
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.sweep import sweep
from tests.evaluation.rankings import FIRST, MIXED, QRELS, QUERIES, SECOND

matplotlib = pytest.importorskip("matplotlib")
from memlab.evaluation import plots  # noqa: E402


def pixels(picture: Any) -> Any:
    from matplotlib.image import imread

    data, size = picture._repr_png_()
    assert data.startswith(b"\x89PNG")
    image = imread(BytesIO(data))
    assert image.shape[1] == pytest.approx(size["width"] * 1.5, abs=2)
    return image


def words(picture: Any) -> str:
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in picture.findobj(Text))


def figures(retriever: HybridRetriever, small: LabelledSet) -> list[Any]:
    grid: dict[str, list[Any]] = {"k": [1, 60], "weights": [{"keyword": w} for w in range(1, 12)]}
    other: dict[str, list[Any]] = {"fusion": [RRF(), ConvexFusion()], "recency_boost": [True, False]}
    rows = [(h, s, s / h, -s * h / 100) for h in (7, 14) for s in (0.1, 0.3)]
    return [
        evaluate(retriever, small.queries, small.qrels, "R@5,NumRet").plot(),
        compare({"a": SECOND, "b": FIRST, "c": MIXED}, QUERIES, QRELS, "RR@10,R@1").plot(),
        sweep(retriever, grid, small.queries, small.qrels, "R@5,nDCG@10").plot(),
        sweep(retriever, other, small.queries, small.qrels, "R@5").plot(),
        plots.recency(pd.DataFrame(rows, columns=["half_life_days", "strength", "gain", "cost"])),
    ]


def test_pictures_are_white_whatever_the_theme(retriever: HybridRetriever, small: LabelledSet) -> None:
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"figure.facecolor": "black", "axes.facecolor": "black", "text.color": "white"}):
        for picture in figures(retriever, small):
            image = pixels(picture)
            assert (image[[0, 0, -1, -1], [0, -1, 0, -1]] == 1).all()
            assert (image == 1).all(axis=2).mean() > 0.8
            assert image[..., :3].min() < 0.2  # and there is dark ink on it
            assert (image[:3, :, :3].min(), image[-3:, :, :3].min(), image[:, -3:, :3].min()) == (
                1,
                1,
                1,
            )  # none cut off
    assert dict(matplotlib.rcParams) == before


def test_nothing_is_said_by_colour_alone() -> None:
    picture = compare({"a": SECOND, "b": FIRST, "c": SECOND}, QUERIES, QRELS, "RR@10").plot()
    means = [line for line in picture.axes[0].lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() for line in means] == ["#0072b2", "white"]
    assert "+50.0   +36.4 to +50.0   p < 0.001" in words(picture)
    looks = [(line[1], line[2]) for line in plots._LINES]
    assert len(set(looks)) == len(looks)


def test_names_are_text_not_mathematics() -> None:
    picture = compare({"a": SECOND, "cost $5_a$ of $": FIRST}, QUERIES, QRELS, "RR@10").plot("RR@10")
    assert "cost $5_a$ of $" in words(picture)
    assert pixels(picture).shape[2] == 4


def test_sweeps_draw_lines_over_numbers_and_rows_over_the_rest(retriever: HybridRetriever, small: LabelledSet) -> None:
    lines, rows = figures(retriever, small)[2:4]
    assert "and 3 more, in grey" in words(lines)
    assert lines.axes[0].get_xscale() == "log"
    assert [tick.get_text() for tick in lines.axes[0].get_xticklabels()] == ["1", "60"]
    assert "fusion ConvexFusion(), recency_boost False" in words(rows)


def test_a_sweep_from_zero_keeps_its_ticks_apart(retriever: HybridRetriever, small: LabelledSet) -> None:
    grid: dict[str, list[Any]] = {"k": [0, 1, 2, 60], "weights": [{"keyword": 0.5}, {"keyword": 2, "vector": 1.5}]}
    picture = sweep(retriever, grid, small.queries, small.qrels, "R@5").plot()
    axes = picture.axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "2", "60"]
    places = axes.transData.transform([(k, 0) for k in grid["k"]])[:, 0]
    assert np.diff(places).min() > (places[-1] - places[0]) / 20
    assert "weights keyword 0.5" in words(picture)
    assert "weights keyword 2, vector 1.5" in words(picture)


def test_what_cannot_be_drawn(retriever: HybridRetriever, small: LabelledSet) -> None:
    with pytest.raises(InvalidValue, match="R@5 was not measured"):
        compare({"a": SECOND, "b": FIRST}, QUERIES, QRELS, "RR@10").plot("R@5")
    swept = sweep(retriever, {"k": [1]}, small.queries, small.qrels, "R@5")
    assert pixels(swept.plot()).size  # a single setting is one row
    with pytest.raises(InvalidValue, match="AP was not measured"):
        plots.sweep(swept, "AP")
    with pytest.raises(InvalidValue, match="found no strength or cost"):
        plots.recency(pd.DataFrame({"half_life_days": [1.0], "gain": [0.1]}))
    empty = pd.DataFrame({name: np.array([]) for name in ("half_life_days", "strength", "gain", "cost")})
    with pytest.raises(InvalidValue, match="found none"):
        plots.recency(empty)


def test_matplotlib_comes_with_the_first_figure_and_pyplot_never() -> None:
    program = """
import sys
from memlab.evaluation import compare, tables
assert "matplotlib" not in sys.modules and "scipy" not in sys.modules
from memlab.evaluation import plots
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_without_matplotlib_the_message_says_what_to_install() -> None:
    program = """
import sys
sys.modules["matplotlib"] = None
from memlab.errors import MissingDependency
try:
    from memlab.evaluation import plots
except MissingDependency as error:
    assert 'drawing a figure needs the package matplotlib' in str(error) and 'pip install "memlab[eval]"' in str(error)
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
