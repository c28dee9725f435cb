"""Evaluations, comparisons and sweeps as matplotlib figures.

The figures have a state of their own (no pyplot), a white background whatever the theme, and tell things apart by shape
and lightness as well as by colour. Importing this module needs matplotlib.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

from memlab.errors import InvalidValue
from memlab.evaluation._require import require
from memlab.evaluation.findings import figure, named, p_words, scale_of, span
from memlab.evaluation.wording import setting_words
from memlab.retrieval.render import visible

try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator
except ImportError:
    require("matplotlib", "matplotlib", "drawing a figure")  # says what to install
    raise

if TYPE_CHECKING:
    import pandas as pd

    from memlab.evaluation.comparison import Comparison
    from memlab.evaluation.evaluate import Evaluation
    from memlab.evaluation.sweep import Sweep

_DPI = 144
_TICKS = 10  # most along an axis of settings
_INK, _GREY, _BLUE = "#1b1b1b", "#8c8c8c", "#0072b2"
# Okabe and Ito's palette from dark to light, each with a marker and a dash of its own.
_LINES = (
    ("#0072b2", "o", "-"),
    ("#d55e00", "s", "--"),
    ("#009e73", "^", "-."),
    ("#1b1b1b", "D", ":"),
    ("#cc79a7", "v", "-"),
    ("#e69f00", "P", "--"),
    ("#56b4e9", "X", "-."),
    ("#8c8c8c", "*", ":"),
)


class Picture(Figure):
    """A figure that a notebook keeps as a PNG, with or without matplotlib's own integration."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        data = self.png()
        width, height = (round(96 * inches) for inches in self.get_size_inches())
        return data, {"width": width, "height": height}

    def png(self) -> bytes:
        """The figure as the bytes of a PNG file."""
        buffer = BytesIO()
        with _plain(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box is shown: nothing to be done
            FigureCanvasAgg(self).print_png(buffer)  # type: ignore[no-untyped-call]
        return buffer.getvalue()


def summary(evaluation: Evaluation) -> Picture:
    """The mean of every measure with its 95 % interval.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    Picture
    """
    with _plain():
        picture, (axes,) = _figure(1, 0.42 * len(evaluation.measures) + 1.1)
        for place, measure in enumerate(evaluation.measures):
            scale = scale_of([evaluation], measure)
            mean, (low, high) = evaluation.mean(measure), evaluation.intervals[measure]
            share = 100.0 if scale == 100 else 100 / (max(mean, 0.0 if math.isnan(high) else high) or 1.0)
            _interval(axes, place, share * mean, share * low, share * high, filled=True)
            axes.text(103, place, f"{figure(mean, scale)}   {span(low, high, scale)}", va="center", clip_on=False)
        _rows(axes, evaluation.measures)
        axes.set_xlim(0, 100)
        axes.set_xlabel("mean x 100, with the 95 % interval")
        axes.set_title(f"{named(evaluation.name)}, {len(evaluation.queries):,} queries", loc="left")
    return picture


def forest(comparison: Comparison, measure: str | None = None) -> Picture:
    """The difference of every system from the baseline, with its 95 % interval: a forest plot a measure.

    Parameters
    ----------
    comparison : Comparison
    measure : str, optional
        One measure; all by default.

    Returns
    -------
    Picture
        A filled mark where a difference was found (p below 0.05 after Holm's correction), a hollow one elsewhere.
    """
    measures = comparison.measures if measure is None else (measure,)
    others = [name for name in comparison.systems if name != comparison.baseline]
    with _plain():
        picture, panels = _figure(len(measures), 0.42 * len(others) + 1.15)
        for axes, named_measure in zip(panels, measures, strict=True):
            scale = scale_of(comparison.evaluations.values(), named_measure)
            for place, name in enumerate(others):
                one = comparison.differences[name, named_measure]
                _interval(axes, place, scale * one.mean, scale * one.low, scale * one.high, filled=one.found)
                text = f"{figure(one.mean, scale, sign=True)}   {span(one.low, one.high, scale, sign=True)}"
                axes.annotate(
                    f"{text}   {p_words(one.p_holm)}", (1.02, place), xycoords=("axes fraction", "data"), va="center"
                )
            axes.axvline(0, color=_GREY, linewidth=1, zorder=0)
            _rows(axes, others)
            most = max(map(abs, axes.get_xlim()))
            axes.set_xlim(-most, most)
            points = "points" if scale == 100 else "difference"
            axes.set_title(f"{named_measure}: against {named(comparison.baseline)}", loc="left")
            axes.set_xlabel(f"worse  <  {points}, with the 95 % interval  >  better")
    return picture


def sweep(sweep: Sweep, measure: str | None = None) -> Picture:
    """What the settings of a sweep do to its measures.

    Parameters
    ----------
    sweep : Sweep
    measure : str, optional
        One measure; all by default.

    Returns
    -------
    Picture
        Lines over the setting that has most numbers, one for each choice of the other settings; without such a setting
        a mark for every choice.
    """
    if measure is not None and measure not in sweep.measures:
        raise InvalidValue(f"{measure} was not measured; these were: {', '.join(sweep.measures)}")
    measures = list(sweep.measures) if measure is None else [measure]
    table = sweep.table
    along = _numeric(table, sweep.names)
    varied = [name for name in sweep.names if len({str(value) for value in table[name]}) > 1]
    records = [{str(name): value for name, value in record.items()} for record in table.to_dict("records")]
    labels = [_label(record, [name for name in varied if name != along]) for record in records]
    with _plain():
        picture, panels = _figure(len(measures), 2.9 if along else 0.32 * len(labels) + 1.1)
        for axes, name in zip(panels, measures, strict=True):
            scale = scale_of(sweep.evaluations, name)
            values = [scale * value for value in table[name]]
            if along:
                _lines(axes, table[along].to_list(), values, labels)
                axes.set_xlabel(along)
                axes.set_ylabel("mean x 100" if scale == 100 else "mean")
            else:
                for place, value in enumerate(values):
                    _interval(axes, place, value, math.nan, math.nan, filled=True)
                _rows(axes, labels)
                axes.margins(x=0.08)
                axes.set_xlabel("mean x 100" if scale == 100 else "mean")
            best = sweep.best_place(name)
            where = f", {named(_label(records[best], varied), 50)}" if along else ""  # the rows say it themselves
            axes.set_title(f"{name}: best {figure(values[best] / scale, scale)}{where}", loc="left")
    return picture


def recency(frame: pd.DataFrame, *, gaining: str = "", measure: str = "") -> Picture:
    """What the recency boost gains where the newest memory is wanted, and costs where age says nothing.

    Parameters
    ----------
    frame : DataFrame
        ``half_life_days, strength, gain, cost``: gain and cost as differences of a measure from no boost, a row for
        each choice of half-life and strength. A cost is a loss, so it is 0 or less where the boost does harm.
    gaining, measure : str
        What kind of query gains, and in what, for the title.

    Returns
    -------
    Picture
        A line for every half-life over the strengths: filled marks for the gain, hollow ones for the cost.
    """
    wanted = ["half_life_days", "strength", "gain", "cost"]
    if missing := [name for name in wanted if name not in frame.columns]:
        raise InvalidValue(f"frame: expected the columns {', '.join(wanted)}; found no {' or '.join(missing)}")
    if not len(frame):
        raise InvalidValue("frame: expected one row or more, found none")
    with _plain():
        picture, (axes,) = _figure(1, 3.4)
        for place, (half_life, part) in enumerate(frame.sort_values("strength").groupby("half_life_days")):
            colour, marker, dash = _LINES[place % len(_LINES)]
            for column, face in (("gain", colour), ("cost", "white")):
                axes.plot(
                    part["strength"],
                    100 * part[column],
                    color=colour,
                    marker=marker,
                    linestyle=dash,
                    markerfacecolor=face,
                    label=f"{column}, half-life {half_life:g} days",
                )
        axes.axhline(0, color=_GREY, linewidth=1, zorder=0)
        axes.set_xlabel("strength of the boost at age 0")
        axes.set_ylabel("difference from no boost, points")
        of_what = f" on {named(gaining)}" if gaining else ""
        prefix = f"{measure}, " if measure else ""
        axes.set_title(f"{prefix}recency: gain{of_what} (filled) and cost (hollow)", loc="left")
        _legend(axes)
    return picture


def labelled_lines(panels: Sequence[tuple[str, Mapping[str, Sequence[tuple[float, float]]]]], *, along: str) -> Picture:
    """Lines over positive numbers on logarithmic axes, a panel for every quantity.

    Parameters
    ----------
    panels : sequence of (str, mapping of str to sequence of (float, float))
        What the panel shows, and the points of every line by its label.
    along : str
        What the horizontal axis counts.

    Returns
    -------
    Picture
    """
    with _plain():
        picture, places = _figure(len(panels), 3.4)
        for axes, (title, lines) in zip(places, panels, strict=True):
            for place, (label, points) in enumerate(lines.items()):
                colour, marker, dash = _LINES[place % len(_LINES)]
                xs, ys = [x for x, _ in points], [y for _, y in points]
                axes.plot(xs, ys, color=colour, marker=marker, linestyle=dash, label=label, markersize=6)
            axes.set_xscale("log")
            axes.set_yscale("log")
            ticks = sorted({x for points in lines.values() for x, _ in points})
            axes.set_xticks(ticks, labels=[f"{tick:,.0f}" for tick in ticks])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter("{x:,g}")
            axes.grid(color="#e4e4e4", linewidth=0.8)
            axes.set_xlabel(along)
            axes.set_title(title, loc="left")
            _legend(axes)
    return picture


# -- parts -------------------------------------------------------------------------------------------------------------


@contextmanager
def _plain() -> Iterator[None]:
    """Matplotlib's own defaults and ours, whatever the notebook has set; put back at the end."""
    ours: dict[str, Any] = {
        "text.parse_math": False,  # a $ in a name is a $
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
        "axes.facecolor": "white",
        "savefig.facecolor": "white",
        "figure.dpi": _DPI,
    }
    with style.context(["default", ours]):
        yield


def _figure(panels: int, height: float) -> tuple[Picture, list[Axes]]:
    picture = Picture(figsize=(7.6, height * panels), layout="constrained", dpi=_DPI)
    FigureCanvasAgg(picture)
    return picture, list(picture.subplots(panels, 1, squeeze=False)[:, 0])


def _interval(axes: Axes, place: float, mean: float, low: float, high: float, *, filled: bool) -> None:
    if not math.isnan(low):
        axes.plot([low, high], [place, place], color=_BLUE, linewidth=2.5 if filled else 1.5, solid_capstyle="butt")
        axes.plot([low, high], [place, place], linestyle="", marker="|", color=_BLUE, markersize=9)
    axes.plot(
        [mean],
        [place],
        marker="o",
        markersize=7,
        color=_BLUE,
        markerfacecolor=_BLUE if filled else "white",
        zorder=3,
        clip_on=False,
    )


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """One row a name, the first on top."""
    axes.set_yticks(range(len(names)), labels=[named(name, 60) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def _numeric(table: pd.DataFrame, settings: Sequence[str]) -> str | None:
    """The setting with most different numbers, at least two."""
    counts = {
        name: len({float(value) for value in table[name]})
        for name in settings
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in table[name].to_list())
    }
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and counts[best] > 1 else None


def _label(record: dict[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {visible(setting_words(record[name]))}" for name in names)


def _lines(axes: Axes, xs: Sequence[float], values: Sequence[float], labels: Sequence[str]) -> None:
    """A line a label; of more than eight those with the best values, and the others in grey."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for point, label in zip(zip(xs, values, strict=True), labels, strict=True):
        groups.setdefault(label, []).append(point)
    ranked = sorted(groups, key=lambda label: -max(value for _, value in groups[label]))
    named_ones = set(ranked[: len(_LINES)])
    rest, place = len(groups) - len(named_ones), 0
    for label, points in groups.items():
        points.sort()
        x, y = [point[0] for point in points], [point[1] for point in points]
        if label not in named_ones:
            axes.plot(x, y, color="#d0d0d0", linewidth=1, zorder=0)
            continue
        colour, marker, dash = _LINES[place]
        place += 1
        axes.plot(x, y, color=colour, marker=marker, linestyle=dash, label=label, markersize=6)
    distinct = sorted(set(xs))
    least = next((value for value in distinct if value > 0), math.inf)
    if distinct[0] >= 0 and distinct[-1] / least >= 20:
        if distinct[0] > 0:
            axes.set_xscale("log")
        else:  # 0 has a place of its own, as far from the next as that one would be from its double
            axes.set_xscale("symlog", base=2, linthresh=least)
        axes.minorticks_off()
    ticks = distinct[:: math.ceil(len(distinct) / _TICKS)]
    axes.set_xticks(ticks, labels=[f"{value:g}" for value in ticks])
    axes.grid(color="#e4e4e4", linewidth=0.8)
    if len(groups) > 1:
        _legend(axes, f"and {rest} more, in grey" if rest else None)


def _legend(axes: Axes, title: str | None = None) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, title=title, fontsize=9, handlelength=3.2)
