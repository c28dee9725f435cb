"""The peers' benchmark: its protocol, its turns and its table, with a peer that is made up; no network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.peers import environments, run
from tests.benchmarks.peers.data import Data, ids_of, labelled, recall_at, synthetic
from tests.benchmarks.peers.environments import CannotInstall, cuda_packages, environment
from tests.benchmarks.peers.process import Peer, PeerFailed
from tests.benchmarks.peers.table import markdown, number, spread

FAKE = '''
"""Keeps rows in a file; finds them by product, or by the words they share."""
import json, pathlib
import numpy as np

print("noise that is no answer")

class Adapter:
    batch = 7
    encodes = True

    def __init__(self, folder, vectors):
        self.file, self.vectors = pathlib.Path(folder) / "rows.json", vectors
        self.rows = []

    def version(self):
        return "1.2.3"

    def ingest(self, ids, texts, matrix):
        if "slow" in texts[0]:
            import time
            time.sleep(0.05)
        for name, text, vector in zip(ids, texts, matrix, strict=True):
            assert np.array_equal(self.vectors(text), vector)
            self.rows.append([name, text, vector.tolist()])

    def finish(self):
        self.file.write_text(json.dumps(self.rows))

    def open(self):
        self.rows = json.loads(self.file.read_text())

    def vector(self, text, vector, limit):
        scores = np.array([row[2] for row in self.rows]) @ vector
        return [self.rows[at][0] for at in np.argsort(-scores, kind="stable")[:limit]]

    def hybrid(self, text, vector, limit):
        if "fail" in text:
            raise ValueError("cannot do that")
        print("more noise")
        return self.vector(text, vector, limit)
'''


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(FAKE, encoding="utf-8")
    return path


def written(folder: Path, texts: list[str], asked: list[str]) -> Data:
    """Rows and queries in files; query n is nearest to row n."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((len(texts), 8)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for name, some, vectors in (("rows", texts, matrix), ("queries", asked, matrix[: len(asked)])):
        lines = [json.dumps({"id": f"{name[0]}{n}", "text": text}) for n, text in enumerate(some)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        np.save(folder / f"{name}.npy", vectors)
    qrels = {f"q{n}": {f"r{n}"} for n in range(len(asked))}
    return Data("twenty rows", folder / "rows", folder / "queries", len(texts), len(asked), qrels)


def start(fake: Path, tmp_path: Path) -> Peer:
    folder = tmp_path / "work" / "fake"
    folder.mkdir(parents=True, exist_ok=True)
    return Peer(Path(sys.executable), str(fake), folder, tmp_path / "logs" / "fake.log")


def test_a_peer_stores_opens_and_answers(fake: Path, tmp_path: Path) -> None:
    data = written(tmp_path / "data", [f"row {n}" for n in range(20)], [f"query {n}" for n in range(5)])
    peer = start(fake, tmp_path)
    try:
        assert peer.ask("about") == {"version": "1.2.3", "ways": ["vector", "hybrid"]}
        assert peer.ask("load", rows=str(data.rows), queries=str(data.queries)) == {"rows": 20, "queries": 5}
        done = peer.ask("ingest", within=60)
        assert (done["rows"], done["complete"]) == (20, True)
    finally:
        peer.close()
    again = start(fake, tmp_path)
    try:
        again.ask("load", queries=str(data.queries))
        assert again.ask("open")["ms"] >= 0
        answer = again.ask("ask", way="hybrid", start=1, end=9, limit=3)
        assert [len(ids) for ids in answer["ids"]] == [3, 3, 3, 3]
        assert [ids[0] for ids in answer["ids"]] == ["r1", "r2", "r3", "r4"]
        assert len(answer["ms"]) == 4
        held = again.ask("memory")["mb"]
        assert held is None or held > 5
        assert again.since_start() > 0
    finally:
        again.close()
    assert "more noise" in (tmp_path / "logs" / "fake.log").read_text(encoding="utf-8")


def test_storing_is_given_up_when_the_time_is_over(fake: Path, tmp_path: Path) -> None:
    data = written(tmp_path / "data", [f"slow {n}" for n in range(20)], ["query"])
    peer = start(fake, tmp_path)
    try:
        peer.ask("load", rows=str(data.rows))
        done = peer.ask("ingest", within=0.01)
        assert (done["rows"], done["complete"]) == (7, False)
    finally:
        peer.close()


def test_what_fails_in_a_peer_is_told_and_the_next_request_is_answered(fake: Path, tmp_path: Path) -> None:
    data = written(tmp_path / "data", ["a row", "another"], ["this will fail", "this not"])
    peer = start(fake, tmp_path)
    try:
        peer.ask("load", rows=str(data.rows), queries=str(data.queries))
        peer.ask("ingest", within=60)
        with pytest.raises(PeerFailed, match="ask: ValueError: cannot do that"):
            peer.ask("ask", way="hybrid", start=0, end=1, limit=1)
        assert peer.ask("ask", way="hybrid", start=1, end=2, limit=1)["ids"] == [["r1"]]
        with pytest.raises(PeerFailed, match="AttributeError"):
            peer.ask("dance")
    finally:
        peer.close()
    peer = start(tmp_path / "nothing.py", tmp_path)
    try:
        with pytest.raises(PeerFailed, match=r"FileNotFoundError|no such|cannot"):
            peer.ask("about")
    finally:
        peer.close()


def test_a_process_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text("import os, sys\nprint('out of luck')\nsys.stdout.flush()\nos._exit(3)\n", encoding="utf-8")
    peer = start(dying, tmp_path)
    try:
        with pytest.raises(PeerFailed, match="out of luck"):
            peer.ask("about")
    finally:
        peer.close()


def test_a_whole_comparison_with_a_peer_that_works_and_one_that_does_not(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"row {n}" for n in range(20)]
    asked = [f"query {n}" for n in range(20)]
    data = written(tmp_path / "data", texts, asked)
    monkeypatch.setattr(run, "labelled", lambda folder, cache: data)
    monkeypatch.setattr(run, "synthetic", lambda size, cache: data)
    monkeypatch.setattr(run, "ASKED", 6)
    monkeypatch.setattr(run, "WARM", range(18, 20))
    monkeypatch.setattr(run, "BLOCK", 3)
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('needs another machine')\n", encoding="utf-8")
    result = run.compare([str(fake), str(broken)], [20], tmp_path / "cache", None, 60, 60)
    assert json.loads(json.dumps(result)) == result
    assert list(result["missing"]) == [str(broken)]
    assert "needs another machine" in result["missing"][str(broken)]
    row = result["sizes"][0]["peers"][str(fake)]
    assert row["exact_ten"] == 1.0
    assert (row["vector"]["runs"], row["hybrid"]["runs"], row.get("text")) == (6, 6, None)
    assert row["ingest"] > 0
    assert row["cold_ms"] > 0
    assert result["labelled"]["peers"][str(fake)] == {"way": "hybrid", "recall_at_5": 1.0}
    shown = markdown(result)
    assert "| recall@5 |" in shown.replace("  ", " ")
    assert "Not run:" in shown
    assert "fake.py 1.2.3" in shown
    assert not (tmp_path / "cache" / "work").exists()


def test_the_table_shows_what_there_is() -> None:
    result = {
        "sizes": [
            {
                "name": "12,000",
                "count": 12000,
                "peers": {
                    "quick": {
                        "vector": {"p50": 0.1234, "p95": 12.34, "runs": 5},
                        "exact_ten": 0.9876,
                        "ingest": 54321.0,
                    },
                    "stuck": {"ingest": 3.0, "note": "given up after 7 rows in 9 s"},
                },
            }
        ],
        "labelled": {"name": "some", "count": 3, "asked": 2, "peers": {"quick": {"way": "vector", "recall_at_5": 0.5}}},
        "missing": {"absent": "cannot be installed: no wheel"},
        "versions": {"quick": "1"},
        "machine": "a machine",
        "load": None,
    }
    lines = markdown(result).splitlines()
    assert "| | vectors, ms | exact ten | rows/s in | recall@5 |" in lines
    assert "| quick | 0.12 / 12.3 | 0.988 | 54,321 | 0.500 |" in lines
    assert "| stuck: given up after 7 rows in 9 s | – | – | 3.00 | – |" in lines
    assert "Not run: absent (cannot be installed: no wheel)." in lines
    assert "Machine: a machine." in lines


def test_the_parts_of_the_table() -> None:
    assert [number(value) for value in (0.123, 12.34, 123.4)] == ["0.12", "12.3", "123"]
    assert spread([]) is None
    assert spread([1.0, 2.0, 3.0]) == {"p50": 2.0, "p95": pytest.approx(2.9), "least": 1.0, "runs": 3}
    assert recall_at({"a": ["x", "y"], "b": ["z"]}, {"a": {"x", "q"}, "b": {"z"}}) == pytest.approx(0.75)
    assert [run.size_of(word) for word in ("300", "12k", " 1M")] == [300, 12_000, 1_000_000]


def test_the_exact_ten_are_the_nearest(tmp_path: Path) -> None:
    data = written(tmp_path, [f"row {n}" for n in range(30)], [f"query {n}" for n in range(4)])
    matrix = np.load(f"{data.rows}.npy").astype(np.float64)
    for query, best in enumerate(data.exact(0, 4, 10)):
        assert best == [f"r{at}" for at in np.argsort(-(matrix @ matrix[query]))[:10]]


def test_data_is_written_once_and_read_again(tmp_path: Path) -> None:
    data = synthetic(40, tmp_path)
    assert (len(ids_of(data.rows)), len(ids_of(data.queries))) == (40, data.asked)
    before = Path(f"{data.rows}.npy").stat().st_mtime_ns
    assert synthetic(40, tmp_path) == data
    assert Path(f"{data.rows}.npy").stat().st_mtime_ns == before


def test_a_folder_in_beir_layout_stands_in_for_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.encoders import HashingEncoder

    monkeypatch.setattr("memlab.MiniLM", lambda: HashingEncoder(32))
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "which one"}\n{"_id": "q2", "text": "none"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n")
    data = labelled(folder, tmp_path / "cache")
    assert (data.name, data.count, data.asked, data.qrels) == ("tiny", 2, 1, {"q1": {"d1"}})
    assert np.load(f"{data.rows}.npy").shape == (2, 32)


# -- environments ----------------------------------------------------------------------------------------------------


def test_a_peer_without_requirements_runs_in_this_python(tmp_path: Path) -> None:
    assert environment("memlab", tmp_path) == Path(sys.executable)
    assert not list(tmp_path.iterdir())


def test_cuda_packages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = "Collecting x\nWould install numpy-2 nvidia-cublas-cu12-12.1 torch-2.9\n"
    assert cuda_packages(plan) == ["nvidia-cublas-cu12-12.1"]
    ran: list[list[str]] = []

    def fake_run(command: list[str]) -> str:
        ran.append(command)
        return plan

    monkeypatch.setattr(environments, "_run", fake_run)
    with pytest.raises(CannotInstall, match="CPU build"):
        environment("txtai", tmp_path)
    assert not any("--quiet" in command for command in ran)


def test_an_environment_is_made_once_a_set_of_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def fake_run(command: list[str]) -> str:
        ran.append(command)
        if "venv" in command:
            python = Path(command[-1]) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
            python.parent.mkdir(parents=True)
            python.touch()
        return "Would install chromadb-1"

    monkeypatch.setattr(environments, "_run", fake_run)
    python = environment("chroma", tmp_path)
    assert python.is_relative_to(tmp_path / "envs" / "chroma")
    assert len(ran) == 3
    assert environment("chroma", tmp_path) == python
    assert len(ran) == 3


def test_every_peer_has_pinned_requirements_and_an_adapter() -> None:
    here = Path(run.__file__).parent
    for name in run.PEERS:
        assert (here / "adapters" / f"{name}.py").is_file()
        if name != "memlab":
            lines = (here / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            assert lines
            assert all("==" in line for line in lines)
