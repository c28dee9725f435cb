"""Checks of numbers that callers give; numpy's are numbers too, booleans are not."""

from __future__ import annotations

from numbers import Real

from memlab.errors import InvalidValue

MOST = 1_000_000_000


def whole(value: object, name: str, *, least: int, most: int = MOST) -> int:
    """A whole number within bounds.

    Parameters
    ----------
    value : int
        Or anything that is one by ``__index__``.
    name : str
        Of the argument, for the message.
    least, most : int
        Bounds, included.

    Raises
    ------
    InvalidValue
        If it is something else.
    """
    index = getattr(value, "__index__", None)
    if isinstance(value, bool) or index is None or not least <= index() <= most:
        named = most != MOST or (index is not None and index() > most)
        bounds = f"from {least} to {most}" if named else f"of at least {least}"
        raise InvalidValue(f"{name}: expected a whole number {bounds}, found {value!r}")
    return int(index())


def number(value: object, name: str, *, above_zero: bool = False) -> float:
    """A finite number of 0 or more (above 0 with ``above_zero``) and at most a thousand million.

    Raises
    ------
    InvalidValue
        If it is something else.
    """
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else -1.0
    except OverflowError:
        found = -1.0
    if not 0 <= found <= MOST or (above_zero and found == 0):
        raise InvalidValue(f"{name}: expected a number {'above' if above_zero else 'of at least'} 0, found {value!r}")
    return found
