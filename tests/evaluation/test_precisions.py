"""Vectors of fewer bits."""

from __future__ import annotations

import re

import numpy as np
import pytest

from memlab import HybridRetriever, MemoryStore
from memlab.errors import EncoderUnavailable, InvalidValue
from memlab.evaluation import RoundedVectorChannel, compare_precisions, evaluate
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.precisions import bytes_a_vector, rounded
from memlab.retrieval import VectorChannel


@pytest.fixture
def vectors() -> np.ndarray:
    random = np.random.default_rng(5).standard_normal((50, 384)).astype(np.float32)
    return random / np.linalg.norm(random, axis=1, keepdims=True)


def test_rounding_is_as_stated(vectors: np.ndarray) -> None:
    assert rounded(vectors, "float32") is vectors
    np.testing.assert_array_equal(rounded(vectors, "float16"), vectors.astype(np.float16).astype(np.float32))
    bytes_ = rounded(vectors, "int8")
    scale = np.abs(vectors).max(axis=1) / np.float32(127)
    assert bytes_.dtype == np.float32
    whole = bytes_ / scale[:, None]
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-4)
    assert (np.abs(np.rint(whole)).max(axis=1) == 127).all()
    assert (np.abs(bytes_ - vectors) <= scale[:, None] * 0.5001).all()
    np.testing.assert_array_equal(rounded(-vectors, "int8"), -bytes_)  # symmetric
    assert not rounded(np.zeros((1, 4), np.float32), "int8").any()
    assert rounded(np.zeros((0, 4), np.float32), "int8").shape == (0, 4)
    assert [bytes_a_vector(384, name) for name in ("float32", "float16", "int8")] == [1536, 768, 388]


def test_float32_is_the_vector_channel(filled: MemoryStore, small: LabelledSet) -> None:
    own, usual = (
        HybridRetriever(filled, channels=(channel,), recency=None)
        for channel in (RoundedVectorChannel(), VectorChannel())
    )
    for query in small.queries:
        for filters in ({}, {"project": "even"}):
            hits = [
                [(hit.memory_id, hit.score) for hit in one.recall(query.text, limit=50, filters=filters).hits]
                for one in (own, usual)
            ]
            assert hits[0] == hits[1]


def test_a_channel_locates_and_scores_what_it_finds(filled: MemoryStore, small: LabelledSet) -> None:
    channel = RoundedVectorChannel("int8")
    retriever = HybridRetriever(filled, channels=(channel,), recency=None, depth=100)
    found = retriever.gather(small.queries[0].text)
    (result,) = found.results
    with filled.view() as view:
        every = channel.score(found.query, view, [hit.number for hit in result.hits])
        for hit in result.hits:
            assert channel.locate(found.query, view, hit.number, frozenset()) == (hit.rank, hit.raw_score)
            assert every[hit.number] == (hit.raw_score, None)
        assert channel.locate(found.query, view, 999_999, frozenset()) == "it has no vector that may take part"
        assert channel.score(found.query, view, []) == {}


def test_changes_of_the_store_are_followed(filled: MemoryStore) -> None:
    retriever = HybridRetriever(filled, channels=(RoundedVectorChannel("int8"),), recency=None)
    assert retriever.recall("zebra zebu").hits[0].memory_id != "new"
    filled.remember("zebra zebu", memory_id="new")
    assert retriever.recall("zebra zebu").hits[0].memory_id == "new"
    filled.forget("new")
    assert retriever.recall("zebra zebu").hits[0].memory_id != "new"


def test_precisions_side_by_side(filled: MemoryStore, small: LabelledSet) -> None:
    compared = compare_precisions(filled, small.queries, small.qrels, measures="nDCG@10,R@5", progress=False)
    assert compared.comparison.systems == ("float32", "float16", "int8")
    assert compared.comparison.baseline == "float32"
    assert compared.vector_bytes == {"float32": 40 * 256, "float16": 40 * 128, "int8": 40 * 68}
    assert compared.memories == 40
    vector = HybridRetriever(filled).only("vector")
    usual = evaluate(vector, small.queries, small.qrels, "nDCG@10", progress=False)
    table = compared.table.set_index("precision")
    assert table.loc["float32", "nDCG@10"] == usual.mean("nDCG@10")
    assert table.loc["float32", "kept"] == 1
    # The share that is kept, by other means.
    matrix_ids, matrix = filled.vectors()
    shares = []
    for query in small.queries:
        asked = filled.encode_query(query.text).astype(np.float64)
        tops = []
        for precision in ("float32", "int8"):
            cosines = (rounded(matrix, precision).astype(np.float64) * asked).sum(axis=1)
            tops.append({name for _, name in sorted(zip(-cosines, matrix_ids, strict=True))[:10]})
        shares.append(len(tops[0] & tops[1]) / 10)
    np.testing.assert_allclose(compared.kept_shares("int8"), shares)
    assert compared.kept("int8") == pytest.approx(np.mean(shares))
    for shown in (repr(compared), re.sub(r"<[^>]+>", " ", compared._repr_html_())):
        assert "10.2 kB" in shown
        assert "2.72 kB" in shown
        assert "top 10 kept" in shown
    pytest.importorskip("matplotlib")
    assert compared.plot("R@5").png().startswith(b"\x89PNG")


def test_float32_takes_part_unasked(filled: MemoryStore, small: LabelledSet) -> None:
    compared = compare_precisions(filled, small.queries, small.qrels, "int8", measures="R@1", progress=False)
    assert compared.comparison.systems == ("float32", "int8")
    with pytest.raises(InvalidValue, match="expected one of float32, int8; found 'float16'"):
        compared.kept("float16")


def test_bad_input(filled: MemoryStore, small: LabelledSet, make_store) -> None:
    for given in (["int4"], [8], "half"):
        with pytest.raises(InvalidValue, match="expected names of float32, float16, int8"):
            compare_precisions(filled, small.queries, small.qrels, given)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="expected one or more of float16, int8, found none"):
        compare_precisions(filled, small.queries, small.qrels, ["float32"])
    with pytest.raises(InvalidValue):
        RoundedVectorChannel("bfloat16")
    bare = make_store("bare.db", encoder=None)
    bare.remember_many(small.corpus, progress=False)
    with pytest.raises(EncoderUnavailable):
        compare_precisions(bare, small.queries, small.qrels)


def test_lengths_are_not_put_right(vectors: np.ndarray) -> None:
    assert np.abs(np.linalg.norm(rounded(vectors, "int8"), axis=1) - 1).max() > 1e-5
