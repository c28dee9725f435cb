"""How fast all-MiniLM-L6-v2 encodes: `SentenceTransformer.encode` with its defaults, and memlab's fast path.

    python tests/benchmarks/encoder_speed.py [--rounds N] [--notes N] [--cold N] [--json]

Both run in a process of their own and take turns, round by round, so that whatever else the machine does falls on both.
A query is one question alone; a note is 280 characters of the sample's memories; cold is a new Python process until it
has its first vector. Medians and best rounds are printed, with the ratios of both. The vectors are compared as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

CHARACTERS = 280
ENGINES = ("sentence-transformers", "memlab")
COLD = {
    "sentence-transformers": "from sentence_transformers import SentenceTransformer; "
    "SentenceTransformer({folder!r}, device='cpu', local_files_only=True).encode(['a first question'])",
    "memlab": "import memlab; memlab.MiniLM({folder!r}, backend='onnx').encode_queries(['a first question'])",
}


def texts(count: int) -> tuple[list[str], list[str]]:
    """Questions and notes of the sample."""
    import memlab

    sample = memlab.sample()
    joined = " ".join(str(record["content"]) for record in sample.records)
    notes = [joined[start : start + CHARACTERS] for start in range(0, count * CHARACTERS, CHARACTERS)]
    return [query.text for query in sample.queries][:40], notes


def encoder(engine: str, folder: str) -> Callable[[list[str]], Any]:
    """The function that is timed."""
    if engine == "memlab":
        import memlab

        return memlab.MiniLM(folder, backend="onnx").encode_documents
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu", local_files_only=True).encode


def work(engine: str, folder: str, count: int) -> None:
    """In a process of its own: do a round for every line that comes in."""
    encode = encoder(engine, folder)
    questions, notes = texts(count)
    vectors = [[round(float(value), 8) for value in encode([text])[0]] for text in (questions[0], notes[0])]
    print(json.dumps(vectors), flush=True)
    for _ in sys.stdin:
        single = []
        for question in questions:
            started = time.perf_counter()
            encode([question])
            single.append(1000 * (time.perf_counter() - started))
        started, spent = time.perf_counter(), time.process_time()
        encode(notes)
        wall, spent = time.perf_counter() - started, time.process_time() - spent
        figures = {"query_ms": median(single), "notes_s": len(notes) / wall, "note_cpu_ms": 1000 * spent / len(notes)}
        print(json.dumps(figures), flush=True)


def cold(engine: str, folder: str) -> float:
    """Seconds from the start of a process to its end, with one vector made."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", COLD[engine].format(folder=folder)], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(rounds: int, count: int, starts: int) -> dict[str, Any]:
    """Alternate, and collect."""
    from memlab.encoders import MiniLM

    model = MiniLM()
    model.prepare()
    folder = str(model.folder.path)
    found: dict[str, dict[str, list[float]]] = {engine: {} for engine in ENGINES}
    command = [sys.executable, __file__, "--folder", folder, "--notes", str(count), "--worker"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    # Typed as anything: the pipes are there, which their types do not say.
    workers: dict[str, Any] = {engine: subprocess.Popen([*command, engine], text=True, **pipes) for engine in ENGINES}
    try:
        vectors = [json.loads(worker.stdout.readline()) for worker in workers.values()]
        difference = max(abs(a - b) for pair in zip(*vectors, strict=True) for a, b in zip(*pair, strict=True))
        for number in range(rounds + 1):
            for engine, worker in workers.items():
                worker.stdin.write("round\n")
                worker.stdin.flush()
                figures = json.loads(worker.stdout.readline())
                if number:  # the first one warms up
                    for name, value in figures.items():
                        found[engine].setdefault(name, []).append(value)
    finally:
        for worker in workers.values():
            worker.stdin.close()
            worker.wait()
    for number in range(starts + 1):
        for engine in ENGINES:
            seconds = cold(engine, folder)
            if number:
                found[engine].setdefault("cold_s", []).append(seconds)
    return {"machine": machine(), "difference": difference, "rounds": rounds, "notes": count, "found": found}


def machine() -> str:
    """What it ran on."""
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    flags = next((line.split(":")[1].split() for line in _lines("/proc/cpuinfo") if line.startswith("flags")), [])
    wide = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16") if flag in flags]
    load = f", load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    return f"{(names or [platform.machine()])[0]}, {os.cpu_count()} processors, {' '.join(wide) or 'unknown'}{load}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def show(result: dict[str, Any]) -> None:
    """Print a table."""
    print(f"{result['machine']}; {result['rounds']} rounds of 40 queries and {result['notes']} notes, in turns")
    print(f"largest difference of a component: {result['difference']:.1g}")
    print(f"{'':<34}{ENGINES[0]:>24}{ENGINES[1]:>12}{'ratio':>8}")
    rows = (
        ("one query, ms", "query_ms", False),
        ("280-character notes a second", "notes_s", True),
        ("processor time of a note, ms", "note_cpu_ms", False),
        ("cold process to first vector, s", "cold_s", False),
    )
    for label, name, more_is_better in rows:
        for kind, pick in (("median", median), ("best", max if more_is_better else min)):
            values = [pick(result["found"][engine].get(name) or [float("nan")]) for engine in ENGINES]
            ratio = values[1] / values[0] if more_is_better else values[0] / values[1]
            print(f"{label if kind == 'median' else '':<27}{kind:>7}{values[0]:>24.2f}{values[1]:>12.2f}{ratio:>7.1f}x")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--notes", type=int, default=128)
    parser.add_argument("--cold", type=int, default=5, help="starts of a new process")
    parser.add_argument("--json", action="store_true", help="everything that was measured")
    parser.add_argument("--worker", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.folder, options.notes)
        return
    result = measure(options.rounds, options.notes, options.cold)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    main()
