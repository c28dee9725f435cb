"""The picture of a recall: as text for a terminal or a REPL, as an HTML table for a notebook.

Both give every number in words too, so nothing is said by colour alone. The HTML is one table with inline styles: that
is what untrusted notebooks and code hosts leave standing.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memlab.retrieval.highlight import matches, window, words_with
from memlab.retrieval.terms import terms
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.retrieval.recall import Hit, Recall
    from memlab.retrieval.trace import Contribution

RECENCY = "recency"


@dataclass(frozen=True)
class Look:
    """How a share is drawn: a character for text, a colour and the colour of text upon it for HTML."""

    char: str
    colour: str
    ink: str
    term_colour: str


# Okabe and Ito's palette, which colour-blind readers can tell apart; the characters differ in density.
LOOKS = {
    "keyword": Look("█", "#0072b2", "#ffffff", "blue"),
    "vector": Look("▓", "#e69f00", "#000000", "yellow"),
    "passage": Look("▒", "#009e73", "#000000", "green"),
    RECENCY: Look("░", "#cc79a7", "#000000", "magenta"),
    "similarity": Look("▓", "#e69f00", "#000000", "yellow"),
    "access": Look("▒", "#009e73", "#000000", "green"),
}
_OTHER = Look("▚", "#56b4e9", "#000000", "cyan")


def look(channel: str) -> Look:
    """How a channel's share is drawn."""
    return LOOKS.get(channel, _OTHER)


def shares(hit: Hit) -> list[tuple[str, float]]:
    """What each channel and recency gave to the score of a hit, in order."""
    place = hit.place
    parts = [(part.channel, part.contribution) for part in place.contributions if part.contribution]
    if place.recency_factor != 1.0:
        parts.append((RECENCY, place.recency_gain))
    return parts


def channels_shown(recall: Recall) -> list[str]:
    """The channels of the legend: those that took part, and recency if the boost was on."""
    names = [result.channel for result in recall.trace.channels]
    names += [part.channel for hit in recall.hits for part in hit.place.contributions if part.channel not in names]
    if recall.trace.recency and RECENCY not in names:
        names.append(RECENCY)
    return list(dict.fromkeys(names))


def cells(widths: Iterable[float], total: int) -> list[int]:
    """Whole cells for shares of a bar of ``total`` cells, by largest remainder, so that they add up."""
    exact = [max(0.0, width) * total for width in widths]
    whole = [int(value) for value in exact]
    wanted = min(total, round(sum(exact)))
    by_rest = sorted(range(len(exact)), key=lambda i: (-(exact[i] - whole[i]), i))
    for i in by_rest[: max(0, wanted - sum(whole))]:
        whole[i] += 1
    return whole


def visible(text: str) -> str:
    """``text`` with control characters (ANSI codes too) shown as marks, not obeyed.

    So are U+FFFE and U+FFFF, which no XML may have: one of them would break a whole SVG.
    """
    return "".join(
        char
        if char in "\n\t\u200d" or (unicodedata.category(char) not in ("Cc", "Cf", "Cs") and char not in "\ufffe\uffff")
        else "\ufffd"
        for char in text
    )


def headline(recall: Recall) -> str:
    """Mode, count and time of a recall."""
    trace = recall.trace
    memories = "memory" if trace.searched == 1 else "memories"
    count = f"{len(recall)} hit{'' if len(recall) == 1 else 's'} of {trace.searched:,} {memories}"
    parts = [trace.mode, count, f"{sum(trace.timings.values()):.0f} ms"]
    if trace.filters:
        parts.append(repr(trace.filters).removeprefix("Filters(").removesuffix(")"))
    ranker = trace.settings.get("recency")
    if ranker is not None:
        parts.append(f"recency up to +{ranker.strength:.0%}, half-life {ranker.half_life_days:g} days")
    return " · ".join(parts)


def no_hits(recall: Recall) -> str:
    """Why there are none, as far as the channels know."""
    if not recall.trace.searched:
        return "no hits: the store has no memories"
    said = dict.fromkeys(result.note for result in recall.trace.channels if result.ran and result.note)
    why = "; ".join(said) if recall.trace.limit else "the limit is 0"
    return f"no hits{': ' if why else ''}{why}"


