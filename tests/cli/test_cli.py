"""The `memlab` command, in process: what it prints, where, and with which exit code."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memlab import HashingEncoder, HybridRetriever, MemoryStore, profile
from memlab.cli import cli
from memlab.cli.diagnosis import NEEDED, OPTIONAL
from memlab.cli.session import default_path

NOW = "2026-09-01T12:00:00Z"


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    """No setting of whoever runs the tests, and no default place but a temporary one."""
    for name in ("MEMLAB_DB", "MEMLAB_DEBUG", "COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))


@pytest.fixture
def db(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def run(db):
    def run(*arguments, code=0, **options):
        result = CliRunner().invoke(cli, ["--db", str(db), *map(str, arguments)], **options)
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        if result.exception is not None:
            assert isinstance(result.exception, SystemExit)
        return result

    return run


@pytest.fixture
def filled(db):
    with MemoryStore(db, HashingEncoder()) as store:
        store.remember(
            "Webhooks retry with full jitter.",
            memory_id="m-1",
            project="billing",
            tags=["retry", "http"],
            category="decision",
            importance=8,
            created_at="2026-08-20T00:00:00Z",
            source="chat",
        )
        store.remember(
            "Invoices are numbered by a sequence.",
            memory_id="m-2",
            project="billing",
            tags=["retry"],
            created_at="2026-01-05T00:00:00Z",
        )
        store.remember(
            "El café se sirve frío [bold]x[/bold] \x1b[31mred :smile:",
            memory_id="m-3",
            created_at="2026-03-01T00:00:00Z",
        )
    return db


# -- remember --------------------------------------------------------------------------------------------------------


def test_remember_makes_the_store_and_says_the_id(run, db):
    result = run(
        "remember", "A note", "--project", "p", "--tag", "a", "--tag", "b", "--importance", 7, "--encoder", "hashing"
    )
    said = re.match(r"remembered (m-\w{10}) in ", result.stdout)
    assert said is not None
    memory_id = said[1]
    with MemoryStore(db) as store:
        memory = store.get(memory_id)
        assert (memory.content, memory.project, memory.tags, memory.importance) == ("A note", "p", ("a", "b"), 7)
        assert store.stats().encoder == "hashing-384"
        assert not memory.pending


def test_remember_from_stdin_as_json(run):
    result = run("remember", "-", "--json", "--encoder", "hashing", input="two\nlines é\n")
    assert json.loads(result.stdout)["content"] == "two\nlines é"


def test_remember_without_an_encoder_says_what_to_do(run, db):
    result = run("remember", "A note", "--encoder", "none")
    assert "memlab reembed" in result.stderr
    assert "memlab reembed" not in result.stdout
    run("reembed", "--encoder", "hashing")
    with MemoryStore(db) as store:
        assert store.stats().pending == 0


def test_remember_twice_with_a_key(run, db):
    first = run("remember", "A note", "--key", "k", "--encoder", "hashing").stdout.split()[1]
    assert run("remember", "A note", "--key", "k").stdout.startswith(f"known already as {first} ")
    assert f"{first} has the same content; both are kept" in run("remember", "A note").stderr
    assert "idempotency key" in run("remember", "Other", "--key", "k", code=1).stderr


def test_the_default_store_is_made_in_the_data_folder(tmp_path):
    result = CliRunner().invoke(cli, ["remember", "A note", "--encoder", "hashing"])
    assert result.exit_code == 0, result.stderr
    assert default_path().is_file()
    assert tmp_path in default_path().parents
    if sys.platform != "win32":
        assert stat.S_IMODE(default_path().stat().st_mode) == 0o600


def test_db_may_stand_before_or_after_the_command_or_in_the_environment(filled, tmp_path):
    runner = CliRunner()
    other = str(tmp_path / "no.db")
    for arguments, env in (
        (["--db", str(filled), "list"], {}),
        (["list", "--db", str(filled)], {}),
        (["list"], {"MEMLAB_DB": str(filled)}),
        (["--db", str(filled), "list"], {"MEMLAB_DB": other}),
        (["list", "--db", str(filled)], {"MEMLAB_DB": other}),
        (["--db", other, "list", "--db", str(filled)], {}),
    ):
        result = runner.invoke(cli, arguments, env=env)
        assert "m-1" in result.stdout, (arguments, env, result.stderr)


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall", "x"],
        ["show", "m-1"],
        ["list"],
        ["stats"],
        ["check"],
        ["export", "-"],
        ["backup", "b.db"],
        ["forget", "m-1"],
        ["restore", "m-1"],
        ["purge", "--yes"],
        ["reembed"],
    ],
)
def test_no_command_but_two_makes_a_store(run, db, arguments):
    result = run(*arguments, code=1)
    assert result.stderr.startswith(f"memlab: {db}: there is no store yet")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not list(db.parent.glob("memory.db*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "nope"], "no memory has the id 'nope'"),
        (["forget", "m-1", "nope"], "no memory has the id 'nope'"),
        (["recall", "x", "--now", "2026-01-01T10:00"], "--now: '2026-01-01T10:00' names no time zone"),
        (["recall", "x", "--limit", "-1"], "limit"),
        (["recall", "x", "--k", "-1"], "k:"),
        (["list", "--min-importance", "11"], "importance"),
        (["list", "--after", "soon"], "--after: expected an ISO 8601"),
        (["remember", " "], "white space"),
        (["remember", "x", "--importance", "0"], "1 to 10"),
        (["remember", "x", "--encoder", "minilm"], "hashing-384"),
        (["purge", "m-1", "--yes"], "not in the trash"),
        (["backup", "."], "directory"),
        (["show", "\x1b[31m"], "no memory"),
    ],
)
def test_errors_are_one_line_on_stderr(run, filled, arguments, says):
    before = filled.read_bytes()
    result = run(*arguments, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("memlab: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    assert filled.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall"],
        ["recall", "x", "--k", "many"],
        ["nothing"],
        ["purge"],
        ["import", "no.jsonl"],
        ["reembed", "--encoder", "none"],
    ],
)
def test_wrong_usage(run, filled, arguments):
    assert "Usage:" in run(*arguments, code=2).stderr


def test_what_is_no_store_is_refused_and_left(run, db):
    db.write_text("hello, I am a text file")
    assert "not SQLite" in run("list", code=1).stderr
    assert "not SQLite" in run("remember", "x", code=1).stderr
    assert db.read_text() == "hello, I am a text file"


def test_debug_shows_the_traceback(filled, monkeypatch):
    monkeypatch.setenv("MEMLAB_DEBUG", "1")
    result = CliRunner().invoke(cli, ["--db", str(filled), "show", "nope"])
    assert type(result.exception).__name__ == "UnknownMemory"


# -- reading ---------------------------------------------------------------------------------------------------------


def test_recall_shows_rank_score_bar_words_and_numbers(run, filled):
    out = run("recall", "how", "do", "webhooks", "retry?", "--k", 60).stdout
    assert out.splitlines()[0] == "“how do webhooks retry?”"
    assert "██ keyword   ▓▓ vector   ▒▒ passage" in out
    head = next(line for line in out.splitlines() if "m-1" in line)
    assert re.fullmatch(r" 1  0\.0328  █+▓+ +m-1  billing · decision · .* · #retry #http", head)
    assert "keyword #1 +0.0164   vector #1 +0.0164" in out
    assert "is number 1" not in out
    assert "m-1 is number 1 with 0.032787 = keyword" in " ".join(
        run("recall", "webhooks retry", "--k", 60, "--explain").stdout.split()
    )


def test_recall_uses_no_colour_where_nobody_looks_and_some_where_asked(run, filled):
    assert "\x1b[" not in run("recall", "webhooks").stdout
    assert "\x1b[" in run("recall", "webhooks", env={"FORCE_COLOR": "1"}).stdout
    plain = run("recall", "webhooks", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain)
    assert "▓" in plain


def test_matched_words_are_bold(run, filled):
    out = run("recall", "CAFE", env={"FORCE_COLOR": "1"}).stdout
    assert re.search(r"\x1b\[1;4mcafé\x1b\[0m", out)


def test_stored_text_is_shown_not_obeyed(run, filled):
    for arguments in (["recall", "cafe"], ["list"], ["show", "m-3"]):
        out = run(*arguments).stdout
        assert "[bold]x[/bold]" in out
        assert ":smile:" in out
        assert "\x1b" not in out
        assert "�[31mred" in out


def test_recall_as_json(run, filled):
    value = json.loads(run("recall", "webhooks", "--json", "--limit", 1, "--now", NOW, "--recency").stdout)
    assert value["query"] == "webhooks"
    assert [hit["memory"]["memory_id"] for hit in value["hits"]] == ["m-1"]
    assert value["hits"][0]["age_days"] == 12.5
    assert value["recency"] == "RecencyRanker(half_life_days=30, strength=0.3)"
    assert value["hits"][0]["recency_factor"] > 1


def test_recall_filters_and_switches(run, filled):
    def ids(*arguments):
        value = json.loads(run("recall", "retry invoices café", "--json", "--now", NOW, *arguments).stdout)
        return {hit["memory"]["memory_id"] for hit in value["hits"]}

    assert ids() == {"m-1", "m-2", "m-3"}
    assert ids("--project", "billing") == {"m-1", "m-2"}
    assert ids("--tag", "retry", "--tag", "http") == {"m-1", "m-2"}
    assert ids("--tag", "retry", "--tag", "http", "--tag-match", "all") == {"m-1"}
    assert ids("--category", "decision", "--category", "note") == {"m-1", "m-2", "m-3"}
    assert ids("--min-importance", 6) == {"m-1"}
    assert ids("--after", "2026-02-01T00:00:00Z", "--before", "2026-08-01T00:00:00Z") == {"m-3"}
    assert ids("--after", "2026-02-01", "--before", "2026-08-01") == {"m-3"}  # a day is its beginning in UTC
    assert ids("--source", "chat") == {"m-1"}
    assert "names no time zone" in run("recall", "x", "--after", "2026-02-01T00:00:00", code=1).stderr
    only = json.loads(run("recall", "retry", "--keyword-only", "--json").stdout)
    assert only["mode"] == "keyword-only"
    assert "k=7" in json.loads(run("recall", "retry", "--k", 7, "--json").stdout)["fusion"]


def test_recall_says_why_not(run, filled):
    said = run("recall", "webhooks", "--limit", 1, "--now", NOW, "--why-not", "m-2").stdout
    assert "m-2: it came" in said
    value = json.loads(run("recall", "webhooks", "--limit", 1, "--now", NOW, "--json", "--why-not", "m-2").stdout)
    assert value["why_not"]["memory_id"] == "m-2"
    assert value["why_not"]["remedies"]
    assert "no memory has the id" in run("recall", "webhooks", "--why-not", "nobody", code=1).stderr


def test_recall_without_hits_is_an_answer(run, filled):
    said = run("recall", "x", "--project", "nobody").stdout
    assert "no hits: no memory that passes the filters has" in " ".join(said.split())
    assert json.loads(run("recall", "x", "--limit", 0, "--json").stdout)["hits"] == []


@pytest.mark.parametrize("query", ["C++", "foo AND bar", 'say "hi', "(python", "--", "%", "*", "\ud800", "\x00"])
def test_any_query_is_plain_text(run, filled, query):
    run("recall", "--", query)
    json.loads(run("recall", "--json", "--", query).stdout)


def test_reading_changes_nothing(run, filled):
    before = filled.read_bytes()
    for arguments in (
        ["recall", "webhooks"],
        ["show", "m-1"],
        ["list"],
        ["stats"],
        ["check"],
        ["doctor"],
        ["export", "-"],
    ):
        run(*arguments)
    assert filled.read_bytes() == before


def test_list(run, filled):
    assert [memory["memory_id"] for memory in json.loads(run("list", "--json").stdout)] == ["m-1", "m-3", "m-2"]
    result = run("list", "--limit", 1)
    assert "m-1" in result.stdout
    assert "m-3" not in result.stdout
    assert "there are more" in result.stderr
    assert "there are more" not in run("list", "--limit", 3).stderr
    assert "no memory passes" in run("list", "--project", "nobody").stderr


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_fit_and_ids_stay_whole(run, db, columns):
    ids = ["m-0123456789", "an-id-of-the-users-own-making-123", "短い"]
    with MemoryStore(db, None) as store:
        for memory_id in ids:
            store.remember(
                "Word " * 50 + "漢字" * 40, memory_id=memory_id, project="a-long-project-name", category="c" * 30
            )
    for arguments in (["list"], ["recall", "word"], ["stats"], ["show", ids[0]]):
        out = run(*arguments, env={"COLUMNS": str(columns)}).stdout
        from rich.cells import cell_len

        assert max(cell_len(line) for line in out.splitlines()) <= columns
        if arguments[0] == "list":
            assert all(memory_id in out for memory_id in ids)


def test_show_has_history_and_passages(run, filled):
    with MemoryStore(filled) as store:
        store.update("m-2", content="word " * 600)
    out = run("show", "m-2").stdout
    assert "Invoices are numbered by a sequence." in out
    assert "3 passages" in out
    value = json.loads(run("show", "m-2", "--json").stdout)
    assert [r["content"] for r in value["revisions"]] == ["Invoices are numbered by a sequence."]
    assert value["passages"][0]["start"] == 0
    assert value["passages"][-1]["end"] == len(value["content"])


def test_stats(run, filled):
    value = json.loads(run("stats", "--json").stdout)
    assert (value["memories"], value["pending"], value["encoder"]) == (3, 0, "hashing-384")
    assert value["by_project"] == {"billing": 2}
    assert "hashing-384" in run("stats").stdout


# -- changing --------------------------------------------------------------------------------------------------------


def test_forget_restore_purge(run, filled):
    run("forget", "m-1", "m-2")
    assert [m["memory_id"] for m in json.loads(run("list", "--trash", "--json").stdout)] == ["m-1", "m-2"]
    assert "m-1" in run("list", "--trash").stdout
    assert "m-1 is back" in run("restore", "m-1").stdout
    assert "was not in the trash" in run("restore", "m-1").stdout
    assert "0 deleted" in run("purge", "--yes", "--trashed-before", "2020-01-01T00:00:00Z").stdout
    assert "1 deleted" in run("purge", "--yes").stdout
    assert {m["memory_id"] for m in json.loads(run("list", "--json").stdout)} == {"m-1", "m-3"}


def test_forget_is_all_or_nothing(run, filled):
    run("forget", "m-1", "nope", code=1)
    assert json.loads(run("list", "--trash", "--json").stdout) == []


def test_export_import_round_trip(run, filled, tmp_path):
    first = run("export", "-", "--vectors").stdout
    path = tmp_path / "out.jsonl"
    assert "3 memories" in run("export", path, "--vectors").stderr
    assert path.read_text(encoding="utf-8") == first
    other = str(tmp_path / "b.db")
    result = CliRunner().invoke(cli, ["--db", other, "import", str(path), "--encoder", "hashing", "--json"])
    assert result.exit_code == 0, result.stderr
    done = json.loads(result.stdout)
    assert (done["created"], done["vectors_taken_over"], done["pending"]) == (3, 3, 0)
    assert CliRunner().invoke(cli, ["--db", other, "export", "-", "--vectors"]).stdout == first
    again = CliRunner().invoke(cli, ["--db", other, "import", "-"], input=first)
    assert "0 new, 3 there already" in again.stdout
    only = run("export", "-", "--project", "billing", "--no-trash").stdout
    assert [json.loads(line)["memory_id"] for line in only.splitlines()] == ["m-2", "m-1"]


def test_import_names_file_and_line(run, db, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"content": "fine"}\n{"content": 7}\n')
    result = run("import", path, "--encoder", "hashing", code=1)
    assert result.stderr == f"memlab: {path}, line 2: content: expected text, found int\n"


def test_backup_and_check(run, filled, tmp_path):
    copy = tmp_path / "copy.db"
    run("backup", copy)
    assert "exists already" in run("backup", copy, code=1).stderr
    run("backup", copy, "--overwrite")
    assert json.loads(run("check", "--json").stdout)["sound"] is True
    with MemoryStore(copy) as store:
        store.db.execute("DELETE FROM memory_search")
        store.db.conn.commit()
    result = CliRunner().invoke(cli, ["--db", str(copy), "check"])
    assert result.exit_code == 1
    assert "NOT sound" in result.stdout
    assert "missing from the search index" in result.stdout
    as_json = CliRunner().invoke(cli, ["--db", str(copy), "check", "--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["sound"] is False


def test_reembed(run, filled):
    assert "0 memories have no vector" in run("reembed").stdout
    assert "3 memories have new vectors" in run("reembed", "--all").stdout
    out = run("reembed", "--encoder", "hashing-64").stdout
    assert "hashing-64 (64 dimensions)" in out
    assert "hashing-384" in out
    assert json.loads(run("stats", "--json").stdout)["dimension"] == 64
    assert json.loads(run("recall", "webhooks", "--json").stdout)["mode"] == "hybrid"


# -- doctor ----------------------------------------------------------------------------------------------------------


def test_doctor(run, filled):
    value = json.loads(run("doctor", "--json").stdout)
    assert value["machine"]["fts5"] is True
    assert value["store"]["schema_version"] >= 1
    assert value["store"]["encoder"] == "hashing-384 (384 dimensions)"
    assert value["store"]["path"] == str(filled)
    assert [place["source"][0] for place in value["weights"]["places"]] == ["1", "2", "3", "4"]
    out = run("doctor").stdout
    assert "sqlite" in out
    assert str(default_path())[:20] in out


def test_doctor_without_store_and_without_weights(run, db, tmp_path):
    value = json.loads(run("doctor", "--json", env={"MEMLAB_MODEL": str(tmp_path / "nowhere")}).stdout)
    assert value["weights"]["used"] is None
    assert "nowhere" in value["weights"]["why_not"]
    assert value["store"]["state"] == "not there yet"
    assert any("keywords alone" in problem for problem in value["problems"])
    assert not db.exists()


def test_doctor_names_what_is_missing(run, filled, monkeypatch):
    import importlib.metadata

    def version(name):
        if name == "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return importlib.metadata.version(name)

    monkeypatch.setattr("memlab.cli.diagnosis.version", version)
    out = " ".join(run("doctor").stdout.split())
    assert "python -m pip install torch" in out


@pytest.mark.skipif(os.name == "nt", reason="no file modes")
def test_doctor_says_that_others_can_read_it(run, filled):
    filled.chmod(0o644)
    assert "chmod 600" in " ".join(run("doctor").stdout.split())


def test_doctor_knows_the_dependencies_of_the_project():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[^\w.-]", text)[0] for text in project["dependencies"]}
    assert needed == set(NEEDED)
    extras = {re.split(r"[^\w.-]", text)[0] for texts in project["optional-dependencies"].values() for text in texts}
    assert set(OPTIONAL) <= extras


def test_a_recall_is_the_one_that_python_gives(run, filled):
    run("remember", "A battery is about to die when its voltage sags.", "--id", "m-1a")
    run("remember", "Retry a failed webhook with jitter, and give up after an hour.", "--id", "m-1b")
    told = json.loads(run("recall", "webhook jitter", "--now", NOW, "--json").stdout)
    with MemoryStore(filled) as store:
        asked = HybridRetriever(store).recall("webhook jitter", now=NOW)
        classic = profile("classic", store).recall("webhook jitter", now=NOW)
    assert told["hits"] == asked.as_dict()["hits"]
    assert told["fusion"] == asked.trace.fusion
    told = json.loads(run("recall", "webhook jitter", "--profile", "classic", "--now", NOW, "--json").stdout)
    assert told["hits"] == classic.as_dict()["hits"] != asked.as_dict()["hits"]
    assert "k=7" in json.loads(run("recall", "x", "--profile", "classic", "--k", 7, "--json").stdout)["fusion"]


def test_update_changes_what_is_named_and_keeps_the_former_content(run, filled):
    run("remember", "The port is 8080.", "--id", "m-p", "--project", "web", "--tag", "net")
    assert run("update", "m-p", "The port is 9090.").stdout.startswith("updated m-p in ")
    shown = json.loads(run("update", "m-p", "--project", "", "--importance", 9, "--json").stdout)
    assert (shown["content"], shown["project"], shown["importance"], shown["tags"]) == (
        "The port is 9090.",
        None,
        9,
        ["net"],
    )
    assert [old["content"] for old in json.loads(run("show", "m-p", "--json").stdout)["revisions"]] == [
        "The port is 8080."
    ]
    assert "nothing to change" in run("update", "m-p", code=2).stderr
    assert "no memory has the id" in run("update", "nope", "x", code=1).stderr


def test_a_day_alone_is_its_beginning_in_utc(run, filled):
    run("remember", "A note of that day.", "--id", "m-d", "--created-at", "2026-01-03")
    assert json.loads(run("show", "m-d", "--json").stdout)["created_at"] == "2026-01-03T00:00:00.000Z"
    assert (
        json.loads(run("recall", "note", "--now", "2026-01-05", "--json").stdout)["now"] == "2026-01-05T00:00:00.000Z"
    )


def test_advice_is_in_the_words_of_the_command_line(run, filled):
    run("remember", "A note in the trash.", "--id", "m-t")
    run("forget", "m-t")
    assert "`memlab restore m-t`" in run("recall", "note", "--why-not", "m-t").stdout
