"""What memlab is compared with in the same run: the plain ways of doing the same, in processes of their own.

``exact`` scans a float32 matrix with one thread and takes the ten best with ``argpartition``; asked for words it sends
all of them to FTS5, joined by OR and ordered by rank. ``naive`` is the whole thing as most would write it first:
``SentenceTransformer.encode`` as it comes, the matrix, the OR query, reciprocal ranks added up.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from memlab.encoders.base import FloatMatrix
from memlab.errors import MemlabError

_WORD = re.compile(r"\w+")
_VECTORS = """
    SELECT n.number, m.vector FROM memories m JOIN memory_numbers n ON n.id = m.id
    WHERE m.trashed_at IS NULL AND m.vector IS NOT NULL"""
_OR = "SELECT rowid FROM memory_search WHERE memory_search MATCH ? ORDER BY rank LIMIT ?"
_CONTENT = "SELECT m.content FROM memory_numbers n JOIN memories m ON m.id = n.id WHERE n.number = ?"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_PATIENCE = 600  # seconds for one answer
_DEPTH = 50


class PlainSearch:
    """A matrix and an OR query over a store's file.

    Parameters
    ----------
    path : str
        Opened for reading.
    folder : str, optional
        Of the model, for :meth:`encode` and :meth:`whole`.
    """

    def __init__(self, path: str, folder: str | None = None) -> None:
        self._connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
        self._numbers = np.empty(0, np.int64)
        self._matrix = np.empty((0, 0), np.float32)
        self._folder = folder
        self._model: Any = None

    def load(self) -> int:
        """Read the vectors; returns how many."""
        rows = self._connection.execute(_VECTORS).fetchall()
        self._numbers = np.array([number for number, _ in rows], np.int64)
        self._matrix = np.frombuffer(b"".join(blob for _, blob in rows), "<f4").reshape(len(rows), -1)
        return len(rows)

    def load_model(self) -> str:
        """Load the model; returns the version of sentence-transformers."""
        import sentence_transformers

        self._model = sentence_transformers.SentenceTransformer(self._folder, device="cpu")
        return str(sentence_transformers.__version__)

    def scan(self, vector: FloatMatrix, depth: int) -> list[int]:
        """Numbers of the nearest memories."""
        scores = self._matrix @ vector
        if depth < len(scores):
            best = np.argpartition(scores, len(scores) - depth)[len(scores) - depth :]
        else:
            best = np.arange(len(scores))
        found: list[int] = self._numbers[best[np.argsort(-scores[best], kind="stable")]].tolist()
        return found

    def words(self, text: str, depth: int) -> list[int]:
        """Numbers of the memories that FTS5 ranks best."""
        words = dict.fromkeys(_WORD.findall(text.lower()))
        match = " OR ".join(f'"{word}"' for word in words)
        return [number for (number,) in self._connection.execute(_OR, (match, depth))] if words else []

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Vectors of texts, as they come."""
        encoded: FloatMatrix = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return encoded

    def whole(self, text: str, limit: int) -> list[str]:
        """Contents of the best by the sum of 1 / (60 + rank)."""
        scores: dict[int, float] = {}
        for found in (self.scan(self.encode([text])[0], _DEPTH), self.words(text, _DEPTH)):
            for rank, number in enumerate(found, 1):
                scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
        return [self._connection.execute(_CONTENT, (number,)).fetchone()[0] for number in best]


class Worker:
    """A process with a :class:`PlainSearch`, asked over a pipe; it measures itself.

    Parameters
    ----------
    path : Path
        The store's file.
    folder : Path, optional
        Of the model.
    one_thread : bool
        Whether its linear algebra has one thread.
    """

    def __init__(self, path: Path, folder: Path | None = None, *, one_thread: bool = False) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        with _threads(one_thread):
            self._process = context.Process(
                target=_serve, args=(theirs, str(path), None if folder is None else str(folder)), daemon=True
            )
            self._process.start()
        theirs.close()

    def ask(self, method: str, calls: Sequence[tuple[Any, ...]]) -> tuple[list[float], list[Any]]:
        """Call a method once for each tuple of arguments.

        Returns
        -------
        milliseconds : list of float
        results : list

        Raises
        ------
        MemlabError
            If it failed there, or the process is gone.
        """
        try:
            self._pipe.send((method, list(calls)))
            if not self._pipe.poll(_PATIENCE):
                raise MemlabError(f"the reference process did not answer {method} within {_PATIENCE} seconds")
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise MemlabError(f"the reference process ended while it was asked for {method}") from error
        if isinstance(answer, str):
            raise MemlabError(f"the reference failed in {method}: {answer}")
        spent, results = answer
        return spent, results

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, path: str, folder: str | None) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    search = PlainSearch(path, folder)
    while True:
        try:
            method, calls = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            spent, results = [], []
            for arguments in calls:
                started = perf_counter()
                result = getattr(search, method)(*arguments)
                spent.append(1000 * (perf_counter() - started))
                results.append(result)
            pipe.send((spent, results))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


@contextmanager
def _threads(one: bool) -> Iterator[None]:
    """For processes started within: one thread for linear algebra, or what the environment says."""
    before = {name: os.environ.get(name) for name in THREADS}
    if one:
        os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