def age_words(days: float) -> str:
    """An age as people say it."""
    if days < 1:
        return "today" if days < 0.5 else "1 day"
    return f"{days:.0f} day{'' if round(days) == 1 else 's'}" if days < 90 else f"{days / 30.44:.0f} months"


def facts(hit: Hit) -> list[str]:
    """Project, category, age and tags of a hit."""
    memory = hit.memory
    known = [memory.project, memory.category, age_words(hit.place.age_days), " ".join(f"#{tag}" for tag in memory.tags)]
    return [visible(item) for item in known if item]


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a hit's content on one line.

    Attributes
    ----------
    text : str
    marked : tuple of (int, int)
        Where the query's words are in ``text``.
    before, after : bool
        Whether the content goes on at either side.
    """

    text: str
    marked: tuple[tuple[int, int], ...]
    before: bool
    after: bool


LOOKED_AT = 50_000  # characters; the excerpt of a pasted book is taken from its beginning


class Matched(Protocol):
    """A text, and the passage of it that matched; a hit is one."""

    @property
    def content(self) -> str:
        """The whole text."""
        ...

    @property
    def passage(self) -> tuple[int, int] | None:
        """Character offsets of the passage."""
        ...


def excerpt(hit: Matched, length: int, words: Iterable[str] = ()) -> Excerpt:
    """The stretch that shows most of ``words``, out of the passage that matched if there is one."""
    start, end = hit.passage or (0, len(hit.content))
    text = " ".join(visible(hit.content[start : min(end, start + LOOKED_AT)]).split())
    found = matches(text, words)
    first, last = window(text, found, length)
    shown = text[first:last].rstrip()
    marked = tuple((a - first, b - first) for a, b in found if first <= a and b <= first + len(shown))
    return Excerpt(shown, marked, bool(start or first), last < len(text) or end < len(hit.content))


def words_of(recall: Recall) -> tuple[str, ...]:
    """What to mark in excerpts: the query's terms, and where stems were looked for the hits' words of these stems."""
    words = dict.fromkeys(terms(recall.query).used)
    keyword = recall.trace.channel("keyword")
    if keyword is not None and keyword.terms is not None and keyword.terms.stemmed:
        for hit in recall.hits:
            words.update(dict.fromkeys(sorted(words_with(hit.content[:LOOKED_AT], keyword.terms.used))))
    return tuple(words)


def as_text(recall: Recall, width: int = 100, bar: int = 24) -> str:
    """A recall as lines of text."""
    lines = [f"{shorten(visible(recall.query), width)!r}", headline(recall)]
    if recall.trace.note:
        lines.append(f"note: {recall.trace.note}")
    if not recall.hits:
        return "\n".join([*lines, no_hits(recall)])
    lines.append("   ".join(f"{look(name).char} {name}" for name in channels_shown(recall)))
    top = max(hit.score for hit in recall.hits) or 1.0
    words = words_of(recall)
    for hit in recall.hits:
        parts = shares(hit)
        drawn = cells((value / top for _, value in parts), bar)
        picture = "".join(look(name).char * n for (name, _), n in zip(parts, drawn, strict=True)).ljust(bar)
        lines.append(f"{hit.rank:>2}  {hit.score:.4f}  {picture}  {hit.memory_id}  {' · '.join(facts(hit))}")
        part = excerpt(hit, width - 8, words)
        lines.append(f"    {'… ' if part.before else ''}{part.text}{' …' if part.after else ''}")
        lines.append(f"    {'  '.join(share_words(hit))}")
    return "\n".join(lines)


def place(part: Contribution) -> str:
    """``#3``, or a dash where the memory lies beyond the channel's depth."""
    return "#\u2013" if part.rank is None else f"#{part.rank}"


def share_words(hit: Hit) -> list[str]:
    """``keyword #1 +0.0164`` and so on."""
    words = [
        f"{part.channel} {place(part)} " + (f"{part.contribution:+.4f}" if part.counted else "(not counted)")
        for part in hit.place.contributions
    ]
    if hit.place.recency_factor != 1.0:
        words.append(f"{RECENCY} x{hit.place.recency_factor:.3f} {hit.place.recency_gain:+.4f}")
    return words


