"""Commands on single memories: remember, show, list, update, forget, restore, purge, stats."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import (
    Session,
    command,
    encoder_option,
    filter_options,
    filters_from,
    json_option,
    time_from,
    waiting,
)

if TYPE_CHECKING:
    from memlab.store import Memory, MemoryStore


def _values(memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in memory.as_dict().items() if name not in ("duplicate_of", "created")}


@command("remember", short_help="Store a memory.")
@click.argument("content")
@click.option("--project", metavar="NAME")
@click.option("--category", metavar="NAME", help="[default: note]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Repeat for several.")
@click.option("--importance", type=int, metavar="1-10", help="[default: 5]")
@click.option("--subcategory", metavar="NAME")
@click.option("--source", metavar="NAME", help="Where it comes from.")
@click.option("--file", "related_files", multiple=True, metavar="PATH", help="A file it is about; repeat for several.")
@click.option(
    "--created-at", metavar="TIME", help="A day (its beginning in UTC), or a time with a zone. [default: now]"
)
@click.option("--id", "memory_id", metavar="ID", help="An id of your own. [default: made up]")
@click.option("--key", "idempotency_key", metavar="KEY", help="Said again with the same content, nothing is added.")
@encoder_option
@json_option
def remember(session: Session, content: str, encoder: str | None, as_json: bool, **values: Any) -> None:
    """Store CONTENT as a memory; `-` reads it from stdin. Makes the store if it is not there."""
    content = _content(content)
    with session.write(encoder, create=True) as store:
        values["created_at"] = time_from(values["created_at"], "--created-at")
        given = {name: value for name, value in values.items() if value not in (None, ())}
        with waiting("remembering"):
            memory = store.remember(content, **given)
        from memlab.cli.screen import print_json, say

        if as_json:
            print_json(memory.as_dict())
            return
        click.echo(f"{'remembered' if memory.created else 'known already as'} {memory.memory_id} in {store.path}")
        if memory.duplicate_of:
            say(f"{', '.join(memory.duplicate_of)} has the same content; both are kept")
        if memory.pending:
            say(f"{_why_pending(store)}; found by its words until `memlab reembed` gives it a vector")


def _content(given: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape").removesuffix("\n") if given == "-" else given


def _why_pending(store: MemoryStore) -> str:
    from memlab.errors import EncoderError

    try:
        store.encoder()
    except EncoderError as error:
        return str(error).splitlines()[0] if store.wants_encoder else "no vector was made (--encoder none)"
    return "no vector could be made"


@command("show", short_help="Show one memory whole.")
@click.argument("memory_id", metavar="ID")
@json_option
def show(session: Session, memory_id: str, as_json: bool) -> None:
    """Show one memory whole, with its history and its passages."""
    with session.read() as store:
        memory, history, passages = store.get(memory_id), store.history(memory_id), store.passages(memory_id)
    from rich.padding import Padding
    from rich.text import Text

    from memlab.cli.screen import console, facts_table, plain, print_json
    from memlab.timestamps import format_time

    if as_json:
        former = [{"content": r.content, "replaced_at": format_time(r.replaced_at)} for r in history if r.replaced_at]
        spans = [{"start": passage.start, "end": passage.end} for passage in passages]
        print_json({**_values(memory), "revisions": former, "passages": spans})
        return
    out = console()
    out.print(plain(memory.memory_id, "bold"))
    rows = [(name, _words(value)) for name, value in _values(memory).items() if name not in ("memory_id", "content")]
    out.print(facts_table([(name.replace("_", " "), value) for name, value in rows if value]))
    out.print()
    out.print(plain(memory.content))
    if len(passages) > 1:
        out.print(Text(f"\n{len(passages)} passages", style="bold"))
        for passage in passages:
            start = plain(f"{passage.start:>7,} to {passage.end:>7,}  {' '.join(passage.text[:200].split())}")
            out.print(start, no_wrap=True, overflow="ellipsis")
    for revision in history[:-1]:
        until = f"\nuntil {revision.replaced_at:%Y-%m-%d %H:%M} UTC (revision {revision.revision})"
        out.print(Text(until, style="bold"))
        out.print(Padding(plain(revision.content, "dim"), (0, 0, 0, 4)))


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes, it waits for a vector" if value else ""
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} ({checksum})" for name, checksum in value.items())
    return "" if value in (None, 0) else str(value)


@command("list", short_help="List memories, newest first.")
@filter_options
@click.option("--trash", is_flag=True, help="List the trash instead.")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Most memories.")
@json_option
def list_(session: Session, trash: bool, limit: int, as_json: bool, **options: Any) -> None:
    """List memories, newest first."""
    filters = filters_from(options)
    with session.read() as store:
        found = store.find(filters, trashed=trash, limit=limit + 1)
    from memlab.cli.screen import console, memory_table, print_json, say

    more, found = len(found) > limit, found[:limit]
    if as_json:
        print_json([_values(memory) for memory in found])
        return
    if found:
        out = console()
        out.print(memory_table(found, width=out.width, trash=trash))
    elif limit:
        nothing = "the trash is empty" if trash else "the store is empty"
        say("no memory passes these filters" if filters else nothing)
    if more and limit:
        say(f"there are more; --limit {2 * limit} shows more of them")


@command("update", short_help="Change a memory.")
@click.argument("memory_id", metavar="ID")
@click.argument("content", required=False)
@click.option("--project", metavar="NAME", help="An empty one takes it away.")
@click.option("--category", metavar="NAME")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="In place of those that it has; repeat for several.")
@click.option("--importance", type=int, metavar="1-10")
@click.option("--subcategory", metavar="NAME")
@click.option("--source", metavar="NAME")
@click.option("--file", "related_files", multiple=True, metavar="PATH", help="In place of those that it has.")
@json_option
def update(session: Session, memory_id: str, content: str | None, as_json: bool, **values: Any) -> None:
    """Change the memory ID: its CONTENT (`-` reads it from stdin), or what the options name; the rest stays.

    The former content becomes a revision, which `memlab show` shows.
    """
    given = {name: value for name, value in values.items() if value not in (None, ())}
    if content is not None:
        given["content"] = _content(content)
    if not given:
        raise click.UsageError("nothing to change: expected CONTENT or an option")
    with session.write() as store:
        with waiting("updating"):
            memory = store.update(memory_id, **given)
        from memlab.cli.screen import print_json, say

        if as_json:
            print_json(_values(memory))
            return
        click.echo(f"updated {memory.memory_id} in {store.path}")
        if memory.pending:
            say(f"{_why_pending(store)}; found by its words until `memlab reembed` gives it a vector")


@command("forget", short_help="Move memories to the trash.")
@click.argument("memory_ids", metavar="ID...", nargs=-1, required=True)
def forget(session: Session, memory_ids: tuple[str, ...]) -> None:
    """Move memories to the trash: no recall finds them, `memlab restore` brings them back."""
    with session.write() as store:
        for memory_id in memory_ids:
            store.get(memory_id)  # all or none: complain of an unknown id before the first is moved
        for memory_id in memory_ids:
            store.forget(memory_id)
            click.echo(f"{memory_id} is in the trash; `memlab restore {memory_id}` brings it back")


@command("restore", short_help="Bring memories back from the trash.")
@click.argument("memory_ids", metavar="ID...", nargs=-1, required=True)
def restore(session: Session, memory_ids: tuple[str, ...]) -> None:
    """Bring memories back from the trash."""
    with session.write() as store:
        was_there = [store.get(memory_id).trashed_at is not None for memory_id in memory_ids]
        for memory_id, trashed in zip(memory_ids, was_there, strict=True):
            store.restore(memory_id)
            click.echo(f"{memory_id} is back" if trashed else f"{memory_id} was not in the trash")


@command("purge", short_help="Delete what is in the trash for good.")
@click.argument("memory_ids", metavar="[ID...]", nargs=-1)
@click.option("--trashed-before", metavar="TIME", help="Only what was put there before this time.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(session: Session, memory_ids: tuple[str, ...], trashed_before: str | None, yes: bool) -> None:
    """Delete memories from the trash for good: those named, or all of it."""
    with session.write() as store:
        if not yes:
            what = f"{len(memory_ids)} memories" if memory_ids else f"all {store.stats().trashed} memories in the trash"
            if trashed_before:
                what += f" put there before {trashed_before}"
            if not sys.stdin.isatty():
                raise click.UsageError("nobody is there to confirm it; say --yes")
            if not click.confirm(f"Delete {what} for good?", err=True):
                return
        count = store.purge(list(memory_ids) or None, trashed_before=trashed_before)
        click.echo(f"{count:,} deleted")


@command("stats", short_help="Say how much of what is in the store.")
@json_option
def stats(session: Session, as_json: bool) -> None:
    """Say how much of what is in the store."""
    with session.read() as store:
        figures = asdict(store.stats())
        tallies = {"by_project": store.projects(), "by_category": store.categories(), "by_tag": store.tags()}
    from memlab.cli.screen import console, facts_table, print_json

    if as_json:
        print_json({**figures, **tallies})
        return
    out = console()
    shown = {"size": f"{figures.pop('file_bytes') / 1e6:,.1f} MB", **figures}
    order = ("path", "size", "memories", "trashed", "pending", "passages", "revisions", "oldest", "newest", "encoder")
    rows = [(name, f"{shown[name]:,}" if isinstance(shown[name], int) else shown[name] or "none yet") for name in order]
    for name, tally in tallies.items():
        most = [f"{key} {count:,}" for key, count in list(tally.items())[:12]]
        more = f", and {len(tally) - 12} more" if len(tally) > 12 else ""
        rows.append((name.replace("_", " "), ", ".join(most) + more))
    out.print(facts_table(rows))


COMMANDS = (remember, list_, show, update, forget, restore, purge, stats)
