"""Words for counted warnings, and ids as they come out of files and frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memlab.errors import InvalidValue

_SHOWN = 5


def some(names: Iterable[object], shown: int = _SHOWN) -> str:
    """The first few of many names, and that there are more: ``a, b, c, …``."""
    every = [str(name) for name in names]
    return ", ".join(every[:shown]) + (", …" if len(every) > shown else "")


def setting_words(value: object) -> str:
    """The value of a setting as it is shown: ``0.5``, ``keyword 0.5, vector 1``."""
    if isinstance(value, Mapping) and value:
        return ", ".join(f"{name} {setting_words(part)}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def counted(names: Iterable[object], one: str, many: str | None = None) -> str:
    """``1,204 queries (q1, q2, q3, q4, q5, …)``."""
    every = list(names)
    return f"{len(every):,} {one if len(every) == 1 else many or one + 's'} ({some(every)})"


def check_columns(have: Sequence[str], wanted: Iterable[str], source: str) -> None:
    """Raise :class:`InvalidValue` if a column that is wanted is there twice: nobody knows which one is meant."""
    if twice := [repr(name) for name in wanted if have.count(name) > 1]:
        raise InvalidValue(f"{source}: expected each column once, found {' and '.join(twice)} more than once")


def checked_id(value: object, what: str, where: str) -> str:
    """An id as text: text that is not empty stays, a whole number is written out.

    Raises
    ------
    InvalidValue
        For anything else: a float such as 7.0 would never match the id ``7``.
    """
    if isinstance(value, str) and value.strip():
        return value
    index = getattr(value, "__index__", None)
    if index is None or isinstance(value, (bool, str)):
        hint = "; have pandas read ids with dtype=str" if isinstance(value, float) else ""
        raise InvalidValue(f"{where}: {what}: expected text or a whole number, found {value!r}{hint}")
    return str(index())
