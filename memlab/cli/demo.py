"""`memlab demo`."""

from __future__ import annotations

import click

from memlab.cli.session import Session, command


@command("demo", short_help="See it work on sample memories.")
@click.option("--encoder", metavar="NAME", help="minilm (default), hashing, none, or the name or path of a model.")
@click.option("--limit", type=click.IntRange(min=1), default=3, show_default=True, help="Hits a recall.")
def demo(session: Session, encoder: str | None, limit: int) -> None:
    """Build a store of the sample memories and recall from it, with the share of every channel.

    The store lies in your cache folder and is used again the next time; --db puts it elsewhere (MEMLAB_DB names the
    store that you work with, and does not count here).
    """
    from memlab.cli.demo_run import run

    run(session.path if session.named else None, encoder, limit)


COMMANDS = (demo,)
