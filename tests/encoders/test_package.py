from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import memlab.encoders
from memlab.encoders import (
    EncoderStamp,
    HashingEncoder,
    MiniLM,
    SentenceTransformerEncoder,
    check_vectors,
    encoder_from_name,
    stamp,
)
from memlab.encoders.weights import MINILM, MINILM_SHA256
from memlab.errors import EncoderError, EncoderMismatch, EncoderUnavailable, InvalidValue


def test_imports_are_light():
    code = """
import sys, memlab.encoders
assert not {"memlab.encoders.passages", "memlab.encoders.minilm"} & set(sys.modules)
from memlab.encoders import *
encoder, hashing, splitter = MiniLM(), HashingEncoder(), PassageSplitter()
heavy = {"torch", "transformers", "sentence_transformers", "huggingface_hub", "tokenizers", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.model
def test_splitting_needs_no_torch(minilm):
    code = """
import sys
from memlab.encoders import MiniLM, PassageSplitter
encoder = MiniLM()
assert len(PassageSplitter().split("some words. " * 500, encoder)) > 3
assert encoder.fingerprint and not encoder.loaded
assert not {"torch", "transformers", "sentence_transformers"} & set(sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_every_public_name_is_there():
    for name in memlab.encoders.__all__:
        assert getattr(memlab.encoders, name) is not None
        assert name in dir(memlab.encoders)
    assert sorted(memlab.encoders._HOMES) == memlab.encoders.__all__
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = memlab.encoders.Nonsense


@pytest.mark.usefixtures("bare")
def test_encoders_from_their_names():
    for name in (MINILM, "all-MiniLM-L6-v2"):
        encoder = encoder_from_name(name)
        assert type(encoder) is MiniLM
        assert encoder.name == MINILM
    assert encoder_from_name(MINILM, dimension=384, token_limit=128).token_limit == 128
    hashing = HashingEncoder(64, token_limit=20)
    again = encoder_from_name("hashing-64", 64, hashing.fingerprint, token_limit=20, document_prefix="")
    assert stamp(again) == stamp(hashing)
    other = encoder_from_name("acme/other", document_prefix="passage: ")
    assert type(other) is SentenceTransformerEncoder
    assert other.document_prefix == "passage: "
    with pytest.raises(EncoderUnavailable, match="acme/other was not found"):
        encoder_from_name("acme/other", 384)
    with pytest.raises(InvalidValue, match="empty"):
        encoder_from_name(" ")


def test_encoders_that_are_not_the_recorded_ones():
    with pytest.raises(EncoderMismatch, match=r"recorded the fingerprint sha256:old.*memlab reembed"):
        encoder_from_name("hashing-64", 64, "sha256:old")
    with pytest.raises(EncoderMismatch, match="recorded the dimension 384"):
        encoder_from_name("hashing-64", 384)


@pytest.mark.model
def test_models_from_their_names(bare, minilm, tiny_folder, monkeypatch):
    encoder = encoder_from_name(MINILM, 384, f"sha256:{MINILM_SHA256}")
    assert stamp(encoder) == stamp(minilm)
    tiny = SentenceTransformerEncoder(tiny_folder)
    recorded = stamp(tiny)
    again = encoder_from_name(
        recorded.name,
        recorded.dimension,
        recorded.fingerprint,
        token_limit=recorded.token_limit,
        document_prefix=recorded.document_prefix,
    )
    assert stamp(again) == recorded
    monkeypatch.setenv("MEMLAB_MODEL", str(tiny_folder))
    with pytest.raises(EncoderMismatch, match="has 24"):
        encoder_from_name(MINILM, 384)


def test_stamps():
    one = EncoderStamp("a", "sha256:1", 4, 256, "")
    assert one.compatible(EncoderStamp("renamed", "sha256:1", 4, 128, ""))
    assert not one.compatible(EncoderStamp("a", "sha256:2", 4, 256, ""))
    assert not one.compatible(EncoderStamp("a", "sha256:1", 5, 256, ""))
    assert not one.compatible(EncoderStamp("a", "sha256:1", 4, 256, "passage: "))


def test_check_vectors():
    unit = np.array([[1, 0], [0, 1]], dtype=np.float32)
    assert check_vectors(unit, 2, 2, "x").tobytes() == unit.tobytes()
    np.testing.assert_allclose(check_vectors([[3, 4]], 1, 2, "x"), [[0.6, 0.8]], rtol=1e-6)
    for wrong, message in (
        ([[1, 0, 0]], "expected vectors of shape"),
        ([["a", "b"]], "expected numbers"),
        ([[1, np.inf]], "vector 0 holds NaN or infinity"),
        ([[0, 0]], "vector 0 has length zero"),
    ):
        with pytest.raises(EncoderError, match=message):
            check_vectors(wrong, 1, 2, "x")
