"""What can be said of a comparison, in sentences and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from memlab.evaluation.significance import TOLERANCE
from memlab.retrieval.render import visible
from memlab.store.records import shorten

if TYPE_CHECKING:
    from memlab.evaluation.comparison import Comparison, Difference
    from memlab.evaluation.evaluate import Evaluation

_NAMED = 3  # more systems than this are counted, not listed


def finding(comparison: Comparison, measure: str) -> str:
    """What a comparison says in one measure: which systems differ from the baseline, and which cannot be told apart."""
    found = {name: comparison.differences[name, measure] for name in comparison.systems if name != comparison.baseline}
    base, several, scale = (
        named(comparison.baseline),
        len(found) > 1,
        scale_of(comparison.evaluations.values(), measure),
    )
    apart = sorted((item for item in found.items() if item[1].found), key=lambda item: -item[1].mean)
    said = [
        f"{named(name)} is {'better' if one.mean > 0 else 'worse'} than {base}{_in(measure, place)} by "
        f"{_amount(abs(one.mean), scale)} ({_interval(one, scale)}), {p_words(one.p_holm)}"
        f"{' after Holm' if several else ''}"
        for place, (name, one) in enumerate(apart)
    ]
    same = [name for name, one in found.items() if not one.wins and not one.losses]
    unclear = [name for name, one in found.items() if not one.found and name not in same]
    queries = _queries(len(comparison.queries))
    if unclear:
        who = "the others" if apart and not same and len(unclear) > 1 else listed(unclear)
        own = found[unclear[0]]
        detail = f" ({_interval(own, scale)}, {p_words(own.p_holm)})" if len(unclear) == 1 else ""
        said.append(f"{who} cannot be told apart from {base}{_in(measure, len(said))} with {queries}{detail}")
    if same:
        verb = "gives" if len(same) == 1 else "give"
        said.append(f"{listed(same)} {verb} the same value as {base}{_in(measure, len(said))} for all {queries}")
    return "; ".join(said)


def scale_of(evaluations: Iterable[Evaluation], measure: str) -> float:
    """100 for a measure whose values are from 0 to 1, so that it is shown in points; else 1."""
    values = [evaluation.of(measure) for evaluation in evaluations]
    return 100.0 if all((row >= -TOLERANCE).all() and (row <= 1 + TOLERANCE).all() for row in values) else 1.0


def named(name: str, length: int = 40) -> str:
    """A system's name as it can be shown: short, on one line, nothing in it obeyed."""
    return shorten(" ".join(visible(name).split()), length)


def listed(names: Iterable[str]) -> str:
    """``a, b and c``; of more than three only how many, with the first."""
    shown = [named(name) for name in names]
    if len(shown) > _NAMED:
        return f"{len(shown)} systems ({', '.join(shown[:_NAMED])}, …)"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def p_words(p: float) -> str:
    """``p = 0.004``, ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def figure(value: float, scale: float = 100.0, sign: bool = False) -> str:
    """A value in points with one decimal, or with two where it has no scale; a dash where there is none."""
    if math.isnan(value):
        return "–"  # noqa: RUF001
    rounded = round(scale * value, 1 if scale == 100 else 2) + 0.0  # no minus before a zero
    return f"{rounded:{'+' if sign and rounded else ''}.{1 if scale == 100 else 2}f}"


def span(low: float, high: float, scale: float = 100.0, sign: bool = False) -> str:
    """``1.2 to 5.0``; a dash where a single query gives no interval."""
    if math.isnan(low):
        return "–"  # noqa: RUF001
    return f"{figure(low, scale, sign)} to {figure(high, scale, sign)}"


def _interval(one: Difference, scale: float) -> str:
    """The interval of a difference: in the direction that was found, or with signs where none was."""
    if math.isnan(one.low):
        return "no interval from a single query"
    low, high = (-one.high, -one.low) if one.found and one.mean < 0 else (one.low, one.high)
    return f"95 %: {span(low, high, scale, sign=not one.found)}"


def _amount(value: float, scale: float) -> str:
    return f"{figure(value, scale)} points" if scale == 100 else figure(value, scale)


def _in(measure: str, place: int) -> str:
    """The measure is named once, in the first clause."""
    return f" in {measure}" if place == 0 else ""


def _queries(count: int) -> str:
    return f"{count:,} quer{'y' if count == 1 else 'ies'}"
