"""`memlab log`: the recalls that were recorded, one of them run again, and erasing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, command, json_option, waiting

if TYPE_CHECKING:
    from memlab.store import LoggedQuery


@command("log", short_help="The recalls that were recorded, if that is on.")
@click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="[NUMBER]...")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Most recalls listed.")
@click.option("--replay", is_flag=True, help="Run the recall of this NUMBER again, as it was.")
@click.option("--erase", is_flag=True, help="Erase these NUMBERs, or those of --before, or --all.")
@click.option("--before", metavar="TIME", help="With --erase: what was recorded before.")
@click.option("--all", "everything", is_flag=True, help="With --erase: all of them.")
@json_option
def log(session: Session, numbers: tuple[int, ...], limit: int, as_json: bool, **options: Any) -> None:
    """List the recalls that were recorded in the store, newest first.

    Nothing is recorded unless somebody asks for it: `memlab mcp --log-queries`, or `store.query_log.start()`.
    """
    replay, erase, before, everything = (options[name] for name in ("replay", "erase", "before", "everything"))
    if replay and erase:
        raise click.UsageError("--replay and --erase do not go together")
    if (before or everything) and not erase:
        raise click.UsageError("--before and --all go with --erase")
    if erase:
        if (everything and (numbers or before)) or not (numbers or before or everything):
            raise click.UsageError("--erase takes NUMBERs or --before TIME, or --all alone")
        with session.write() as store:
            count = store.query_log.erase(numbers or None, before=before)
        click.echo(f"{count:,} recall{'' if count == 1 else 's'} erased")
    elif replay:
        if len(numbers) != 1:
            raise click.UsageError("--replay takes one NUMBER")
        _replay(session, numbers[0], as_json)
    else:
        _list(session, numbers, limit, as_json)


def _list(session: Session, numbers: tuple[int, ...], limit: int, as_json: bool) -> None:
    with session.read() as store:
        entries = [store.query_log[number] for number in numbers] or list(store.query_log)[::-1][:limit]
        total = len(store.query_log)
    from memlab.cli.screen import console, plain, print_json

    if as_json:
        print_json([_as_dict(entry) for entry in entries])
        return
    out = console()
    for entry in entries:
        when = f"{entry.recorded_at:%Y-%m-%d %H:%M}" if entry.recorded_at else ""
        found = f"{len(entry.hits)} hit{'' if len(entry.hits) == 1 else 's'}"
        out.print(plain(f"{entry.id:>5}  {when}  {found:>8}  {entry.milliseconds:>7.0f} ms  {entry.source}"), end="")
        out.print(plain(f"  {' '.join(entry.query.split())[:200]}", "bold"))
    if not total:
        out.print(plain("nothing is recorded; `memlab mcp --log-queries` records the recalls of an assistant"))
    elif len(entries) < total and not numbers:
        out.print(plain(f"{len(entries):,} of {total:,}; -n shows more"))


def _replay(session: Session, number: int, as_json: bool) -> None:
    with session.read() as store:
        from memlab.cli.screen import console, plain, print_json, print_recall
        from memlab.retrieval import replay

        entry = store.query_log[number]
        with waiting("recalling"):
            answer = replay(store, entry)
        same = answer.ids == entry.ids
        if as_json:
            print_json({**answer.as_dict(), "recorded": list(entry.ids), "same": same})
            return
        print_recall(console(), answer, explain=False)
        said = "the same hits as recorded" if same else f"recorded were: {', '.join(entry.ids) or 'no hits'}"
        console().print(plain(f"\n{said}"))


def _as_dict(entry: LoggedQuery) -> dict[str, Any]:
    from dataclasses import asdict
    from datetime import datetime

    from memlab.timestamps import format_time

    row = {**asdict(entry), "now": format_time(entry.now), "settings": dict(entry.settings)}
    row["recorded_at"] = format_time(entry.recorded_at) if entry.recorded_at else None
    row["filters"] = {
        name: format_time(value) if isinstance(value, datetime) else value
        for name, value in entry.filters.given().items()
    }
    row["hits"] = [{"memory_id": memory_id, "score": score} for memory_id, score in entry.hits]
    return row


COMMANDS = (log,)
