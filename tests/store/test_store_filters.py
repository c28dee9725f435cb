"""Filters: SQL and plain Python must agree on who passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.encoders import HashingEncoder
from memlab.errors import InvalidValue
from memlab.store import Filters, Memory, MemoryStore
from tests.store.helpers import raw_connection

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["a", "b", "A", "a b", "x'y", 'q"q', "%", "_", "é", "日本", "[]", "5"]


@pytest.fixture(scope="module")
def varied(tmp_path_factory) -> MemoryStore:
    """300 memories with every mixture of metadata, some in the trash."""
    rng = np.random.default_rng(11)

    def some(values, least=0, most=1):
        return list(rng.choice(values, rng.integers(least, most + 1), replace=False))

    records = []
    for i in range(300):
        record = {
            "content": f"memory {i}",
            "memory_id": f"m-{i:03}",
            "tags": [str(tag) for tag in some(NAMES, 0, 4)],
            "importance": int(rng.integers(1, 11)),
            "created_at": START + timedelta(milliseconds=int(rng.integers(0, 20)), days=int(rng.integers(0, 5))),
        }
        for name in ("project", "category", "subcategory", "source"):
            if values := some(NAMES):
                record[name] = str(values[0])
        records.append(record)
    store = MemoryStore(tmp_path_factory.mktemp("filters") / "memory.db", HashingEncoder(16))
    store.remember_many(records)
    for i in range(0, 300, 7):
        store.forget(f"m-{i:03}")
    return store


def passes(memory: Memory, filters: dict) -> bool:
    """The same conditions in the plainest Python."""

    def listed(value):
        return [value] if isinstance(value, str) else list(value)

    for name in ("project", "category", "subcategory", "source"):
        if filters.get(name) is not None and getattr(memory, name) not in listed(filters[name]):
            return False
    if filters.get("tags") is not None:
        wanted = set(listed(filters["tags"]))
        have = wanted & set(memory.tags)
        if not have or (filters.get("tag_match") == "all" and have != wanted):
            return False
    return (
        filters.get("min_importance", 1) <= memory.importance <= filters.get("max_importance", 10)
        and memory.created_at >= filters.get("created_after", START - timedelta(days=999))
        and memory.created_at < filters.get("created_before", START + timedelta(days=999))
    )


ONE_OR_MORE = st.sampled_from(NAMES) | st.lists(st.sampled_from([*NAMES, "none"]), min_size=1, max_size=4)
TIMES = st.builds(
    lambda days, milliseconds, hours: (START + timedelta(days=days, milliseconds=milliseconds)).astimezone(
        timezone(timedelta(hours=hours))
    ),
    st.integers(-1, 6),
    st.integers(0, 20),
    st.integers(-12, 14),
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "project": ONE_OR_MORE,
        "category": ONE_OR_MORE,
        "subcategory": ONE_OR_MORE,
        "source": ONE_OR_MORE,
        "tags": ONE_OR_MORE,
        "tag_match": st.sampled_from(["any", "all"]),
        "min_importance": st.integers(1, 10),
        "max_importance": st.integers(1, 10),
        "created_after": TIMES,
        "created_before": TIMES,
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILTERS, st.sampled_from([True, False, None]))
def test_find_equals_plain_python(varied, filters, trashed):
    everything = varied.find(trashed=None)
    expected = {
        memory.memory_id
        for memory in everything
        if passes(memory, filters) and (trashed is None or (memory.trashed_at is not None) == trashed)
    }
    found = [memory.memory_id for memory in varied.find(filters, trashed=trashed)]
    assert set(found) == expected
    assert len(found) == len(expected)
    as_text = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in filters.items()}
    assert [memory.memory_id for memory in varied.find(trashed=trashed, **as_text)] == found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILTERS)
def test_a_view_allows_the_same_and_names_what_fails(varied, filters):
    chosen = Filters.of(filters)
    with varied.view(chosen) as view:
        allowed = view.allowed()
        if allowed is None:
            assert not chosen
        else:
            assert list(allowed) == sorted(allowed)
            ids = set(view.ids(allowed.tolist()).values())
            assert ids == {memory.memory_id for memory in varied.find(filters)}
        for memory in varied.find(limit=5):
            assert bool(view.failing_conditions(memory.memory_id)) != passes(memory, filters)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"project": "p"}, "ab"),
        ({"project": ["p", "q"]}, "abc"),
        ({"category": "note"}, "bcd"),
        ({"category": "decision", "project": "p"}, "a"),
        ({"tags": "x"}, "ab"),
        ({"tags": ["x", "y"]}, "abc"),
        ({"tags": ["x", "y"], "tag_match": "all"}, "a"),
        ({"tags": ["x", "x"], "tag_match": "all"}, "ab"),
        ({"min_importance": 5}, "bd"),
        ({"max_importance": 4}, "ac"),
        ({"min_importance": 4, "max_importance": 4}, "c"),
        ({"source": "chat"}, "d"),
        ({"subcategory": "s"}, "d"),
        ({"created_after": "2026-01-02T00:00:00Z"}, "bcd"),
        ({"created_after": "2026-01-02T02:00:00+02:00"}, "bcd"),
        ({"created_after": "2026-01-02T00:00:00.001Z"}, "cd"),
        ({"created_before": "2026-01-02T00:00:00Z"}, "a"),
        ({"created_before": "2026-01-01T19:00:00.001-05:00"}, "ab"),
        ({"project": "none"}, ""),
        ({"project": None, "tags": None}, "abcd"),
        ({}, "abcd"),
    ],
)
def test_by_hand(store, given, expected):
    rows = [
        dict(
            content="a",
            project="p",
            category="decision",
            tags=["x", "y"],
            importance=1,
            created_at="2026-01-01T00:00:00Z",
        ),
        dict(content="b", project="p", tags=["x"], importance=5, created_at="2026-01-02T00:00:00Z"),
        dict(content="c", project="q", tags=["y"], importance=4, created_at="2026-01-03T00:00:00Z"),
        dict(content="d", source="chat", subcategory="s", importance=10, created_at="2026-01-04T00:00:00Z"),
    ]
    store.remember_many(rows)
    assert "".join(sorted(memory.content for memory in store.find(**given))) == expected
    assert "".join(sorted(memory.content for memory in store.find(given))) == expected
    assert "".join(sorted(memory.content for memory in store.find(Filters(**given)))) == expected
    assert "".join(sorted(store.memories(given)["content"])) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": "red"}, "'colour' is no filter.*project.*created_before"),
        ({"tag_match": "some"}, "tag_match"),
        ({"min_importance": 0}, "min_importance"),
        ({"max_importance": "5"}, "max_importance"),
        ({"max_importance": True}, "max_importance"),
        ({"created_after": "2026-01-01"}, "created_after.*zone"),
        ({"created_before": datetime(2026, 1, 1)}, "created_before.*zone"),
        ({"created_before": "soon"}, "created_before"),
        ({"created_before": 5}, "created_before"),
        ({"project": 5}, "project"),
        ({"project": ""}, "project"),
        ({"tags": [1]}, "tags"),
        ({"tags": {"a": 1}}, "tags"),
        ({"source": "\ud800"}, "source"),
        ({"category": "a\x00"}, "category"),
    ],
)
def test_bad_filters(store, given, message):
    with pytest.raises(InvalidValue, match=message):
        store.find(given)
    with pytest.raises(InvalidValue, match=message):
        store.memories(**given)


@pytest.mark.parametrize("limit", [-1, "5", 2.5, True])
def test_bad_limits(store, limit):
    with pytest.raises(InvalidValue, match="limit"):
        store.find(limit=limit)


def test_keywords_change_given_filters():
    filters = Filters(project="p", tags=["a", "b"], tag_match="all", created_after="2026-01-01T01:00:00+01:00")
    assert Filters.of(filters) is filters
    changed = Filters.of(filters, project="q", tags=None)
    assert changed.project == ("q",)
    assert not changed.tags
    assert repr(filters) == (
        "Filters(project='p', tags=('a', 'b'), tag_match='all', created_after='2026-01-01T00:00:00.000Z')"
    )
    assert not Filters()
    assert Filters.of(None) == Filters()


def test_what_passes_filters_is_remembered_until_anything_is_written(make_store):
    store, other = make_store(), make_store()
    ids = store.remember_many([{"content": f"memory {i}", "project": f"p{i % 3}"} for i in range(30)]).memory_ids
    wanted = Filters(project="p1")
    raw = raw_connection(store.path)

    def look(expected: int) -> int:
        """How many statements read what passes."""
        statements: list[str] = []
        store.db.conn.set_trace_callback(statements.append)
        with store.view(wanted) as view:
            allowed, again = view.allowed(), view.allowed()
            assert again is allowed
            np.testing.assert_array_equal(allowed, view.read_passing())
            assert len(allowed) == expected
        store.db.conn.set_trace_callback(None)
        return sum("m.project IN" in statement for statement in statements) - 1

    assert (look(10), look(10), look(10)) == (1, 0, 0)
    changes = (
        (lambda: store.update(ids[0], project="p1"), 11),
        (lambda: other.update(ids[2], project="p1"), 12),
        (lambda: raw.execute("UPDATE memories SET project = 'p1' WHERE id = ?", (ids[3],)), 13),
        (lambda: store.forget(ids[0]), 12),
        (lambda: other.purge(ids[0]), 12),
    )
    for change, expected in changes:
        change()
        assert (look(expected), look(expected)) == (1, 0)
    # What a transaction changed and took back again.
    connection = store.db.conn
    connection.execute("BEGIN")
    connection.execute("UPDATE memories SET project = 'p1'")
    with store.view(wanted) as view:
        assert len(view.allowed()) == 29
    connection.execute("ROLLBACK")
    look(12)
    raw.close()


def test_filters_that_are_remembered_do_not_pile_up(make_store):
    store = make_store()
    store.remember_many([{"content": f"memory {i}", "project": f"p{i}"} for i in range(40)])
    for i in range(40):
        with store.view(Filters(project=f"p{i}")) as view:
            assert len(view.allowed()) == 1
    assert len(store._file.connection().passing) == 16


@pytest.mark.parametrize("name", ["project", "category", "subcategory", "source", "tags"])
def test_more_values_than_a_statement_takes(varied, name):
    wanted = ["a", 'q"q', "日本", "[]", "5"]
    given: dict[str, Any] = {name: wanted}
    few = Filters(**given)
    given[name] = [*wanted, *(f"nobody's {i}" for i in range(300_000))]
    many = Filters(**given)
    assert varied.find(many) == varied.find(few) != []
    with varied.view(many) as view, varied.view(few) as other:
        np.testing.assert_array_equal(view.allowed(), other.allowed())
    if name == "tags":
        assert varied.find(many, tag_match="all") == []
