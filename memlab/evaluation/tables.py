"""Evaluations, comparisons and sweeps as tables: text for a terminal, HTML with inline styles for a notebook.

Every figure stands in the text; the bars beside them repeat it and differ in lightness, not in hue alone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from memlab.evaluation.findings import figure, finding, named, p_words, scale_of, span
from memlab.evaluation.measures import EXAMPLES
from memlab.retrieval.render import visible
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.evaluation.comparison import Comparison, Difference
    from memlab.evaluation.evaluate import Evaluation
    from memlab.evaluation.sweep import Sweep

_MOST_SETTINGS = 20  # rows of a sweep that are shown
_PALE, _BLUE, _DARK, _LINE = "#9cc8e6", "#0072b2", "#1b1b1b", "#8c8c8c"
_INK = "background:#ffffff;color:#1b1b1b;text-align:left"
_CARD = f"{_INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:68em"
_CELL = f"{_INK};vertical-align:top;padding:0.35em 0.7em;border-top:1px solid #e4e4e4"
_NUMBER = f"{_CELL.replace('text-align:left', 'text-align:right')};white-space:nowrap"
_SMALL = "font-size:85%;color:#555555"
_WARN = "font-size:85%;color:#8a3b00"


# -- one evaluation ----------------------------------------------------------------------------------------------------


def evaluation_text(evaluation: Evaluation) -> str:
    """An evaluation as lines of text."""
    rows = [["measure", "mean", "95 % interval"]]
    for measure in evaluation.measures:
        scale = scale_of([evaluation], measure)
        mean, interval = evaluation.mean(measure), evaluation.intervals[measure]
        rows.append([measure, figure(mean, scale), span(*interval, scale)])
    return "\n".join([_evaluated(evaluation), *_columns(rows, right={1}), *_notes(evaluation.notes)])


def evaluation_html(evaluation: Evaluation) -> str:
    """An evaluation as an HTML table, a strip for each mean and its interval."""
    body = [_head(_evaluated(evaluation), 4)]
    for measure in evaluation.measures:
        scale = scale_of([evaluation], measure)
        mean, (low, high) = evaluation.mean(measure), evaluation.intervals[measure]
        most = 1.0 if scale == 100 else max(mean, 0.0 if math.isnan(high) else high) or 1.0
        meaning = f'<div style="{_SMALL}">{html.escape(EXAMPLES[measure])}</div>' if measure in EXAMPLES else ""
        body.append(
            f'<tr><td style="{_CELL}"><b>{html.escape(measure)}</b>{meaning}</td>'
            f'<td style="{_NUMBER}"><b>{figure(mean, scale)}</b></td>'
            f'<td style="{_CELL}">{_mean_strip(mean / most, low / most, high / most)}</td>'
            f'<td style="{_NUMBER}">{span(low, high, scale)}</td></tr>'
        )
    return _table([*body, _notes_row(evaluation.notes, 4)])


def _evaluated(evaluation: Evaluation) -> str:
    name = named(evaluation.name) or "evaluation"
    return f"{name}: {_counted(evaluation)} · means with 95 % intervals; values from 0 to 1 are shown x 100"


def _counted(one: Any) -> str:
    count = len(one.queries)
    return f"{count:,} quer{'y' if count == 1 else 'ies'}{', interrupted' if one.interrupted else ''}"


# -- a comparison ------------------------------------------------------------------------------------------------------


def comparison_text(comparison: Comparison) -> str:
    """A comparison as lines of text: a table and a sentence for each measure."""
    lines = [_compared(comparison)]
    for measure in comparison.measures:
        scale = scale_of(comparison.evaluations.values(), measure)
        rows = [[measure, "mean", "95 %", "difference", "95 %", *_P_HEADS]]
        for name, evaluation in comparison.evaluations.items():
            mean = [figure(evaluation.mean(measure), scale), span(*evaluation.intervals[measure], scale)]
            found = comparison.differences.get((name, measure))
            rows.append([named(name), *mean, *(["baseline"] if found is None else _against(found, scale))])
        lines += ["", *_columns(rows, right={1, 3, 5}), f"{finding(comparison, measure)}."]
    return "\n".join([*lines, *_notes(comparison.notes)])


_P_HEADS = ("p (Holm)", "better/same/worse")


def _compared(comparison: Comparison) -> str:
    others = len(comparison.systems) - 1
    return (
        f"{others} system{'s' if others > 1 else ''} compared with {named(comparison.baseline)} · "
        f"{_counted(comparison)} · values from 0 to 1 are shown x 100, differences in points"
    )


def _against(found: Difference, scale: float) -> list[str]:
    return [
        figure(found.mean, scale, sign=True),
        span(found.low, found.high, scale, sign=True),
        p_words(found.p_holm).removeprefix("p ").removeprefix("= "),
        f"{found.wins}/{found.ties}/{found.losses}",
    ]


def comparison_html(comparison: Comparison) -> str:
    """A comparison as an HTML table: per measure a block of rows and a sentence."""
    body = [_head(_compared(comparison), 7)]
    for measure in comparison.measures:
        body.append(_measure_rows(comparison, measure))
    return _table([*body, _notes_row(comparison.notes, 7)])


def _measure_rows(comparison: Comparison, measure: str) -> str:
    scale = scale_of(comparison.evaluations.values(), measure)
    found = {name: comparison.differences.get((name, measure)) for name in comparison.systems}
    ends = [abs(end) for one in found.values() if one for end in (one.low, one.high, one.mean) if not math.isnan(end)]
    most = max(ends, default=0.0) or 1.0
    axis = f"{figure(-most, scale)} … 0 … {figure(most, scale, sign=True)}"
    heads = [f"<b>{html.escape(measure)}</b>", "mean", "95 %", axis, "difference", *_P_HEADS]
    rows = [
        "<tr>"
        + "".join(
            f'<td style="{_CELL if place in (0, 3) else _NUMBER};border-top:2px solid {_LINE}">'
            f'<span style="{"" if place == 0 else _SMALL}">{head}</span></td>'
            for place, head in enumerate(heads)
        )
        + "</tr>"
    ]
    for name, evaluation in comparison.evaluations.items():
        one, mean = found[name], evaluation.mean(measure)
        cells = [
            f'<td style="{_CELL}">{html.escape(named(name))}</td>'
            f'<td style="{_NUMBER}"><b>{figure(mean, scale)}</b></td>'
            f'<td style="{_NUMBER}">{span(*evaluation.intervals[measure], scale)}</td>'
        ]
        if one is None:
            cells.append(f'<td colspan="4" style="{_CELL}"><span style="{_SMALL}">baseline</span></td>')
        else:
            apart, interval, p, counts = _against(one, scale)
            weight = "b" if one.found else "span"
            cells.append(
                f'<td style="{_CELL}">{_difference_strip(one, most)}</td>'
                f'<td style="{_NUMBER}"><{weight}>{apart}</{weight}><div style="{_SMALL}">{interval}</div></td>'
                f'<td style="{_NUMBER}"><{weight}>{html.escape(p)}</{weight}></td><td style="{_NUMBER}">{counts}</td>'
            )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    rows.append(f'<tr><td colspan="7" style="{_CELL}">{html.escape(finding(comparison, measure))}.</td></tr>')
    return "".join(rows)


# -- a sweep -----------------------------------------------------------------------------------------------------------


def sweep_text(sweep: Sweep) -> str:
    """A sweep as lines of text: its settings, best first in the first measure."""
    frame, headline = _best_first(sweep)
    ranges = _ranges(sweep)
    rows = [[*sweep.names, *sweep.measures]]
    for record in frame.to_dict("records"):
        figures = [
            figure(record[measure], scale) + ("*" if record[measure] == best else " ")
            for measure, (scale, best) in ranges.items()
        ]
        rows.append([*(_setting(record[name]) for name in sweep.names), *figures])
    right = set(range(len(sweep.names), len(rows[0])))
    return "\n".join([headline, *_columns(rows, right=right), *_notes(sweep.notes)])


def sweep_html(sweep: Sweep) -> str:
    """A sweep as an HTML table: its settings, best first in the first measure."""
    frame, headline = _best_first(sweep)
    ranges = _ranges(sweep)
    width = len(sweep.names) + len(ranges)
    heads = "".join(
        f'<td style="{_NUMBER if name in ranges else _CELL}"><b>{html.escape(visible(name))}</b></td>'
        for name in (*sweep.names, *ranges)
    )
    body = [_head(headline, width), f"<tr>{heads}</tr>"]
    for record in frame.to_dict("records"):
        cells = [f'<td style="{_CELL}">{html.escape(_setting(record[name]))}</td>' for name in sweep.names]
        for measure, (scale, best) in ranges.items():
            value = record[measure]
            shown = f"<b>* {figure(value, scale)}</b>" if value == best else figure(value, scale)
            share = (
                value if scale == 100 else value / best if best > 0 else 0.0
            )  # from 0: nothing looks larger than it is
            cells.append(f'<td style="{_NUMBER}">{shown}{_bar(share)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return _table([*body, _notes_row(sweep.notes, width)])


def _ranges(sweep: Sweep) -> dict[str, tuple[float, float]]:
    """By measure: what it is shown times, and its best value."""
    return {name: (scale_of(sweep.evaluations, name), float(sweep.table[name].max())) for name in sweep.measures}


def _best_first(sweep: Sweep) -> tuple[Any, str]:
    frame = sweep.table.sort_values(sweep.measures[0], ascending=False, kind="stable")
    shown = min(len(frame), _MOST_SETTINGS)
    which = f"{len(frame):,} setting{'' if len(frame) == 1 else 's'}"
    if shown < len(frame):
        which = f"the best {shown} of {which}"
    about = f"best first in {sweep.measures[0]}, * is the best; values from 0 to 1 are shown x 100"
    count = _counted(sweep.evaluations[0])
    return frame.head(shown), f"{which} · {count} · {about} · the best of several looks better than it is"


def _setting(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return shorten(" ".join(visible(str(value)).split()), 60)


# -- parts -------------------------------------------------------------------------------------------------------------


def _columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Rows in columns as wide as their widest cell."""
    to_right = set(right)
    widths = [max((cell_len(row[i]) for row in rows if i < len(row)), default=0) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for place, cell in enumerate(row):
            gap = " " * (widths[place] - cell_len(cell))
            cells.append(gap + cell if place in to_right else cell + gap)
        lines.append("  ".join(cells).rstrip())
    return lines


def _notes(notes: Iterable[str]) -> list[str]:
    return [f"note: {visible(note)}" for note in notes]


def _notes_row(notes: Iterable[str], width: int) -> str:
    said = "".join(f'<div style="{_WARN}">note: {html.escape(visible(note))}</div>' for note in notes)
    return f'<tr><td colspan="{width}" style="{_CELL}">{said}</td></tr>' if said else ""


def _head(headline: str, width: int) -> str:
    name, _, rest = headline.partition(" · ")
    return (
        f'<tr><td colspan="{width}" style="{_CELL}"><b>{html.escape(name)}</b>'
        f'<div style="{_SMALL}">{html.escape(rest)}</div></td></tr>'
    )


def _table(rows: Iterable[str]) -> str:
    return f'<table style="{_CARD}"><tbody>{"".join(rows)}</tbody></table>'


def _mean_strip(mean: float, low: float, high: float) -> str:
    """From 0 to 1: pale up to the mean, blue over the interval, a dark mark at the mean."""
    bands = [(0.0, mean, _PALE)]
    if not math.isnan(low):
        bands.append((low, high, _BLUE))
    return _strip(bands, [(mean, _DARK)])


def _difference_strip(one: Difference, most: float) -> str:
    """From ``-most`` to ``most``: the interval, dark if a difference was found, and marks at 0 and at the mean."""
    low, mean, high = (0.5 + value / (2 * most) for value in (one.low, one.mean, one.high))
    bands = [] if math.isnan(one.low) else [(low, high, _BLUE if one.found else _PALE)]
    return _strip(bands, [(0.5, _LINE), (mean, _DARK)])


def _bar(share: float) -> str:
    """From 0 to 1, under a number at the right of its cell."""
    return _strip([(0.0, share, _BLUE)], [], "0.3em", "width:5em;margin-left:auto")


def _strip(
    bands: Sequence[tuple[float, float, str]],
    marks: Sequence[tuple[float, str]],
    height: str = "1em",
    style: str = "width:11em",
) -> str:
    """A strip from 0 to 1, painted over in order; made of floats, which untrusted notebooks leave standing."""
    half = 0.009
    inside = [(min(max(at, half), 1 - half), colour) for at, colour in marks]
    painted = [*bands, *((at - half, at + half, colour) for at, colour in inside)]
    ends = sorted({0.0, 1.0, *(min(max(end, 0.0), 1.0) for start, stop, _ in painted for end in (start, stop))})
    pieces = []
    for start, stop in pairwise(ends):
        middle = (start + stop) / 2
        colour = next((colour for a, b, colour in reversed(painted) if a <= middle <= b), "#f0f0f0")
        share = int(1e5 * (stop - start)) / 1e3  # rounded down: a sum above 100 % would break the line
        pieces.append(f'<div style="float:left;height:{height};width:{share:g}%;background:{colour}"></div>')
    return f'<div style="{style};height:{height};background:#f0f0f0">{"".join(pieces)}</div>'