# Foreground and background are both set, so that a dark theme cannot hide one of them.
_INK = "background:#ffffff;color:#1b1b1b;text-align:left"
_CARD = f"{_INK};border:1px solid #d0d0d0;border-collapse:collapse;max-width:62em"
_CELL = f"{_INK};vertical-align:top;padding:0.45em 0.7em;border-top:1px solid #e4e4e4"
# For words without an end. In a notebook that JupyterLab does not trust only the second form is left; it needs a width.
_BREAK = "word-break:break-word"
_WRAP = "max-width:40em;word-wrap:break-word"
_CODE = "background:#f2f2f2;color:#1b1b1b"  # a dark theme has colours of its own for code
_SMALL = "font-size:85%;color:#555555"


def as_html(recall: Recall) -> str:
    """A recall as an HTML table with a stacked bar for every hit; all stored text is escaped."""
    trace = recall.trace
    legend = " &nbsp; ".join(
        f'<span style="display:inline-block;padding:0 0.5em;background:{look(name).colour};color:{look(name).ink}">'
        f"{html.escape(name)}</span>"
        for name in channels_shown(recall)
    )
    note = f'<div style="color:#8a3b00">{html.escape(trace.note)}</div>' if trace.note else ""
    head = (
        f'<tr><td colspan="3" style="{_CELL}"><b>{html.escape(shorten(visible(recall.query), 160))}</b>'
        f'<div style="{_SMALL}">{html.escape(headline(recall))}</div>{note}<div>{legend}</div></td></tr>'
    )
    if not recall.hits:
        body = f'<tr><td colspan="3" style="{_CELL}">{html.escape(no_hits(recall))}</td></tr>'
    else:
        top = max(hit.score for hit in recall.hits) or 1.0
        words = words_of(recall)
        body = "".join(_row(hit, top, words) for hit in recall.hits)
    return f'<table style="{_CARD}"><tbody>{head}{body}</tbody></table>'


def _row(hit: Hit, top: float, words: tuple[str, ...]) -> str:
    segments = "".join(_segment(name, value, 100 * max(0.0, value) / top) for name, value in shares(hit))
    numbers = "<br>".join(html.escape(words) for words in share_words(hit))
    about = html.escape(" · ".join(facts(hit)))
    return (
        f'<tr><td style="{_CELL};text-align:right"><b>{hit.rank}</b></td>'
        f'<td style="{_CELL};width:17em"><div style="width:15em;height:1.1em;background:#f0f0f0">{segments}</div>'
        f'<b>{hit.score:.4f}</b><div style="{_SMALL}">{numbers}</div></td>'
        f'<td style="{_CELL};{_BREAK}"><div style="{_WRAP}">{_marked(excerpt(hit, 420, words))}</div>'
        f'<div style="{_SMALL};{_WRAP}">{code(hit.memory_id)} · {about}</div></td></tr>'
    )


def _segment(name: str, value: float, percent: float) -> str:
    """A share of a bar; with its initial where that fits in, for eyes and printers that see greys."""
    initial = html.escape(name[0]) if percent >= 6 else ""
    return (
        f'<div title="{html.escape(name)} {value:+.6f}" style="float:left;height:1.1em;width:{percent:.2f}%;'
        f"overflow:hidden;text-align:center;font-size:100%;line-height:1.1em;background:{look(name).colour};"
        f'color:{look(name).ink}">{initial}</div>'
    )


def code(name: str) -> str:
    """An id as HTML, in colours of its own."""
    return f'<code style="{_CODE}">{html.escape(visible(name))}</code>'


def _marked(part: Excerpt) -> str:
    """An excerpt as HTML, the query's words bold."""
    pieces, at = ["… " if part.before else ""], 0
    for start, end in part.marked:
        if start >= at:  # terms may overlap, as foo and foo.bar do
            pieces += [html.escape(part.text[at:start]), f"<b>{html.escape(part.text[start:end])}</b>"]
            at = end
    return "".join([*pieces, html.escape(part.text[at:]), " …" if part.after else ""])
