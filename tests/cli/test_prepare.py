"""`memlab prepare`, and what `memlab doctor` and `memlab demo` say about the encoder's two paths."""

import json

import pytest
from click.testing import CliRunner

from memlab.cli import cli, demo_run
from memlab.cli.screen import console
from memlab.encoders import MiniLM
from memlab.errors import EncoderUnavailable
from memlab.store import MemoryStore

pytestmark = pytest.mark.model


@pytest.fixture
def cache(tmp_path, monkeypatch):
    try:
        _ = MiniLM().folder
    except EncoderUnavailable as error:
        pytest.skip(f"no weights of all-MiniLM-L6-v2: {error}")
    folder = tmp_path / "cache"
    monkeypatch.setenv("MEMLAB_CACHE", str(folder))
    monkeypatch.setenv("MEMLAB_DB", str(tmp_path / "memory.db"))
    return folder


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def engine():
    return json.loads(run("doctor", "--json").stdout)["weights"]["used"]["engine"]


def test_prepare_makes_the_graph_once_and_doctor_tells(cache):
    assert engine() == "torch: no graph yet; `memlab prepare` makes one in a few seconds"
    first = run("prepare").stdout
    (graph,) = (cache / "graphs").glob("*.onnx")
    assert "largest difference from the reference: " in first
    assert str(graph) in first
    assert engine() == f"ONNX Runtime: {graph}"
    assert run("prepare").stdout == f"the graph is there and whole: {graph}\n"
    numbers = graph.with_suffix(".weights")
    numbers.write_bytes(numbers.read_bytes()[:-1])
    assert engine().startswith(f"torch: the graph {graph} is damaged, so it is not used")
    assert "made in" in run("prepare", "--force").stdout
    assert engine() == f"ONNX Runtime: {graph}"


def test_prepare_says_what_is_in_the_way(cache, tmp_path):
    cache.write_text("no folder")
    err = run("prepare", code=1).stderr
    assert "cannot be written there" in err
    assert "MEMLAB_CACHE" in err
    (tmp_path / "empty").mkdir()
    assert "the model path is" in run("prepare", "--model", str(tmp_path / "empty"), code=1).stderr


def test_the_demo_goes_on_without_a_graph(cache, tmp_path, monkeypatch, capsys):
    def full(self):
        raise EncoderUnavailable("the disk is full")

    monkeypatch.setattr(MiniLM, "prepare", full)
    with MemoryStore(tmp_path / "demo.db") as store:
        demo_run._prepare(console(), store)
    assert "The slower path of the encoder is used: the disk is full" in " ".join(capsys.readouterr().out.split())
