"""The slope chart of a recall: from each channel's ranks to the final ones.

One panel a channel: on its left the place that the channel gave to a hit, on its right the final place. A line's width
is what the channel gave to the score. The chart is an SVG inside an ``img``, which notebooks that are not trusted show
too; its alternative text and its text form say the same in words.
"""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memlab.retrieval.render import RECENCY, excerpt, look, visible, words_of
from memlab.store.records import shorten

if TYPE_CHECKING:
    import pandas as pd

    from memlab.retrieval.recall import Hit, Recall

_ROW, _TOP, _PANEL, _GAP, _EDGE, _NAMES = 26, 64, 116, 74, 44, 300  # pixels
_INK, _QUIET, _RULE = "#1b1b1b", "#555555", "#d0d0d0"
_FONT = "font-family='system-ui, sans-serif'"


class Step(NamedTuple):
    """Where one hit stands in one list, and what that gave it.

    Attributes
    ----------
    memory_id : str
    list : str
        A channel; ``"recency"`` for the order before the boost.
    rank : int or None
        ``None`` where the list does not have the memory, or only beyond its depth.
    final : int
    gain : float
        The contribution, or what recency added.
    vote : {"counted", "not counted", "none"}
        Whether it went into the score; ``"none"`` where the list says nothing of the memory.
    """

    memory_id: str
    list: str
    rank: int | None
    final: int
    gain: float
    vote: str


