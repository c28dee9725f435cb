"""A server as a notebook shows it: address, state, how to connect, and the last calls, each with its recall to open.

Plain HTML with inline styles and ``<details>``, no script: it stays readable in a saved notebook, and a token is never
part of it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memlab.retrieval.render import visible
from memlab.server.activity import Call
from memlab.server.clients import Snippet
from memlab.server.tokens import MASK

ROWS = 12  # calls shown
OPENABLE = 8  # of them with their recall, which is most of the size

# Foreground and background are both set, so that a dark theme cannot hide one of them.
_INK = "background:#ffffff;color:#1b1b1b;text-align:left"
_CARD = f"{_INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:62em;width:100%"
_CELL = f"{_INK};vertical-align:top;padding:0.55em 0.8em;border-top:1px solid #e4e4e4"
_SMALL = "font-size:85%;color:#555555"
_CODE = (
    "background:#f5f5f5;color:#1b1b1b;border:1px solid #e4e4e4;padding:0.5em 0.7em;margin:0.3em 0;"
    "white-space:pre-wrap;overflow-wrap:anywhere;font-size:85%"
)
_NUMBER = "display:inline-block;min-width:7.5em;font-variant-numeric:tabular-nums;white-space:nowrap"
# Of the same palette as the bars of a recall; the word says the same.
_STATES = {
    "serving": ("#009e73", "#000000"),
    "starting": ("#e69f00", "#000000"),
    "failed": ("#d55e00", "#000000"),
    "stopped": ("#d0d0d0", "#1b1b1b"),
}


@dataclass(frozen=True)
class Facts:
    """What a card says.

    Attributes
    ----------
    state : str
        ``serving``, ``starting``, ``stopped``, or ``failed`` and why.
    url : str
    store : str
        Its file's name.
    memories : int or None
    calls, errors : int
    masked : bool
        Whether there is a token.
    read_only : bool
    project : str or None
    """

    state: str
    url: str
    store: str
    memories: int | None
    calls: int
    errors: int
    masked: bool
    read_only: bool
    project: str | None

    def parts(self) -> list[str]:
        """Everything but state and address, in words."""
        said = [visible(self.store)]
        if self.memories is not None:
            said.append(f"{self.memories:,} memories")
        said.append(f"{self.calls:,} call{'' if self.calls == 1 else 's'}")
        if self.errors:
            said.append(f"{self.errors:,} error{'' if self.errors == 1 else 's'}")
        if self.project:
            said.append(f"project {visible(self.project)}")
        if self.read_only:
            said.append("read-only")
        said.append(f"token {MASK}" if self.masked else "no token")
        return said


def as_text(facts: Facts, snippets: Iterable[Snippet]) -> str:
    """A server as lines of text."""
    lines = [f"memlab MCP server · {facts.state} · {facts.url}", " · ".join(facts.parts())]
    for snippet in snippets:
        if "\n" not in snippet.text and snippet.where == "in a shell":
            lines.append(f"{snippet.client}: {snippet.text}")
    return "\n".join(lines)


def as_html(facts: Facts, snippets: Iterable[Snippet], calls: list[Call]) -> str:
    """The whole card."""
    colour, ink = _STATES.get(facts.state.partition(":")[0], _STATES["stopped"])
    badge = (
        f'<span style="display:inline-block;padding:0 0.5em;background:{colour};color:{ink}">'
        f"{html.escape(facts.state)}</span>"
    )
    head = (
        f'<b>memlab MCP server</b> &nbsp;{badge}&nbsp; <code style="background:#ffffff;color:#1b1b1b">'
        f'{html.escape(facts.url)}</code><div style="{_SMALL}">{html.escape(" · ".join(facts.parts()))}</div>'
    )
    connect = "".join(_snippet(snippet) for snippet in snippets)
    rows = f'<tr><td style="{_CELL}">{head}</td></tr>'
    rows += f'<tr><td style="{_CELL}">{_title("Connect an assistant")}{connect}</td></tr>'
    rows += f'<tr><td style="{_CELL}">{calls_html(calls)}</td></tr>'
    return f'<table style="{_CARD}"><tbody>{rows}</tbody></table>'


def _snippet(snippet: Snippet) -> str:
    note = f'<div style="{_SMALL}">{html.escape(snippet.note)}</div>' if snippet.note else ""
    return (
        f'<details style="display:block;margin:0.15em 0"><summary style="cursor:pointer">'
        f'<span style="display:inline-block;min-width:8.5em">{html.escape(snippet.client)}</span>'
        f'<span style="{_SMALL}">{html.escape(_short(snippet.where))}</span></summary>'
        f'<pre style="{_CODE}">{html.escape(snippet.text)}</pre>{note}</details>'
    )


def _short(place: str) -> str:
    home = str(Path.home())
    return "~" + place[len(home) :] if place.startswith(home) else place


def calls_html(calls: list[Call]) -> str:
    """The last calls, newest first; those of a recall can be opened."""
    if not calls:
        return f'<div style="{_SMALL}">No calls yet. They appear here as they come.</div>'
    newest = list(reversed(calls))
    openable = {call.number for call in [call for call in newest if call.recall is not None][:OPENABLE]}
    rows = "".join(_call(call, call.number in openable) for call in newest[:ROWS])
    more = len(newest) - ROWS
    rest = _title(f"and {more:,} before them, in server.activity") if more > 0 else ""
    return f"{_title('Calls, newest first; click a recall to open it')}{rows}{rest}"


def _title(text: str) -> str:
    return f'<div style="{_SMALL};margin:0.2em 0">{html.escape(text)}</div>'


def _call(call: Call, openable: bool) -> str:
    counted = "" if call.hits is None else f"{call.hits} hit{'' if call.hits == 1 else 's'}"
    mode = call.mode if call.mode and call.mode != "hybrid" else ""
    outcome = "" if call.outcome == "ok" else call.outcome
    tail = " · ".join(part for part in (counted, mode, outcome, f"{call.milliseconds:,.1f} ms") if part)
    colour = "#8a3b00" if call.outcome != "ok" else "#555555"
    line = (
        f'<span style="{_SMALL};{_NUMBER}">#{call.number} {call.at:%H:%M:%S}</span> '
        f'<b style="display:inline-block;min-width:5.8em">{html.escape(visible(call.tool))}</b> '
        f"{html.escape(visible(call.about))} "
        f'<span style="display:inline-block;font-size:85%;color:{colour}">{html.escape(tail)}'
        f"{' · ' + html.escape(visible(call.client)) if call.client else ''}</span>"
    )
    block = "display:block;padding:0.2em 0;border-top:1px solid #f0f0f0"
    if openable and call.recall is not None:
        shown = call.recall._repr_html_()
        return (
            f'<details style="{block}"><summary style="cursor:pointer">{line}</summary>'
            f'<div style="margin:0.4em 0">{shown}</div></details>'
        )
    message = f'<div style="{_SMALL}">{html.escape(visible(call.message))}</div>' if call.message else ""
    return f'<div style="{block};padding-left:1.05em">{line}{message}</div>'


def activity_html(calls: list[Call]) -> str:
    """The calls alone, as a card."""
    return f'<table style="{_CARD}"><tbody><tr><td style="{_CELL}">{calls_html(calls)}</td></tr></tbody></table>'
