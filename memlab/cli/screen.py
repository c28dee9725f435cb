"""What a terminal shows: plain tables, and a recall with its bars. Stored text is shown, never obeyed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memlab.interchange.json_text import json_text
from memlab.retrieval.render import (
    cells,
    channels_shown,
    excerpt,
    facts,
    headline,
    look,
    no_hits,
    share_words,
    shares,
    visible,
    words_of,
)

if TYPE_CHECKING:
    from memlab.retrieval import Hit, Recall
    from memlab.store import Memory

_PIPED_WIDTH = 100
_LINES_OF_EXCERPT = 2
_GAP = 2  # cells between two columns
_LEAST_CONTENT = 16


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with 1; main() knows better


def console(*, stderr: bool = False) -> Console:
    """A console on the present stdout or stderr; markup, emoji codes and highlighting are off."""
    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty() and "COLUMNS" not in os.environ
    return _Console(
        file=stream, markup=False, emoji=False, highlight=False, soft_wrap=False, width=_PIPED_WIDTH if piped else None
    )


def print_json(value: Any) -> None:
    """Write JSON to stdout, indented."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def say(message: str) -> None:
    """Tell something about the work on stderr, where it is in no script's way."""
    console(stderr=True).print(Text(visible(message)))


def plain(text: object, style: str = "") -> Text:
    """Text of a memory: control characters as marks, nothing taken for markup."""
    return Text(visible(str(text)), style=style)


def facts_table(rows: Iterable[tuple[str, object]]) -> Table:
    """Names and values, two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else plain(value))
    return table


def memory_table(memories: Sequence[Memory], *, width: int, trash: bool = False) -> Table:
    """Memories, one a line: ids stay whole, the content takes the rest, and where that is little other columns go.

    Parameters
    ----------
    width : int
        Cells to fill.
    trash : bool
        Show when they were put into the trash.
    """
    when = "trashed" if trash else "created"
    columns = {
        "id": [visible(memory.memory_id) for memory in memories],
        when: [f"{(memory.trashed_at if trash else None) or memory.created_at:%Y-%m-%d}" for memory in memories],
        "project": [visible(memory.project or "") for memory in memories],
        "category": [visible(memory.category) for memory in memories],
        "imp": [str(memory.importance) for memory in memories],
    }
    most = {"id": max(8, width - 6), "project": 16 if width >= 100 else 11, "category": 16 if width >= 100 else 11}
    widths = {name: min(max(map(cell_len, [name, *cells])), most.get(name, 10)) for name, cells in columns.items()}
    for name in ("category", "project", "imp", when):
        if width - sum(widths.values()) - _GAP * len(widths) < _LEAST_CONTENT:
            del widths[name]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, size in widths.items():
        side: Literal["left", "right"] = "right" if name == "imp" else "left"
        table.add_column(
            name, width=size, no_wrap=name != "id", overflow="fold" if name == "id" else "ellipsis", justify=side
        )
    rest = max(4, width - sum(widths.values()) - _GAP * len(widths))
    table.add_column("content", width=rest, no_wrap=True, overflow="ellipsis")
    for number, memory in enumerate(memories):
        content = plain(" ".join(memory.content[:400].split()))
        table.add_row(*(Text(columns[name][number]) for name in widths), content)
    return table


# -- a recall --------------------------------------------------------------------------------------------------------


def print_recall(
    out: Console, recall: Recall, *, explain: bool = False, marks: Mapping[str, Text] | None = None
) -> None:
    """A recall as ranked hits: score, stacked bar, excerpt with the query's words bold, contributions.

    Parameters
    ----------
    out : Console
    recall : Recall
    explain : bool
        Add the sum behind each score, in a sentence.
    marks : mapping of str to Text, optional
        Something to say beside a memory's id.
    """
    out.print(Text.assemble("“", (visible(" ".join(recall.query.split()))[:300], "bold"), "”"))
    out.print(Text(visible(headline(recall)), style="dim"))
    if recall.trace.note:
        out.print(Text(f"note: {visible(_first_line(recall.trace.note))}", style="yellow"))
    if not recall.hits:
        out.print(plain(no_hits(recall)))
        return
    legend = Text()
    for name in channels_shown(recall):
        legend.append("   " if legend else "").append_text(_block(out, name, 2)).append(f" {name}")
    out.print(legend)
    words = words_of(recall)
    top = max(hit.score for hit in recall.hits) or 1.0
    for hit in recall.hits:
        out.print()
        out.print(_head(out, hit, top, (marks or {}).get(hit.memory_id)), no_wrap=True, overflow="ellipsis", crop=True)
        _print_indented(out, _excerpt(hit, words, out.width - 4))
        _print_indented(out, _numbers(out, hit))
        if explain:
            _print_indented(out, plain(recall.explain(hit.memory_id), "italic"))


def _head(out: Console, hit: Hit, top: float, mark: Text | None) -> Text:
    width = max(10, min(32, out.width // 4))
    parts = shares(hit)
    drawn = cells((value / top for _, value in parts), width)
    line = Text.assemble((f"{hit.rank:>2}", "bold"), f"  {hit.score:.4f}  ")
    for (name, _), count in zip(parts, drawn, strict=True):
        line.append_text(_block(out, name, count))
    line.append(" " * (width - sum(drawn) + 2))
    line.append(visible(hit.memory_id), "bold")
    if mark is not None:
        line.append("  ").append_text(mark)
    return line.append("  " + " · ".join(facts(hit)), "dim")


def _block(out: Console, name: str, count: int) -> Text:
    """A stretch of a bar: colour where there is colour, characters of different density where there is none."""
    how = look(name)
    if out.color_system is None or out.no_color:
        return Text(how.char * count)
    return Text("█" * count, style=_colour(out, name))


def _colour(out: Console, name: str) -> str:
    return look(name).colour if out.color_system in ("256", "truecolor") else look(name).term_colour


def _excerpt(hit: Hit, words: Sequence[str], width: int) -> Text:
    room = max(40, _LINES_OF_EXCERPT * width - 16)
    sample = hit.content[:400]
    room = max(20, room * len(sample) // max(1, cell_len(sample)))  # CJK characters take two cells
    part = excerpt(hit, room, words)
    text = Text(part.text)
    for start, end in part.marked:
        text.stylize("bold underline", start, end)
    return Text.assemble("… " if part.before else "", text, " …" if part.after else "")


def _numbers(out: Console, hit: Hit) -> Text:
    line = Text()
    for words in share_words(hit):
        name, rest = words.split(" ", 1)
        line.append("   " if line else "").append(name, _colour(out, name)).append(f" {rest}", "dim")
    return line


def _print_indented(out: Console, text: Text) -> None:
    for line in text.wrap(out, max(10, out.width - 4)):
        line.rstrip()
        out.print(Text.assemble("    ", line), no_wrap=True, crop=False, overflow="ignore")


def _first_line(note: str) -> str:
    first, *rest = note.splitlines() or [""]
    return first + (" (`memlab doctor` says more)" if rest else "")
