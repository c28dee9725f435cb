from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.encoders import Encoder, HashingEncoder
from memlab.errors import InvalidValue

ENCODER = HashingEncoder()


def cosine(first: str, second: str) -> float:
    vectors = ENCODER.encode_documents([first, second])
    return float(vectors[0] @ vectors[1])


def test_it_is_an_encoder():
    assert isinstance(ENCODER, Encoder)
    assert (ENCODER.name, ENCODER.dimension, ENCODER.token_limit) == ("hashing-384", 384, 256)
    assert (ENCODER.query_prefix, ENCODER.document_prefix) == ("", "")
    assert repr(ENCODER) == "HashingEncoder(dimension=384, token_limit=256)"


def test_shared_words_are_near():
    assert cosine("retry the webhook with jitter", "jitter with the webhook: retry") > 0.9
    assert cosine("Retry WEBHOOK", "retry webhook") == pytest.approx(1, abs=1e-6)
    assert cosine("retry the webhook", "the webhook") > cosine("retry the webhook", "green apples fall") + 0.3
    # Trigrams bring forms of a word together; other words stay apart.
    assert cosine("retries", "retry") > 0.25 > cosine("retries", "apples")
    assert cosine("数据库连接", "连接数据库") == pytest.approx(1, abs=1e-6)


def test_the_vectors_never_change():
    """Stores hold these vectors: whoever changes one bit of them must raise the version."""
    texts = ["Webhooks retry with full jitter, capped at 5 min.", "数据库 foo_bar C++", "", "\ud800\x00 é"]
    digest = sha256(ENCODER.encode_documents(texts).astype("<f4").tobytes()).hexdigest()
    assert digest == "03f95697c921a160623401de99e8404c94c3ad71126f932c726d7a918adaa20a"
    assert ENCODER.fingerprint == "sha256:183b3e0ac04cc3586353c59d16654e293f54db8044ef926c5eba8cbba53dd479"


def test_other_processes_agree():
    code = (
        "from memlab.encoders import HashingEncoder as H; print(H(16).encode_queries(['foo bar baz']).tobytes().hex())"
    )
    expected = HashingEncoder(16).encode_queries(["foo bar baz"]).tobytes().hex()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert run.stdout.strip() == expected


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(), max_size=40), max_size=5), st.integers(1, 50))
def test_any_text_has_a_unit_vector(texts, dimension):
    vectors = HashingEncoder(dimension).encode_documents(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("text", ["", " \n", "\x00", "\ud800", "!!!", "***", "🙂", "\u200d"])
def test_texts_without_words(text):
    assert np.linalg.norm(ENCODER.encode_queries([text])) == pytest.approx(1, abs=1e-6)


def test_tokens():
    text = "foo_bar(x1) 数据 C++ é カナ"
    spans = ENCODER.token_spans(text)
    tokens = [text[start:end] for start, end in spans]
    assert tokens == ["foo_bar", "(", "x1", ")", "数", "据", "C", "+", "+", "é", "カ", "ナ"]
    assert spans.dtype == np.int64
    assert ENCODER.count_tokens([text, "", " "]) == [12, 0, 0]
    assert ENCODER.token_spans("").shape == (0, 2)


def test_only_the_first_tokens_take_part():
    short = HashingEncoder(token_limit=3)
    same, cut, other = short.encode_documents(["a b c", "a b c d", "a b d"])
    np.testing.assert_array_equal(same, cut)
    assert not np.array_equal(same, other)


def test_fingerprints_tell_dimensions_apart():
    assert HashingEncoder(16).fingerprint != HashingEncoder(32).fingerprint
    assert HashingEncoder(16).fingerprint == HashingEncoder(16, token_limit=8).fingerprint


@pytest.mark.parametrize("wrong", [{"dimension": 0}, {"dimension": "384"}, {"token_limit": -1}, {"dimension": True}])
def test_wrong_sizes(wrong):
    with pytest.raises(InvalidValue, match="expected a whole number of at least 1"):
        HashingEncoder(**wrong)


def test_wrong_texts():
    with pytest.raises(InvalidValue, match="put it into a list"):
        ENCODER.encode_documents("one text")
    with pytest.raises(InvalidValue, match="int at place 1"):
        ENCODER.encode_documents(["a", 1])  # type: ignore[list-item]
