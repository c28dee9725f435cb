"""Measures of a run against judgments: names and values are those of ir-measures, https://ir-measur.es."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memlab.errors import InvalidValue, MissingDependency
from memlab.evaluation._require import require

DEFAULT_MEASURES = ("nDCG@10", "R@5", "R@1", "RR@10")
"""What is measured where nobody says otherwise."""

EXAMPLES = {
    "R@5": "share of the relevant memories that are among the first 5",
    "R@1": "the same for the first place",
    "nDCG@10": "gain of the first 10, discounted by rank, as a share of the best possible",
    "RR@10": "1 / rank of the first relevant memory among the first 10, else 0",
    "AP": "mean of the precisions at the ranks of the relevant memories",
    "P@5": "share of the first 5 that are relevant",
    "Success@5": "1 if any of the first 5 is relevant, else 0",
}
"""Common names, with what they say of a query; any other name of ir-measures will do."""

Ranking = Sequence[tuple[str, float]]
"""Memory ids with scores, best first; the order is what counts."""


def parse_measures(names: str | Iterable[Any]) -> tuple[Any, ...]:
    """The measures of ir-measures that these names stand for, without repetitions.

    Parameters
    ----------
    names : str or iterable
        ``"nDCG@10,R@5"``, or names and measure objects of ir-measures.

    Raises
    ------
    InvalidValue
        If a name is unknown; the message lists examples.
    MissingDependency
        If ir-measures, or what it needs for one of them, is not installed.
    """
    library = require("ir_measures", "ir-measures", "measuring a run")
    if isinstance(names, str):
        given: list[Any] = [name.strip() for name in _split(names)]
    elif isinstance(names, library.measures.Measure):
        given = [names]
    elif isinstance(names, Iterable):
        given = list(names)
    else:
        raise _unknown(names)
    chosen: dict[str, Any] = {}
    for name in given:
        measure = name if isinstance(name, library.measures.Measure) else _parsed(library, name)
        _check(library, measure, name)
        chosen[str(measure)] = measure
    if not chosen:
        raise _unknown("")
    return tuple(chosen.values())


def _split(names: str) -> list[str]:
    """At commas, but not at those within parentheses: ``AP(rel=2),R@5``."""
    parts, depth = [""], 0
    for char in names:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip()]


def _parsed(library: Any, name: object) -> Any:
    try:
        return library.parse_measure(name)
    except Exception as error:  # it raises NameError, ValueError, SyntaxError and more
        raise _unknown(name) from error


def _check(library: Any, measure: Any, name: object) -> None:
    """Raise if nothing computes a measure, or nothing that is installed does."""
    try:
        measure.validate_params()
        able = [provider for provider in library.DefaultPipeline.providers if provider.supports(measure)]
    except AssertionError:
        able = []
    if not able or measure.params.get("cutoff", 1) < 1:
        raise _unknown(name)
    if all(provider.NAME == "gdeval" for provider in able):
        raise InvalidValue(
            f"measures: {name!r} is computed by gdeval, a Perl script that takes nothing but numbers for query ids; "
            f"choose one that trec_eval computes, such as {', '.join(EXAMPLES)}"
        )
    if not any(provider.is_available() for provider in able):
        how = next(filter(None, (provider.install_instructions() for provider in able)), 'pip install "memlab[eval]"')
        raise MissingDependency(f"{measure} needs a package that is not installed; install it with: {how}")


def _unknown(name: object) -> InvalidValue:
    examples = ", ".join(EXAMPLES)
    return InvalidValue(
        f"measures: expected names of ir-measures such as {examples} (more on https://ir-measur.es), found {name!r}"
    )


def needed_depth(measures: Iterable[Any], limit: int) -> int:
    """How many hits these measures look at: the largest cutoff, or ``limit`` if that is more and one has none."""
    depth = 0
    for measure in measures:
        depth = max(depth, measure.params.get("cutoff", limit))
        if measure.params.get("judged_only"):  # skips hits, so it may look at any number of them
            depth = max(depth, limit)
    return depth


def check_limit(measures: Iterable[Any], limit: int) -> int:
    """How many hits these measures look at, ``limit`` at most; raises :class:`InvalidValue` if a cutoff is beyond."""
    wanted = needed_depth(measures, limit)
    if wanted > limit:
        raise InvalidValue(f"limit: {limit} hits are too few for these measures, which look at {wanted}")
    return wanted


def per_query(
    measures: Sequence[Any],
    judgments: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Ranking],
) -> dict[str, dict[str, float]]:
    """The value of every measure for every judged query, by ir-measures alone.

    The scores handed over are minus the rank: whatever the scores were, no tie is left for ir-measures to break, and
    none appears when trec_eval rounds scores to 32 bits.

    Parameters
    ----------
    measures : sequence
        From :func:`parse_measures`.
    judgments : mapping
        Query id to memory id to relevance.
    rankings : mapping
        Query id to ranked memories; a judged query without any has the measure's value for an empty answer, 0.

    Returns
    -------
    dict of str to (dict of str to float)
        Name of the measure to query id to value, queries in the order of ``judgments``.
    """
    library = require("ir_measures", "ir-measures", "measuring a run")
    run = {
        query_id: {memory_id: float(-rank) for rank, (memory_id, _) in enumerate(rankings[query_id], 1)}
        for query_id in judgments
        if rankings.get(query_id)
    }
    qrels = {query_id: dict(by_memory) for query_id, by_memory in judgments.items()}
    values: dict[str, dict[str, float]] = {str(measure): dict.fromkeys(qrels, 0.0) for measure in measures}
    for metric in library.iter_calc(list(measures), qrels, run):
        if metric.query_id in qrels:
            values[str(metric.measure)][metric.query_id] = float(metric.value)
    return values
