"""How long the inspector takes to rank again when a knob moves, and what of it is what.

    python tests/benchmarks/inspector_rerank.py [--memories 12000] [--moves 200]

Builds a store of synthetic memories with the hashing encoder in a temporary folder (ranking does not see which encoder
it was), types one query, and then moves knobs: every move is a message of the view answered to the last byte, as JSON.
The bound that the inspector is to keep is 50 ms at 12,000 memories.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from memlab import HashingEncoder, HybridRetriever, MemoryStore, inspect
from memlab.encoders.base import FloatMatrix

WORDS = [
    f"{first}{last}" for first in "bdfgklmnprst" for last in ("ando", "erit", "ilon", "opas", "umek", "yra", "etu")
]


class Counting(HashingEncoder):
    """Counts the queries that it embeds."""

    queries = 0

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        self.queries += len(texts)
        return super().encode_queries(texts)


def build(path: Path, encoder: Counting, memories: int) -> MemoryStore:
    rng = random.Random(7)
    store = MemoryStore(path, encoder)
    rows = (
        {
            "memory_id": f"m-{number:06}",
            "content": " ".join(rng.choices(WORDS, k=rng.choice([20, 40, 60, 400]))),
            "project": rng.choice("abcde"),
            "tags": rng.sample(WORDS, 2),
            "created_at": f"2026-{rng.randint(1, 9):02}-{rng.randint(1, 28):02}T12:00:00Z",
        }
        for number in range(memories)
    )
    store.remember_many(rows, progress=False)
    return store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=12_000)
    parser.add_argument("--moves", type=int, default=200)
    options = parser.parse_args()
    encoder = Counting(384)
    with tempfile.TemporaryDirectory() as folder, build(Path(folder) / "memory.db", encoder, options.memories) as store:
        inspector = inspect(HybridRetriever(store), limit=10)
        knobs = inspector.on_hello({})["state"]["knobs"]["a"]

        def ask(query: str, **changes: object) -> float:
            started = perf_counter()
            json.dumps(inspector.on_recall({"query": query, "knobs": {"a": {**knobs, **changes}}}))
            return 1000 * (perf_counter() - started)

        query = "bando lerit milon of the retyra"
        ask("warm")
        first = ask(query)
        embedded, gathered = encoder.queries, inspector._bench.gathered
        rng = random.Random(3)
        moves: dict[str, Callable[[], dict[str, Any]]] = {
            "weight": lambda: {"weights": {**knobs["weights"], "keyword": rng.uniform(0.01, 2)}},
            "fusion and k": lambda: {"fusion": "rrf", "k": rng.randint(1, 200)},
            "convex": lambda: {"fusion": "convex", "weights": {**knobs["weights"], "vector": rng.uniform(0.01, 2)}},
            "half-life": lambda: {"boost": True, "half_life": rng.uniform(1, 400)},
            "now": lambda: {"boost": True, "now": f"2026-{rng.randint(1, 12):02}-01T00:00:00.000Z"},
        }
        print(f"{len(store):,} memories; one query asked of every channel: {first:.1f} ms")
        print(f"{'a knob moves':<14} {'median':>8} {'p95':>8} {'most':>8}  ms")
        for name, change in moves.items():
            times = sorted(ask(query, **change()) for _ in range(options.moves))
            row = statistics.median(times), times[int(0.95 * len(times))], times[-1]
            print(f"{name:<14} " + " ".join(f"{value:8.2f}" for value in row))
        print(
            f"in these {options.moves * len(moves):,} moves: {encoder.queries - embedded} queries were embedded and "
            f"{inspector._bench.gathered - gathered} times channels were asked"
        )


if __name__ == "__main__":
    main()
