"""Text to tokens: every script, identifiers, and whatever else may come."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.retrieval import terms
from memlab.store import schema
from memlab.store.analysis import STOP_WORDS, analyse, fold, query_tokens

# All that are in use, with few of the tens of thousands that are alike.
CHARACTERS = [
    char
    for char in map(
        chr, [*range(0x4E00), *range(0x9F00, 0xAC10), *range(0xD7A0, 0x1FFFF), *range(0x20000, 0xF0000, 97)]
    )
    if unicodedata.category(char) not in ("Cn", "Cs")
]
TEXT = st.text(st.characters(exclude_categories=()), max_size=200) | st.from_regex(
    r"([A-Z]{0,3}[a-z]{0,4}[0-9_\- ]{0,2}){0,8}", fullmatch=True
)


def is_word_character(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LNM" or category == "Co"


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n-_.,;", []),
        ("\x00a\x00bee\ud800cee", ["bee", "cee"]),
        ("Webhooks retry, capped!", ["webhoo", "retry", "capped"]),
        ("Straße ÉCOLE naïve İstanbul", ["strass", "ecole", "naive", "istanb"]),
        ("ﬁne ½ Ⅳ ＡＢＣ x²", ["fine", "1", "2", "iv", "abc", "x2", "x", "2"]),
        ("Ёлка Σίσυφος", ["елка", "σισυφο"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שלום עולם مرحبا", ["שלום", "עולם", "مرحبا"]),
        ("❤\ufe0f ready 1\ufe0f\u20e3", ["ready", "1\ufe0f\u20e3"]),
        ("\ue000\U000f0000 x", ["\ue000\U000f0000", "x"]),
    ],
)
def test_words(text, tokens):
    assert analyse(text) == tokens


def test_letters_digits_marks_and_private_use_make_words_and_nothing_else_does():
    for char in CHARACTERS:
        plain = unicodedata.normalize("NFKD", char)
        got = analyse(f"xx{char}yy")
        if not any(map(is_word_character, plain)):
            assert got == ["xx", "yy"], hex(ord(char))
        elif len(plain) == 1 and not 0x300 <= ord(plain) <= 0x36F and unicodedata.unidata_version <= "15.1.0":
            assert fold(char) in " ".join(got), hex(ord(char))
            assert len(got) == 1 or got != ["xx", "yy"], hex(ord(char))


def test_folding_again_changes_nothing():
    assert [hex(ord(char)) for char in CHARACTERS if fold(fold(char)) != fold(char)] == []


@given(TEXT)
def test_folding_any_text_again_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("text", ["École Noël", "한국어 메모", "Ёж и йод", "が ぱ", "tiếng Việt"])
def test_the_normal_form_of_a_text_does_not_matter(text):
    forms = {tuple(analyse(unicodedata.normalize(form, text))) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert len(forms) == 1


def test_stop_words_leave_their_neighbours_side_by_side():
    assert analyse("The budget of the retries, and THEN a timeout") == ["budget", "retry", "timeou"]
    assert query_tokens("budget of the retries").pairs == (("budget", "retry"),)
    assert analyse(" ".join(STOP_WORDS)) == []
    assert terms.STOP_WORDS is STOP_WORDS


# -- scripts without spaces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("東", ["東"]),
        ("東京、大阪。", ["東京", "大阪"]),
        ("ウェブフック", ["ウェ", "ェブ", "ブフ", "フッ", "ック"]),
        ("ｳｪﾌﾞ", ["ウェ", "ェブ"]),
        ("人々の〇", ["人々", "々の", "の〇"]),
        ("한국어", ["한국", "국어"]),
        ("ไทย", ["ไท", "ทย"]),
        ("ລາວ", ["ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ្", "្ម", "មែ", "ែរ"]),
        ("မြန်မာ", ["မြ", "ြန", "န်", "်မ", "မာ"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("Python入門2版retries", ["python", "入門", "2", "版", "retry"]),
        ("HTTPServer設定", ["httpserver", "httpse", "http", "server", "設定"]),
    ],
)
def test_pairs_of_characters(text, tokens):
    assert analyse(text) == tokens


def test_a_long_run_of_characters_is_not_cut():
    text = "".join(chr(0x4E00 + at) for at in range(3000))
    assert analyse(text) == [text[at : at + 2] for at in range(2999)]


# -- identifiers and stems --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("camelCase", ["camelcase", "camelc", "camel", "case"]),
        ("HTTPServer", ["httpserver", "httpse", "http", "server"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("E4102", ["e4102", "e", "4102"]),
        ("v2Beta10", ["v2beta10", "v", "2", "beta", "10"]),
        ("Dockerfile HTTP README", ["docker", "http", "readme"]),
        ("snake_case dotted.name kebab-case", ["snake", "case", "dotted", "name", "kebab", "case"]),
        ("src/billing/webhooks.py", ["src", "billin", "webhoo", "py"]),
        ("IDs APIs userIDs", ["ids", "id", "apis", "api", "userids", "userid", "user", "id"]),
        ("toString isReady", ["tostring", "tostri", "string", "isready", "isread", "ready"]),
        ("PostgreSQL", ["postgresql", "postgr", "sql"]),
        ("ПростойТест", ["простоитест", "просто", "тест"]),
        ("Ver٢٣", ["ver٢٣", "ver", "٢٣"]),
        ("3f9ac21", ["3f9ac21", "3", "f", "9", "ac", "21"]),
        ("a1b2c3d4e5f60718293a4b5c6d7e8f9011223344", ["a1b2c3d4e5f60718293a4b5c6d7e8f9011223344"]),
    ],
)
def test_identifiers(text, tokens):
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("retries policies ties", ["retry", "policy", "ty"]),
        ("logs caches process glass", ["log", "cache", "proces", "glass"]),
        ("bus ids ies", ["bus", "ids", "ies"]),
        ("embedding embeddings embedded", ["embedd", "embedd", "embedd"]),
        ("configuración configurar", ["config", "config"]),
    ],
)
def test_stems(text, tokens):
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("JavaScript", "javascript"),
        ("GitHub", "github"),
        ("HTTPServer", "HTTP server"),
        ("getUserNames", "user name"),
        ("ADR-016", "adr 016"),
        ("sha-256", "SHA256"),
        ("APIs", "api"),
        ("webhook_retries", "WebhookRetry"),
    ],
)
def test_spellings_meet(one, other):
    assert set(analyse(one)) & set(analyse(other))


def test_no_word_is_endless():
    assert analyse("x" * 10_000 + "1") == ["x" * 6]
    assert analyse("1" * 10_000) == ["1" * 100]
    assert max(map(len, analyse("aB" * 10_000))) == 100
    assert len(analyse("aB" * 10_000)) == 1


# -- queries ----------------------------------------------------------------------------------------------------------


def test_query_tokens():
    got = query_tokens("How does HTTPServer retry? HTTPServer timeouts")
    assert got.used == ("httpserver", "httpse", "http", "server", "retry", "timeou")
    assert got.pairs == (
        ("http", "server"),
        ("server", "retry"),
        ("retry", "httpserver"),
        ("server", "timeou"),
    )
    assert query_tokens("東京都庁 設定").pairs == ()
    assert query_tokens("Python入門 book").pairs == (("python", "入門"), ("入門", "book"))
    assert query_tokens("sha256 sum").pairs == (("sha", "256"), ("256", "sum"))
    assert query_tokens("the of") == query_tokens("")


def test_a_limit_on_the_tokens():
    text = " ".join(f"w{at}" for at in range(100))
    assert query_tokens(text, limit=4).used == ("w0", "w", "0", "w1")
    assert query_tokens(text, limit=4).pairs == (("w", "0"), ("0", "w1"))
    assert len(query_tokens(text).used) == 32
    assert query_tokens(text, limit=0) == query_tokens("")


@given(TEXT, st.integers(0, 40))
def test_a_query_has_the_tokens_of_its_text(text, limit):
    tokens = analyse(text)
    got = query_tokens(text, limit)
    assert list(got.used) == list(dict.fromkeys(tokens))[:limit]
    assert set(got.pairs) <= set(pairwise(tokens))
    assert {token for pair in got.pairs for token in pair} <= set(got.used)
    assert len(set(got.pairs)) == len(got.pairs)


# -- what FTS5 makes of the tokens ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(schema.TERMS_TABLE)
    connection.execute("CREATE VIRTUAL TABLE instances USING fts5vocab (memory_terms, instance)")
    yield connection
    connection.close()


def stored(index: sqlite3.Connection, tokens: list[str]) -> list[str]:
    """What the vocabulary has after the tokens were stored as one text."""
    index.execute("DELETE FROM memory_terms")
    index.execute("INSERT INTO memory_terms (rowid, content) VALUES (1, ?)", (" ".join(tokens),))
    return [row[0] for row in index.execute("SELECT term FROM instances ORDER BY offset")]


def test_fts5_keeps_the_tokens_of_every_character(index):
    for start in range(0, len(CHARACTERS), 4096):
        text = " ".join(f"{char} b{char}c" for char in CHARACTERS[start : start + 4096])
        tokens = analyse(text)
        assert stored(index, tokens) == tokens


@settings(max_examples=300)
@given(TEXT)
def test_fts5_keeps_the_tokens_of_any_text(index, text):
    tokens = analyse(text)
    assert all(tokens)
    assert stored(index, tokens) == tokens