@dataclass(frozen=True)
class Slope:
    """A recall's slope chart: an image in a notebook, a table of ranks elsewhere.

    Parameters
    ----------
    recall : Recall
    """

    recall: Recall

    @property
    def lists(self) -> tuple[str, ...]:
        """The channels that ran, and recency if the boost was on."""
        trace = self.recall.trace
        names = [result.channel for result in trace.channels if result.ran]
        return (*names, RECENCY) if trace.recency else tuple(names)

    @property
    def steps(self) -> tuple[Step, ...]:
        """One for each hit and list, hits in final order."""
        before = self._ranks_before_recency() if self.recall.trace.recency else {}
        return tuple(self._step(hit, name, before) for hit in self.recall.hits for name in self.lists)

    def _step(self, hit: Hit, name: str, before: dict[str, int]) -> Step:
        if name == RECENCY:
            gain = hit.place.recency_gain
            return Step(hit.memory_id, name, before[hit.memory_id], hit.rank, gain, "counted")
        part = hit.place.of(name)
        if part is None:
            return Step(hit.memory_id, name, None, hit.rank, 0.0, "none")
        vote = "counted" if part.counted else "not counted"
        return Step(hit.memory_id, name, part.rank, hit.rank, part.contribution, vote)

    def _ranks_before_recency(self) -> dict[str, int]:
        ordered = sorted(self.recall.trace.ranked, key=lambda row: (-row.fused, row.memory_id))
        return {row.memory_id: rank for rank, row in enumerate(ordered, 1)}

    @property
    def frame(self) -> pd.DataFrame:
        """The steps.

        Returns
        -------
        DataFrame
            ``memory_id, list, rank, final, gain, vote``; the rank is missing where the list does not have it.
        """
        import pandas as pd

        return pd.DataFrame(self.steps, columns=list(Step._fields)).astype({"rank": "Int64", "final": "int64"})

    # -- as words ----------------------------------------------------------------------------------------------------

    @property
    def words(self) -> str:
        """The chart in sentences; the alternative text of the image."""
        if not self.recall.hits:
            return "No hits, so no ranks to compare."
        said = []
        by_hit: dict[str, list[Step]] = {}
        for step in self.steps:
            by_hit.setdefault(step.memory_id, []).append(step)
        for hit in self.recall.hits:
            places = ", ".join(f"{_title(step.list)} {_rank(step)}" for step in by_hit[hit.memory_id])
            said.append(f"Final rank {hit.rank}, {visible(hit.memory_id)}: {places}.")
        return " ".join(said)

    def __repr__(self) -> str:
        """Ranks as a table: a row for each hit, a column for each list."""
        head = ["", *(_title(name) for name in self.lists), "final"]
        rows = [head]
        steps = iter(self.steps)
        for hit in self.recall.hits:
            ranks = [_rank(next(steps)) for _ in self.lists]
            rows.append([visible(hit.memory_id), *ranks, f"#{hit.rank}"])
        widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        words = words_of(self.recall)
        for at, hit in enumerate(self.recall.hits, 1):
            lines[at] += f"   {excerpt(hit, 48, words).text}"
        if not self.recall.hits:
            return self.words
        return "\n".join([f"{shorten(visible(self.recall.query), 80)!r}: ranks by channel, and the final one", *lines])

    # -- as a picture ------------------------------------------------------------------------------------------------

    @property
    def svg(self) -> str:
        """The chart as an SVG document."""
        hits, words = self.recall.hits, words_of(self.recall)
        last = max([len(hits), *(row for name in self.lists for row in self._rows(name).values())])
        height = _TOP + _ROW * last + 18
        width = _EDGE + len(self.lists) * (_PANEL + _GAP) - _GAP + 26 + _NAMES
        parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' {_FONT} font-size='12' fill='{_INK}'>",
            f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        ]
        if last > len(hits):
            y = _TOP + _ROW * len(hits)
            parts.append(f"<line x1='8' x2='{width - 8}' y1='{y}' y2='{y}' stroke='{_RULE}' stroke-dasharray='3 4'/>")
            right = width - _NAMES + 4
            parts.append(f"<text x='{right}' y='{y + 17}' fill='{_QUIET}'>below: beyond place {len(hits)}</text>")
        most = max((step.gain for step in self.steps), default=0.0) or 1.0
        for at, name in enumerate(self.lists):
            parts += self._panel(name, _EDGE + at * (_PANEL + _GAP), most)
        for hit in hits:
            middle = _TOP + _ROW * (hit.rank - 0.5)
            part = excerpt(hit, 40, words)
            text = html.escape(f"{'… ' if part.before else ''}{part.text}{' …' if part.after else ''}")
            parts.append(
                f"<text x='{width - _NAMES}' y='{middle + 4}'><tspan font-weight='bold'>{hit.rank}</tspan>"
                f"<tspan dx='6'>{text}</tspan></text>"
            )
        return "".join([*parts, "</svg>"])

    def _panel(self, name: str, left: int, most: float) -> list[str]:
        right, shown, rows = left + _PANEL, look(name), self._rows(name)
        parts = [
            f"<rect x='{left - 32}' y='10' width='{_PANEL + 44}' height='21' fill='{shown.colour}'/>",
            f"<text x='{left + _PANEL / 2 - 10}' y='25' text-anchor='middle' font-weight='bold' fill='{shown.ink}'>"
            f"{html.escape(_title(name))}</text>",
            f"<text x='{left - 8}' y='52' text-anchor='middle' fill='{_QUIET}'>rank</text>",
            f"<text x='{right}' y='52' text-anchor='middle' fill='{_QUIET}'>final</text>",
            *(
                f"<line x1='{x}' x2='{x}' y1='{_TOP}' y2='{_TOP + _ROW * len(self.recall.hits)}' stroke='{_RULE}'/>"
                for x in (left, right)
            ),
        ]
        for step in self.steps:
            if step.list != name:
                continue
            end = _TOP + _ROW * (step.final - 0.5)
            if step.rank is None:
                # No line: this list did not bring the memory in. It may have scored it all the same.
                fill = "#ffffff" if step.vote == "none" else shown.colour
                parts.append(f"<circle cx='{right}' cy='{end}' r='3.5' fill='{fill}' stroke='{_QUIET}'/>")
                continue
            start = _TOP + _ROW * (rows[step.memory_id] - 0.5)
            wide = 1.5 + 4.5 * max(0.0, step.gain) / most
            dash = "" if step.vote == "counted" else " stroke-dasharray='5 4'"
            across = f"x1='{left}' y1='{start}' x2='{right}' y2='{end}' stroke-linecap='round'{dash}"
            parts += [
                # The dark edge carries the line where its colour is pale or printed grey.
                f"<line {across} stroke='{_INK}' stroke-width='{wide + 1.2:.2f}'/>",
                f"<line {across} stroke='{shown.colour}' stroke-width='{wide:.2f}'/>",
                f"<circle cx='{left}' cy='{start}' r='4.5' fill='{shown.colour}' stroke='{_INK}'/>",
                f"<circle cx='{right}' cy='{end}' r='4.5' fill='{shown.colour}' stroke='{_INK}'/>",
                f"<text x='{left - 10}' y='{start + 4}' text-anchor='end'>{step.rank}</text>",
            ]
        return parts

    def _rows(self, name: str) -> dict[str, int]:
        """Memory id to the row on the left of a panel: the rank, or where that lies beyond the hits the next rows."""
        count = len(self.recall.hits)
        ranked = sorted((step.rank, step.memory_id) for step in self.steps if step.list == name and step.rank)
        beyond = [memory_id for rank, memory_id in ranked if rank > count]
        rows = {memory_id: rank for rank, memory_id in ranked if rank <= count}
        return rows | {memory_id: count + at for at, memory_id in enumerate(beyond, 1)}

    def _repr_html_(self) -> str:
        if not self.recall.hits:
            return f'<div style="background:#ffffff;color:{_INK};padding:0.45em 0.7em">{html.escape(self.words)}</div>'
        data = base64.b64encode(self.svg.encode()).decode()
        alt = html.escape(self.words)
        title = html.escape(shorten(visible(self.recall.query), 160))
        return (
            f'<table style="background:#ffffff;color:{_INK};text-align:left;border:1px solid #d0d0d0;'
            f'border-collapse:collapse"><tbody><tr><td style="background:#ffffff;color:{_INK};text-align:left;'
            f'padding:0.45em 0.7em"><b>{title}</b><div style="font-size:85%;color:{_QUIET}">From the rank in each '
            "channel to the final rank. The wider the line, the more it gave to the score; dashed: not counted; an "
            "empty ring: not found; a dot without a line: scored, though beyond the channel's depth.</div>"
            f'<img src="data:image/svg+xml;base64,{data}" alt="{alt}" '
            'style="max-width:100%"></td></tr></tbody></table>'
        )


def _title(name: str) -> str:
    return "before recency" if name == RECENCY else name


def _rank(step: Step) -> str:
    if step.rank is None:
        return "not found" if step.vote == "none" else "beyond the depth"
    return f"#{step.rank}" if step.vote == "counted" else f"#{step.rank} (not counted)"
