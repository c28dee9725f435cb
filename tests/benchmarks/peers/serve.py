"""The process of one peer: runs in the peer's own environment, reads a JSON line, answers with a JSON line.

    python serve.py ADAPTER FOLDER

It needs the standard library and numpy alone. Whatever the peer prints goes to stderr. Requests:

``{"do": "about"}``                                   name, version, what it can do
``{"do": "load", "rows": FILE, "queries": FILE}``     read texts and vectors into memory (not timed)
``{"do": "ingest", "within": SECONDS}``             store all rows; seconds, rows, and whether it was given up
``{"do": "open"}``                                    open what was stored; milliseconds
``{"do": "ask", "way": WAY, "start": N, "end": N, "limit": N}``  answer queries one by one; milliseconds and ids of each
``{"do": "memory"}``                                  MB resident

A file of rows or queries is two files: NAME.jsonl with ``id`` and ``text``, NAME.npy with the vectors.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np

HERE = Path(__file__).resolve().parent
WAYS = ("vector", "hybrid", "text")


class Vectors:
    """The vectors of all texts that will occur: for peers that encode themselves, so that all have the same."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def add(self, texts: list[str], matrix: np.ndarray) -> None:
        """Remember the vector of each text."""
        self._known.update(zip(texts, matrix, strict=True))

    def __call__(self, text: str) -> np.ndarray:
        """The vector of a text; KeyError says which one is not known."""
        return self._known[text]


def adapter_of(name: str, folder: Path, vectors: Vectors) -> Any:
    """The adapter in ``adapters/NAME.py``, or in a file that is named with its ending."""
    file = Path(name) if name.endswith(".py") else HERE / "adapters" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"adapter_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is no adapter")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Adapter(folder, vectors)


class Server:
    """Answers requests for one adapter."""

    def __init__(self, name: str, folder: Path) -> None:
        self.vectors = Vectors()
        self.name, self.folder = name, folder
        self._adapter: Any = None
        self.rows: tuple[list[str], list[str], np.ndarray] = ([], [], np.empty((0, 0)))
        self.queries: tuple[list[str], list[str], np.ndarray] = ([], [], np.empty((0, 0)))

    @property
    def adapter(self) -> Any:
        """Made when it is first needed: importing the peer is part of its cold start."""
        if self._adapter is None:
            self._adapter = adapter_of(self.name, self.folder, self.vectors)
        return self._adapter

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        found: dict[str, Any] = getattr(self, f"do_{request.pop('do')}")(**request)
        return found

    def do_about(self) -> dict[str, Any]:
        """Version and abilities."""
        return {
            "version": self.adapter.version(),
            "ways": [way for way in WAYS if callable(getattr(self.adapter, way, None))],
        }

    def do_load(self, rows: str | None = None, queries: str | None = None) -> dict[str, Any]:
        """Read files."""
        if rows:
            self.rows = read(rows)
            if getattr(self.adapter, "encodes", False):
                self.vectors.add(self.rows[1], self.rows[2])
        if queries:
            self.queries = read(queries)
            self.vectors.add(self.queries[1], self.queries[2])
        return {"rows": len(self.rows[0]), "queries": len(self.queries[0])}

    def do_ingest(self, within: float) -> dict[str, Any]:
        """Store all rows in the batches that the adapter wants."""
        ids, texts, matrix = self.rows
        size = getattr(self.adapter, "batch", None) or len(ids)
        started = perf_counter()
        done = 0
        while done < len(ids) and perf_counter() - started < within:
            part = slice(done, done + size)
            self.adapter.ingest(ids[part], texts[part], matrix[part])
            done += len(ids[part])
        if done == len(ids) and hasattr(self.adapter, "finish"):
            self.adapter.finish()
        return {"seconds": perf_counter() - started, "rows": done, "complete": done == len(ids)}

    def do_open(self) -> dict[str, Any]:
        """Open what was stored."""
        started = perf_counter()
        self.adapter.open()
        return {"ms": 1000 * (perf_counter() - started)}

    def do_ask(self, way: str, start: int, end: int, limit: int) -> dict[str, Any]:
        """Answer queries, each timed."""
        spent, found = [], []
        method = getattr(self.adapter, way)
        for at in range(start, min(end, len(self.queries[0]))):
            text, vector = self.queries[1][at], self.queries[2][at]
            started = perf_counter()
            ids = method(text, limit) if way == "text" else method(text, vector, limit)
            spent.append(1000 * (perf_counter() - started))
            found.append([str(name) for name in ids])
        return {"ms": spent, "ids": found}

    def do_memory(self) -> dict[str, Any]:
        """What the process holds."""
        try:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            return {"mb": pages * os.sysconf("SC_PAGE_SIZE") / 1e6}
        except (OSError, ValueError):
            return {"mb": None}


def read(name: str) -> tuple[list[str], list[str], np.ndarray]:
    """Ids, texts and vectors of a file."""
    with open(f"{name}.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    matrix = np.load(f"{name}.npy")
    return [line["id"] for line in lines], [line["text"] for line in lines], matrix


def serve(server: Server, requests: IO[str], answers: IO[str]) -> None:
    """Answer until the requests end."""
    for line in requests:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[:500]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Serve on stdin and what was stdout; what the peer prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    serve(Server(name, folder), sys.stdin, answers)


if __name__ == "__main__":
    main()
