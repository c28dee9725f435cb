"""What people type is text: nothing in it raises, and nothing changes the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import HashingEncoder, HybridRetriever, MemoryStore

AWKWARD = [
    "C++", "foo AND bar", 'say "hi', "memory:safe", "(python", "a/b", "ADR-016", "don't", "C:\\repo\\main.py", "%", "*",
    "\x00", "a\x00b", "😀", "\ud83d", "", "   ", "\n", "NEAR(a b)", "NOT x", "content:x", "x*", "^x",
    "{a b}: c", "-x", "+x", "'; DROP TABLE memories; --", "\u0301", "\u200b", "\ufeff", "𞤀", "ﬀ", "İ", "x" * 5000,
]  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    store = MemoryStore(tmp_path_factory.mktemp("small") / "small.db", HashingEncoder(32))
    store.remember_many(
        [
            "Use C++ 17 for the firmware",
            "foo and bar are placeholders",
            'they say "hi" to each other',
            "Rust is memory:safe by default",
            "call (python -m memlab)",
            "the a/b test is over",
            "see ADR-016 for the decision",
            "don't retry on 4xx",
            "open C:\\repo\\main.py first",
            "100 % of the cases, *all* of them",
            "a smile 😀 in the log",
            "long paste " + "word " * 3000,
        ],
        progress=False,
    )
    yield store
    store.close()


def dump(store: MemoryStore) -> list[str]:
    return list(store.db.conn.iterdump())


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_gives_an_ordinary_answer(small: MemoryStore, text: str) -> None:
    recall = HybridRetriever(small).recall(text)
    assert len(recall) <= 5
    assert recall.query == text
    assert isinstance(repr(recall), str)
    assert recall._repr_html_().startswith("<table")
    recall._repr_html_().encode("utf-8")
    repr(recall).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("C++", "Use C++"),
        ("foo AND bar", "foo and"),
        ('say "hi', "they say"),
        ("memory:safe", "Rust is"),
        ("(python", "call (python"),
        ("a/b", "the a/b"),
        ("ADR-016", "see ADR-016"),
        ("don't", "don't retry"),
        ("C:\\repo\\main.py", "open C:"),
    ],
)
def test_keywords_find_what_was_typed(small: MemoryStore, text: str, start: str) -> None:
    found = [hit.content for hit in HybridRetriever(small).only("keyword").recall(text)]
    # FTS5 keeps letters and digits only, so "C++" is "c" and may share its first place.
    assert any(content.startswith(start) for content in (found if text == "C++" else found[:1]))


def test_a_hundred_kilobytes_of_text(small: MemoryStore) -> None:
    recall = HybridRetriever(small).recall("ADR-016 " + "filler words of a paste " * 4200)
    assert recall.trace.channels[0].terms is not None
    assert recall.ids


def test_a_blank_query_has_no_hits_and_says_why(small: MemoryStore) -> None:
    recall = HybridRetriever(small).recall(" \n ")
    assert recall.ids == ()
    assert "the query is blank" in recall.trace.note


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(), max_size=300) | st.sampled_from(AWKWARD))
def test_no_text_raises_or_changes_the_store(small: MemoryStore, text: str) -> None:
    before = dump(small)
    recall = HybridRetriever(small).recall(text, recency_boost=True)
    repr(recall)
    recall._repr_html_()
    recall.explain()
    recall.as_dict()
    assert dump(small) == before


def test_hostile_content_survives_a_round_trip(tmp_path: Path) -> None:
    contents = [text for text in AWKWARD if text.strip() and "\ud83d" not in text]
    with MemoryStore(tmp_path / "x.db", HashingEncoder(32)) as store:
        ids = store.remember_many(contents, progress=False).memory_ids
        assert [store.get(memory_id).content for memory_id in ids] == contents
        assert store.check().ok
