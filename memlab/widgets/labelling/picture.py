"""The static picture of a labelling session: how far it is, query by query."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from memlab.retrieval.render import code, visible
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.evaluation.labelling import LabellingSession, QueryState

_SHOWN = 40  # queries; the rest is counted
_INK = "background:#ffffff;color:#1b1b1b;text-align:left"
_CELL = f"{_INK};vertical-align:top;padding:0.3em 0.7em;border-top:1px solid #e4e4e4"
_NUMBER = f"{_CELL.replace('text-align:left', 'text-align:right')};white-space:nowrap"


def headline(session: LabellingSession) -> str:
    """How far it is, and where it is kept."""
    done = session.progress
    kept = "kept in this kernel alone" if session.path is None else f"kept in {session.path.name}"
    queries = f"{done.finished} of {done.queries} queries finished"
    return f"{queries} · {done.judged:,} judged, {done.relevant:,} relevant · {kept}"


def state_words(state: QueryState) -> str:
    """``finished``, ``begun`` or ``open``."""
    return "finished" if state.finished else "begun" if state.judged else "open"


def as_text(session: LabellingSession) -> str:
    """Lines of text."""
    lines = [headline(session)]
    for query in session.queries[:_SHOWN]:
        state = session.state(query.query_id)
        lines.append(
            f"  {state_words(state):<8}  {state.relevant:>3} of {state.judged:>3} relevant  "
            f"{visible(query.query_id)}  {shorten(visible(query.text), 70)}"
        )
    if len(session.queries) > _SHOWN:
        lines.append(f"  and {len(session.queries) - _SHOWN:,} more")
    return "\n".join(lines)


def as_html(session: LabellingSession) -> str:
    """A table with inline styles; all text is escaped."""
    done = session.progress
    share = 100 * done.finished / done.queries
    rows = [
        f'<tr><td colspan="4" style="{_CELL}"><b>Labelling</b><div style="font-size:85%;color:#555555">'
        f'{html.escape(headline(session))}</div><div style="width:100%;height:0.5em;background:#e4e4e4">'
        f'<div style="width:{share:.1f}%;height:0.5em;background:#0072b2"></div></div></td></tr>'
    ]
    for query in session.queries[:_SHOWN]:
        state = session.state(query.query_id)
        rows.append(
            f'<tr><td style="{_CELL}">{code(query.query_id)}</td>'
            f'<td style="{_CELL}">{html.escape(shorten(visible(query.text), 160))}</td>'
            f'<td style="{_NUMBER}">{state.relevant} of {state.judged} relevant</td>'
            f'<td style="{_CELL}">{state_words(state)}</td></tr>'
        )
    if len(session.queries) > _SHOWN:
        rows.append(f'<tr><td colspan="4" style="{_CELL}">and {len(session.queries) - _SHOWN:,} more</td></tr>')
    table = f"{_INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:62em"
    return f'<table style="{table}"><tbody>{"".join(rows)}</tbody></table>'
