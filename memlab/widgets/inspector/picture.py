"""What the inspector leaves in a saved notebook: the recall's own table, and the moves to the other side."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from memlab.retrieval import Recall
from memlab.retrieval.render import as_html, as_text, visible
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.widgets.inspector.inspector import Inspector

# Foreground and background are both set, so that a dark theme cannot hide one of them.
_INK = "background:#ffffff;color:#1b1b1b;text-align:left"
_CARD = f"{_INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:62em"
_CELL = f"{_INK};vertical-align:top;padding:0.3em 0.7em;border-top:1px solid #e4e4e4"


def text(inspector: Inspector) -> str:
    """The inspector as lines of text."""
    if not inspector.query.strip():
        return f"<Inspector of {inspector.retriever!r}; no query yet>"
    lines = [as_text(inspector.recall)]
    if inspector.recall_b is not None:
        lines += ["", "B: " + differences(inspector), as_text(inspector.recall_b)]
    return "\n".join(lines)


def picture(inspector: Inspector) -> str:
    """The inspector as a table with inline styles; all stored text is escaped."""
    if not inspector.query.strip():
        what = html.escape(visible(repr(inspector.retriever)))
        return f'<table style="{_CARD}"><tbody><tr><td style="{_CELL}">No query yet. {what}</td></tr></tbody></table>'
    shown = as_html(inspector.recall)
    if inspector.recall_b is None:
        return shown
    return shown + _moves(inspector, inspector.recall_b)


def differences(inspector: Inspector) -> str:
    """The settings of B that are not those of A."""
    a, b = inspector.settings, inspector.settings_b
    if b is None:
        return ""
    parts = [
        f"{name}={getattr(b, name)!r}"
        for name in ("fusion", "recency_boost", "recency", "depth", "limit", "now", "filters")
        if getattr(a, name) != getattr(b, name) and not (name == "recency" and not b.recency_boost)
    ]
    return ", ".join(parts) or "the same settings"


def _moves(inspector: Inspector, other: Recall) -> str:
    heads = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("A", "B", "", "memory"))
    rows = []
    for memory_id, rank_a, rank_b in moves(inspector.recall, other):
        memory = next(
            hit.memory for recall in (inspector.recall, other) for hit in recall if hit.memory_id == memory_id
        )
        words = shorten(visible(" ".join(memory.content[:1000].split())), 100)
        cells = (_place(rank_a), _place(rank_b), move_words(rank_a, rank_b), f"{visible(memory_id)} · {words}")
        rows.append("<tr>" + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in cells) + "</tr>")
    title = f'<tr><td colspan="4" style="{_CELL}"><b>A and B</b> · B: {html.escape(differences(inspector))}</td></tr>'
    return f'<table style="{_CARD}"><tbody>{title}<tr>{heads}</tr>{"".join(rows)}</tbody></table>'


def moves(a: Recall, b: Recall) -> list[tuple[str, int | None, int | None]]:
    """Memory id and its rank in A and B, of all hits of either; ``None`` where it is not ranked at all."""
    ids = dict.fromkeys([*a.ids, *b.ids])
    found = []
    for memory_id in ids:
        places = a.trace.place(memory_id), b.trace.place(memory_id)
        found.append((memory_id, *(None if place is None else place.rank for place in places)))
    return found  # type: ignore[return-value]


def move_words(rank_a: int | None, rank_b: int | None) -> str:
    """``▲ 2``, ``▼ 1``, ``=``, ``new`` or ``gone``."""
    if rank_a is None or rank_b is None:
        return "new" if rank_a is None else "gone"
    if rank_a == rank_b:
        return "="
    return f"▲ {rank_a - rank_b}" if rank_b < rank_a else f"▼ {rank_b - rank_a}"


def _place(rank: int | None) -> str:
    return "-" if rank is None else str(rank)
