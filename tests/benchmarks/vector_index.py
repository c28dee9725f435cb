"""The vector index against numpy: times of a query, how many of the exact best are kept, opening and memory.

    python tests/benchmarks/vector_index.py [SIZE ...] [--vectors FILE.npy] [--queries N] [--folder DIR]

For each size a store of so many memories with vectors (and no words, which this does not measure) is made once in the
folder. Vectors are synthetic, see memlab/bench/geometry.py, or the rows of a .npy file, of which the last ones are the
queries. The rival is a float32 product with ``argpartition``, on one thread, of a matrix that is in memory. Both answer
each query in turn, in changing order; every query is asked once, so that no cache answers. Opening is timed in a new
process, whose memory is compared before and after the first answer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from memlab import MemoryStore
from memlab.bench import synthetic
from memlab.bench.geometry import DIMENSION
from memlab.encoders import HashingEncoder, stamp
from memlab.retrieval import VectorChannel
from memlab.retrieval.channels import Query
from memlab.store.encoding import record_encoder, set_setting

KEPT = (10, 50)
DEPTH = 50


def make(path: Path, matrix: np.ndarray) -> str:
    """A store of these vectors; says how long the codes took."""
    encoder = stamp(HashingEncoder(matrix.shape[1]))
    filler = "x" * 280
    with MemoryStore(path, None) as store:
        for start in range(0, len(matrix), 50_000):
            rows = matrix[start : start + 50_000]
            with store._file._changing() as connection:
                encoder_id = record_encoder(connection, encoder)
                set_setting(connection, "encoder_id", str(encoder_id))
                connection.execute("INSERT INTO bulk_write VALUES (1)")
                numbers = range(start + 1, start + len(rows) + 1)
                connection.executemany(
                    "INSERT INTO memories (id, content, vector, encoder_id) VALUES (?, ?, ?, ?)",
                    (
                        (f"m-{n * 2654435761 % 2**32:08x}", filler, v.tobytes(), encoder_id)
                        for n, v in zip(numbers, rows, strict=True)
                    ),
                )
                connection.executemany(
                    "INSERT INTO memory_numbers (number, id) VALUES (?, ?)",
                    ((n, f"m-{n * 2654435761 % 2**32:08x}") for n in numbers),
                )
                connection.executemany(
                    "INSERT INTO memory_changes (number) VALUES (?)", ((n,) for n in numbers[-5000:])
                )
                connection.execute("DELETE FROM memory_terms_pending")
                connection.execute("DELETE FROM bulk_write")
        started = time.perf_counter()
        sum(store._file.make_codes())
        return f"{time.perf_counter() - started:.1f}"


def resident() -> float:
    """MB of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def opened(path: str, query: str) -> None:
    """In a process of its own: time to open and answer, and the memory that took."""
    vector = np.load(query)
    ask(vector, None)
    before, started = resident(), time.perf_counter()
    with MemoryStore(path, None, read_only=True) as store:
        with store.view() as view:
            first = time.perf_counter()
            ask(vector, view)
        print(f"{1000 * (first - started):.0f} {1000 * (time.perf_counter() - started):.0f} {resident() - before:.0f}")


def ask(vector: np.ndarray, view: Any) -> Any:
    """The vector channel's answer."""
    return view and VectorChannel().search(Query("", vector), view, DEPTH, frozenset())


def plain(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The rival: the best :data:`DEPTH`, ordered."""
    scores = matrix @ vector
    best = np.argpartition(scores, -DEPTH)[-DEPTH:]
    return best[np.argsort(-scores[best])]


def measure(path: Path, matrix: np.ndarray, queries: np.ndarray) -> dict[str, Any]:
    """Times and recall of one store."""
    times: dict[str, list[float]] = {"index": [], "numpy": []}
    kept: dict[int, list[float]] = {k: [] for k in KEPT}
    with MemoryStore(path, None, read_only=True) as store:
        with store.view() as view:
            ask(queries[-1], view)
        for turn, vector in enumerate(queries):
            for name in ("index", "numpy") if turn % 2 else ("numpy", "index"):
                started = time.perf_counter()
                if name == "index":
                    with store.view() as view:
                        found = ask(vector, view)
                else:
                    plain(matrix, vector)
                times[name].append(1000 * (time.perf_counter() - started))
            # By their cosines in float64: memories that tie are as good as one another.
            own = np.array([hit.raw_score for hit in found.hits])
            near = np.argpartition(matrix @ vector, -2 * DEPTH)[-2 * DEPTH :]
            exact = np.sort((matrix[near].astype(np.float64) * vector.astype(np.float64)).sum(axis=1))[::-1]
            for k in KEPT:
                kept[k].append(float((own[:k] >= exact[k - 1]).mean()))
    result: dict[str, Any] = {f"{name} p50": float(np.median(spent)) for name, spent in times.items()}
    result |= {f"{name} min": min(spent) for name, spent in times.items()}
    result["index p95"] = float(np.percentile(times["index"], 95))
    result["ratio"] = float(np.median(np.array(times["numpy"]) / np.array(times["index"])))
    return result | {f"kept {k}": float(np.mean(shares)) for k, shares in kept.items()}


def main() -> None:
    """Print one row a size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[12_000, 100_000])
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "memlab-vector-index")
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        opened(*given.open)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    real = None if given.vectors is None else np.load(given.vectors, mmap_mode="r")
    for size in given.sizes:
        if real is None:
            matrix = synthetic.vectors(size)
            queries = np.stack([q.vector for q in synthetic.questions(given.queries, size=size)])
        else:
            size = min(size, len(real) - given.queries)
            matrix, queries = np.array(real[:size]), np.array(real[-given.queries :])
        path = given.folder / f"{'synthetic' if real is None else given.vectors.stem}-{size}.db"
        coded = "-"
        if not path.exists():
            coded = make(path.with_suffix(".part"), matrix)
            path.with_suffix(".part").rename(path)
        figures = measure(path, matrix, queries)
        query = given.folder / "query.npy"
        np.save(query, queries[0])
        runs = [
            subprocess.run(
                [sys.executable, __file__, "--open", path, query], capture_output=True, text=True, check=True
            )
            for _ in range(3)
        ]
        seconds, answered, mb = min((list(map(int, run.stdout.split())) for run in runs), key=lambda row: row[0])
        print(
            f"{size:>9,} x {DIMENSION}  index {figures['index p50']:.2f} ms (p95 {figures['index p95']:.2f}, min "
            f"{figures['index min']:.2f})  numpy {figures['numpy p50']:.2f} (min {figures['numpy min']:.2f})  ratio "
            f"{figures['ratio']:.1f}  kept {figures['kept 10']:.4f} of 10, {figures['kept 50']:.4f} of 50  opened in "
            f"{seconds} ms, answered after {answered}, {mb} MB more  codes made in {coded} s"
        )


if __name__ == "__main__":
    main()
