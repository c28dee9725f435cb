"""`memlab log`: recalls listed, run again, erased."""

import json

import pytest
from click.testing import CliRunner

import memlab
from memlab.cli import cli
from memlab.encoders import HashingEncoder

NOW = "2026-09-01T12:00:00Z"


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "memory.db"
    with memlab.MemoryStore(path, HashingEncoder()) as store:
        for number, text in enumerate(("webhooks retry with jitter", "invoices by year", "a webhook is retried")):
            store.remember(text, memory_id=f"m-{number}", project="billing")
        store.query_log.start("a \x1b[31mtest")
        retriever = memlab.HybridRetriever(store)
        retriever.recall("webhook retry", now=NOW, limit=2, project="billing")
        retriever.recall("invoices \x1b[31m", now=NOW)
    return path


@pytest.fixture
def run(db):
    def run(*arguments, code=0):
        result = CliRunner().invoke(cli, ["--db", str(db), "log", *map(str, arguments)])
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        return result.stdout + result.stderr

    return run


def test_the_newest_come_first(run) -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == ["2", "1"]
    assert "webhook retry" in lines[1]
    assert "2 hits" in lines[1]
    assert "\x1b" not in "".join(lines)
    assert run("-n", 1).splitlines()[-1] == "1 of 2; -n shows more"


def test_as_json(run) -> None:
    second, first = json.loads(run("--json"))
    assert (second["id"], first["id"], first["query"]) == (2, 1, "webhook retry")
    assert first["now"] == "2026-09-01T12:00:00.000Z"
    assert first["filters"] == {"project": ["billing"]}
    assert [set(hit) for hit in first["hits"]] == [{"memory_id", "score"}] * 2
    assert json.loads(run("--json", 1)) == [first]


def test_one_is_run_again(run, db) -> None:
    assert "the same hits as recorded" in run("--replay", 1)
    before = json.loads(run("--replay", "--json", 1))
    assert before["same"]
    assert [hit["memory"]["memory_id"] for hit in before["hits"]] == before["recorded"]
    with memlab.MemoryStore(db, HashingEncoder()) as store:
        store.forget(before["recorded"][0])
    assert f"recorded were: {before['recorded'][0]}" in run("--replay", 1)
    assert len(json.loads(run("--json"))) == 2


def test_erasing(run) -> None:
    assert "1 recall erased" in run("--erase", 1)
    assert [row["id"] for row in json.loads(run("--json"))] == [2]
    assert "0 recalls erased" in run("--erase", "--before", "2020-01-01T00:00:00Z")
    assert "1 recall erased" in run("--erase", "--all")
    assert "nothing is recorded" in run()
    assert "nothing is recorded under 7" in run(7, code=1)


@pytest.mark.parametrize(
    "arguments",
    [("--erase",), ("--all",), ("--before", NOW), ("--erase", "--all", 1), ("--replay",), ("--replay", 1, 2),
     ("--replay", "--erase", 1), (0,)],
)  # fmt: skip
def test_wrong_usage_erases_nothing(run, arguments) -> None:
    run(*arguments, code=2)
    assert len(json.loads(run("--json"))) == 2
