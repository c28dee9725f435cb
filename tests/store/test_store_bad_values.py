"""Bad values: an error of memlab's own that names the field, and the store as it was."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest

from memlab.errors import ContentError, EncoderError, InvalidValue, MemlabError, UnknownMemory
from memlab.store import MemoryStore
from tests.store.helpers import dump

CONTENT = ["", " ", "\n\t\u3000", None, 5, b"bytes", ["x"], "half \ud83d of a pair", "\udc00"]
FIELDS: dict[str, list[Any]] = {
    "importance": [0, 11, -1, 5.5, 5.0, True, False, "5", float("nan"), np.float32(5), [5]],
    "tags": [[1], ["ok", None], 5, {"a": 1}, [""], [" "], ["\ud800"], ["a\x00b"], b"ab", [["a"]]],
    "related_files": [[1], 5, {"a": 1}, [""]],
    "file_checksums": [["a"], "a", {"a": 1}, {1: "a"}, {"": "a"}, {"a": ""}],
    "project": [5, ["p"], "\ud800", "a\x00b"],
    "category": [5, "\ud800", b"x"],
    "subcategory": [5],
    "source": [5],
}
CREATED = ["2026-01-01", "2026-01-01T00:00:00", datetime(2026, 1, 1), "soon", "", 5, "2026-02-30T00:00:00Z"]
KEYS = {"memory_id": ["", " ", 5, "\ud800", "a\x00b"], "idempotency_key": [5, "\ud800", b"k"]}
VECTORS = [
    [1.0] * 63,
    [1.0] * 65,
    [],
    [[1.0] * 64],
    [float("nan")] * 64,
    [float("inf")] + [0.0] * 63,
    [0.0] * 64,
    "vector",
    ["x"] * 64,
    5,
    b"\x00" * 256,
]
UNKNOWN = ["m-none", "", "\ud800", "a\x00b", None, 5, ["m-1"], b"m-1", "' OR 1=1 --"]


@pytest.fixture
def known(store) -> MemoryStore:
    store.remember("known", memory_id="m-1", project="p", tags=["t"], idempotency_key="k")
    store.remember("trashed", memory_id="m-2")
    store.forget("m-2")
    return store


class Unchanged:
    """The same rows in every table, before and after."""

    def __init__(self, store: MemoryStore) -> None:
        self.path = store.path

    def __enter__(self):
        self.before = dump(self.path)

    def __exit__(self, *_):
        assert dump(self.path) == self.before


@pytest.mark.parametrize("content", CONTENT)
def test_content(known, content):
    with Unchanged(known):
        with pytest.raises(ContentError, match="content"):
            known.remember(content)
        with pytest.raises(ContentError, match="content"):
            known.update("m-1", content=content)
        with pytest.raises(ContentError, match="record 1: content"):
            known.remember_many([{"content": "fine"}, {"content": content}])


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FIELDS.items() for value in values])
def test_fields(known, name, value):
    with Unchanged(known):
        with pytest.raises(InvalidValue, match=name):
            known.remember("x", **{name: value})
        with pytest.raises(InvalidValue, match=name):
            known.update("m-1", **{name: value})
        if not (isinstance(value, float) and value != value):  # NaN in a record means "not given"
            with pytest.raises(InvalidValue, match=f"record 1: {name}"):
                known.remember_many(["fine", {"content": "x", name: value}])


@pytest.mark.parametrize("value", CREATED)
def test_created_at(known, value):
    with Unchanged(known), pytest.raises(InvalidValue, match="created_at"):
        known.remember("x", created_at=value)
    with Unchanged(known), pytest.raises(InvalidValue, match="trashed_before"):
        known.purge(trashed_before=value)
    for name in ("accessed_at", "updated_at", "trashed_at"):
        with Unchanged(known), pytest.raises(InvalidValue, match=f"record 0: {name}"):
            known.remember_many([{"content": "x", name: value}])


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in KEYS.items() for value in values])
def test_ids_and_keys(known, name, value):
    with Unchanged(known), pytest.raises(InvalidValue):
        known.remember("x", **{name: value})


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_vectors(known, vector):
    with Unchanged(known), pytest.raises(EncoderError, match="vector"):
        known.remember("x", vector=vector)
    with Unchanged(known), pytest.raises(EncoderError, match="record 1: vector"):
        known.remember_many(["fine", {"content": "x", "vector": vector}])


@pytest.mark.parametrize("memory_id", UNKNOWN, ids=repr)
def test_unknown_ids(known, memory_id):
    with Unchanged(known):
        for call in (
            known.get,
            known.forget,
            known.restore,
            known.history,
            known.passages,
            lambda given: known.update(given, content="new"),
        ):
            with pytest.raises(UnknownMemory, match="no memory has the id"):
                call(memory_id)
        assert memory_id not in known
        for many in (known.touch, known.purge):
            with pytest.raises(MemlabError):
                many(["m-2", memory_id])
        if isinstance(memory_id, str):
            assert [memory.memory_id for memory in known.get_many(["m-1", memory_id])] == ["m-1"]


def test_the_message_of_an_unknown_id_is_a_sentence(known):
    with pytest.raises(UnknownMemory) as caught:
        known.get("m-none")
    assert str(caught.value).startswith("no memory has the id 'm-none'")
    assert isinstance(caught.value, KeyError)


@pytest.mark.parametrize("ids", [5, 2.5, True])
def test_ids_of_another_kind(known, ids):
    with Unchanged(known):
        for call in (known.touch, known.purge, known.get_many):
            with pytest.raises(InvalidValue, match="memory_ids"):
                call(ids)


def test_update_without_anything(known):
    with Unchanged(known), pytest.raises(InvalidValue, match=r"nothing to change.*content.*tags"):
        known.update("m-1")


def test_purge_of_a_live_memory(known):
    with Unchanged(known), pytest.raises(InvalidValue, match="forget"):
        known.purge(["m-2", "m-1"])


def test_whole_numbers_of_numpy_are_fine(known):
    assert known.remember("x", importance=np.int64(7)).importance == 7
    assert known.update("m-1", importance=np.int8(1)).importance == 1


def test_none_clears_and_blank_is_none(known):
    got = known.update("m-1", project=None, tags=None, source=" ")
    assert (got.project, got.tags, got.source) == (None, (), None)
    with Unchanged(known), pytest.raises(InvalidValue, match="category"):
        known.update("m-1", category=None)
