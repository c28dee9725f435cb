from __future__ import annotations

import numpy as np
import pytest

from memlab.errors import InvalidValue
from memlab.projection import VectorSpace, clusters, duplicates, outliers
from tests.projection.conftest import fill, groups


def test_near_pairs_are_those_above_the_threshold(grouped):
    vectors = groups(120).astype(np.float64)
    cosines = vectors @ vectors.T
    expected = {(a, b) for a in range(120) for b in range(a + 1, 120) if cosines[a, b] >= 0.7}
    assert len(expected) > 20
    found = duplicates(grouped, 0.7)
    assert {(int(a[2:]), int(b[2:])) for a, b in zip(found["memory_id"], found["other_id"], strict=True)} == expected
    assert found["cosine"].is_monotonic_decreasing
    assert not found["same_text"].any()
    assert found.attrs["found"] == len(expected)


def test_a_limit_keeps_the_nearest_and_tells_how_many_there_were(grouped):
    everything, some = duplicates(grouped, 0.6), duplicates(grouped, 0.6, limit=7)
    assert some["memory_id"].tolist() == everything["memory_id"].tolist()[:7]
    assert some.attrs["found"] == everything.attrs["found"] == len(everything)


def test_the_same_text_is_found_with_a_vector_or_without(make_store):
    store = fill(make_store(), groups(20))
    store.remember("word for word", memory_id="a")
    store.remember("word for word", memory_id="b")
    store.remember("Word for word", memory_id="c")  # another text, the same bag of words
    store.remember("gone", memory_id="d")
    store.remember("gone", memory_id="e")
    store.forget("e")
    without = store.without_encoder()
    without.remember("word for word", memory_id="f")
    without.close()
    found = duplicates(store, 0.999)
    same = found[found["same_text"]]
    assert same[["memory_id", "other_id"]].values.tolist() == [["a", "b"], ["a", "f"]]
    assert same["cosine"].iloc[0] == pytest.approx(1)
    assert np.isnan(same["cosine"].iloc[1])
    assert {"a", "c"} in [{a, b} for a, b in zip(found["memory_id"], found["other_id"], strict=True)]
    assert found["content"].iloc[0] == "word for word"


def test_an_outlier_is_far_from_its_neighbours(make_store):
    vectors = groups(90, spread=0.2)
    odd = groups(1, seed=99)
    store = fill(make_store(), np.concatenate([vectors, odd]))
    found = outliers(store, 5)
    assert found["memory_id"].iloc[0] == "m-90"
    assert found["mean_cosine"].is_monotonic_increasing
    cosines = np.sort(vectors @ odd[0])[::-1]
    assert found["mean_cosine"].iloc[0] == pytest.approx(cosines[:10].mean(), abs=1e-5)
    assert found["nearest_cosine"].iloc[0] == pytest.approx(cosines[0], abs=1e-5)
    assert found["nearest_id"].iloc[0] == f"m-{np.argmax(vectors @ odd[0])}"


def test_few_memories(make_store):
    store = make_store()
    assert len(duplicates(store)) == len(outliers(store)) == len(clusters(store)) == 0
    store.remember("alone")
    assert len(duplicates(store)) == len(outliers(store)) == 0
    assert clusters(store).labels.tolist() == [0]
    store.remember("together")
    assert len(outliers(store)) == 2
    assert clusters(store).labels.tolist() == [0, 0]


def test_groups_are_found_again(grouped):
    found = clusters(grouped)
    assert len(found) == 6
    # Memory i was made of group i % 6.
    true = np.arange(120) % 6
    assert len({(label, group) for label, group in zip(found.labels.tolist(), true.tolist(), strict=True)}) == 6
    assert found.silhouette > 0.3
    again = clusters(grouped)
    assert (again.labels == found.labels).all()
    assert len(clusters(grouped, 3)) == 3


def test_a_group_is_named_by_its_typical_words(make_store):
    store = make_store()
    texts = [f"webhook retry jitter {at}" for at in range(12)] + [f"the parquet column reader {at}" for at in range(8)]
    store.remember_many([{"content": text} for text in texts])
    found = clusters(store, 2)
    assert [set(words) for words in found.words] == [{"webhook", "retry", "jitter"}, {"parquet", "column", "reader"}]
    assert found.frame["label"].value_counts().to_dict() == dict(zip(found.names, (12, 8), strict=True))


def test_all_the_same_is_one_group(make_store):
    store = fill(make_store(), np.repeat(groups(1), 8, axis=0))
    assert clusters(store).labels.tolist() == clusters(store, 3).labels.tolist() == [0] * 8
    assert len(duplicates(store)) == 28


def test_what_is_asked_is_checked(grouped):
    with pytest.raises(InvalidValue, match="threshold"):
        duplicates(grouped, 1.5)
    with pytest.raises(InvalidValue, match="n:"):
        clusters(grouped, 0)
    with pytest.raises(InvalidValue, match="k:"):
        outliers(grouped, k=0)


def test_a_space_that_is_at_hand_is_used(grouped, monkeypatch):
    space = VectorSpace.of(grouped)
    expected = outliers(grouped, 3)
    monkeypatch.setattr(VectorSpace, "of", None)
    assert outliers(grouped, 3, space=space).equals(expected)
