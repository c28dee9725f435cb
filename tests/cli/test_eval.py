"""`memlab eval`, in process."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from memlab import HashingEncoder, HybridRetriever, MemoryStore
from memlab.cli import cli
from memlab.evaluation import build_store, evaluate, measure_recency, read_folder, write_folder
from memlab.retrieval.profiles import profile
from tests.evaluation.conftest import labelled_set


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    for name in ("MEMLAB_DB", "MEMLAB_DEBUG", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "MEMLAB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run():
    def run(*arguments, code=0):
        result = CliRunner().invoke(cli, ["eval", *map(str, arguments)])
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        return result

    return run


@pytest.fixture
def folders(tmp_path):
    return [write_folder(labelled_set(name, seed), tmp_path / name) for name, seed in (("one", 1), ("two", 2))]


SHOWN = ("vector", "keyword", "classic", "default")


def figures(labelled, tmp_path, measures):
    """The same figures by other means."""
    with MemoryStore(tmp_path / f"{labelled.name}.own.db", HashingEncoder()) as store:
        store.remember_many(labelled.corpus, progress=False)
        return {
            name: {
                row["measure"]: {key: row[key] for key in ("mean", "low", "high")}
                for row in evaluate(
                    profile(name, store), labelled.queries, labelled.qrels, measures, progress=False
                ).summary.to_dict("records")
            }
            for name in SHOWN
        }


@pytest.mark.parametrize("jobs", [1, 2])
def test_folders(run, folders, tmp_path, jobs):
    arguments = ("--encoder", "hashing", "--measures", "nDCG@10,R@5", "--jobs", jobs)
    value = json.loads(run(*folders, *arguments, "--json").stdout)
    assert value["profiles"] == list(SHOWN)
    assert value["measures"] == ["nDCG@10", "R@5"]
    assert [(row["name"], row["split"], row["memories"], row["queries"]) for row in value["sets"]] == [
        ("one", "test", 40, 12),
        ("two", "test", 40, 12),
    ]
    for row, labelled in zip(value["sets"], (labelled_set("one", 1), labelled_set("two", 2)), strict=True):
        assert row["notes"] == []
        assert row["figures"] == figures(labelled, tmp_path, "nDCG@10,R@5")
    means = [row["figures"]["vector"]["R@5"]["mean"] for row in value["sets"]]
    assert value["mean"]["vector"]["R@5"] == pytest.approx(sum(means) / 2)
    assert len(list((tmp_path / "cache").glob("*.db"))) == 2
    out = run(*folders, *arguments).stdout
    assert f"{100 * value['mean']['vector']['R@5']:.2f}" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["profile", "one", "two", "mean"] in lines
    assert lines.count(["queries", "12", "12", "24"]) == 2
    assert [line[0] for line in lines if len(line) == 4 and line[0] in SHOWN] == [*SHOWN, *SHOWN]


def test_one_folder_has_no_mean_column(run, folders):
    out = run(folders[0], "--encoder", "hashing", "--profiles", "keyword", "--measures", "R@5").stdout
    assert "mean over the queries" in out
    assert ["profile", "one"] in [line.split() for line in out.splitlines()]
    assert "*" not in out


def test_two_folders_of_one_name(run, folders, tmp_path):
    other = write_folder(labelled_set("one", 3), tmp_path / "deeper" / "one")
    value = json.loads(
        run(folders[0], other, "--encoder", "none", "--profiles", "keyword", "--jobs", 1, "--json").stdout
    )
    assert [row["name"] for row in value["sets"]] == [str(folders[0]), str(other)]


def test_truncate_and_cache_name_another_store(run, folders, tmp_path):
    arguments = (folders[0], "--encoder", "hashing", "--profiles", "vector", "--cache", tmp_path / "own")
    run(*arguments)
    run(*arguments, "--truncate")
    run(*arguments)
    assert len(list((tmp_path / "own").glob("*.db"))) == 2
    assert not (tmp_path / "cache").exists()


def test_a_store_of_ones_own(run, tmp_path):
    labelled = labelled_set()
    path = tmp_path / "own.db"
    with MemoryStore(path, HashingEncoder()) as store:
        store.remember_many(labelled.corpus[1:], progress=False)
        missing = [query for query, by in labelled.qrels.judgments.items() if "m00" in by]
        expected = evaluate(HybridRetriever(store), labelled.queries, labelled.qrels, "R@5", progress=False)
    folder = write_folder(labelled, tmp_path / "set")
    files = ("--queries", folder / "queries.jsonl", "--qrels", folder / "qrels" / "test.tsv")
    result = CliRunner().invoke(cli, ["--db", str(path), "eval", *map(str, files), "--measures", "R@5", "--json"])
    assert result.exit_code == 0, result.stderr
    value = json.loads(result.stdout)
    assert value["sets"][0]["name"] == "own"
    assert value["sets"][0]["figures"]["default"]["R@5"]["mean"] == expected.mean("R@5")
    shown = run("--db", path, *files)
    assert ("never found: 1 memory (m00)" in shown.stderr) == bool(missing)
    assert "never found" not in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one or more DIR in BEIR layout, or --db with --queries and --qrels"),
        (["--queries", "q.jsonl"], "expected one or more DIR"),
        (["one", "--qrels", "q.tsv"], "a DIR has queries and judgments of its own"),
        (["--queries", "q", "--qrels", "r", "--truncate"], "--truncate is about the stores that are made for a DIR"),
        (["one", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_usage(run, arguments, message):
    assert message in " ".join(run(*arguments, code=2).stderr.split())


def test_errors_come_before_any_work(run, folders, tmp_path):
    for arguments, message in (
        ((folders[0], "--profiles", "vectors"), "profiles: 'vectors' is none; the profiles are vector, keyword"),
        ((folders[0], "--profiles", ","), "profiles: expected one or more"),
        ((folders[0], "--measures", "ndcg"), "such as R@5, R@1, nDCG@10"),
        ((folders[0], "--split", "dev"), "has test; found 'dev'"),
        ((folders[0], tmp_path), "there is no corpus.jsonl"),
        ((tmp_path / "nowhere",), "expected a folder in BEIR layout, found none"),
    ):
        stderr = run(*arguments, code=1).stderr
        assert stderr.startswith("memlab: ")
        assert message in stderr
    assert not (tmp_path / "cache").exists()


def test_vectors_that_cannot_be_had(run, folders):
    assert "needs the vectors of the queries" in run(folders[0], "--encoder", "none", code=1).stderr
    result = run(folders[0], "--encoder", "none", "--profiles", "keyword,default", "--measures", "R@5")
    assert "default: the vector channel did not run for 12 queries" in result.stderr


def test_without_ir_measures(run, folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    assert 'pip install "memlab[eval]"' in run(folders[0], "--encoder", "none", code=1).stderr


def test_stopped_half_way_the_figures_so_far_are_shown(run, folders, monkeypatch):
    original, calls = HybridRetriever.ask, []

    def ask(self, *arguments, **options):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(HybridRetriever, "ask", ask)
    result = run(folders[0], "--encoder", "hashing", "--profiles", "keyword", "--json", code=130)
    value = json.loads(result.stdout)
    assert value["interrupted"] is True
    assert value["sets"][0]["queries"] == 3


@pytest.fixture
def dated(tmp_path):
    """A set whose queries say what they test."""
    labelled = labelled_set("dated", 4)
    kinds = ["latest decision", "old fact", "either"]
    moment = datetime(2026, 9, 1, tzinfo=UTC)
    queries = tuple(
        replace(query, now=moment, tests=kinds[place % 3], topic=f"t{place // 6}")
        for place, query in enumerate(labelled.queries)
    )
    return write_folder(replace(labelled, queries=queries), tmp_path / "dated")


def test_recency(run, dated, tmp_path):
    value = json.loads(run(dated, "--recency", "--encoder", "hashing", "--json").stdout)
    assert (value["measure"], value["profile"], value["gaining"]) == ("Success@1", "default", "latest decision")
    assert value["kinds"]["old fact"] == {"queries": 4, "topics": 2}
    assert len(value["settings"]) == 26
    assert (value["settings"][0]["half_life_days"], value["settings"][0]["strength"]) == (None, 0)
    labelled = read_folder(dated)
    with build_store(labelled, tmp_path / "cache", HashingEncoder()) as store:
        study = measure_recency(HybridRetriever(store), labelled.queries, labelled.qrels, progress=False)
    assert [(row["gain"], row["cost"]) for row in value["settings"]] == [(one.gain, one.cost) for one in study.settings]
    assert value["settings"][5]["kinds"]["either"] == vars(study.effects[5, "either"])
    shown = run(dated, "--recency", "--encoder", "hashing").stdout
    assert shown.splitlines() == repr(study).splitlines()


def test_recency_of_another_profile_and_measure(run, dated):
    arguments = ("--recency", "--encoder", "none", "--profiles", "keyword", "--measures", "nDCG@10", "--json")
    value = json.loads(run(dated, *arguments).stdout)
    assert (value["measure"], value["profile"]) == ("nDCG@10", "keyword")


def test_recency_of_the_set_that_comes_along(run):
    value = json.loads(run("temporal", "--recency", "--encoder", "none", "--profiles", "keyword", "--json").stdout)
    assert value["kinds"]["latest decision"] == {"queries": 127, "topics": 60}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["one", "two", "--recency"], 2, "--recency takes one DIR and one of --profiles"),
        (["one", "--recency", "--profiles", "vector,keyword"], 2, "--recency takes one DIR and one of --profiles"),
        (["--queries", "q", "--qrels", "r", "--recency"], 2, "--recency is about the stores that are made for a DIR"),
        (["nowhere", "--recency"], 1, "expected a folder in BEIR layout, found none"),
        (["temporal", "--recency", "--measures", "R@1,R@5", "--encoder", "none"], 1, "measure: expected one, found"),
    ],
)
def test_wrong_usage_of_recency(run, arguments, code, message):
    assert message in " ".join(run(*arguments, code=code).stderr.split())


def test_recency_of_queries_that_say_nothing(run, folders):
    assert "none of the queries says what it tests" in run(folders[0], "--recency", "--encoder", "none", code=1).stderr


def test_a_measure_of_more_hits_than_usual_is_given_them(run, folders, monkeypatch):
    arguments = (folders[0], "--encoder", "hashing", "--measures", "R@1,R@30", "--json")
    wanted = json.loads(run(*arguments).stdout)["sets"][0]["figures"]
    monkeypatch.setattr("memlab.evaluation.benchmark.DEFAULT_LIMIT", 3)
    assert json.loads(run(*arguments).stdout)["sets"][0]["figures"] == wanted
