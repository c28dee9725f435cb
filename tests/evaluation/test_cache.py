"""Stores are built once, appear whole, and keep the vectors of queries beside them."""

import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memlab import HashingEncoder, HybridRetriever, MiniLM, PassagePolicy
from memlab.errors import (
    EncoderError,
    EncoderUnavailable,
    InvalidValue,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)
from memlab.evaluation import build_store, cache, evaluate
from memlab.evaluation.cache import cache_folder
from memlab.evaluation.vectors import vector_file
from memlab.store import AUTO
from tests.evaluation.conftest import CountingEncoder

ENCODER = HashingEncoder(64)


class Failing(HashingEncoder):
    """Fails from the given call on."""

    def __init__(self, after, error):
        super().__init__(64)
        self.left, self.error = after, error

    def encode_documents(self, texts):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().encode_documents(texts)


def stores(folder):
    return sorted(path.name for path in folder.glob("*.db"))


def test_a_store_is_built_once(small, tmp_path):
    with build_store(small, tmp_path, ENCODER) as store:
        assert len(store) == 40
        assert store.stats().pending == 0
        assert store.read_only
        first = store.path.stat().st_mtime_ns
        with pytest.raises(StoreReadOnly):
            store.remember("more")
    with build_store(small, tmp_path, ENCODER) as store:
        assert store.path.stat().st_mtime_ns == first
    assert len(stores(tmp_path)) == 1
    assert not list(tmp_path.glob("*.part*"))


def test_what_decides_the_store(small, tmp_path):
    class Prefixed(HashingEncoder):
        query_prefix = "query: "

    other = replace(small, corpus=small.corpus[1:])
    for labelled, encoder, policy in (
        (small, ENCODER, None),
        (small, ENCODER, PassagePolicy()),  # the default
        (replace(small, queries=(), split="dev"), ENCODER, None),  # the same memories
        (small, HashingEncoder(32), None),
        (small, HashingEncoder(64, token_limit=8), None),
        (small, Prefixed(64), None),
        (small, ENCODER, PassagePolicy(aggregate="truncate")),
        (other, ENCODER, None),
        (small, None, None),
    ):
        build_store(labelled, tmp_path, encoder, policy).close()
    assert len(stores(tmp_path)) == 7


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("MEMLAB_CACHE", raising=False)
    assert cache_folder().name == "evaluation"
    monkeypatch.setenv("MEMLAB_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    assert cache_folder(tmp_path / "b") == tmp_path / "b"


def test_an_interrupted_build_is_gone_on_with(small, tmp_path, monkeypatch):
    monkeypatch.setattr("memlab.evaluation.cache._BATCH", 10)
    with pytest.raises(KeyboardInterrupt):
        build_store(small, tmp_path, Failing(2, KeyboardInterrupt()))
    assert stores(tmp_path) == []
    assert list(tmp_path.glob("*.part"))
    rest = Failing(100, KeyboardInterrupt())
    with build_store(small, tmp_path, rest) as store:
        assert len(store) == 40
        assert rest.left == 98  # two batches of four were there
    assert not list(tmp_path.glob("*.part*"))


def test_a_build_with_holes_is_not_kept(small, tmp_path):
    with pytest.raises(EncoderError, match=r"small: 40 memories could not be encoded: .*broken"):
        build_store(small, tmp_path, Failing(0, RuntimeError("broken")))
    assert stores(tmp_path) == []


def test_what_is_left_of_a_build_may_be_rubbish(small, tmp_path):
    with build_store(small, tmp_path, ENCODER) as store:
        path = store.path
    path.unlink()
    path.with_suffix(".part").write_bytes(b"not a database")
    with build_store(small, tmp_path, ENCODER) as store:
        assert len(store) == 40


@pytest.mark.parametrize("left", [0, 10, 4096, 0.5, 0.99])
def test_a_store_that_is_not_whole_is_made_anew(small, tmp_path, left):
    with build_store(small, tmp_path, ENCODER) as store:
        path = store.path
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole)) if isinstance(left, float) else left])
    with build_store(small, tmp_path, ENCODER) as store:
        assert len(store) == 40
    assert stores(tmp_path) == [path.name]


@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_that_cannot_be_written_is_said(small, tmp_path, monkeypatch, begun):
    """As root every folder can be written, so the errors are those of a medium that cannot."""
    monkeypatch.setattr("memlab.evaluation.cache._BATCH", 10)
    if begun:
        with pytest.raises(KeyboardInterrupt):
            build_store(small, tmp_path, Failing(2, KeyboardInterrupt()))
        monkeypatch.setattr("memlab.store.connection.os.access", lambda path, mode: False)
    else:
        connect = sqlite3.connect

        def refuse(path, **options):
            if str(path).endswith(".lock"):
                raise sqlite3.OperationalError("unable to open database file")
            return connect(path, **options)

        monkeypatch.setattr("memlab.evaluation.cache.sqlite3.connect", refuse)
    there = sorted(tmp_path.iterdir())
    with pytest.raises(StoreReadOnly, match=r"cache folder cannot be written; .*MEMLAB_CACHE"):
        build_store(small, tmp_path, ENCODER)
    assert sorted(tmp_path.iterdir()) == there
    monkeypatch.undo()
    with build_store(small, tmp_path, ENCODER) as store:
        assert len(store) == 40


