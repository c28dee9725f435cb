"""Encoders side by side."""

from __future__ import annotations

import json
import math
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import memlab
from memlab import HashingEncoder, PassagePolicy
from memlab.errors import EncoderError, InvalidValue
from memlab.evaluation import build_store, compare_encoders, evaluate, write_folder
from memlab.evaluation.encoder_costs import Watched, weights_of
from memlab.evaluation.folders import LabelledSet
from memlab.retrieval.profiles import profile
from tests.evaluation.conftest import CountingEncoder

BOTH = {"passages": PassagePolicy(), "truncated": PassagePolicy(aggregate="truncate")}
ENCODERS = {"small": HashingEncoder(16, token_limit=8), "large": HashingEncoder(64, token_limit=8)}


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)


def test_the_same_figures_by_single_evaluations(small: LabelledSet, tmp_path: Path) -> None:
    compared = compare_encoders(
        small, ENCODERS, passages=BOTH, cache=tmp_path, measures="nDCG@10,R@5", profile=("vector", "default")
    )
    names = [row.name for row in compared.rows]
    assert names[:3] == ["small, passages, vector", "small, passages, default", "small, truncated, vector"]
    assert compared.comparison.systems == tuple(names)
    assert compared.comparison.baseline == names[0]
    assert compared.memories == 40
    assert compared.notes == ()
    table = compared.table.set_index("name")
    for row in compared.rows:
        with build_store(small, tmp_path, ENCODERS[row.encoder], BOTH[row.passages]) as store:
            own = evaluate(profile(row.profile, store), small.queries, small.qrels, "nDCG@10,R@5", progress=False)
            passages = store.stats().passages
        for measure in ("nDCG@10", "R@5"):
            assert table.loc[row.name, measure] == own.mean(measure)
            assert table.loc[row.name, f"{measure} low"] == own.intervals[measure][0]
        assert row.dimension == ENCODERS[row.encoder].dimension
        assert row.vector_bytes == (40 + passages) * 4 * row.dimension
        assert (passages > 0) == (row.passages == "passages")
        assert (row.parameters, row.weights_bytes, row.token_limit) == (0, 0, 8)
        assert row.corpus_seconds > 0
        assert row.query_ms > 0
    assert table["R@5 p"].isna().tolist() == [True, *[False] * 7]
    others = table["R@5 p"].iloc[1:]
    found = [compared.comparison.differences[name, "R@5"].p_holm for name in names[1:]]
    np.testing.assert_array_equal(others, found)


def test_times_of_what_came_from_the_cache_are_missing(small: LabelledSet, tmp_path: Path) -> None:
    first = CountingEncoder(32)
    encoders: dict[str, Any] = {"counting": first, "hashing": HashingEncoder(16)}
    build_store(small, tmp_path, first).close()
    compared = compare_encoders(small, encoders, cache=tmp_path, measures="R@5")
    own, other = compared.rows
    assert math.isnan(own.corpus_seconds)
    assert own.query_ms > 0  # their vectors were not there
    assert other.corpus_seconds > 0
    assert compared.notes == ("no time for the corpus, the stores came from the cache: counting",)
    asked = first.queries
    again = compare_encoders(small, encoders, cache=tmp_path, measures="R@5")
    assert first.queries == asked  # nothing is encoded, so no model is loaded
    assert [math.isnan(row.query_ms) for row in again.rows] == [True, True]
    assert again.notes == (
        "no time for the corpus, the stores came from the cache: counting; hashing",
        "no time for a query, their vectors came from the cache: counting; hashing",
    )
    assert again.table["R@5"].tolist() == compared.table["R@5"].tolist()
    assert "–" in repr(again)
    assert "nan" not in repr(again) + again._repr_html_()


