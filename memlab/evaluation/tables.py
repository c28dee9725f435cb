"""Evaluations, comparisons and sweeps as tables: text for a terminal, HTML with inline styles for a notebook.

Every figure stands in the text; the bars beside them repeat it and differ in lightness, not in hue alone.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from memlab.evaluation.findings import figure, finding, named, p_words, scale_of, span
from memlab.evaluation.layout import (
    BLUE,
    CELL,
    DARK,
    LINE,
    NUMBER,
    PALE,
    SMALL,
    bar,
    columns_of,
    head_row,
    html_table,
    mean_strip,
    note_lines,
    notes_row,
    strip,
)
from memlab.evaluation.measures import EXAMPLES
from memlab.evaluation.wording import setting_words
from memlab.retrieval.render import visible
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.evaluation.comparison import Comparison, Difference
    from memlab.evaluation.evaluate import Evaluation
    from memlab.evaluation.sweep import Sweep

_MOST_SETTINGS = 20  # rows of a sweep that are shown


# -- one evaluation ----------------------------------------------------------------------------------------------------


def evaluation_text(evaluation: Evaluation) -> str:
    """An evaluation as lines of text."""
    rows = [["measure", "mean", "95 % interval"]]
    for measure in evaluation.measures:
        scale = scale_of([evaluation], measure)
        mean, interval = evaluation.mean(measure), evaluation.intervals[measure]
        rows.append([measure, figure(mean, scale), span(*interval, scale)])
    return "\n".join([_evaluated(evaluation), *columns_of(rows, right={1}), *note_lines(evaluation.notes)])


def evaluation_html(evaluation: Evaluation) -> str:
    """An evaluation as an HTML table, a strip for each mean and its interval."""
    body = [head_row(_evaluated(evaluation), 4)]
    for measure in evaluation.measures:
        scale = scale_of([evaluation], measure)
        mean, (low, high) = evaluation.mean(measure), evaluation.intervals[measure]
        most = 1.0 if scale == 100 else max(mean, 0.0 if math.isnan(high) else high) or 1.0
        meaning = f'<div style="{SMALL}">{html.escape(EXAMPLES[measure])}</div>' if measure in EXAMPLES else ""
        body.append(
            f'<tr><td style="{CELL}"><b>{html.escape(measure)}</b>{meaning}</td>'
            f'<td style="{NUMBER}"><b>{figure(mean, scale)}</b></td>'
            f'<td style="{CELL}">{mean_strip(mean / most, low / most, high / most)}</td>'
            f'<td style="{NUMBER}">{span(low, high, scale)}</td></tr>'
        )
    return html_table([*body, notes_row(evaluation.notes, 4)])


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
        lines += ["", *columns_of(rows, right={1, 3, 5}), f"{finding(comparison, measure)}."]
    return "\n".join([*lines, *note_lines(comparison.notes)])


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
    body = [head_row(_compared(comparison), 7)]
    for measure in comparison.measures:
        body.append(_measure_rows(comparison, measure))
    return html_table([*body, notes_row(comparison.notes, 7)])


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
            f'<td style="{CELL if place in (0, 3) else NUMBER};border-top:2px solid {LINE}">'
            f'<span style="{"" if place == 0 else SMALL}">{head}</span></td>'
            for place, head in enumerate(heads)
        )
        + "</tr>"
    ]
    for name, evaluation in comparison.evaluations.items():
        one, mean = found[name], evaluation.mean(measure)
        cells = [
            f'<td style="{CELL}">{html.escape(named(name))}</td>'
            f'<td style="{NUMBER}"><b>{figure(mean, scale)}</b></td>'
            f'<td style="{NUMBER}">{span(*evaluation.intervals[measure], scale)}</td>'
        ]
        if one is None:
            cells.append(f'<td colspan="4" style="{CELL}"><span style="{SMALL}">baseline</span></td>')
        else:
            apart, interval, p, counts = _against(one, scale)
            weight = "b" if one.found else "span"
            cells.append(
                f'<td style="{CELL}">{_difference_strip(one, most)}</td>'
                f'<td style="{NUMBER}"><{weight}>{apart}</{weight}><div style="{SMALL}">{interval}</div></td>'
                f'<td style="{NUMBER}"><{weight}>{html.escape(p)}</{weight}></td><td style="{NUMBER}">{counts}</td>'
            )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    rows.append(f'<tr><td colspan="7" style="{CELL}">{html.escape(finding(comparison, measure))}.</td></tr>')
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
    return "\n".join([headline, *columns_of(rows, right=right), *note_lines(sweep.notes)])


def sweep_html(sweep: Sweep) -> str:
    """A sweep as an HTML table: its settings, best first in the first measure."""
    frame, headline = _best_first(sweep)
    ranges = _ranges(sweep)
    width = len(sweep.names) + len(ranges)
    heads = "".join(
        f'<td style="{NUMBER if name in ranges else CELL}"><b>{html.escape(visible(name))}</b></td>'
        for name in (*sweep.names, *ranges)
    )
    body = [head_row(headline, width), f"<tr>{heads}</tr>"]
    for record in frame.to_dict("records"):
        cells = [f'<td style="{CELL}">{html.escape(_setting(record[name]))}</td>' for name in sweep.names]
        for measure, (scale, best) in ranges.items():
            value = record[measure]
            shown = f"<b>* {figure(value, scale)}</b>" if value == best else figure(value, scale)
            share = (
                value if scale == 100 else value / best if best > 0 else 0.0
            )  # from 0: nothing looks larger than it is
            cells.append(f'<td style="{NUMBER}">{shown}{bar(share)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return html_table([*body, notes_row(sweep.notes, width)])


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
    return shorten(" ".join(visible(setting_words(value)).split()), 60)


def _difference_strip(one: Difference, most: float) -> str:
    """From ``-most`` to ``most``: the interval, dark if a difference was found, and marks at 0 and at the mean."""
    low, mean, high = (0.5 + value / (2 * most) for value in (one.low, one.mean, one.high))
    bands = [] if math.isnan(one.low) else [(low, high, BLUE if one.found else PALE)]
    return strip(bands, [(0.5, LINE), (mean, DARK)])
