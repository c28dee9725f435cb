"""`memlab bench`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, command, encoder_choice, json_option, waiting

if TYPE_CHECKING:
    from memlab.bench.measure import StoreFigures

_INTERRUPTED = 130
_SIZE = re.compile(r"([0-9][0-9_]*)([kKmM]?)")
_DEFAULT_SIZE = 12_000


class _Size(click.ParamType[Any]):
    """How many memories: 300, 12k, 1M."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        count = int(match[1]) * {"": 1, "k": 1000, "m": 1_000_000}[match[2].lower()] if match else 0
        if not 10 <= count <= 10_000_000:
            self.fail(
                f"expected a number of memories from 10 to 10M, such as 300, 12k or 1M; found {value!r}", param, ctx
            )
        return count


class _Sizes(_Size):
    """Several, separated by commas."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        found = dict.fromkeys(_Size.convert(self, part, param, ctx) for part in value.split(","))
        return tuple(sorted(found))


@command("bench", short_help="Measure how fast it is: every part of a recall, storing, opening.")
@click.option("--size", type=_Size(), metavar="N", help="A synthetic store of N memories: 300, 12k, 1M. [default: 12k]")
@click.option("--growth", is_flag=True, help="Synthetic stores of several sizes, one after the other.")
@click.option(
    "--sizes", type=_Sizes(), metavar="N,...", default="1k,10k,100k", show_default=True, help="With --growth: which."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="With --growth: draw it into this PNG file."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the synthetic memories and of the choice of queries.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, 600),
    default=2.0,
    show_default=True,
    help="For each measurement and its reference.",
)
@click.option(
    "--reference/--no-reference", default=True, help="Measure plain ways of doing the same too. [default: yes]"
)
@click.option(
    "--encoder", metavar="NAME", help="For a synthetic store: minilm (default), hashing, or a model of 384 dimensions."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where synthetic stores are kept. [env: MEMLAB_CACHE; default: in your cache folder]",
)
@json_option
@click.pass_context
def bench(context: click.Context, /, session: Session, **options: Any) -> None:
    """Measure how fast it is: encoding, each channel, whole recalls, opening, storing, memory.

    With --db on that store, which is opened for reading and stays as it is; the queries are words of its own memories.
    Otherwise on a synthetic store, kept for the next time. Ctrl-C ends it; what was measured until then is shown.
    """
    own = session.given if _own(context, session, options) else None
    machine_then = _machine()
    results: list[StoreFigures] = []
    sizes = options["sizes"] if options["growth"] else (options["size"] or _DEFAULT_SIZE,)
    try:
        if own is not None:
            results.append(_measure_own(session, options))
        for place, size in enumerate(sizes if own is None else ()):
            results.append(_measure_synthetic(size, options, encoding=place == 0))
            if results[-1].interrupted:
                break
    except KeyboardInterrupt:  # while a store was made: what was measured before is shown
        if not results:
            raise
        results[-1].interrupted = True
    from memlab.bench.report import as_json, print_report

    if options["as_json"]:
        from memlab.cli.screen import print_json

        print_json(as_json(machine_then, results))
    else:
        print_report(machine_then, results, growth=options["growth"])
    if options["plot"] is not None:
        _plot(results, options["plot"])
    if any(result.interrupted for result in results):
        context.exit(_INTERRUPTED)


def _own(context: click.Context, session: Session, options: dict[str, Any]) -> bool:
    """Whether somebody's own store is measured; says what does not go together."""
    named = {name: context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in options}
    synthetic = [name for name in ("size", "growth", "encoder", "cache") if named[name]]
    if session.named and synthetic:
        raise click.UsageError(f"--{synthetic[0]} is about synthetic stores; leave it out, or --db")
    if options["growth"] and named["size"]:
        raise click.UsageError("--growth measures several sizes; name them with --sizes")
    for name in ("sizes", "plot"):
        if named[name] and not options["growth"]:
            raise click.UsageError(f"--{name} goes with --growth")
    if options["plot"] is not None:
        import memlab.bench.plot  # noqa: F401 - says now, not in ten minutes, if matplotlib is missing

        place = options["plot"].absolute()
        if place.is_dir() or not os.access(place if place.exists() else place.parent, os.W_OK):
            raise click.UsageError(f"--plot: {place} cannot be written; name a file in a folder that is there")
    return session.given is not None and not synthetic


def _machine() -> dict[str, Any]:
    from memlab.bench.machine import machine

    return machine()


def _measure_own(session: Session, options: dict[str, Any]) -> StoreFigures:
    from memlab.bench.measure import measure
    from memlab.bench.subject import own_subject

    session.read().close()  # says what is wrong with it, if anything is
    with waiting("measuring") as status, own_subject(session.path, options["seed"]) as subject:
        return measure(subject, seconds=options["seconds"], references=options["reference"], say=status)


def _measure_synthetic(size: int, options: dict[str, Any], *, encoding: bool) -> StoreFigures:
    from memlab.bench.measure import measure
    from memlab.bench.subject import synthetic_subject
    from memlab.store import AUTO

    encoder = AUTO if options["encoder"] is None else encoder_choice(options["encoder"])
    with (
        synthetic_subject(size, options["seed"], cache=options["cache"], encoder=encoder) as subject,
        waiting(f"{size:,} memories: measuring") as status,
    ):
        return measure(
            subject,
            seconds=options["seconds"],
            references=options["reference"],
            encoding=encoding or not options["growth"],
            say=lambda step: status(f"{size:,} memories: {step}"),
        )


def _plot(results: list[StoreFigures], path: Path) -> None:
    from memlab.bench.plot import growth
    from memlab.cli.screen import say

    if len(results) < 2:
        say("nothing was drawn: fewer than two sizes were measured")
        return
    try:
        path.write_bytes(growth(results).png())
    except OSError as error:
        say(f"nothing was drawn: {path} cannot be written: {error.strerror}")
        return
    say(f"drawn: {path}")


COMMANDS = (bench,)
