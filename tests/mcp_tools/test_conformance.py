"""The conformance suite of the protocol, in both versions, less what needs a server made for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from tools import npm_tools

pytestmark = pytest.mark.mcp_tools
HERE = Path(__file__).parent
PASSED = {
    "2025-11-25": ["server-initialize", "ping"],
    "2026-07-28": ["caching", "http-header-validation", "sep-2164-resource-not-found", "server-stateless"],
}
IN_BOTH = ["completion-complete", "tools-list", "tools-call-error", "resources-list", "prompts-list"]


@pytest.mark.parametrize("version", list(PASSED))
def test_every_scenario_that_needs_no_server_of_its_own(programs, db, tmp_path, monkeypatch, version):
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))
    # The suite sends no header of ours, so the token is off; Host and Origin are checked all the same.
    with MemoryStore(db, HashingEncoder(64)) as store, memlab.serve(store, token=False) as server:
        done = subprocess.run(
            [
                str(npm_tools.node(programs)),
                str(programs / "node_modules" / ".bin" / "conformance"),
                *("server", "--url", server.url, "--suite", "all", "--spec-version", version),
                *("--expected-failures", str(HERE / f"not_for_us_{version}.yml"), "-o", str(tmp_path / "results")),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
            timeout=240,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    ran = {path.name for path in (tmp_path / "results").iterdir()}
    for name in [*PASSED[version], *IN_BOTH, "dns-rebinding-protection"]:
        assert [each for each in ran if each.startswith(f"server-{name}-")], f"{name} did not run"
