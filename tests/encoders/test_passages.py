from __future__ import annotations

import base64
import random
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.encoders import HashingEncoder, Passage, PassageSplitter
from memlab.encoders.borders import LINE, PARAGRAPH, SENTENCE, SPACE, SYMBOL, WITHIN_TOKEN, WITHIN_WORD, find_borders
from memlab.errors import InvalidValue

PIECES = [
    "word",
    "Word. ",
    "e.g. this",
    "\n",
    "\n\n",
    "\r\n",
    "  ",
    "\t",
    "中文",
    "。",
    "！",
    "e\u0301",
    "\U0001f469\u200d\U0001f467",
]
PIECES += ["foo_bar(", "){};", "\x00", "\ud800", "-", "...", "\u2028", "\xa0", "ﬁ", "a" * 40]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=120).map("".join)
THOROUGH = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


def pieces(text: str, passages: list[Passage]) -> list[str]:
    return [passage.text(text) for passage in passages]


def assert_covers(text: str, passages: list[Passage], overlap: int = 0) -> None:
    assert [passage.position for passage in passages] == list(range(len(passages)))
    assert passages[0].start == 0
    assert passages[-1].end == len(text)
    for former, later in pairwise(passages):
        assert former.start < later.start <= former.end < later.end
        if not overlap:
            assert later.start == former.end
    if not overlap:
        assert "".join(pieces(text, passages)) == text


def words(count: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(count))


@THOROUGH
@given(TEXTS, st.integers(1, 40))
def test_hashing_pieces_are_contiguous_whole_tokens_within_the_limit(text, limit):
    encoder = HashingEncoder(token_limit=limit)
    passages = PassageSplitter().split(text, encoder)
    assert_covers(text, passages)
    assert max(encoder.count_tokens(pieces(text, passages))) <= limit
    inside = {place for start, end in encoder.token_spans(text) for place in range(start + 1, end)}
    assert not inside & {passage.start for passage in passages}
    if encoder.count_tokens([text])[0] <= limit:
        assert passages == [Passage(0, 0, len(text))]
    else:
        assert min(encoder.count_tokens(pieces(text, passages))) >= int(0.3 * limit)


@THOROUGH
@given(TEXTS, st.integers(10, 40), st.data())
def test_overlap_is_shared_in_whole_tokens(text, limit, data):
    overlap = data.draw(st.integers(1, int(0.4 * limit)))
    encoder = HashingEncoder(token_limit=limit)
    passages = PassageSplitter(overlap=overlap).split(text, encoder)
    assert_covers(text, passages, overlap)
    assert max(encoder.count_tokens(pieces(text, passages))) <= limit
    spans = encoder.token_spans(text)
    for former, later in pairwise(passages):
        shared = int(((spans[:, 0] >= later.start) & (spans[:, 1] <= former.end)).sum())
        assert shared >= overlap
        assert shared <= overlap + overlap // 4 or overlap < 4


@THOROUGH
@given(TEXTS, st.integers(4, 40), st.sampled_from(["bytes", "metaspace", "undercounting"]))
def test_awkward_tokenizers(fakes, text, limit, kind):
    encoder = fakes[kind](limit)
    passages = PassageSplitter().split(text, encoder)
    assert_covers(text, passages)
    for piece, count in zip(pieces(text, passages), encoder.count_tokens(pieces(text, passages)), strict=True):
        assert count <= limit or len(piece) == 1


@THOROUGH
@given(TEXTS, st.integers(12, 40), st.sampled_from(["bytes", "metaspace", "undercounting"]))
def test_awkward_tokenizers_with_overlap(fakes, text, limit, kind):
    encoder = fakes[kind](limit)
    passages = PassageSplitter(overlap=3).split(text, encoder)
    assert passages[0].start == 0
    assert passages[-1].end == len(text)
    assert all(later.start <= former.end for former, later in pairwise(passages))
    counts = encoder.count_tokens(pieces(text, passages))
    assert all(count <= limit or len(piece) == 1 for piece, count in zip(pieces(text, passages), counts, strict=True))


@pytest.mark.parametrize(
    ("borders", "ends"),
    [
        (["\n\n", ". ", "\n", " "], "\n\n"),
        ([". ", "\n", " "], ". "),
        (["\n", " ", "-"], "\n"),
        ([" ", "-"], " "),
        (["-"], "-"),
        (["。", "，"], "。"),
        (["\r\n\r\n", "\r\n"], "\r\n\r\n"),
    ],
)
def test_the_best_border_in_the_window_wins(borders, ends):
    """Ten tokens fit; the candidates lie in the last four of them, the best of them first."""
    head = "Aa Bb Cc Dd Ee Ff"
    text = head + "".join(border + f"X{number}" for number, border in enumerate(borders)) + "中" * 30
    first = PassageSplitter(token_limit=10).split(text, HashingEncoder())[0].text(text)
    assert first == head + ends


def test_an_abbreviation_is_no_sentence_end():
    levels = {}
    for text in (
        "Aa bb. Cc",
        "Aa bb. cc",
        "Aa bb cc",
        "Aa (bb.) Cc",
        "Aa bb.cc",
        "了。好",
        "Aa\nbb",
        "Aa\r\nbb",
        "Aa\n \nbb",
    ):
        spans = HashingEncoder().token_spans(text)
        levels[text] = int(find_borders(text, spans).levels[len(spans) - 1])
    assert levels == {
        "Aa bb. Cc": SENTENCE,
        "Aa bb. cc": LINE,
        "Aa bb cc": SPACE,
        "Aa (bb.) Cc": SENTENCE,
        "Aa bb.cc": SYMBOL,
        "了。好": SENTENCE,
        "Aa\nbb": LINE,
        "Aa\r\nbb": LINE,
        "Aa\n \nbb": PARAGRAPH,
    }


