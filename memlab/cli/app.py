"""The group of commands, how errors end, and what a process needs before the first of them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import warnings
from collections.abc import Sequence
from typing import IO, Any

import click

from memlab import __version__
from memlab.cli import bench, checkup, demo, evaluation, files, log, mcp, memories, recall
from memlab.cli.session import Session, db_option
from memlab.errors import MemlabError

INTERRUPTED = 130
PIPE_CLOSED = 141
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


class Failure(click.ClickException):
    """An error of memlab's own: one message, no traceback, exit code 1."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to stderr."""
        from memlab.retrieval.render import visible

        click.echo(f"memlab: {visible(self.message)}", err=True, file=file)


class Commands(click.Group):
    """A group that ends quietly: own errors in one message, a closed pipe and Ctrl-C without any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which somebody meets them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; see the class."""
        try:
            return super().invoke(ctx)
        except (MemlabError, sqlite3.Error) as error:
            if os.environ.get("MEMLAB_DEBUG"):
                raise
            raise Failure(str(error)) from error
        except (KeyboardInterrupt, EOFError):
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _stop_writing()
            raise click.exceptions.Exit(PIPE_CLOSED) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@db_option
@click.version_option(__version__, prog_name="memlab")
@click.pass_context
def cli(context: click.Context) -> None:
    """Build, look into and measure the memory of an AI assistant.

    One SQLite file holds the memories; nothing leaves the machine. Begin with `memlab demo`.
    """
    context.ensure_object(Session)


for _module in (demo, memories, recall, log, mcp, evaluation, bench, files, checkup):
    for _command in _module.COMMANDS:
        cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        0 if all went well, 1 for an error of memlab's own, 2 for wrong usage, 130 after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            # Whatever the locale says: content is UTF-8. What cannot be encoded is shown, not a crash.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    if not os.environ.get("MEMLAB_DEBUG"):
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        warnings.filterwarnings("ignore", module=r"(torch|transformers|sentence_transformers|huggingface_hub)\b")
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="memlab", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _stop_writing()
        return PIPE_CLOSED
    return code if isinstance(code, int) else 0


def _stop_writing() -> None:
    """Point stdout at nothing, or Python would complain of the closed pipe once more at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
