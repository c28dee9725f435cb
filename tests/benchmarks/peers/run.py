"""memlab and other stores side by side: same texts, same vectors, same machine, in turn.

    python tests/benchmarks/peers/run.py --sizes 12k,100k [--only memlab,sqlite_vec] [--cache DIR]

Every peer has an environment of its own (made by pip on first use) and a process of its own. Queries come with their
vector, ten to each peer in turn. Peers that insist on encoding texts themselves get the same vectors from a look-up in
place of their model, so no encoder's time is in any figure but ``from text``. ``cold start`` is a new process to its
first answer. Prints a Markdown table; --json writes all figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.benchmarks.peers.data import Data, ids_of, labelled, recall_at, synthetic
from tests.benchmarks.peers.environments import CannotInstall, environment
from tests.benchmarks.peers.process import Peer, PeerFailed
from tests.benchmarks.peers.table import markdown, spread

# In the table's order: adapter, and what people call it.
PEERS = {
    "memlab": "memlab",
    "naive": "SentenceTransformer + numpy + FTS5",
    "sqlite_vec": "sqlite-vec + FTS5",
    "lancedb": "LanceDB",
    "chroma": "Chroma",
    "txtai": "txtai",
    "mem0": "mem0 (infer=False)",
    "mcp_memory": "mcp-memory-service",
}
LIMIT = 10
BLOCK = 10
ASKED = 100
WARM = range(3 * ASKED, 3 * ASKED + 20)
COLD_RUNS = 3
Say = Callable[[str], None]


def main() -> None:
    """Run what the command line says."""
    options = arguments().parse_args()
    cache = (options.cache or default_cache()).resolve()
    only = [name.strip() for name in options.only.split(",")] if options.only else list(PEERS)
    if unknown := [name for name in only if name not in PEERS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; the peers are {', '.join(PEERS)}")
    result = compare(
        only,
        [size_of(word) for word in options.sizes.split(",")],
        cache,
        options.labelled,
        options.patience,
        options.seconds,
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(markdown(result))


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="12k", help="numbers of synthetic memories, such as 12k,100k,1M")
    parser.add_argument("--only", help=f"peers, separated by commas: {','.join(PEERS)}")
    parser.add_argument("--cache", type=Path, help="for environments and data; by default in your cache folder")
    parser.add_argument("--labelled", type=Path, help="a folder in BEIR layout, instead of the bundled sample")
    parser.add_argument("--patience", type=float, default=900, help="seconds until a peer's storing is given up")
    parser.add_argument("--seconds", type=float, default=60, help="most seconds a peer spends on one kind of query")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser


def default_cache() -> Path:
    """Where environments and data are kept."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("memlab", appauthor=False)) / "peers"


def size_of(word: str) -> int:
    """300, 12k or 1M as a number."""
    word = word.strip().lower()
    factor = {"k": 1000, "m": 1_000_000}.get(word[-1:], 1)
    return int(word.rstrip("km")) * factor


def compare(
    only: Sequence[str], sizes: Sequence[int], cache: Path, folder: Path | None, patience: float, seconds: float
) -> dict[str, Any]:
    """Measure peers over sizes; what fails is told, not left out.

    Returns
    -------
    dict
        ``sizes``, ``labelled``, ``missing`` (peer to reason), ``versions``, ``machine``, ``load``.
    """
    missing: dict[str, str] = {}
    pythons: dict[str, Path] = {}
    for name in only:
        say(f"{name}: environment")
        try:
            pythons[name] = environment(name, cache)
        except CannotInstall as error:
            missing[PEERS.get(name, name)] = f"cannot be installed: {error}"
    runner = Runner(cache, patience, seconds)
    versions: dict[str, str] = {}
    judged = labelled(folder, cache)
    scores = runner.judge(pythons, judged, versions, missing)
    measured = [runner.measure(pythons, synthetic(size, cache)) for size in sizes]
    from memlab.bench.machine import machine, told

    facts = machine()
    busy = facts["load"] is not None and facts["load"] > 1.5 * (facts["cores"] or 1)
    return {
        "sizes": measured,
        "labelled": {"name": judged.name, "count": judged.count, "asked": judged.asked, "peers": scores},
        "missing": missing,
        "versions": versions,
        "machine": told(facts),
        "load": facts["load"] if busy else None,
    }


