"""The settings of clients: commands that a shell understands, files that parse, absolute paths, no token."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memlab.cli.app import cli
from memlab.errors import InvalidValue
from memlab.server.clients import CLIENTS, Http, command, http_snippet, stdio_snippet

SHELLS = ("claude-code", "codex", "gemini")
posix = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))


def entries(client: str, text: str):
    (top,) = [value for key, value in json.loads(text).items() if key != "inputs"]
    return top["memlab"]


def test_the_command_starts_this_memlab_from_anywhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = command(Path("memory.db"))
    assert Path(words[0]).is_absolute()
    assert Path(words[0]).parent == Path(sys.executable).parent
    assert words[-3:] == ["mcp", "--db", str(tmp_path / "memory.db")]


@posix
@pytest.mark.parametrize("client", SHELLS)
def test_a_command_line_survives_a_shell(client, tmp_path):
    db = tmp_path / "my notes" / "it's.db"
    words = shlex.split(str(stdio_snippet(client, db)))
    assert words[1:3] == ["mcp", "add"]
    assert words[-len(command(db)) :] == command(db)
    assert "PYTHONUTF8=1" in words


@pytest.mark.parametrize("client", [name for name in CLIENTS if name not in SHELLS])
def test_a_file_parses_and_holds_the_command(client, tmp_path):
    db = tmp_path / 'my "notes" $x' / "it's.db"
    entry = entries(client, str(stdio_snippet(client, db, "--read-only")))
    words = entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]
    assert words == command(db, "--read-only")


@pytest.mark.parametrize("client", [name for name, (_, http) in CLIENTS.items() if http])
def test_http_settings_name_the_address_and_where_the_token_is(client, tmp_path):
    kept = tmp_path / "token"
    snippet = http_snippet(client, Http("http://127.0.0.1:8765/mcp", kept))
    assert "http://127.0.0.1:8765/mcp" in snippet.text
    assert str(kept) in f"{snippet.text} {snippet.note}"
    bare = http_snippet(client, Http("http://127.0.0.1:8765/mcp", None, needs_token=False))
    assert "http://127.0.0.1:8765/mcp" in bare.text
    assert "oken" not in bare.text
    assert "Authorization" not in bare.text


@posix
@pytest.mark.parametrize("client", SHELLS)
@pytest.mark.parametrize("folder", ["my data", "it's", 'so "called"', "$HOME `id` \\"])
def test_a_shell_reads_the_token_wherever_it_is(client, folder, tmp_path):
    kept = tmp_path / folder / "token"
    kept.parent.mkdir()
    kept.write_text("t0ken\n")
    text = http_snippet(client, Http("http://127.0.0.1:8765/mcp", kept)).text
    # The client is a function of the shell that shows its arguments, and the variable that it would read.
    script = f'{Path(text.splitlines()[-1]).parts[0].split()[0]}() {{ printf "%s\\n" "$@" "$MEMLAB_TOKEN"; }}\n{text}\n'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert "t0ken" in said.stdout if client == "codex" else "Authorization: Bearer t0ken\n" in said.stdout


def test_a_client_that_takes_no_address_is_told_of_stdio():
    with pytest.raises(InvalidValue, match="use stdio"):
        http_snippet("claude-desktop", Http("http://127.0.0.1:1/mcp", None))


@pytest.mark.parametrize("name", ["Claude Code", "claude", "CLAUDE_CODE"])
def test_names_are_taken_as_people_write_them(name, tmp_path):
    assert stdio_snippet(name, tmp_path / "m.db").client == "Claude Code"
    with pytest.raises(InvalidValue, match="expected one of claude-code, claude-desktop, codex"):
        stdio_snippet("emacs", tmp_path / "m.db")


def test_the_command_line_prints_settings_alone(tmp_path):
    db = tmp_path / "memory.db"
    run = CliRunner().invoke(cli, ["mcp", "config", "cursor", "--db", str(db)])
    assert run.exit_code == 0
    assert entries("cursor", run.stdout)["args"][-1] == str(db)
    assert "mcp.json" in run.stderr
    again = CliRunner().invoke(cli, ["mcp", "--db", str(db), "config", "cursor"])
    assert again.stdout == run.stdout
    assert not db.exists()


def test_the_command_line_for_http(tmp_path):
    db = tmp_path / "memory.db"
    run = CliRunner().invoke(cli, ["mcp", "config", "claude-code", "--db", str(db), "--http", "--port", "8765"])
    assert run.exit_code == 0
    kept = Path(*shlex.split(run.stdout.split("$(cat ")[1].split(")")[0]))
    token = kept.read_text().strip()
    assert len(token) >= 43
    assert token not in run.output
    for wrong in (["--http"], ["--port", "1"]):
        assert CliRunner().invoke(cli, ["mcp", "config", "codex", *wrong][:3] + wrong).exit_code in (0, 2)
    assert CliRunner().invoke(cli, ["mcp", "config", "codex", "--http"]).exit_code == 2
    assert CliRunner().invoke(cli, ["mcp", "--port", "8765"]).exit_code == 2


def test_doctor_shows_the_place_and_how_it_is_served(tmp_path):
    found = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).stdout)
    assert found["store"]["default"].startswith(str(tmp_path / "data")) or sys.platform == "darwin"
    assert found["store"]["default"] in found["store"]["served_by"]
