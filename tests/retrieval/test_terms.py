from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.retrieval.terms import STOP_WORDS, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++", ("c",)),
        ("foo AND bar", ("foo", "bar")),
        ('say "hi', ("say", "hi")),
        ("memory:safe", ("memory:safe",)),
        ("(python", ("python",)),
        ("a/b c", ("a/b", "c")),
        ("ADR-016", ("adr-016",)),
        ("don't", ("don't",)),
        ("C:\\repo\\main.py", ("c", "repo\\main.py")),
        ("%", ()),
        ("*", ()),
        ("", ()),
        ("\x00", ()),
        ("\ud83d", ()),
        ("retry\x00backoff", ("retry", "backoff")),
        ("foo..bar -- baz.", ("foo", "bar", "baz")),
        ("snake_case camelCase dotted.name", ("snake_case", "camelcase", "dotted.name")),
        ("¿Cómo está la caché?", ("cómo", "está", "la", "caché")),
        ("数据库 连接", ("数据库", "连接")),
        ("NEAR(a b, 2)", ("near", "b", "2")),
    ],
)
def test_terms_of_text(text: str, expected: tuple[str, ...]) -> None:
    assert terms(text).used == expected


def test_stop_words_are_left_out_unless_nothing_else_is_there() -> None:
    found = terms("how do we back off failing webhooks")
    assert found.used == ("back", "failing", "webhooks")
    assert found.stop_words == ("how", "do", "we", "off")
    assert terms("how do we").used == ("how", "do", "we")
    assert terms("how do we").stop_words == ()
    assert {word for word in STOP_WORDS if word != word.lower()} == set()


def test_terms_are_unique_and_cut_at_the_limit() -> None:
    found = terms(" ".join(f"w{i} w{i}" for i in range(50)), limit=32)
    assert found.used == tuple(f"w{i}" for i in range(32))
    assert found.cut == 18


def test_a_phrase_is_quoted() -> None:
    assert terms('say "hi ADR-016').match == '"say" OR "hi" OR "adr-016"'


@given(st.text(st.characters(), max_size=200))
def test_every_expression_is_valid_fts5(text: str) -> None:
    """FTS5 must take whatever comes out, and find a document that consists of the text's own terms."""
    found = terms(text, stop_words=frozenset())
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 2')")
    connection.execute("INSERT INTO t VALUES (?)", (" ".join(found.used),))
    if found.used:
        rows = connection.execute("SELECT count(*) FROM t WHERE t MATCH ?", (found.match,)).fetchone()[0]
        if any(char.isascii() and char.isalnum() for term in found.used for char in term):
            assert rows == 1
    connection.close()


@pytest.mark.parametrize("text", ["the/" * 25_000, "a/" * 50_000, "x-" * 40_000 + "y", "a.b" * 9000])
def test_no_phrase_is_long(text: str) -> None:
    """FTS5 takes minutes over a phrase of thousands of tokens."""
    found = terms(text)
    assert len(found.used) <= 32
    assert max(len(re.findall(r"\w+", term)) for term in found.used) <= 12


def test_a_long_path_is_cut_and_nothing_of_it_is_lost() -> None:
    path = "/".join(f"p{i}" for i in range(30))
    assert terms(path).used == (
        "/".join(f"p{i}" for i in range(12)),
        "/".join(f"p{i}" for i in range(12, 24)),
        "/".join(f"p{i}" for i in range(24, 30)),
    )


def test_what_holds_words_together_may_be_said() -> None:
    assert terms("bytes.hex in foo_bar/baz-1", joiners="_").used == ("bytes", "hex", "foo_bar", "baz", "1")
    assert terms("bytes.hex in foo_bar", joiners="").used == ("bytes", "hex", "foo", "bar")