class Runner:
    """Runs peers' processes.

    Parameters
    ----------
    cache : Path
    patience : float
        Seconds until a peer's storing is given up.
    seconds : float
        Most seconds a peer spends on one kind of query.
    """

    def __init__(self, cache: Path, patience: float, seconds: float) -> None:
        self.cache, self.patience, self.seconds = cache, patience, seconds
        self.work = cache / "work"

    def peer(self, name: str, python: Path, folder: Path) -> Peer:
        """A process of a peer."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        extra = {"PYTHONPATH": str(ROOT)} if name == "memlab" else {"PYTHONPATH": ""}
        return Peer(python, name, folder, self.cache / "logs" / f"{Path(name).stem}.log", extra)

    def judge(
        self, pythons: dict[str, Path], data: Data, versions: dict[str, str], missing: dict[str, str]
    ) -> dict[str, Any]:
        """recall@5 of every peer over the labelled set; a peer that fails is taken out of ``pythons``."""
        scores: dict[str, Any] = {}
        for name, python in list(pythons.items()):
            say(f"{name}: labelled queries")
            folder = self._fresh(name)
            try:
                versions[PEERS.get(name, name)], ways, _ = self._store(self.peer(name, python, folder), data)
                way = "hybrid" if "hybrid" in ways else "vector"
                second = self.peer(name, python, folder)
                try:
                    second.ask("load", queries=str(data.queries))
                    second.ask("open")
                    answers = second.ask("ask", way=way, start=0, end=data.asked, limit=LIMIT)["ids"]
                finally:
                    second.close()
                found = dict(zip(ids_of(data.queries), answers, strict=True))
                scores[PEERS.get(name, name)] = {"way": way, "recall_at_5": recall_at(found, data.qrels)}
            except PeerFailed as error:
                missing[PEERS.get(name, name)] = str(error)
                del pythons[name]
            shutil.rmtree(folder, ignore_errors=True)
        return scores

    def measure(self, pythons: Mapping[str, Path], data: Data) -> dict[str, Any]:
        """All figures of all peers at one size."""
        rows: dict[str, dict[str, Any]] = {name: {} for name in pythons}
        ready: dict[str, tuple[Peer, list[str]]] = {}
        try:
            for name, python in pythons.items():
                folder = self._fresh(name)
                try:
                    ways, stored = self._stored(name, python, folder, data)
                    rows[name] |= stored
                    if "note" not in stored:
                        way = "hybrid" if "hybrid" in ways else "vector"
                        rows[name]["cold_ms"], peer = self._cold(name, python, folder, data, way)
                        ready[name] = peer, ways
                except PeerFailed as error:
                    rows[name]["note"] = str(error)
            for place, way in enumerate(("vector", "hybrid", "text")):
                if way == "text":  # loads encoders
                    self._memory(ready, rows)
                self._in_turn(way, place * ASKED, {n: p for n, (p, ways) in ready.items() if way in ways}, rows, data)
        finally:
            for peer, _ in ready.values():
                peer.close()
            shutil.rmtree(self.work, ignore_errors=True)
        return {
            "name": data.name,
            "count": data.count,
            "peers": {PEERS.get(name, name): row for name, row in rows.items()},
        }

    def _fresh(self, name: str) -> Path:
        folder = self.work / Path(name).stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _stored(self, name: str, python: Path, folder: Path, data: Data) -> tuple[list[str], dict[str, Any]]:
        """What the peer can do, and its rate of storing."""
        say(f"{name}: storing {data.count:,}")
        ways, done = self._store(self.peer(name, python, folder), data)[1:]
        figures: dict[str, Any] = {"ingest": done["rows"] / done["seconds"]}
        if not done["complete"]:
            figures["note"] = f"given up after {done['rows']:,} rows in {done['seconds']:.0f} s"
        return ways, figures

    def _store(self, peer: Peer, data: Data) -> tuple[str, list[str], dict[str, Any]]:
        """Store all rows in a process that ends then: version, ways, and how it went."""
        try:
            about = peer.ask("about")
            peer.ask("load", rows=str(data.rows))
            # The peer looks at the clock between its batches; one batch may take long.
            done = peer.ask("ingest", 3 * self.patience + 60, within=self.patience)
        finally:
            peer.close()
        return about["version"], about["ways"], done

    def _cold(self, name: str, python: Path, folder: Path, data: Data, way: str) -> tuple[float, Peer]:
        """The least of some cold starts in milliseconds, and the last process, which goes on."""
        say(f"{name}: cold start")
        spent: list[float] = []
        while True:
            peer = self.peer(name, python, folder)
            try:
                peer.ask("load", queries=str(data.queries))
                peer.ask("open")
                peer.ask("ask", way=way, start=WARM[0], end=WARM[0] + 1, limit=LIMIT)
            except PeerFailed:
                peer.close()
                raise
            spent.append(peer.since_start())
            if len(spent) == COLD_RUNS:
                return min(spent), peer
            peer.close()

    @staticmethod
    def _memory(ready: Mapping[str, tuple[Peer, list[str]]], rows: dict[str, dict[str, Any]]) -> None:
        for name, (peer, _) in ready.items():
            try:
                rows[name]["mb"] = peer.ask("memory")["mb"]
            except PeerFailed as error:
                rows[name]["note"] = str(error)

    def _in_turn(
        self, way: str, first: int, peers: Mapping[str, Peer], rows: dict[str, dict[str, Any]], data: Data
    ) -> None:
        """Ask all peers the same queries, ten each in turn, until each has answered all or its time is up."""
        spent: dict[str, list[float]] = {name: [] for name in peers}
        found: dict[str, list[list[str]]] = {name: [] for name in peers}
        active = dict(peers)
        say(f"{way} queries in turn: {', '.join(peers)}")
        for block in (None, *range(first, first + ASKED, BLOCK)):
            for name, peer in list(active.items()):
                start, end = (WARM[0], WARM[-1] + 1) if block is None else (block, block + BLOCK)
                try:
                    answer = peer.ask("ask", way=way, start=start, end=end, limit=LIMIT)
                except PeerFailed as error:
                    rows[name]["note"] = str(error)
                    del active[name]
                    continue
                if block is not None:
                    spent[name] += answer["ms"]
                    found[name] += answer["ids"]
                if sum(spent[name]) > 1000 * self.seconds:
                    del active[name]
        exact = data.exact(first, first + ASKED, LIMIT) if way == "vector" else []
        for name in peers:
            rows[name][way] = spread(spent[name])
            if way == "vector" and found[name]:
                shares = [len(set(ids) & set(best)) / len(best) for ids, best in zip(found[name], exact, strict=False)]
                rows[name]["exact_ten"] = sum(shares) / len(shares)


def say(words: str) -> None:
    """Tell what is going on, on stderr."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