def test_rubbish_that_cannot_be_removed_is_said(small, tmp_path, monkeypatch):
    with build_store(small, tmp_path, ENCODER) as store:
        path = store.path
    path.write_bytes(b"")

    def unlink(self, missing_ok=False):
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr("pathlib.Path.unlink", unlink)
    with pytest.raises(StoreError, match=r"cache folder cannot be written: Read-only file system; .*--cache"):
        build_store(small, tmp_path, ENCODER)


@pytest.mark.parametrize("error", [StoreFull("full"), StoreLocked("locked"), EncoderUnavailable("gone")])
def test_what_was_begun_stays_if_nothing_is_wrong_with_it(small, tmp_path, monkeypatch, error):
    monkeypatch.setattr("memlab.evaluation.cache._BATCH", 10)
    with pytest.raises(KeyboardInterrupt):
        build_store(small, tmp_path, Failing(2, KeyboardInterrupt()))

    def refuse(*arguments, **options):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("memlab.evaluation.cache.MemoryStore", refuse)
        with pytest.raises(type(error)):
            build_store(small, tmp_path, ENCODER)
    rest = Failing(100, KeyboardInterrupt())
    build_store(small, tmp_path, rest).close()
    assert rest.left == 98  # two batches of four were there


def test_a_bad_record_is_named(small, tmp_path):
    bad = replace(small, corpus=({"memory_id": "a", "content": "x", "importance": 99},))
    with pytest.raises(InvalidValue, match="record 0: importance"):
        build_store(bad, tmp_path, ENCODER)
    with pytest.raises(InvalidValue, match="small: expected memories, found none"):
        build_store(replace(small, corpus=()), tmp_path, ENCODER)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the cache folder cannot be made"):
        build_store(small, tmp_path / "file" / "cache", ENCODER)


def test_of_two_builds_at_once_one_waits(small, tmp_path):
    encoders = [Failing(1000, RuntimeError()) for _ in range(3)]
    opened = []
    threads = [
        threading.Thread(target=lambda encoder=encoder: opened.append(build_store(small, tmp_path, encoder)))
        for encoder in encoders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(store) for store in opened] == [40] * 3
    assert sorted(encoder.left for encoder in encoders) == [999, 1000, 1000]
    for store in opened:
        store.close()


def test_vectors_of_queries_are_kept_beside_the_store(small, tmp_path):
    values = []
    for expected in (12, 0):
        encoder = CountingEncoder()
        with build_store(small, tmp_path, encoder) as store:
            values.append(evaluate(HybridRetriever(store), small.queries, small.qrels, progress=False).values)
        assert encoder.queries == expected
    assert values[0] == values[1]
    with np.load(vector_file(store.path), allow_pickle=False) as file:
        assert file["vectors"].shape == (12, 64)
        assert small.queries[0].text not in " ".join(file["keys"].tolist())
    more = [*small.queries, {"_id": "new", "text": "something new"}]
    encoder = CountingEncoder()
    with build_store(small, tmp_path, encoder) as store:
        evaluate(HybridRetriever(store), more, {**small.qrels.as_dict(), "new": ["m01"]}, progress=False)
    assert encoder.queries == 1
    with np.load(vector_file(store.path), allow_pickle=False) as file:
        assert len(file["keys"]) == 13


@pytest.mark.parametrize("content", [b"", b"rubbish", b"PK\x03\x04rubbish"])
def test_a_broken_file_of_vectors_is_made_again(small, tmp_path, content):
    encoder = CountingEncoder()
    with build_store(small, tmp_path, encoder) as store:
        vector_file(store.path).write_bytes(content)
        evaluate(HybridRetriever(store), small.queries, small.qrels, progress=False)
    assert encoder.queries == 12
    with np.load(vector_file(store.path), allow_pickle=False) as file:
        assert len(file["keys"]) == 12


def test_no_file_is_left_beside_a_store_of_ones_own(retriever, small, tmp_path):
    evaluate(retriever, small.queries, small.qrels, progress=False)
    assert not list(tmp_path.glob("*.npz*"))


def test_a_second_evaluation_loads_no_model(small, tmp_path):
    """In a process of its own: torch, pandas and the rest stay out."""
    script = """
import sys
from memlab import HashingEncoder, HybridRetriever
from memlab.evaluation import build_store, evaluate
from tests.evaluation.conftest import labelled_set
small = labelled_set()
with build_store(small, sys.argv[1], HashingEncoder(64)) as store:
    evaluate(HybridRetriever(store), small.queries, small.qrels, "nDCG@10,R@5,RR@10", progress=False)
heavy = {"torch", "sentence_transformers", "transformers", "tokenizers", "pandas", "scipy", "matplotlib"}
print(sorted(heavy & set(sys.modules)))
"""
    with build_store(small, tmp_path, ENCODER) as store:
        evaluate(HybridRetriever(store), small.queries, small.qrels, progress=False)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_fast_path_is_made_ready_before_much_is_encoded(small, monkeypatch, tmp_path):
    asked = []

    def unavailable(self):
        asked.append(self)
        raise EncoderUnavailable("no weights")

    monkeypatch.setattr(MiniLM, "try_to_prepare", unavailable)
    monkeypatch.setattr("memlab.evaluation.cache._MANY", 3)
    build_store(small, tmp_path, HashingEncoder(16)).close()
    assert asked == []
    cache._prepare(AUTO, None)
    own = MiniLM()
    cache._prepare(own, None)
    assert len(asked) == 2
    assert asked[1] is own
