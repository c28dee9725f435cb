"""The programs from npm, and a store for them to work on. Run by ``make test-mcp``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from tools import npm_tools

_PATIENT = ("--connect-timeout", "90000")  # milliseconds; a machine may be busy
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where they are installed."""
    folder = Path(os.environ.get("MEMLAB_MCP_TOOLS", npm_tools.FOLDER))
    npm_tools.install(folder)
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store with the hashing encoder, which needs no weights."""
    path = tmp_path / "memory.db"
    with MemoryStore(path, HashingEncoder(64)) as store:
        store.remember("webhooks retry with jitter", memory_id="m-retries", project="billing")
        store.remember("a wrong one", memory_id="m-wrong")
        store.remember("in the trash", memory_id="m-trash")
        store.forget("m-trash")
    return path


class Inspector:
    """The MCP Inspector's command line.

    Parameters
    ----------
    programs : Path
    home : Path
        Where it keeps its settings.
    target : list of str
        The command of a server, or its address with options.
    """

    def __init__(self, programs: Path, home: Path, target: list[str]) -> None:
        self.start = [str(npm_tools.node(programs)), str(programs / "node_modules" / ".bin" / "mcp-inspector")]
        self.environment = {**os.environ, "HOME": str(home), "USERPROFILE": str(home)}
        self.target = target

    def run(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit code, what stdout says, stderr."""
        command = [
            *self.start,
            "--cli",
            "-q",
            "--format",
            "json",
            *_PATIENT,
            *arguments[:2],
            *self.target,
            *arguments[2:],
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=200)
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr


def stdio(db: Path) -> list[str]:
    """How the Inspector starts a server; it passes on little of its own environment."""
    return ["-e", f"PYTHONPATH={ROOT}", sys.executable, "-m", "memlab.cli", "mcp", "--db", str(db)]
