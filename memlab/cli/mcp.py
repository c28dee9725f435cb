"""`memlab mcp`: the store as a memory for assistants, and how to tell them of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, db_option

if TYPE_CHECKING:
    from memlab.store import MemoryStore

LEVELS = ("debug", "info", "warning", "error")


@click.group("mcp", invoke_without_command=True, short_help="Serve the store to an assistant over MCP.")
@db_option
@click.option("--http", "over_http", is_flag=True, help="Serve on 127.0.0.1 instead of stdin and stdout.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="With --http.")
@click.option("--read-only", is_flag=True, help="Offer no tool that changes the store.")
@click.option(
    "--project",
    metavar="NAME",
    help="Where new memories belong; '' for nowhere. [default: the name of the repository in the working folder]",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0, max=60),
    default=0.0,
    metavar="SECONDS",
    help="How long a recall waits for the encoder while it loads, before it goes by keywords alone. [default: 0]",
)
@click.option("--log-file", type=click.Path(path_type=Path), metavar="PATH", help="[default: stderr]")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True)
@click.pass_context
def mcp(context: click.Context, /, over_http: bool, port: int, read_only: bool, **options: Any) -> None:
    """Serve the store over MCP, on stdin and stdout, until the client goes.

    `memlab mcp config CLIENT` prints what to put into a client's settings. The store is made if it is not there.
    """
    if context.invoked_subcommand is None:
        if port and not over_http:
            raise click.UsageError("--port goes with --http")
        session: Session = context.obj
        _serve_stdio(session, read_only, **options)


def _serve_stdio(
    session: Session, read_only: bool, *, project: str | None, wait: float, log_file: Path | None, log_level: str
) -> None:
    from memlab.server.stdio import DrainedStderr, serve_stdio, set_up_logging, wire_kept_clean

    with wire_kept_clean() as wire, open_store(session, read_only) as store:
        stderr = DrainedStderr()
        set_up_logging(log_level, log_file)
        serve_stdio(store, wire, stderr, project=own_project(project), wait=wait)


def open_store(session: Session, read_only: bool) -> MemoryStore:
    """The store of the session, made if it is not there and may be written."""
    return session.read() if read_only else session.write(create=True)


def own_project(named: str | None) -> str | None:
    """The project that was named, else that of the working folder."""
    from memlab.server.projects import project_of

    return project_of(Path.cwd()) if named is None else named.strip() or None


COMMANDS = (mcp,)
