"""`memlab eval`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.cli.session import Session, command, encoder_choice, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from memlab.evaluation.benchmark import SetResult

_INTERRUPTED = 130
_MOST_JOBS = 4
_DEFAULT_MEASURES = "nDCG@10,R@5"


@command("eval", short_help="Measure how well labelled queries are answered.")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.option(
    "--profiles",
    default="vector,keyword,classic,default",
    show_default=True,
    help="Which retrievers, separated by commas.",
)
@click.option(
    "--measures", default=_DEFAULT_MEASURES, show_default=True, help="Measures of ir-measures, separated by commas."
)
@click.option("--split", metavar="NAME", help="Which judgments of each DIR. [default: the only ones, test or dev]")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the stores are kept. [env: MEMLAB_CACHE; default: in your cache folder]",
)
@click.option("--encoder", metavar="NAME", help="What makes the vectors: minilm (default), hashing, none, or a model.")
@click.option("--truncate", is_flag=True, help="Encode what fits the model and no more, as published figures do.")
@click.option("--queries", type=click.Path(path_type=Path), metavar="FILE", help="With --db: a queries.jsonl.")
@click.option("--qrels", type=click.Path(path_type=Path), metavar="FILE", help="With --db: BEIR or TREC judgments.")
@click.option(
    "--recency",
    is_flag=True,
    help="What the recency boost gains and costs, by half-life and strength: one DIR whose queries say what they test, "
    "or the word temporal for the dated set that comes with memlab. One profile (default), one measure (Success@1).",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Most processes. [default: one a core, up to 4]")
@json_option
@click.pass_context
def eval_(context: click.Context, /, session: Session, folders: tuple[Path, ...], **options: Any) -> None:
    """Measure how well labelled queries are answered.

    Each DIR is a set in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/test.tsv. Its store is made on first use and
    kept. With --db, --queries and --qrels the store itself is measured.
    """
    _check_usage(folders, options)
    if options["recency"]:
        _recency(context, folders, options)
        return
    profiles = [name.strip() for name in options["profiles"].split(",") if name.strip()]
    results = _measure_folders(folders, profiles, options) if folders else [_measure_store(session, profiles, options)]
    interrupted = any(result.interrupted for result in results)
    if options["as_json"]:
        from memlab.cli.screen import print_json

        print_json(_as_json(results, interrupted))
    else:
        _print(results)
    if interrupted:
        context.exit(_INTERRUPTED)


def _recency(context: click.Context, folders: Sequence[Path], options: dict[str, Any]) -> None:
    from memlab.cli.recency import print_study, study_json, study_of
    from memlab.evaluation.benchmark import check_profiles

    def given(name: str, otherwise: str) -> str:
        source = context.get_parameter_source(name)
        return otherwise if source is click.core.ParameterSource.DEFAULT else str(options[name])

    profiles = check_profiles([name.strip() for name in given("profiles", "default").split(",") if name.strip()])
    if len(folders) != 1 or len(profiles) != 1:
        raise click.UsageError("--recency takes one DIR and one of --profiles")
    encoder, policy = _made_with(options)
    study = study_of(
        folders[0],
        profiles[0],
        given("measures", "Success@1"),
        split=options["split"],
        cache=options["cache"],
        encoder=encoder,
        policy=policy,
    )
    if options["as_json"]:
        from memlab.cli.screen import print_json

        print_json(study_json(study, profiles[0]))
    else:
        print_study(study)
    if study.interrupted:
        context.exit(_INTERRUPTED)


def _made_with(options: dict[str, Any]) -> tuple[Any, Any]:
    """Encoder and passage policy of the stores that are made."""
    from memlab.store import AUTO, PassagePolicy

    encoder = AUTO if options["encoder"] is None else encoder_choice(options["encoder"])
    return encoder, PassagePolicy(aggregate="truncate") if options["truncate"] else PassagePolicy()


def _check_usage(folders: Sequence[Path], options: dict[str, Any]) -> None:
    both = options["queries"] is not None, options["qrels"] is not None
    if folders and any(both):
        raise click.UsageError("a DIR has queries and judgments of its own; leave out --queries and --qrels")
    if not folders and not all(both):
        raise click.UsageError("expected one or more DIR in BEIR layout, or --db with --queries and --qrels")
    if not folders:
        for name in ("split", "cache", "encoder", "truncate", "recency"):
            if options[name]:
                raise click.UsageError(f"--{name} is about the stores that are made for a DIR")


def _measure_folders(folders: Sequence[Path], profiles: Sequence[str], options: dict[str, Any]) -> list[SetResult]:
    from dataclasses import replace

    from memlab.evaluation.benchmark import check_profiles, measure_sets
    from memlab.evaluation.folders import read_folder
    from memlab.evaluation.measures import parse_measures

    check_profiles(profiles)
    parse_measures(options["measures"])
    sets = [read_folder(folder, options["split"]) for folder in folders]
    names = [labelled.name for labelled in sets]
    sets = [
        replace(labelled, name=str(folder)) if names.count(labelled.name) > 1 else labelled
        for labelled, folder in zip(sets, folders, strict=True)
    ]
    encoder, policy = _made_with(options)
    jobs = options["jobs"] or min(os.cpu_count() or 1, _MOST_JOBS)
    return list(
        measure_sets(
            sets,
            profiles,
            options["measures"],
            cache=options["cache"],
            encoder=encoder,
            passages=policy,
            jobs=jobs,
        )
    )


def _measure_store(session: Session, profiles: Sequence[str], options: dict[str, Any]) -> SetResult:
    from memlab.evaluation.benchmark import measure_set
    from memlab.evaluation.folders import LabelledSet
    from memlab.evaluation.judgments import Qrels
    from memlab.evaluation.queries import queries_of

    with session.read() as store:
        queries, qrels = queries_of(options["queries"]), Qrels.of(options["qrels"])
        labelled = LabelledSet(store.path.stem, (), queries, qrels, split=options["qrels"].stem)
        return measure_set(labelled, store, profiles, options["measures"])


def _print(results: Sequence[SetResult]) -> None:
    from memlab.cli.screen import console, plain, say

    out = console()
    measures = next(iter(results[0].evaluations.values())).measures
    for place, measure in enumerate(measures):
        if place:
            out.print()
        out.print(plain(f"{measure} x 100, mean over the queries", "bold"))
        out.print(_table(results, measure))
    if len(results[0].evaluations) > 1:
        out.print(plain("*: the best of its column; --json has the 95 % intervals", "dim"))
    for result in results:
        for note in result.notes:
            say(f"{result.name}: {note}")


def _table(results: Sequence[SetResult], measure: str) -> Table:
    """Profiles down, sets across, and the mean of the sets; the best figure of each column is marked."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from memlab.cli.screen import plain

    profiles = list(results[0].evaluations)
    heads = [result.name for result in results]
    figures = [[result.evaluations[name].mean(measure) for name in profiles] for result in results]
    if len(results) > 1:
        heads.append("mean")
        figures.append([sum(column[i] for column in figures) / len(results) for i in range(len(profiles))])
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("profile", no_wrap=True)
    for head in heads:
        table.add_column(plain(head), justify="right", overflow="fold")
    for row, name in enumerate(profiles):
        cells = []
        for column in figures:
            best = len(profiles) > 1 and f"{100 * column[row]:.2f}" == f"{100 * max(column):.2f}"
            cells.append(plain(f"{100 * column[row]:.2f}{'*' if best else ' '}", "bold" if best else ""))
        table.add_row(plain(name), *cells)
    counts = [len(next(iter(result.evaluations.values())).queries) for result in results]
    total = [sum(counts)] if len(results) > 1 else []
    table.add_row(plain("queries", "dim"), *(plain(f"{count:,} ", "dim") for count in [*counts, *total]))
    return table


def _as_json(results: Sequence[SetResult], interrupted: bool) -> dict[str, Any]:
    profiles = list(results[0].evaluations)
    measures = next(iter(results[0].evaluations.values())).measures
    return {
        "measures": list(measures),
        "profiles": profiles,
        "sets": [
            {
                "name": result.name,
                "split": result.split,
                "memories": result.memories,
                "queries": len(next(iter(result.evaluations.values())).queries),
                "notes": list(result.notes),
                "figures": {
                    profile: {
                        measure: dict(
                            zip(
                                ("mean", "low", "high"),
                                (evaluation.mean(measure), *evaluation.intervals[measure]),
                                strict=True,
                            )
                        )
                        for measure in measures
                    }
                    for profile, evaluation in result.evaluations.items()
                },
            }
            for result in results
        ],
        "mean": {
            profile: {
                measure: sum(result.evaluations[profile].mean(measure) for result in results) / len(results)
                for measure in measures
            }
            for profile in profiles
        },
        "interrupted": interrupted,
    }


COMMANDS = (eval_,)
