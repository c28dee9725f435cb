"""A cold start: what a new process needs to its first answer.

``python -m memlab.bench.cold`` is that process. It prints one line of JSON: what it found, how long its parts took, and
what it holds in memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter
from typing import Any

from memlab.errors import MemlabError

_PATIENCE = 600
WAYS = ("memlab", "vector", "naive")


def cold_start(path: Path, text: str, way: str, folder: Path | None = None) -> dict[str, Any]:
    """Start a process, ask it once, and measure until its answer is there.

    Parameters
    ----------
    path : Path
        The store's file.
    text : str
        The query.
    way : {"memlab", "vector", "naive"}
        A recall from text; a recall with some query vector and no encoder; what
        :class:`~memlab.bench.reference.PlainSearch` does.
    folder : Path, optional
        Of the model, for the naive way.

    Returns
    -------
    dict
        ``ms`` as seen from outside; ``import_ms``, ``open_ms``, ``answer_ms`` from inside; ``resident_mb``; ``hits``.

    Raises
    ------
    MemlabError
        If the process gives no answer.
    """
    arguments = json.dumps({"path": str(path), "text": text, "way": way, "folder": str(folder) if folder else None})
    with TemporaryFile("w+", encoding="utf-8") as said:
        started = perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "memlab.bench.cold", arguments],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
        )
        patience = Timer(_PATIENCE, process.kill)
        patience.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            spent = 1000 * (perf_counter() - started)  # the interpreter's going down is no part of an answer
            process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            patience.cancel()
            process.communicate()
        if not line.strip():
            said.seek(0)
            lines = said.read().strip().splitlines() or ["it printed nothing"]
            raise MemlabError(f"the process of a cold start failed: {lines[-1]}")
    return {"ms": spent, **json.loads(line)}


def _first_answer(path: str, text: str, way: str, folder: str | None) -> dict[str, Any]:
    started = perf_counter()
    if way == "naive":
        from memlab.bench.reference import PlainSearch

        search = PlainSearch(path, folder)
        search.load_model()
        imported = perf_counter()
        search.load()
        opened = perf_counter()
        hits = len(search.whole(text, 5))
    else:
        from memlab import HybridRetriever, MemoryStore

        imported = perf_counter()
        store = MemoryStore(path, None, read_only=True) if way == "vector" else MemoryStore(path, read_only=True)
        retriever = HybridRetriever(store)
        opened = perf_counter()
        if way == "vector":
            import numpy as np

            recorded = store.encoder_stamp
            vector = np.random.default_rng(0).standard_normal(recorded.dimension if recorded else 1).astype(np.float32)
            hits = len(retriever.rank(retriever.gather(text, query_vector=vector)))
        else:
            hits = len(retriever.recall(text))
    answered = perf_counter()
    from memlab.bench.machine import resident_mb

    return {
        "hits": hits,
        "import_ms": 1000 * (imported - started),
        "open_ms": 1000 * (opened - imported),
        "answer_ms": 1000 * (answered - opened),
        "resident_mb": resident_mb(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_first_answer(**json.loads(sys.argv[1]))) + "\n")
    sys.stdout.flush()
