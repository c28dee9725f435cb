"""Commands that look after a store and its surroundings: check, reembed, prepare, doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, command, encoder_choice, json_option, waiting

if TYPE_CHECKING:
    from rich.text import Text


@command("check", short_help="Verify the store.")
@json_option
@click.pass_context
def check(context: click.Context, session: Session, as_json: bool) -> None:
    """Verify the store: SQLite's integrity, search index, vectors, passages. Exit code 1 if it is not sound."""
    with session.read() as store:
        report = store.check()
    from memlab.cli.screen import plain, print_json

    if as_json:
        print_json({"sound": report.ok, **asdict(report)})
    else:
        from memlab.cli.screen import console

        out = console()
        out.print(plain("sound" if report.ok else "NOT sound", "bold green" if report.ok else "bold red"))
        counts = {"memories": report.memories, "in the trash": report.trashed, "pending": report.pending}
        counts |= {"passages": report.passages, "staged": report.staged}
        out.print(plain(", ".join(f"{count:,} {name}" for name, count in counts.items())))
        for problem in report.problems:
            out.print(plain(f"- {problem}"))
        if not report.ok:
            out.print(plain("keep a copy of the file; restore a backup, or export what is left and import it anew"))
    if not report.ok:
        context.exit(1)


@command("reembed", short_help="Make missing vectors, or all of them anew.")
@click.option("--encoder", metavar="NAME", help="Make all vectors anew with this encoder: minilm, hashing, a model.")
@click.option("--all", "everything", is_flag=True, help="Make all vectors anew with the present encoder.")
def reembed(session: Session, encoder: str | None, everything: bool) -> None:
    """Embed what has no vector yet; with --encoder or --all make every vector anew.

    The old vectors answer until the new ones are complete. Stopped half-way, the same command goes on where it was.
    """
    chosen = encoder_choice(encoder) if encoder is not None else None
    if encoder is not None and chosen is None:
        raise click.UsageError("--encoder none makes no vectors; name an encoder")
    with session.write() as store:
        before = store.encoder_stamp
        figures = store.stats()
        if encoder is None and not everything:
            click.echo(f"{figures.pending:,} memories have no vector yet in {store.path}")
            if figures.pending:
                with waiting("loading the encoder"):
                    name = store.encoder().name
                click.echo(f"embedding them with {name}")
                click.echo(f"{store.embed_pending():,} embedded")
            return
        total = figures.memories + figures.trashed
        with waiting("loading the encoder"):
            encoder_used = store.encoder() if chosen is None else chosen
            name, dimension = encoder_used.name, encoder_used.dimension
        was = f"; the present ones are of {before.name} ({before.dimension} dimensions)" if before else ""
        click.echo(f"making {total:,} vectors anew with {name} ({dimension} dimensions){was}")
        count = store.reembed(encoder_used)
        click.echo(f"{count:,} memories have new vectors in {store.path}")


@command("prepare", short_help="Make encoding two to four times as fast, once.")
@click.option(
    "--model", type=click.Path(path_type=Path), metavar="DIR", help="Other weights, of the same architecture."
)
@click.option("--force", is_flag=True, help="Make the graph anew even if it is there.")
def prepare(session: Session, model: Path | None, force: bool) -> None:
    """Make the graph with which ONNX Runtime computes the vectors of all-MiniLM-L6-v2, and keep it (90 MB).

    It gives the same vectors as torch, two to four times as fast, and starts in a fraction of a second. Its vectors are
    compared with the reference before it is used. A second run finds it there.
    """
    from memlab.encoders import MiniLM

    done = MiniLM(model).prepare(force=force, say=lambda line: click.echo(f"{line} ..."))
    if not done.made:
        click.echo(f"the graph is there and whole: {done.path}")
        return
    click.echo(f"largest difference from the reference: {done.difference:.1g}")
    click.echo(f"made in {done.seconds:.1f} s: {done.path}")


@command("doctor", short_help="Say what is installed, found and used.")
@json_option
def doctor(session: Session, as_json: bool) -> None:
    """Say what is installed, which weights are found, and which store is used. Loads no model."""
    from memlab.cli.diagnosis import diagnose

    found = diagnose(session)
    from memlab.cli.screen import console, facts_table, plain, print_json

    if as_json:
        print_json(found)
        return
    out = console()
    for title, rows in _sections(found):
        out.print(plain(title, "bold"))
        out.print(facts_table(rows))
        out.print()
    for problem in found["problems"]:
        out.print(plain(f"! {problem}", "yellow"))
    if not found["problems"]:
        out.print(plain("nothing that is needed is missing", "green"))


def _sections(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, object]]]]:
    machine, weights, store = found["machine"], found["weights"], found["store"]
    python: list[tuple[str, object]] = [
        ("python", f"{machine['python']}, {machine['executable']}"),
        ("memlab", f"{machine['memlab']}, {machine['memlab_folder']}"),
        ("sqlite", f"{machine['sqlite']}, FTS5 {'is there' if machine['fts5'] else 'is missing'}"),
    ]
    packages: list[tuple[str, object]] = [(row["package"], _package(row)) for row in found["packages"]]
    places: list[tuple[str, object]] = [(row["source"], row["state"]) for row in weights["places"]]
    used = f"{weights['used']['source']}: {weights['used']['path']}" if weights["used"] else "none: keyword recall only"
    places.append(("used", used))
    if weights["used"]:
        verdict = "the original's" if weights["used"]["original"] else "NOT the original's"
        places.append(("sha256", f"{weights['used']['sha256']} ({verdict})"))
        places.append(("computed by", weights["used"]["engine"]))
    rows: list[tuple[str, object]] = [("default", store["default"]), ("used", f"{store['path']} ({store['from']})")]
    names = ("state", "schema version", "file mode", "encoder", "memories", "trashed", "pending", "size", "served by")
    rows += [(name, store[name.replace(" ", "_")]) for name in names if store.get(name.replace(" ", "_")) is not None]
    return [("Python", python), ("Packages", packages), ("Weights of all-MiniLM-L6-v2", places), ("Store", rows)]


def _package(row: dict[str, Any]) -> Text:
    from memlab.cli.screen import plain

    if row["version"]:
        return plain(row["version"])
    if not row["required"]:
        return plain(f"not installed, only for {row['needed_for']}: {row['install']}", "dim")
    return plain(f"missing ({row['needed_for']}): {row['install']}", "yellow")


COMMANDS = (check, reembed, prepare, doctor)
