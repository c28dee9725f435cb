"""Checks of arguments that several encoders share."""

from __future__ import annotations

from memlab.errors import InvalidValue

__all__ = ["check_whole"]


def check_whole(label: str, value: object, least: int) -> None:
    """Raise InvalidValue unless ``value`` is a whole number of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidValue(f"{label}: expected a whole number of at least {least}, found {value!r}")
