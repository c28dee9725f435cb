"""Sixteen bits are a choice that has a name: never silent, never mixed with the rest."""

import numpy as np
import pytest

from memlab import MemoryStore
from memlab.encoders import MiniLM, encoder_from_name, stamp
from memlab.encoders.half_precision import multiplies_bfloat16
from memlab.encoders.weights import MINILM, MINILM_SHA256
from memlab.errors import EncoderMismatch, InvalidValue

TEXTS = [
    "Webhooks retry with full jitter, capped at 5 min.",
    "The logo is green on a white ground.",
    "数据库连接池耗尽了。",
    "",
]


@pytest.mark.model
@pytest.mark.filterwarnings("ignore:this processor has no instructions")
def test_documents_are_near_and_queries_the_same(minilm, prepared):
    half = MiniLM(precision="bfloat16")
    documents, expected = half.encode_documents(TEXTS), minilm.encode_documents(TEXTS)
    assert documents.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(documents, axis=1), 1, atol=1e-5)
    cosines = (documents * expected).sum(axis=1)
    assert cosines.min() > 0.995
    assert np.abs(documents - expected).max() > 1e-5
    np.testing.assert_allclose(half.encode_queries(TEXTS), minilm.encode_queries(TEXTS), atol=5e-6)
    assert half.engine == "onnx"


@pytest.mark.model
@pytest.mark.filterwarnings("ignore:this processor has no instructions")
def test_the_stamp_tells_and_a_store_does_not_mix(minilm, prepared, tmp_path):
    half = MiniLM(precision="bfloat16")
    assert stamp(half).name == f"{MINILM}+bfloat16"
    assert stamp(half).fingerprint == f"sha256:{MINILM_SHA256}+bfloat16"
    assert not stamp(half).compatible(stamp(minilm))
    with MemoryStore(tmp_path / "memory.db", half) as store:
        store.remember(TEXTS[0])
    with pytest.raises(EncoderMismatch):
        MemoryStore(tmp_path / "memory.db", minilm)
    with MemoryStore(tmp_path / "memory.db") as store:
        assert store.encoder().name == f"{MINILM}+bfloat16"
    assert encoder_from_name("all-MiniLM-L6-v2+bfloat16").name == half.name
    again = encoder_from_name(f"{MINILM}+bfloat16", fingerprint=half.fingerprint)
    assert stamp(again) == stamp(half)


@pytest.mark.model
def test_a_processor_that_gains_nothing_is_warned_of(minilm, monkeypatch):
    half = MiniLM(precision="bfloat16")
    monkeypatch.setattr("memlab.encoders.half_precision.multiplies_bfloat16", lambda: False)
    with pytest.warns(UserWarning, match="no instructions for bfloat16, so it takes longer than float32"):
        half.encode_documents(["x"])


def test_what_a_processor_has_is_read_where_the_system_tells(tmp_path):
    file = tmp_path / "cpuinfo"
    assert multiplies_bfloat16(file) is None
    file.write_text("model name : some\n")
    assert multiplies_bfloat16(file) is None
    file.write_text("flags\t\t: fpu avx2 avx512f\n")
    assert multiplies_bfloat16(file) is False
    file.write_text("flags\t\t: fpu avx512_bf16 avx2\n")
    assert multiplies_bfloat16(file) is True
    file.write_text("Features\t: fp asimd bf16\n")
    assert multiplies_bfloat16(file) is True


def test_another_precision_is_refused():
    with pytest.raises(InvalidValue, match="precision: expected one of float32, bfloat16; found 'int8'"):
        MiniLM(precision="int8")  # type: ignore[arg-type]
