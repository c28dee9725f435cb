"""How long an assistant waits: from spawn to the first answers over stdio, and a call over HTTP beside the library.

    python tests/benchmarks/mcp_latency.py [--memories 12000] [--starts 5] [--calls 200] [--encoder hashing]

Prints a table. Every figure is a median, with the best beside it: on a machine that does other things too, the best
says more. "First hybrid recall" counts from spawn: the client asks again until the answer is no longer keyword-only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

import memlab
from memlab.sample_data import sample
from memlab.server.handle import ServerHandle

ROOT = Path(__file__).parents[2]


def message(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def start(db: Path, query: str) -> tuple[float, float, float]:
    """Seconds from spawn to the answer of initialize, to the first recall of any kind, to the first hybrid one."""
    begun = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "memlab.cli", "mcp", "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(sent: bytes) -> Any:
        process.stdin.write(sent)  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        return json.loads(process.stdout.readline())["result"]  # type: ignore[union-attr]

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    ask(message(1, "initialize", **hello))
    initialized = perf_counter() - begun
    number, first = 1, 0.0
    while True:
        number += 1
        got = ask(message(number, "tools/call", name="recall", arguments={"query": query}))
        first = first or perf_counter() - begun
        if got["structuredContent"]["mode"] == "hybrid":
            break
    hybrid = perf_counter() - begun
    process.stdin.close()
    process.wait(60)
    return initialized, first, hybrid


async def over_http(server: ServerHandle, queries: list[str], mode: str) -> list[float]:
    """Seconds of each recall over HTTP, the client's own work included."""
    spent = []
    async with server.client(mode) as client:
        await client.call_tool("recall", {"query": queries[0]})  # the client imports its JSON-schema checker
        for query in queries:
            begun = perf_counter()
            await client.call_tool("recall", {"query": query})
            spent.append(perf_counter() - begun)
    return spent


def by_library(retriever: memlab.HybridRetriever, queries: list[str]) -> list[float]:
    """Seconds of each recall in this process."""
    spent = []
    for query in queries:
        begun = perf_counter()
        retriever.recall(query)
        spent.append(perf_counter() - begun)
    return spent


def told(name: str, seconds: list[float]) -> None:
    print(f"{name:<46}{1000 * statistics.median(seconds):>10.1f}{1000 * min(seconds):>10.1f}   ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--memories", type=int, default=12_000)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--encoder", choices=["minilm", "hashing"], default="minilm")
    options = parser.parse_args()
    given = sample()
    records = given.records
    queries = [query.text for query in given.queries]
    rounds = options.calls // len(queries) + 1
    queries = [f"{query} {turn}" if turn else query for turn in range(rounds) for query in queries][: options.calls]
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "memory.db"
        encoder = memlab.HashingEncoder(384) if options.encoder == "hashing" else memlab.MiniLM()
        with memlab.MemoryStore(db, encoder) as store:
            # Copies of the sample, each with a number at its end, under the vectors of the originals.
            vectors = encoder.encode_documents([record["content"] for record in records])
            for i in range(0, options.memories, len(records)):
                batch = records[: options.memories - i]
                store.remember_many(
                    [{"content": f"{record['content']} ({i})", "project": record.get("project")} for record in batch],
                    vectors=vectors[: len(batch)],
                )
            print(f"{len(store):,} memories, encoder {store.encoder().name}")
            print(f"{'':<46}{'median':>10}{'best':>10}")
            retriever = memlab.HybridRetriever(store)
            by_library(retriever, queries[:20])
            with memlab.serve(store) as server:
                http: dict[str, list[float]] = {"auto": [], "legacy": []}
                library: list[float] = []
                for at in range(0, len(queries), 20):  # in turns, so that what else the machine does hits all alike
                    some = queries[at : at + 20]
                    library += by_library(retriever, some)
                    for mode, spent in http.items():
                        # Other texts, so that each way has to encode them: the last queries' vectors are kept.
                        spent += anyio.run(over_http, server, [f"{query} {mode}" for query in some], mode)
                inside = [call.milliseconds / 1000 for call in server.calls if call.recall is not None]
            told("recall in the library", library)
            told("recall as a tool, measured in the server", inside)
            told("recall over HTTP, 2026-07-28, with its client", http["auto"])
            told("recall over HTTP, 2025-11-25, with its client", http["legacy"])
        starts, alone = [], []
        for _ in range(options.starts):
            alone.append(start_sdk())
            starts.append(start(db, queries[0]))
        told("a process that imports the SDK and ends", alone)
        told("spawn to the answer of initialize", [each[0] for each in starts])
        told("spawn to the first recall of any kind", [each[1] for each in starts])
        told("spawn to the first hybrid recall", [each[2] for each in starts])
        empty = [start_empty(Path(folder) / f"new-{at}.db") for at in range(options.starts)]
        told("the same to initialize, making a new store", empty)


def start_sdk() -> float:
    """Seconds that a process takes to import the server half of the SDK and no more: no server answers sooner."""
    begun = perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)
    return perf_counter() - begun


def start_empty(db: Path) -> float:
    """Seconds from spawn to the answer of initialize for a store that is not there yet."""
    begun = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "memlab.cli", "mcp", "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message(1, "initialize", **hello))
    process.stdin.flush()
    process.stdout.readline()
    spent = perf_counter() - begun
    process.stdin.close()
    process.wait(60)
    return spent


if __name__ == "__main__":
    main()
