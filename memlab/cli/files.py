"""Commands that move memories between files: import, export, backup."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memlab.cli.session import Session, command, encoder_option, filter_options, filters_from, json_option

_NAMED = 5  # pairs of equal content that are listed


@command("import", short_help="Store the memories of a JSON Lines file.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@encoder_option
@json_option
def import_(session: Session, file: Path, encoder: str | None, as_json: bool) -> None:
    """Store the memories of a JSON Lines FILE; `-` is stdin. Makes the store if it is not there.

    Lines as `memlab export` writes them, or as in a BEIR corpus (_id, title, text, metadata). Nothing in the store is
    overwritten, and importing a file again goes on where it stopped.
    """
    if str(file) != "-" and not file.exists():
        raise click.UsageError(f"{file}: no such file")
    with session.write(encoder, create=True) as store:
        from memlab.interchange import import_jsonl

        done = import_jsonl(store, sys.stdin.buffer if str(file) == "-" else file)
        from memlab.cli.screen import print_json, say

        if as_json:
            print_json(
                {
                    "created": done.created,
                    "existing": done.existing,
                    "vectors_taken_over": done.vectors,
                    "pending": done.pending,
                    "note": done.note,
                    "duplicates": {name: list(same) for name, same in done.duplicates.items()},
                    "left_out_of_metadata": dict(done.left_out),
                }
            )
            return
        already = f", {done.existing:,} there already" if done.existing else ""
        click.echo(f"{done.created:,} new{already}, in {store.path}")
        if done.duplicates:
            named = [f"{name} as {', '.join(same)}" for name, same in list(done.duplicates.items())[:_NAMED]]
            more = ", …" if len(done.duplicates) > _NAMED else ""
            say(f"{len(done.duplicates):,} have the same content as another: {'; '.join(named)}{more}")
        if done.left_out:
            names = ", ".join(f"{name} ({count:,})" for name, count in done.left_out.items())
            say(f"left out of metadata, where a memory has no place for it: {names}")
        if done.pending:
            why = done.note.splitlines()[0]
            say(f"{done.pending:,} have no vector yet ({why}); `memlab reembed` makes up for it")


@command("export", short_help="Write memories to a JSON Lines file.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@filter_options
@click.option("--vectors", is_flag=True, help="Write vectors too, so that an import need not encode again.")
@click.option("--trash/--no-trash", default=True, help="Write the trash as well. [default: yes]")
def export(session: Session, file: Path, vectors: bool, trash: bool, **options: Any) -> None:
    """Write memories to a JSON Lines FILE; `-` is stdout. A file that was there is replaced."""
    filters = filters_from(options)
    with session.read() as store:
        from memlab.interchange import export_jsonl

        target = sys.stdout.buffer if str(file) == "-" else file
        count = export_jsonl(store, target, filters=filters, trashed=trash, vectors=vectors)
        from memlab.cli.screen import say

        say(f"{count:,} memories written to {'stdout' if str(file) == '-' else file}")


@command("backup", short_help="Copy the store while others may write.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def backup(session: Session, file: Path, overwrite: bool) -> None:
    """Write a consistent copy of the store to FILE, while others may go on writing."""
    with session.read() as store:
        click.echo(f"copied to {store.backup(file, overwrite=overwrite)}")


COMMANDS = (import_, export, backup)
