"""How fast memories come in: with ready vectors at several sizes, stage by stage, and as text beside the encoder alone.

``python tests/benchmarks/ingest_speed.py [--sizes 12000 100000] [--text 256] [--json]``

The texts are notes of about 280 characters, of a made-up vocabulary with Zipf-like frequencies, the same in every run.
Everything a store does is in the figure: both search indexes, duplicates, numbers, the change log, the commits with
their waits for the disk. The processor time of the process stands beside, which a busy machine disturbs less; of large
batches a second thread fills the search index. ``--text N`` stores N notes through MiniLM, after the encoder alone has
encoded the same texts in batches of the same size.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from memlab.encoders import HashingEncoder, MiniLM
from memlab.store import MemoryStore, remembering
from memlab.store.connection import _Connection

DIMENSION = 384
STAGES = {
    "INSERT INTO memories ": "rows",
    "INSERT INTO memory_search": "search index",
    "INSERT INTO memory_terms": "term index",
    "INSERT INTO memory_numbers": "numbers and changes",
    "INSERT INTO memory_changes": "numbers and changes",
    "DELETE FROM memory_changes": "numbers and changes",
    "SELECT w.key": "duplicates and known ids",
    "SELECT id, content": "duplicates and known ids",
    "COMMIT": "commit",
}


def notes(count: int, seed: int = 0) -> Iterator[str]:
    """Texts of about 280 characters, no two alike."""
    chance = random.Random(seed)
    syllables = [one + two for one in "bcdfghlmnprstv" for two in ("a", "e", "i", "o", "u", "an", "er")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(30_000)]
    for number in range(count):
        picked: list[str] = []
        length = 0
        while length < 268:
            word = words[int(len(words) * chance.random() ** 4)]
            if chance.random() < 0.02:
                word += f"_{chance.choice(words)}"
            picked.append(word)
            length += len(word) + 1
        yield f"{' '.join(picked).capitalize()} in ticket {number}."


def timed_stages(spent: dict[str, float]) -> Callable[[], None]:
    """Let every statement add its processor time to its stage; returns what undoes it."""
    true = {name: getattr(_Connection, name) for name in ("execute", "executemany")}

    def timed(real: Any) -> Any:
        @wraps(real)
        def call(self: Any, sql: str, *values: Any) -> Any:
            began = time.thread_time()
            try:
                return real(self, sql, *values)
            finally:
                stage = next((stage for head, stage in STAGES.items() if sql.lstrip().startswith(head)), "other SQL")
                spent[stage] += time.thread_time() - began

        return call

    for name, real in true.items():
        setattr(_Connection, name, timed(real))

    def undo() -> None:
        for name, real in true.items():
            setattr(_Connection, name, real)

    return undo


def ready(count: int, folder: Path) -> dict[str, Any]:
    """Store memories with ready vectors, from a generator."""
    rows = np.random.default_rng(0).standard_normal((min(count, 50_000), DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = list(notes(min(count, 100_000)))
    records = (
        {
            "content": texts[at] if at < len(texts) else f"{at} {texts[at % len(texts)]}",
            "project": f"p{at % 7}",
            "vector": rows[at % len(rows)],
        }
        for at in range(count)
    )
    spent: dict[str, float] = defaultdict(float)
    largest = 0
    path = folder / f"{count}.db"

    def look(*_: Any) -> None:
        nonlocal largest
        largest = max(largest, path.with_name(f"{path.name}-wal").stat().st_size)

    with MemoryStore(path, HashingEncoder(DIMENSION)) as store:
        undo = timed_stages(spent)
        wall, processor = time.perf_counter(), time.process_time()
        try:
            result = store.remember_many(records, progress=look)
        finally:
            undo()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        assert result.created == count
    spent["Python: checks, terms of the texts, ids"] = processor - sum(spent.values())
    return {
        "memories": count,
        "rows per second": round(count / wall),
        "rows per second of processor time": round(count / processor),
        "microseconds a row": {stage: round(1e6 * seconds / count, 1) for stage, seconds in spent.items()},
        "file MB": round(path.stat().st_size / 1e6),
        "largest log MB": round(largest / 1e6),
        "most memory of the process MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def as_text(count: int, folder: Path, rounds: int = 3) -> dict[str, Any]:
    """Text through MiniLM beside the encoder alone, in turn; the best of each."""
    encoder = MiniLM()
    texts = list(notes(count))
    encoder.encode_documents(texts[:16])
    alone, whole = [], []
    for turn in range(rounds):
        began = time.perf_counter()
        for at in range(0, count, remembering.ENCODED):
            encoder.encode_documents(texts[at : at + remembering.ENCODED])
        alone.append(time.perf_counter() - began)
        with MemoryStore(folder / f"text-{turn}.db", encoder) as store:
            began = time.perf_counter()
            store.remember_many(texts)
            whole.append(time.perf_counter() - began)
    return {
        "notes": count,
        "encoder alone, notes per second": round(count / min(alone), 1),
        "remember_many, notes per second": round(count / min(whole), 1),
        "share of the encoder's rate": round(min(alone) / min(whole), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[12_000, 100_000])
    parser.add_argument("--text", type=int, default=0, help="also store so many notes through MiniLM")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for size in chosen.sizes:
            found.append(ready(size, Path(folder)))
            if not chosen.json:
                show(found[-1])
        if chosen.text:
            found.append(as_text(chosen.text, Path(folder)))
            if not chosen.json:
                show(found[-1])
    if chosen.json:
        print(json.dumps(found, indent=1))


def show(one: dict[str, Any]) -> None:
    """Print one result."""
    for name, value in one.items():
        if isinstance(value, dict):
            print(f"  {name}:")
            for stage, part in sorted(value.items(), key=lambda item: -item[1]):
                print(f"    {part:7.1f}  {stage}")
        else:
            print(f"  {name}: {value:,}")
    print(flush=True)


if __name__ == "__main__":
    main()
