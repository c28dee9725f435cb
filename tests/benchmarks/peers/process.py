"""The driver's end: a peer in a process of its own, asked by JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
# No peer may call home while it is measured; all keep their own settings otherwise.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MEM0_TELEMETRY": "False",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
}


class PeerFailed(Exception):
    """A peer gave no usable answer; the message says why."""


class Peer:
    """One process.

    Parameters
    ----------
    python : Path
        Of the peer's environment.
    adapter : str
    folder : Path
        Where the peer keeps its data.
    log : Path
        Where what it prints goes.
    environment : dict, optional
        Variables beside :data:`QUIET`.
    """

    def __init__(
        self, python: Path, adapter: str, folder: Path, log: Path, environment: dict[str, str] | None = None
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        self.started = perf_counter()
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [str(python), str(HERE / "serve.py"), adapter, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
                env={**os.environ, **QUIET, **(environment or {})},
                cwd=folder.parent,
            )

    def ask(self, do: str, patience: float = 600, **more: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; raises :class:`PeerFailed`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self._process.stdin.flush()
            with selectors.DefaultSelector() as waiting:
                waiting.register(self._process.stdout, selectors.EVENT_READ)
                if not waiting.select(patience):
                    self.kill()
                    raise PeerFailed(f"{do}: no answer within {patience:.0f} seconds")
            line = self._process.stdout.readline()
        except OSError as error:
            raise PeerFailed(f"{do}: {self._last_words()}") from error
        if not line:
            raise PeerFailed(f"{do}: the process ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(f"{do}: {answer['error']}")
        return answer

    def since_start(self) -> float:
        """Milliseconds since the process was started."""
        return 1000 * (perf_counter() - self.started)

    def close(self) -> None:
        """Let it end by itself, or end it."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it printed nothing"