def test_inside_a_word_is_the_last_resort(fakes):
    encoder = fakes["bytes"](14)
    text = "aaaa bbbb cccccccccccccccc dd"
    assert pieces(text, PassageSplitter().split(text, encoder)) == ["aaaa bbbb ", "cccccccccc", "cccccc dd"]
    spans = encoder.token_spans("abc")
    assert find_borders("abc", spans).levels[1] == WITHIN_WORD


def test_indentation_stays_with_its_line():
    text = "\n".join(f"    call_{number}(x)" for number in range(40))
    passages = PassageSplitter(token_limit=32).split(text, HashingEncoder())
    assert len(passages) > 3
    assert all(piece.startswith("    call_") for piece in pieces(text, passages))


def test_no_crumb_at_the_end():
    for count in range(101, 320, 7):
        text = words(count)
        encoder = HashingEncoder(token_limit=100)
        counts = encoder.count_tokens(pieces(text, PassageSplitter().split(text, encoder)))
        assert min(counts) >= 30
        assert len(counts) <= count // 60 + 1


def test_what_fits_is_one_passage():
    encoder = HashingEncoder(token_limit=10)
    for text in ("", " ", "\n" * 100_000, "one", words(10), "  " + words(10) + "\n\n", "x" * 5000):
        assert PassageSplitter().split(text, encoder) == [Passage(0, 0, len(text))]
    assert len(PassageSplitter().split(words(11), encoder)) == 2


def test_white_space_is_kept():
    text = "\n\n  " + (" \t\n" * 500).join(words(60).split()) + "   \n"
    passages = PassageSplitter(token_limit=10).split(text, HashingEncoder())
    assert_covers(text, passages)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"token_limit": 0}, "token_limit: expected a whole number of at least 1"),
        ({"token_limit": True}, "token_limit"),
        ({"token_limit": 1.5}, "token_limit"),
        ({"overlap": -1}, "overlap: expected a whole number of at least 0"),
    ],
)
def test_wrong_settings(settings_, message):
    with pytest.raises(InvalidValue, match=message):
        PassageSplitter(**settings_)


def test_settings_that_do_not_suit_the_encoder(fakes):
    with pytest.raises(InvalidValue, match="reads 256 tokens, found 257"):
        PassageSplitter(token_limit=257).split("x", HashingEncoder())
    with pytest.raises(InvalidValue, match="at most 40"):
        PassageSplitter(overlap=41).split(words(300), HashingEncoder(token_limit=100))
    with pytest.raises(InvalidValue, match="special tokens"):
        PassageSplitter().split("some words", fakes["bytes"](2))


def test_the_work_grows_with_the_text_not_faster(fakes):
    """Characters given to the tokenizer: once to locate, once to count, and little more."""
    rng = random.Random(1)
    encoder = fakes["bytes"](256)
    text = base64.b64encode(rng.randbytes(75_000)).decode()
    passages = PassageSplitter().split(text, encoder)
    assert_covers(text, passages)
    assert encoder.characters <= 2.1 * len(text)


def _pastes() -> dict[str, str]:
    rng = random.Random(2)
    line = "    if value.kind == 'x':  # see e.g. RFC 9110\n        return [f(value, key=k) for k in range(10)]\n\n"
    return {
        "prose": (words(1000) + ". New one.\n\n") * 160,
        "code": line * 10_000,
        "base64": base64.b64encode(rng.randbytes(750_000)).decode(),
        "chinese": "".join(
            rng.choice("，。！") if rng.random() < 0.08 else chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(300_000)
        ),
        "one word": "ab" * 500_000,
        "blank": " " * 1_000_000,
    }


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prose", "code", "base64", "chinese", "one word", "blank"])
def test_a_paste_of_a_megabyte(minilm, kind):
    text = _pastes()[kind]
    passages = PassageSplitter().split(text, minilm)
    assert_covers(text, passages)
    counts = minilm.count_tokens(pieces(text, passages))
    assert max(counts) <= 256
    if len(counts) > 1:
        assert min(counts) >= 60
        assert sum(counts) / len(counts) > 190


@pytest.mark.model
@settings(deadline=None, max_examples=60)
@given(TEXTS, st.sampled_from([8, 16, 64]), st.sampled_from([0, 2]))
def test_minilm_pieces(minilm, text, limit, overlap):
    passages = PassageSplitter(limit, overlap).split(text, minilm)
    assert_covers(text, passages, overlap)
    for piece, count in zip(pieces(text, passages), minilm.count_tokens(pieces(text, passages)), strict=True):
        assert count <= limit or len(piece) == 1


def test_tokens_that_share_a_character_are_not_parted(fakes):
    text = "aé中"
    levels = find_borders(text, fakes["bytes"](9).token_spans(text)).levels
    assert levels.tolist()[1:6] == [WITHIN_WORD, WITHIN_TOKEN, WITHIN_WORD, WITHIN_TOKEN, WITHIN_TOKEN]
