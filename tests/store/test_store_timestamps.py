"""Times: one form in the store, whose order as text is the order in time."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InvalidValue, MemlabError
from memlab.timestamps import age_days, format_time, from_stored, parse_time, utc_now

OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-03-04T09:12:41Z", "2026-03-04T09:12:41.000Z"),
        ("2026-03-04 09:12:41+00:00", "2026-03-04T09:12:41.000Z"),
        ("  2026-03-04T09:12Z\n", "2026-03-04T09:12:00.000Z"),
        ("2026-03-04T09:12:41.123456789+05:30", "2026-03-04T03:42:41.123Z"),
        ("2026-03-04T00:30:00.9999-08:00", "2026-03-04T08:30:00.999Z"),
        ("20260304T091241Z", "2026-03-04T09:12:41.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_forms(text, stored):
    assert format_time(parse_time(text)) == stored
    assert format_time(from_stored(stored)) == stored


@pytest.mark.parametrize(
    "value",
    ["2026-03-04", "2026-03-04T09:12:41", "2026-03-04 09:12", datetime(2026, 3, 4), datetime(2026, 3, 4, 9, 12, 41, 5)],
)
def test_naive_times_are_refused(value):
    with pytest.raises(InvalidValue, match=r"created_after: .*zone"):
        parse_time(value, "created_after")


@pytest.mark.parametrize(
    "value",
    ["", " ", "now", "yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-04T25:00:00Z",
     "\ud800", "\x00", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", 5, 1.5, None, b"2026-03-04T09:12:41Z",
     ["x"], "1" * 10_000],
)  # fmt: skip
def test_junk_is_refused(value):
    with pytest.raises(InvalidValue, match="when"):
        parse_time(value, "when")


@given(st.text(max_size=30))
def test_no_text_raises_anything_else(text):
    with contextlib.suppress(MemlabError):
        assert parse_time(text).tzinfo is UTC


@given(MOMENTS)
def test_round_trip_to_the_millisecond(moment):
    stored = format_time(parse_time(moment))
    assert len(stored) == 24
    back = from_stored(stored)
    assert back.tzinfo is not None
    assert back.utcoffset() == timedelta(0)
    assert timedelta(0) <= moment - back < timedelta(milliseconds=1)
    assert parse_time(stored) == back
    assert parse_time(moment.isoformat()) == back


@given(MOMENTS, MOMENTS | st.timedeltas(timedelta(milliseconds=-5), timedelta(milliseconds=5)))
def test_the_order_of_the_text_is_the_order_of_the_times(one, two):
    other = one + two if isinstance(two, timedelta) else two
    first, second = parse_time(one), parse_time(other)
    assert (first < second) == (format_time(first) < format_time(second))
    assert (first == second) == (format_time(first) == format_time(second))


@given(MOMENTS)
def test_sqlite_takes_what_we_write_as_it_is(moment):
    import sqlite3

    from memlab.store import schema

    stored = format_time(parse_time(moment))
    connection = sqlite3.connect(":memory:")
    assert connection.execute(f"SELECT {schema._CANONICAL.format(':moment')}", {"moment": stored}).fetchone() == (
        stored,
    )
    connection.close()


def test_a_timestamp_of_pandas_loses_its_nanoseconds():
    import pandas as pd

    moment = parse_time(pd.Timestamp("2026-03-04T09:12:41.123456789Z"))
    assert type(moment) is datetime
    assert format_time(moment) == "2026-03-04T09:12:41.123Z"


def test_none_stays_none():
    assert from_stored(None) is None


def test_the_present_names_its_zone():
    assert utc_now().tzinfo is UTC


def test_age():
    now = datetime(2026, 3, 4, tzinfo=UTC)
    assert age_days(now - timedelta(hours=36), now) == 1.5
    assert age_days(now + timedelta(days=3), now) == 0.0


def test_a_pandas_time_is_a_time():
    import pandas as pd

    assert format_time(parse_time(pd.Timestamp("2026-03-04T09:12:41.123456789Z"))) == "2026-03-04T09:12:41.123Z"
    with pytest.raises(InvalidValue):
        parse_time(pd.NaT)  # type: ignore[arg-type]
