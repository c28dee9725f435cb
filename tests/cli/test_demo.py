"""`memlab demo` with an encoder that needs no model."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import memlab
from memlab import HashingEncoder, HybridRetriever, MemoryStore
from memlab.cli import cli, demo_run
from memlab.sample_data import SAMPLE_NOW, Sample, SampleQuery

TAGS = ("identifier", "paraphrase", "buried fact", "latest decision", "multilingual", "filter")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A sample of six notes and a query for each scene."""
    records = [
        {
            "memory_id": f"m-{i}",
            "content": f"note number{i} about {tag}. " * (200 if tag == "buried fact" else 1),
            "project": "p",
            "created_at": f"2026-08-0{i}T00:00:00Z",
        }
        for i, tag in enumerate(TAGS, 1)
    ]
    queries = [
        SampleQuery(f"q-{i}", f"number{i}", tag, {"project": "p"} if tag == "filter" else {}, {f"m-{i}": 2, "m-1": 0})
        for i, tag in enumerate(TAGS, 1)
    ]
    data = Sample(tmp_path, tuple(records), tuple(queries))
    monkeypatch.setattr(demo_run, "sample", lambda: data)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMLAB_DB", raising=False)
    return data


def found(pattern, text):
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def demo(*arguments, code=0, **options):
    result = CliRunner().invoke(cli, ["demo", *arguments], **options)
    assert result.exit_code == code, (result.stderr, result.exception)
    return result


def test_demo_plays_every_scene_and_says_what_to_try(small, tmp_path):
    db = tmp_path / "demo.db"
    out = demo("--encoder", "hashing", "--db", str(db)).stdout
    for number, scene in enumerate(demo_run.SCENES, 1):
        assert f"{number} · {scene.title}" in out
    assert "✓ the answer" in out
    assert out.index("Without the recency boost") < out.index("With the recency boost")
    assert "project='p'" in out
    assert f"recall --db {db}" in out
    code = found(r"  (import memlab\n(?:  .*\n)+)", out).replace("\n  ", "\n")
    assert len(code.strip().splitlines()) == 5
    compile(code, "what the demo says", "exec")
    with MemoryStore(db) as store:
        assert len(store) == 6
        assert store.check().ok


def test_the_second_run_uses_the_store_of_the_first(small):
    first = demo("--encoder", "hashing").stdout
    path = Path(found(r"store: (.*(?:\n.+)?\.db)", first).replace("\n", ""))
    assert path.is_file()
    before = path.stat().st_mtime_ns
    second = demo("--encoder", "hashing").stdout
    assert "complete from an earlier run" in second
    assert "complete from an earlier run" not in first
    assert path.stat().st_mtime_ns == before


def test_an_unfinished_store_is_finished(small, tmp_path):
    db = tmp_path / "demo.db"
    with MemoryStore(db, None) as store:
        store.remember_many(small.records[:3])
    demo("--encoder", "hashing", "--db", str(db))
    with MemoryStore(db) as store:
        assert (len(store), store.stats().pending) == (6, 0)


def test_a_model_that_cannot_be_had_leaves_keywords(small, tmp_path, monkeypatch):
    from memlab.errors import EncoderUnavailable

    def missing(self):
        raise EncoderUnavailable("the model is not on this machine\nLooked at: nowhere")

    monkeypatch.setattr(MemoryStore, "encoder", missing)
    monkeypatch.setattr("memlab.store.encoding.EncoderSlot.get", missing)
    out = demo("--db", str(tmp_path / "demo.db")).stdout
    assert "Keywords alone: the model is not on this machine" in out
    assert "✓ the answer" in out


def test_keywords_alone(small, tmp_path):
    out = demo("--db", str(tmp_path / "demo.db"), "--encoder", "none").stdout
    assert "Keywords alone" in out
    assert "keyword-only" in out
    assert "vector alone" not in out
    assert re.search(r"keyword alone +1\.000 +1\.000", out)


def test_the_store_of_somebody_is_left_alone(small, tmp_path):
    db = tmp_path / "mine.db"
    with MemoryStore(db, HashingEncoder()) as store:
        store.remember("my own", memory_id="mine")
    assert "of its own (mine is one of 1)" in demo("--db", str(db), code=1).stderr
    out = demo("--encoder", "hashing", env={"MEMLAB_DB": str(db)}).stdout
    assert str(db) not in out
    with MemoryStore(db) as store:
        assert [memory.memory_id for memory in store.find()] == ["mine"]


def test_the_figures_are_what_they_say(tmp_path):
    records = tuple(
        {"memory_id": name, "content": text} for name, text in (("a", "red"), ("b", "red blue"), ("c", "green"))
    )
    queries = (
        SampleQuery("1", "red", "", {}, {"a": 2, "b": 1}),  # one of two at 1, both at 5
        SampleQuery("2", "green", "", {}, {"c": 1, "b": 0}),  # at 1
        SampleQuery("3", "blue", "", {}, {"a": 1}),  # never found
        SampleQuery("4", "blue", "", {}, {"b": 0}),  # nothing is relevant: left out
    )
    data = Sample(tmp_path, records, queries, SAMPLE_NOW)
    with MemoryStore(tmp_path / "x.db", None) as store:
        store.remember_many(records)
        figures = demo_run.recall_figures({"all": HybridRetriever(store)}, data)
    assert figures == {"all": pytest.approx(((0.5 + 1 + 0) / 3, (1 + 1 + 0) / 3))}


def test_scenes_fit_the_sample_that_comes_with_memlab():
    queries = memlab.sample().queries
    for scene in demo_run.SCENES:
        assert scene.tests in TAGS
        query = demo_run.chosen_query(queries, scene)
        assert query is not None
        assert query.query_id == scene.queries[0]


def test_a_query_that_is_gone_is_replaced_by_another_of_its_kind():
    scene = demo_run.SCENES[0]
    other = SampleQuery("q-x", "x", scene.tests)
    assert demo_run.chosen_query([SampleQuery(scene.queries[0], "moved", "filter"), other], scene) is other
    assert demo_run.chosen_query([], scene) is None
