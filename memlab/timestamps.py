"""Times as memlab keeps them: UTC, milliseconds, ``2026-03-04T09:12:41.123Z``.

With one fixed form the order of the strings is the order of the times, so SQL may compare the text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import overload

from memlab.errors import InvalidValue

DAY = timedelta(days=1)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_FRACTION = re.compile(r"\.(\d+)")


def utc_now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def parse_time(value: datetime | str, field: str = "time") -> datetime:
    """Read a point in time that says its zone.

    Parameters
    ----------
    value : datetime or str
        An aware datetime, or ISO 8601 text with an offset or ``Z``. Digits below a millisecond are cut off.
    field : str
        Name of the argument, for the message.

    Returns
    -------
    datetime
        In UTC, with whole milliseconds.

    Raises
    ------
    InvalidValue
        If the value cannot be read, or names no zone: guessing one would shift ages and filters by hours.
    """
    example = "for example '2026-03-04T09:12:41Z'"
    if isinstance(value, str):
        # fromisoformat takes any number of fraction digits from 3.11 on, but keeps six.
        text = _FRACTION.sub(lambda match: "." + match.group(1)[:6], value.strip())
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise InvalidValue(f"{field}: expected an ISO 8601 time, {example}; found {value!r}") from error
    elif isinstance(value, datetime):
        # A pandas Timestamp is a datetime that carries nanoseconds along.
        plain = getattr(value, "to_pydatetime", None)
        moment = value if plain is None else plain(warn=False)
    else:
        raise InvalidValue(
            f"{field}: expected an aware datetime or ISO 8601 text, {example}; found {type(value).__name__} {value!r}"
        )
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidValue(
            f"{field}: {value!r} names no time zone; add 'Z' for UTC or an offset, {example}, "
            "or use datetime(..., tzinfo=timezone.utc)"
        )
    try:
        moment = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue(f"{field}: {value!r} lies outside the years 1 to 9999") from error
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_day_or_time(value: datetime | str, field: str = "time") -> datetime:
    """The same, or a day alone, which is what people type: its beginning in UTC."""
    return parse_time(f"{value}T00:00:00Z" if isinstance(value, str) and _DAY.fullmatch(value) else value, field)


def format_time(moment: datetime) -> str:
    """The text that the store keeps for an aware ``moment``: 24 characters, UTC, milliseconds, ``Z``."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat("T", "milliseconds")[:23] + "Z"


@overload
def from_stored(text: str) -> datetime: ...
@overload
def from_stored(text: None) -> None: ...
def from_stored(text: str | None) -> datetime | None:
    """Read back what :func:`format_time` wrote; ``None`` stays ``None``."""
    return None if text is None else datetime.fromisoformat(text)


def age_days(created_at: datetime, now: datetime) -> float:
    """Age in days of 86,400 s; a time in the future counts as age 0, so a wrong clock earns no extra boost."""
    return max(0.0, (now - created_at) / DAY)
