"""`memlab bench`: what is measured, on what, and how it is told. Nothing here looks at how long anything took."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from memlab.bench.cold import cold_start
from memlab.bench.machine import machine, resident_mb, told
from memlab.bench.measure import StoreFigures, measure
from memlab.bench.reference import PlainSearch, Worker
from memlab.bench.report import SCHEMA, as_json, number, print_report
from memlab.bench.subject import NameOnly, own_subject, synthetic_subject
from memlab.bench.synthetic import make_store, memories, questions, vectors
from memlab.bench.timing import Deal, Figure, Spread, blocks
from memlab.cli import cli
from memlab.encoders import HashingEncoder
from memlab.encoders.base import Encoder, stamp
from memlab.errors import EncoderError, InvalidValue, MemlabError
from memlab.retrieval.channels import VectorChannel
from memlab.store import MemoryStore

ENCODER = HashingEncoder()
STORE_KEYS = {"name", "memories", "synthetic", "encoder", "megabytes", "figures", "notes", "interrupted"}
FIGURE_KEYS = {"key", "label", "unit", "p50", "p95", "least", "runs", "reference", "ratio", "kept"}
ALWAYS = {
    "vector",
    "keyword_first",
    "keyword",
    "keyword_words",
    "recall_vector",
    "recall_filtered",
    "after",
    "open",
    "cold_vector",
    "memory_vector",
    "ingest",
}
WITH_ENCODER = {"recall", "cold", "import", "memory", "encode", "encode_bulk", "ingest_text"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A store of forty memories that nobody may change."""
    path = tmp_path / "own.db"
    make_store(path, 40, encoder=ENCODER).close()
    return path


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cold starts without their processes, which take a second each."""
    found = {"ms": 300.0, "import_ms": 100.0, "open_ms": 50.0, "answer_ms": 100.0, "resident_mb": 90.0, "hits": 5}
    monkeypatch.setattr("memlab.bench.measure.cold_start", lambda *_: dict(found))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["bench", *map(str, arguments)], catch_exceptions=False)


# -- times -----------------------------------------------------------------------------------------------------------


def test_a_spread_is_median_and_95th_percentile() -> None:
    assert Spread.of([float(n) for n in range(1, 102)]) == Spread(51.0, 96.0, 1.0, 101)


@pytest.mark.parametrize(("unit", "expected"), [("ms", 4.0), ("MB", 4.0), ("rows/s", 0.25), ("notes/s", 0.25)])
def test_more_is_better_for_rates_and_worse_for_times(unit: str, expected: float) -> None:
    figure = Figure("k", "l", unit, Spread(2, 3, 1, 5), "other", Spread(8, 9, 7, 5))
    assert figure.ratio == pytest.approx(expected)
    assert Figure("k", "l", unit, Spread(2, 3, 1, 5)).ratio is None


def test_every_item_is_dealt_once() -> None:
    deal = Deal(list(range(7)))
    assert (deal.take(3), deal.left, deal.take(9), deal.take(1)) == ([0, 1, 2], 4, [3, 4, 5, 6], [])


def test_blocks_end_when_the_time_is_up_but_not_before_five() -> None:
    assert [len(block) for block in blocks(list(range(95)), 0, size=2)] == [2, 2, 2]
    assert sum(len(block) for block in blocks(list(range(95)), 1000)) == 95
    assert [list(block) for block in blocks([1, 2], 0)] == [[1, 2]]


@pytest.mark.parametrize(
    ("value", "shown"), [(12345.6, "12,346"), (99.96, "100.0"), (12.34, "12.3"), (1.234, "1.23"), (0.0, "0.00")]
)
def test_numbers_have_about_three_figures(value: float, shown: str) -> None:
    assert number(value) == shown


def test_the_machine_is_told_in_one_line() -> None:
    facts = machine()
    assert json.loads(json.dumps(facts)) == facts
    line = told({**facts, "processor": "Z80", "instructions": [], "memory_gb": None, "packages": {"numpy": "2"}})
    assert line.startswith("Z80, ")
    assert line.endswith("numpy 2")
    assert "None" not in line
    held = resident_mb()
    assert held is None or held > 10


# -- references ------------------------------------------------------------------------------------------------------


def test_the_references_find_what_they_should(own: Path) -> None:
    search = PlainSearch(str(own))
    assert search.load() == 40
    connection = sqlite3.connect(own)
    numbers = dict(connection.execute("SELECT id, number FROM memory_numbers"))
    connection.close()
    matrix, asked = vectors(40), questions(5, size=40)
    for question in asked:
        order = np.argsort(-(matrix @ question.vector))[:10]
        assert search.scan(question.vector, 10) == [numbers[f"s-{at + 1:07d}"] for at in order]
    word = next(memories(1))["content"].split(":")[0]
    assert numbers["s-0000001"] in search.words(f'{word} "NEAR( *', 40)
    assert search.words("?!", 10) == []
    assert len(search.scan(asked[0].vector, 100)) == 40


def test_a_worker_measures_itself_and_says_what_failed(own: Path) -> None:
    worker = Worker(own, one_thread=True)
    try:
        assert worker.ask("load", [()])[1] == [40]
        spent, results = worker.ask("words", [("the", 3), ("zzzz", 3)])
        assert len(spent) == 2
        assert (len(results[0]), results[1]) == (3, [])
        with pytest.raises(MemlabError, match="failed in scan"):
            worker.ask("scan", [(np.zeros(3, np.float32), 1)])
        assert worker.ask("load", [()])[1] == [40]
    finally:
        worker.close()
    with pytest.raises(MemlabError, match="ended"):
        worker.ask("load", [()])


@pytest.mark.parametrize("way", ["memlab", "vector"])
def test_a_cold_start_answers_and_tells_its_parts(own: Path, way: str) -> None:
    found = cold_start(own, "why does the port fail", way)
    assert found["hits"] == 5
    assert {"ms", "import_ms", "open_ms", "answer_ms", "resident_mb"} <= found.keys()
    assert found["ms"] >= found["answer_ms"]


def test_a_cold_start_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=r"cold start failed: .*nowhere\.db"):
        cold_start(tmp_path / "nowhere.db", "a", "memlab")


# -- what is measured ------------------------------------------------------------------------------------------------


def test_everything_is_measured_on_a_synthetic_store(cache: Path) -> None:
    said: list[str] = []
    with synthetic_subject(300, cache=cache, encoder=ENCODER) as subject:
        texts = [query.text for query in subject.questions.items] + subject.fresh.items
        assert len(texts) == len(set(texts))
        found = measure(subject, seconds=0, say=said.append)
    assert {figure.key for figure in found.figures} == ALWAYS | WITH_ENCODER
    assert said[0] == "vector channel"
    assert (found.memories, found.synthetic, found.encoder, found.notes) == (300, True, "hashing-384", [])
    vector, words = found.of("vector"), found.of("keyword_words")
    assert vector is not None
    assert words is not None
    assert vector.reference is not None
    assert vector.kept == 1.0
    assert words.reference is not None
    assert words.value.runs >= 5


@pytest.mark.usefixtures("no_processes")
def test_without_references_nothing_is_compared(cache: Path) -> None:
    with synthetic_subject(300, cache=cache, encoder=ENCODER) as subject:
        found = measure(subject, seconds=0, references=False, encoding=False)
    assert {figure.key for figure in found.figures} == ALWAYS
    assert not any(figure.reference for figure in found.figures)


@pytest.mark.usefixtures("no_processes")
def test_no_query_is_asked_twice(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.retrieval import HybridRetriever

    asked: list[str] = []
    gather = HybridRetriever.gather

    def noted(self: HybridRetriever, query: str, **more: Any) -> Any:
        asked.append(query)
        return gather(self, query, **more)

    monkeypatch.setattr(HybridRetriever, "gather", noted)
    with synthetic_subject(300, cache=cache, encoder=ENCODER) as subject:
        measure(subject, seconds=0.05, references=False)
    assert len(asked) > 30
    assert len(asked) == len(set(asked))


def test_what_was_measured_is_kept_when_somebody_interrupts(cache: Path) -> None:
    def stop(step: str) -> None:
        if step == "opening":
            raise KeyboardInterrupt

    with synthetic_subject(300, cache=cache, encoder=ENCODER) as subject:
        found = measure(subject, seconds=0, references=False, say=stop)
    assert found.interrupted
    assert {figure.key for figure in found.figures} == {
        "vector",
        "keyword_first",
        "keyword",
        "keyword_words",
        "recall_vector",
        "recall_filtered",
        "after",
    }


def test_a_step_that_fails_is_told_and_the_others_go_on(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemlabError("no second process here\nand more")

    monkeypatch.setattr("memlab.bench.measure.cold_start", fails)
    with synthetic_subject(300, cache=cache, encoder=ENCODER) as subject:
        found = measure(subject, seconds=0, references=False)
    assert "cold start: no second process here" in found.notes
    assert found.of("encode") is not None
    assert found.of("cold") is None


@pytest.mark.usefixtures("no_processes")
def test_an_own_store_is_asked_for_its_own_words(own: Path) -> None:
    with own_subject(own) as subject:
        contents = [row["content"] for row in memories(40)]
        query = subject.questions.items[0]
        assert any(all(word in content for word in query.text.split()) for content in contents)
        np.testing.assert_allclose(query.vector, ENCODER.encode_queries([query.text])[0])
        assert len(subject.records) == len(subject.matrix) == 40
        found = measure(subject, seconds=0, references=False)
    assert not found.synthetic
    assert found.of("recall") is not None


@pytest.mark.usefixtures("no_processes")
def test_memories_that_tie_are_as_good_as_one_another(tmp_path: Path) -> None:
    """The reference breaks ties as its memory lies: which of thirty equal memories are the ten says nothing."""
    path = tmp_path / "alike.db"
    with MemoryStore(path, ENCODER) as store:
        store.remember_many([f"webhooks retry with{' ' * i} jitter" for i in range(1, 31)], progress=False)
    with own_subject(path) as subject:
        found = measure(subject, seconds=0, encoding=False).of("vector")
    assert found is not None
    assert found.kept == 1.0


@pytest.mark.usefixtures("no_processes")
def test_a_memory_that_was_missed_is_not_kept(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = VectorChannel.search
    monkeypatch.setattr(VectorChannel, "search", lambda self, *of: replace(one := search(self, *of), hits=one.hits[1:]))
    with own_subject(own) as subject:
        found = measure(subject, seconds=0, encoding=False).of("vector")
    assert found is not None
    assert found.kept == pytest.approx(0.9)


@pytest.mark.usefixtures("no_processes")
def test_an_encoder_that_cannot_be_had_leaves_the_rest_measured(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: MemoryStore) -> Encoder:
        raise EncoderError("the weights are gone\nlook for them")

    monkeypatch.setattr(MemoryStore, "encoder", missing)
    with own_subject(own) as subject:
        found = measure(subject, seconds=0, references=False)
    assert {figure.key for figure in found.figures} == ALWAYS
    assert "nothing was encoded: the weights are gone" in found.notes
    assert "query vectors are means of two memories' each" in found.notes


@pytest.mark.usefixtures("no_processes")
def test_a_store_without_vectors_is_measured_by_words(tmp_path: Path) -> None:
    with MemoryStore(tmp_path / "plain.db", None) as store:
        store.remember_many([{"content": f"The port of adapter {n} is {n * 7}.", "project": "p"} for n in range(30)])
    with own_subject(tmp_path / "plain.db") as subject:
        found = measure(subject, seconds=0, references=False)
    words = {"keyword_first", "keyword", "keyword_words"}
    assert {figure.key for figure in found.figures} == words | {"recall_vector", "after", "open"}
    assert "no memory has a vector: only words were measured" in found.notes
    assert any("no filter" in note for note in found.notes)


def test_an_empty_store_has_nothing_to_measure(tmp_path: Path) -> None:
    MemoryStore(tmp_path / "empty.db", ENCODER).close()
    with pytest.raises(InvalidValue, match="--size"), own_subject(tmp_path / "empty.db"):
        pass


def test_a_name_alone_stores_ready_vectors_and_encodes_nothing(tmp_path: Path) -> None:
    named = NameOnly(stamp(ENCODER))
    with MemoryStore(tmp_path / "named.db", named) as store:
        store.remember_many([{"content": "a", "vector": vectors(1)[0]}])
        assert store.encoder_stamp == stamp(ENCODER)
    for call in (named.encode_queries, named.encode_documents, named.count_tokens):
        with pytest.raises(EncoderError, match="by name only"):
            call(["a"])
    with pytest.raises(EncoderError, match="by name only"):
        named.token_spans("a")


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_processes")
def test_the_command_prints_json_of_a_fixed_layout(cache: Path) -> None:
    result = run("--size", 300, "--encoder", "hashing", "--seconds", 0, "--cache", cache, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found.keys() == {"schema", "machine", "stores", "interrupted"}
    assert (found["schema"], found["interrupted"]) == (SCHEMA, False)
    (store,) = found["stores"]
    assert store.keys() == STORE_KEYS
    assert {figure["key"] for figure in store["figures"]} == ALWAYS | WITH_ENCODER
    for figure in store["figures"]:
        assert figure.keys() == FIGURE_KEYS
        assert figure["unit"] in ("ms", "MB", "rows/s", "notes/s")
        assert figure["p50"] > 0
        assert figure["runs"] >= 1
        if figure["reference"] is not None:
            assert figure["reference"].keys() == {"name", "p50", "p95", "least", "runs"}
            assert figure["ratio"] > 0


def test_an_own_store_stays_as_it_is(own: Path) -> None:
    before = own.read_bytes()
    result = run("--db", own, "--seconds", 0, "--no-reference")
    assert result.exit_code == 0
    assert own.read_bytes() == before
    assert "40 memories" in result.stdout
    assert "keyword channel (stems)" in result.stdout


@pytest.mark.usefixtures("no_processes")
def test_growth_is_a_table_and_a_plot(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "growth.png"
    common = ["--encoder", "hashing", "--seconds", 0, "--cache", cache, "--no-reference"]
    result = run("--growth", "--sizes", "300,50", "--plot", target, *common)
    assert result.exit_code == 0
    head = next(line for line in result.stdout.splitlines() if line.startswith("what"))
    assert head.split()[-2:] == ["50", "300"]
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "9"], "from 10 to 10M"),
        (["--size", "12x"], "such as 300, 12k or 1M"),
        (["--db", "a.db", "--size", "300"], "--size is about synthetic stores"),
        (["--db", "a.db", "--growth"], "--growth is about synthetic stores"),
        (["--growth", "--size", "300"], "--sizes"),
        (["--plot", "a.png"], "goes with --growth"),
        (["--sizes", "1k"], "goes with --growth"),
        (["--growth", "--plot", "no/such/folder/a.png"], "cannot be written"),
        (["--growth", "--plot", "."], "cannot be written"),
    ],
)
def test_wrong_usage_is_said_at_once(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_interruption_shows_what_there_is_and_exits_with_130(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memlab.bench.measure._Run.opening", stopped)
    result = run("--size", 300, "--encoder", "hashing", "--seconds", 0, "--cache", cache, "--no-reference", "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert found["interrupted"]
    assert "vector" in {figure["key"] for figure in found["stores"][0]["figures"]}


def test_the_report_names_what_was_compared(capsys: pytest.CaptureFixture[str]) -> None:
    figure = Figure(
        "vector", "vector channel", "ms", Spread(2, 3, 1, 5), "a scan", Spread(8, 9, 7, 5), 0.995, "the exact ten"
    )
    store = StoreFigures("mine", 7, False, "m", 1.0, [figure], ["something was not measured"])
    facts = {**machine(), "load": 0.0}
    print_report(facts, [store])
    shown = capsys.readouterr()
    assert "a: a scan" in shown.out
    assert "b: the exact ten" in shown.out
    assert "0.995 b" in shown.out
    assert "something was not measured" in shown.err
    assert as_json(facts, [store])["stores"][0]["figures"][0]["ratio"] == 4.0


@pytest.fixture(autouse=True)
def no_named_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMLAB_DB", raising=False)


def test_a_keyword_channel_without_its_shortcut_scores_every_match() -> None:
    from dataclasses import dataclass

    from memlab.bench.keyword_quality import exhaustive
    from memlab.retrieval import KeywordChannel

    @dataclass(frozen=True)
    class Some(KeywordChannel):
        candidates: int = 100

    assert exhaustive(KeywordChannel()) is None
    changed = exhaustive(Some(max_terms=7))
    assert isinstance(changed, Some)
    assert (changed.candidates, changed.max_terms) == (1_000_000_000, 7)
