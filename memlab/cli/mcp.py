"""`memlab mcp`: the store as a memory for assistants, and how to tell them of it."""

from __future__ import annotations

import contextlib
import queue
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlab.cli.session import Session, db_option

if TYPE_CHECKING:
    from memlab.store import MemoryStore

LEVELS = ("debug", "info", "warning", "error")


@click.group("mcp", invoke_without_command=True, short_help="Serve the store to an assistant over MCP.")
@db_option
@click.option("--http", "over_http", is_flag=True, help="Serve on 127.0.0.1 instead of stdin and stdout.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="With --http.")
@click.option("--no-token", is_flag=True, help="With --http: for clients that cannot send a token.")
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
@click.option("--log-queries", is_flag=True, help="Record every recall in the store, see `store.query_log`.")
@click.option("--log-file", type=click.Path(path_type=Path), metavar="PATH", help="[default: stderr]")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True)
@click.pass_context
def mcp(
    context: click.Context,
    /,
    over_http: bool,
    port: int,
    no_token: bool,
    read_only: bool,
    project: str | None,
    wait: float,
    log_queries: bool,
    log_file: Path | None,
    log_level: str,
) -> None:
    """Serve the store over MCP, on stdin and stdout, until the client goes.

    `memlab mcp config CLIENT` prints what to put into a client's settings. The store is made if it is not there.
    """
    if context.invoked_subcommand is not None:
        return
    if not over_http and (port or no_token):
        raise click.UsageError("--port and --no-token go with --http")
    if log_queries and read_only:
        raise click.UsageError("--log-queries writes into the store, which --read-only rules out")
    session: Session = context.obj
    if over_http:
        from memlab.server.stdio import open_what_is_closed, set_up_logging

        open_what_is_closed()
        set_up_logging(log_level, log_file)
        with open_store(session, read_only) as store:
            _log(store, log_queries)
            _serve_http(store, port, not no_token, read_only, own_project(project), wait)
        return
    from memlab.server.stdio import DrainedStderr, serve_stdio, set_up_logging, wire_kept_clean

    with wire_kept_clean() as wire, open_store(session, read_only) as store:
        _log(store, log_queries)
        set_up_logging(log_level, log_file)  # first: what it refuses is still said on stderr itself
        stderr = DrainedStderr()
        serve_stdio(store, wire, stderr, project=own_project(project), wait=wait)


def _serve_http(store: MemoryStore, port: int, token: bool, read_only: bool, project: str | None, wait: float) -> None:
    from memlab.server.serving import serve
    from memlab.server.stdio import DrainedStderr

    # Not an Event: a handler that sets it while this thread is just about to wait for it would wait for itself.
    stopped: queue.SimpleQueue[None] = queue.SimpleQueue()
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: stopped.put(None))
    with serve(store, port=port, token=token, read_only=read_only, project=project, wait=wait, keep=0) as server:
        stderr = DrainedStderr()  # a parent that never reads it would hold up the server with the log
        click.echo(f"{server.url} serves {store.path}; Ctrl-C ends it")
        if server.token_file is not None:
            click.echo(f"its token is in {server.token_file}", err=True)
        click.echo(f"memlab mcp config CLIENT --http --port {server.port} prints a client's settings", err=True)
        while server.running:
            with contextlib.suppress(queue.Empty):
                stopped.get(timeout=1.0)
                break
        server.stop()
        stderr.restore()


def open_store(session: Session, read_only: bool) -> MemoryStore:
    """The store of the session, made if it is not there and may be written."""
    return session.read() if read_only else session.write(create=True)


def _log(store: MemoryStore, wanted: bool) -> None:
    if wanted:
        store.query_log.start("mcp")


def own_project(named: str | None) -> str | None:
    """The project that was named, else that of the working folder."""
    from memlab.server.projects import project_of

    return project_of(Path.cwd()) if named is None else named.strip() or None


@mcp.command("config", short_help="Print a client's settings for this store.")
@click.argument("client", metavar="CLIENT")
@db_option
@click.option("--http", "over_http", is_flag=True, help="For a server that runs with `memlab mcp --http --port PORT`.")
@click.option("--port", type=click.IntRange(1, 65535), help="With --http: its port.")
@click.option("--no-token", is_flag=True, help="With --http: it runs without a token.")
@click.option("--read-only", is_flag=True, help="Offer no tool that changes the store.")
@click.pass_obj
def config(session: Session, client: str, over_http: bool, port: int | None, no_token: bool, read_only: bool) -> None:
    """Print the exact settings with which CLIENT uses this store, on stdout; where they go, on stderr.

    CLIENT is claude-code, claude-desktop, codex, gemini, opencode, vscode or cursor.
    """
    from memlab.server.clients import Http, http_snippet, stdio_snippet

    if over_http:
        if port is None:
            raise click.UsageError("--http needs --port, the same as that of the server")
        from memlab.server.tokens import ensure_token

        kept = None if no_token else ensure_token(session.path)[1]
        snippet = http_snippet(client, Http(f"http://127.0.0.1:{port}/mcp", kept, not no_token))
    else:
        snippet = stdio_snippet(client, session.path, *(["--read-only"] if read_only else []))
    click.echo(f"{snippet.client}: {snippet.where}", err=True)
    if snippet.note:
        click.echo(snippet.note, err=True)
    click.echo(snippet.text)


COMMANDS = (mcp,)