def test_the_time_of_half_a_build_is_missing(
    small: LabelledSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.evaluation.cache._BATCH", 10)

    class Stopping(HashingEncoder):
        left = 3  # the first is the text that a model is loaded for

        def encode_documents(self, texts: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().encode_documents(texts)

    stopping = Stopping(32)
    encoders = {"stopping": stopping, "hashing": HashingEncoder(16)}
    with pytest.raises(KeyboardInterrupt):
        compare_encoders(small, encoders, cache=tmp_path, measures="R@5")
    stopping.left = 100
    compared = compare_encoders(small, encoders, cache=tmp_path, measures="R@5")
    assert math.isnan(compared.rows[0].corpus_seconds)
    assert compared.notes == ("no time for the corpus, builds that were begun before were gone on with: stopping",)


def test_a_busy_machine_is_noted(small: LabelledSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (99.0, 0.0, 0.0), raising=False)
    compared = compare_encoders(small, ENCODERS, cache=tmp_path, measures="R@5")
    assert "the machine had other work (a load of 99.0 on" in compared.notes[-1]
    again = compare_encoders(small, ENCODERS, cache=tmp_path, measures="R@5")
    assert not any("load" in note for note in again.notes)  # no times were taken


def test_sets_of_every_kind_and_encoders_by_name(small: LabelledSet, tmp_path: Path) -> None:
    folder = write_folder(small, tmp_path / "set")
    names = {"a": "hashing-16", "b": "hashing"}
    compared = compare_encoders(folder, names, cache=tmp_path / "cache", measures="R@5", baseline="b")
    assert compared.comparison.baseline == "b"
    assert [row.dimension for row in compared.rows] == [16, 384]
    of_sample = compare_encoders(memlab.sample(folder), names, cache=tmp_path / "cache", measures="R@5", baseline="b")
    assert of_sample.table["R@5"].tolist() == compared.table["R@5"].tolist()


def test_text_html_and_picture(small: LabelledSet, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\n\x1b[31m"
    compared = compare_encoders(
        small, {"a": HashingEncoder(16), hostile: HashingEncoder(64)}, cache=tmp_path, measures="nDCG@10,NumRet"
    )
    html = compared._repr_html_()
    assert set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", html)) <= {"table", "tbody", "tr", "td", "div", "b"}
    assert "\x1b" not in html + repr(compared)
    plain = re.sub(r"<[^>]+>", " ", html)
    for number in re.findall(r"(?<![\w.])[+-]?\d+\.\d", repr(compared)):
        assert number in plain
    lines = repr(compared).splitlines()
    assert lines[0].startswith("2 ways to make vectors: 12 queries · 40 memories")
    assert len(lines) == 5  # a hostile name does not break its line
    pytest.importorskip("matplotlib")
    assert compared.plot().png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"encoders": {}}, "encoders: expected {name: ...} with one or more"),
        ({"encoders": {"a": None}}, "encoders: a: expected an Encoder or the name of one, found NoneType"),
        ({"encoders": {" ": "hashing"}}, "encoders: expected names that are text, found ' '"),
        ({"encoders": {"a": "hashing"}}, "expected two rows or more, found a"),
        ({"passages": {"a": "truncate"}}, "passages: a: expected a PassagePolicy, found 'truncate'"),
        ({"profile": "vectors"}, "profiles: 'vectors' is none"),
        ({"baseline": "small, passages"}, "baseline: expected one of small, large, found 'small, passages'"),
        ({"measures": "ndcg"}, "expected names of ir-measures"),
        ({"labelled_set": 7}, "labelled_set: expected a LabelledSet, a memlab.sample() or a folder, found int"),
    ],
)
def test_bad_input(small: LabelledSet, tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"labelled_set": small, "encoders": ENCODERS, "cache": tmp_path, **arguments}
    with pytest.raises(InvalidValue, match=re.escape(message)):
        compare_encoders(**given)


def test_the_size_of_weights_is_read_from_their_header(tmp_path: Path) -> None:
    def written(name: str, header: bytes) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 100)
        return SimpleNamespace(folder=SimpleNamespace(path=folder))

    tensors: dict[str, Any] = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [3, 4]},
        "b": {"dtype": "BF16", "shape": [5]},
        "scalar": {"dtype": "F16", "shape": []},
        "position_ids": {"dtype": "I64", "shape": [1, 512]},
    }
    header = json.dumps(tensors).encode()
    assert weights_of(written("good", header)) == (18, 8 + len(header) + 100)
    assert weights_of(written("broken", b"{")) == (None, 109)
    assert weights_of(SimpleNamespace(folder=SimpleNamespace(path=tmp_path / "nowhere"))) == (None, None)
    assert weights_of(SimpleNamespace()) == (None, None)
    assert weights_of(HashingEncoder()) == (0, 0)
    other = tmp_path / "torch"
    other.mkdir()
    (other / "pytorch_model.bin").write_bytes(b"12345")
    assert weights_of(SimpleNamespace(folder=SimpleNamespace(path=other))) == (None, 5)

    class Absent:
        @property
        def folder(self) -> Any:
            raise EncoderError("not here")

    assert weights_of(Absent()) == (None, None)  # type: ignore[arg-type]


def test_a_watched_encoder_is_the_encoder(small: LabelledSet) -> None:
    inner = HashingEncoder(16, token_limit=8)
    watch = Watched(inner)
    assert isinstance(watch, memlab.encoders.Encoder)
    for name in ("name", "dimension", "token_limit", "fingerprint", "query_prefix", "document_prefix"):
        assert getattr(watch, name) == getattr(inner, name)
    assert not watch.loaded
    text = str(small.corpus[0]["content"])
    np.testing.assert_array_equal(watch.encode_documents([text]), inner.encode_documents([text]))
    assert (watch.loaded, watch.documents) == (True, 1)
    np.testing.assert_array_equal(watch.encode_queries([text]), inner.encode_queries([text]))
    np.testing.assert_array_equal(watch.token_spans(text), inner.token_spans(text))
    assert watch.count_tokens([text]) == inner.count_tokens([text])
    assert watch.documents == 1


@pytest.mark.model
def test_the_true_model_finds_more_than_hashed_words(tmp_path: Path) -> None:
    whole = memlab.sample()
    queries = tuple([query for query in whole.queries if query.tests == "buried fact"][:4])
    wanted = {memory for query in queries for memory in query.judgments}
    records = tuple(r for r in whole.records if r["memory_id"] in wanted)
    part = memlab.Sample(whole.folder, records, queries)
    compared = compare_encoders(
        part, {"minilm": "minilm", "hashing": "hashing"}, passages=BOTH, cache=tmp_path, measures="RR@10"
    )
    rows = {row.name: row for row in compared.rows}
    assert rows["minilm, passages"].parameters == 22_713_216
    assert rows["minilm, passages"].weights_bytes == 90_868_376
    assert rows["minilm, truncated"].vector_bytes == len(records) * 1536
    assert rows["minilm, passages"].vector_bytes > rows["minilm, truncated"].vector_bytes
    assert rows["minilm, passages"].query_ms > 0
