"""Synthetic memories: the same from the same seed, alike in shape to real ones, and stored as any others."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from memlab.bench.geometry import THEMES, space, zipf
from memlab.bench.synthetic import cached_store, make_store, memories, questions, vectors
from memlab.bench.wording import VOCABULARY, wording
from memlab.encoders import HashingEncoder
from memlab.errors import InvalidValue

ENCODER = HashingEncoder()


def test_the_same_seed_gives_the_same_memories_and_another_seed_others() -> None:
    first, second = list(memories(50, 3)), list(memories(50, 3))
    assert first == second
    assert not {row["content"] for row in first} & {row["content"] for row in memories(50, 4)}
    np.testing.assert_array_equal(vectors(50, 3), vectors(50, 3))
    assert not np.allclose(vectors(50, 3), vectors(50, 4), atol=0.1)


def test_a_larger_set_begins_with_the_smaller_one() -> None:
    assert list(islice(memories(3000, 1), 1100)) == list(memories(1100, 1))
    np.testing.assert_array_equal(vectors(3000, 1)[:1100], vectors(1100, 1))


def test_memories_have_an_id_of_their_own_and_fields_to_filter_by() -> None:
    rows = list(memories(2000))
    assert len({row["memory_id"] for row in rows}) == len({row["content"] for row in rows}) == 2000
    assert 230 < np.mean([len(row["content"]) for row in rows]) < 330
    projects = [row["project"] for row in rows]
    assert len(set(projects)) == 10
    assert 0.02 < projects.count(min(set(projects), key=projects.count)) / 2000 < 0.1


def test_words_follow_zipfs_law_with_many_that_are_rare() -> None:
    words = wording()
    assert len(words.vocabulary) == len(set(words.vocabulary)) == VOCABULARY
    counts: dict[str, int] = {}
    for row in memories(2000):
        for word in set(row["content"].lower().split()):
            counts[word] = counts.get(word, 0) + 1
    often = sorted(counts.values(), reverse=True)
    assert often[0] > 1400
    assert often[100] < 400
    assert sum(1 for count in often if count == 1) > len(often) / 3


def test_vectors_are_unit_and_lie_as_those_of_real_notes() -> None:
    matrix = vectors(6000)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    cosines = matrix[:300] @ matrix.T
    cosines[np.arange(300), np.arange(300)] = -1
    ordered = -np.sort(-cosines, axis=1)
    # Of 8,445 real notes: 0.14 between pairs, 0.69 and 0.54 with the nearest and the tenth.
    assert 0.10 < np.median(cosines) < 0.18
    assert 0.58 < np.median(ordered[:, 0]) < 0.74
    assert 0.46 < np.median(ordered[:, 9]) < 0.60
    variances = np.linalg.eigvalsh(np.cov(matrix.T))
    assert 75 < variances.sum() ** 2 / (variances**2).sum() < 110


def test_questions_differ_and_lie_near_what_they_ask_about() -> None:
    asked = questions(400, size=3000)
    assert len({question.text for question in asked}) == 400
    assert [question.text for question in asked] == [question.text for question in questions(400, size=3000)]
    matrix, order = vectors(3000), [int(question.memory_id[2:]) - 1 for question in asked]
    assert max(order) >= 2048
    own = np.array([question.vector @ matrix[at] for question, at in zip(asked, order, strict=True)])
    assert 0.6 < np.median(own) < 0.8
    contents = [row["content"] for row in memories(3000)]
    shared = [
        sum(word.strip("?") in contents[at] for word in q.text.split()) for q, at in zip(asked, order, strict=True)
    ]
    assert np.mean(shared) > 3


def test_more_questions_than_there_can_be_are_refused() -> None:
    assert len(questions(20, size=1)) == 20
    with pytest.raises(InvalidValue, match="1 memories give"):
        questions(100_000, size=1)


def test_ranks_by_zipfs_law_stay_in_bounds() -> None:
    ranks = zipf(np.array([0.0, 0.5, 1 - 1e-12]), 100, 5)
    assert ranks[0] == 0
    assert ranks[0] < ranks[1] < ranks[2] == 99
    assert space(0).themes.shape == (THEMES, 384)


def test_a_store_is_made_once_and_kept(tmp_path: Path) -> None:
    with cached_store(300, cache=tmp_path, encoder=ENCODER) as store:
        path = store.path
        assert len(store) == 300
        assert store.encoder_stamp is not None
        assert store.encoder_stamp.name == ENCODER.name
        with store.view() as view:
            rows = view.connection.execute("SELECT vector FROM memories ORDER BY id").fetchall()
        np.testing.assert_array_equal(np.frombuffer(b"".join(row[0] for row in rows), "<f4"), vectors(300).ravel())
    before = path.stat().st_mtime_ns
    with cached_store(300, cache=tmp_path, encoder=ENCODER) as again:
        assert again.path == path
        assert path.stat().st_mtime_ns == before
    with cached_store(300, 1, cache=tmp_path, encoder=ENCODER) as other:
        assert other.path != path


def test_a_store_that_was_begun_is_gone_on_with(tmp_path: Path) -> None:
    with make_store(tmp_path / "part.db", 100, encoder=ENCODER) as store:
        assert len(store) == 100
    with make_store(tmp_path / "part.db", 250, encoder=ENCODER) as store:
        assert len(store) == 250


def test_an_encoder_of_another_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="384 dimensions"):
        make_store(tmp_path / "store.db", 10, encoder=HashingEncoder(64))
    with pytest.raises(InvalidValue, match="found None"):
        make_store(tmp_path / "store.db", 10, encoder=None)
