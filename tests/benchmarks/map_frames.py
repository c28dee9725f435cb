"""Frame times of the map in headless Chromium, and how long the first and the second picture of the sample take.

Run as ``python tests/benchmarks/map_frames.py [--sizes 1000,12000,100000] [--json PATH]``. The browser draws without a
graphics card; the page has the widget's own script and a stand-in for the notebook around it, which answers from files
written by Python. Times are medians over many frames, in milliseconds, and the slowest frame of twenty.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

HERE = Path(__file__).parent


def synthetic(count: int, seed: int = 1) -> np.ndarray:
    """Points in loose groups, float32, shape (count, 2)."""
    random = np.random.default_rng(seed)
    centres = random.uniform(-10, 10, (40, 2))
    return (centres[random.integers(0, 40, count)] + random.normal(0, 0.9, (count, 2))).astype("<f4")


def write_page(folder: Path, count: int) -> None:
    """The page, and what Python would answer for so many points."""
    from memlab.widgets.base import source
    from memlab.widgets.map import MemoryMap

    (folder / "map.js").write_text(source(("common.js", "focus.js", *MemoryMap.scripts)), encoding="utf-8")
    css = source(("common.css", *MemoryMap.styles))
    page = (HERE / "map_frames.html").read_text(encoding="utf-8")
    (folder / "index.html").write_text(page.replace("%(css)s", css), encoding="utf-8")
    codes = np.random.default_rng(2).integers(0, 8, count).astype(np.uint8)
    column = {"name": "project", "ordered": False, "values": [f"value {n}" for n in range(8)]}
    column["counts"] = np.bincount(codes, minlength=8).tolist()
    body = {
        "count": count,
        "method": "pca",
        "note": "",
        "placed": 0,
        "colour": "project",
        "colours": ["project"],
        "columns": [column],
        "asks": False,
        "landing": None,
        "selection": {"count": 0, "rows": []},
        "looks": {},
    }
    parts = [synthetic(count).tobytes(), codes.tobytes(), bytes((count + 7) // 8)]
    (folder / "hello.json").write_text(json.dumps({"body": body, "buffers": len(parts)}))
    for at, part in enumerate(parts):
        (folder / f"{at}.bin").write_bytes(part)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def measure(browser: Any, count: int, rounds: int) -> dict[str, Any]:
    """Times for one number of points."""
    script = (HERE / "map_frames.js").read_text(encoding="utf-8").split("\n", 1)[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_page(folder, count)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=name))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page(viewport={"width": 1240, "height": 800})
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            page.wait_for_function(
                "document.querySelector('.ml[data-ready]') && document.querySelector('.ml-root').memlabMap"
            )
            first = page.evaluate("performance.now() - window.began")
            page.wait_for_timeout(1500)
            found: dict[str, Any] = {"points": count, "first draw": round(first, 1)}
            for what in ("full", "pan", "wheel", "hover", "lasso"):
                told = page.evaluate(script, [what, rounds if what != "lasso" else max(5, rounds // 10)])
                times = told["frames"] if what == "full" else told["waits"]
                found[what] = {
                    "median": round(statistics.median(times), 2),
                    "p95": round(sorted(times)[int(0.95 * (len(times) - 1))], 2),
                    "drawn": int(statistics.median(told["drawn"])) if told["drawn"] else None,
                }
            return found
        finally:
            page.close()
            server.shutdown()
            server.server_close()


PROJECTION = """
import sys, time
began = time.perf_counter()
import memlab
from memlab.projection import project
with memlab.MemoryStore(sys.argv[1]) as store:
    made = project(store, progress=False)
    print(made.method, len(made), time.perf_counter() - began)
    began = time.perf_counter()
    project(store, progress=False)
    print(time.perf_counter() - began)
"""


def projections() -> dict[str, Any]:
    """Seconds of the first picture of the sample and of the next call, in three new processes.

    ``first ever`` finds nothing that numba compiled before, as after an installation; ``new process`` finds what that
    one compiled, and no picture; ``kept`` finds the picture in the store.
    """
    import memlab

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "memory.db"
        memlab.sample().build(path, progress=False).close()
        shutil.copy(path, path.with_name("other.db"))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(Path(name) / "numba")}
        runs = {}
        for what, store in (("first ever", path), ("new process", path.with_name("other.db")), ("kept", path)):
            began = time.perf_counter()
            command = [sys.executable, "-c", PROJECTION, str(store)]
            out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
            runs[what] = {
                "method": out[0],
                "memories": int(out[1]),
                "first call": float(out[2]),
                "next call": float(out[3]),
                "whole process": time.perf_counter() - began,
            }
    return runs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,12000,100000")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-projection", action="store_true")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    path = os.environ.get("MEMLAB_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    result: dict[str, Any] = {"sizes": []}
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=flags)
        for size in options.sizes.split(","):
            result["sizes"].append(measure(browser, int(size), options.rounds))
        browser.close()
    print(
        f"{'points':>8} {'first draw':>10}"
        + "".join(f"{what:>18}" for what in ("full", "pan", "wheel", "hover", "lasso"))
    )
    for row in result["sizes"]:
        cells = "".join(
            f"{row[w]['median']:>10} /{row[w]['p95']:>6}" for w in ("full", "pan", "wheel", "hover", "lasso")
        )
        print(f"{row['points']:>8,} {row['first draw']:>10}{cells}")
    print("milliseconds, median / 95th percentile; pan and wheel from the event to the end of the frame it causes")
    if not options.no_projection:
        result["projection"] = projections()
        for name, run in result["projection"].items():
            print(
                f"{name}: "
                + ", ".join(
                    f"{key} {value:.3f} s" if isinstance(value, float) else f"{value}" for key, value in run.items()
                )
            )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
