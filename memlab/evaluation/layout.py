"""The parts that tables of figures are made of: columns of text, and HTML with inline styles.

Untrusted notebooks drop ``<style>``, scripts and inline SVG; what is here they leave standing, on a white ground of its
own whatever the theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len

from memlab.retrieval.render import visible

PALE, BLUE, DARK, LINE = "#9cc8e6", "#0072b2", "#1b1b1b", "#8c8c8c"
INK = "background:#ffffff;color:#1b1b1b;text-align:left"
CARD = f"{INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:68em"
CELL = f"{INK};vertical-align:top;padding:0.35em 0.7em;border-top:1px solid #e4e4e4"
NUMBER = f"{CELL.replace('text-align:left', 'text-align:right')};white-space:nowrap"
SMALL = "font-size:85%;color:#555555"
WARN = "font-size:85%;color:#8a3b00"


def columns_of(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
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


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes as lines of text, nothing in them obeyed."""
    return [f"note: {visible(note)}" for note in notes]


def notes_row(notes: Iterable[str], width: int) -> str:
    """Notes as the last row of an HTML table of ``width`` columns; nothing if there are none."""
    said = "".join(f'<div style="{WARN}">note: {html.escape(visible(note))}</div>' for note in notes)
    return f'<tr><td colspan="{width}" style="{CELL}">{said}</td></tr>' if said else ""


def head_row(headline: str, width: int) -> str:
    """The first row of an HTML table: up to the first ``·`` in bold, the rest small."""
    name, _, rest = headline.partition(" · ")
    return (
        f'<tr><td colspan="{width}" style="{CELL}"><b>{html.escape(name)}</b>'
        f'<div style="{SMALL}">{html.escape(rest)}</div></td></tr>'
    )


def html_table(rows: Iterable[str]) -> str:
    """Rows of HTML as a table."""
    return f'<table style="{CARD}"><tbody>{"".join(rows)}</tbody></table>'


@dataclass(frozen=True)
class Figures:
    """A table of figures that is shown as text and as HTML.

    Attributes
    ----------
    headline : str
        Up to the first ``·`` what it is, then what to know about it.
    heads : sequence of str
    rows : sequence of sequence of str
        A cell may have a second line: what stands after a line feed is shown small, and in text beside the first.
    left : int
        How many columns, from the first, are words; the others are figures and stand to the right.
    marked : frozenset of int
        Rows that are set off.
    said : sequence of str
        Sentences below it.
    notes : sequence of str
    """

    headline: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    marked: frozenset[int] = frozenset()
    said: Sequence[str] = ()
    notes: Sequence[str] = ()

    def text(self) -> str:
        """As lines of text."""
        split = [[cell.partition("\n") for cell in row] for row in (self.heads, *self.rows)]
        two = [any(row[place][1] for row in split) for place in range(len(self.heads))]
        rows, right = [], set()
        for row in split:
            cells: list[str] = []
            for place, (first, _, second) in enumerate(row):
                if place >= self.left:
                    right.add(len(cells))
                cells += [visible(first), visible(second)] if two[place] else [visible(first)]
            rows.append(cells)
        if self.marked:
            rows = [[*cells, "*" if place - 1 in self.marked else ""] for place, cells in enumerate(rows)]
        return "\n".join([visible(self.headline), *columns_of(rows, right), *self.said, *note_lines(self.notes)])

    def html(self) -> str:
        """As an HTML table."""
        width = len(self.heads)
        body = [head_row(self.headline, width), self._row(self.heads, bold=True)]
        body += [self._row(row, bold=place in self.marked) for place, row in enumerate(self.rows)]
        body += [f'<tr><td colspan="{width}" style="{CELL}">{html.escape(said)}</td></tr>' for said in self.said]
        return html_table([*body, notes_row(self.notes, width)])

    def _row(self, cells: Sequence[str], *, bold: bool) -> str:
        done = []
        for place, cell in enumerate(cells):
            first, _, second = (html.escape(visible(part)) for part in cell.partition("\n"))
            shown = f"<b>{first}</b>" if bold and first else first
            small = f'<div style="{SMALL}">{second}</div>' if second else ""
            done.append(f'<td style="{CELL if place < self.left else NUMBER}">{shown}{small}</td>')
        return f"<tr>{''.join(done)}</tr>"


def mean_strip(mean: float, low: float, high: float) -> str:
    """From 0 to 1: pale up to the mean, blue over the interval, a dark mark at the mean."""
    bands = [(0.0, mean, PALE)]
    if not math.isnan(low):
        bands.append((low, high, BLUE))
    return strip(bands, [(mean, DARK)])


def bar(share: float) -> str:
    """From 0 to 1, under a number at the right of its cell."""
    return strip([(0.0, share, BLUE)], [], "0.3em", "width:5em;margin-left:auto")


def strip(
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
