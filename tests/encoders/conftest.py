"""Real weights once per session, a tiny model of our own, and encoders that are awkward on purpose."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from memlab.encoders import MiniLM
from memlab.errors import EncoderUnavailable

SOURCES: tuple[str, ...] = ("MEMLAB_MODEL", "MEMLAB_ALLOW_DOWNLOAD", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
SOURCES += ("SENTENCE_TRANSFORMERS_HOME", "XDG_CACHE_HOME")


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment that names no model and has an empty cache."""
    for name in SOURCES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path


@pytest.fixture
def no_network(monkeypatch):
    """Make every way to a server raise."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"the network was tried: {args}")

    for name in ("socket.socket.connect", "socket.socket.connect_ex", "socket.create_connection", "socket.getaddrinfo"):
        monkeypatch.setattr(name, refuse)


@pytest.fixture(scope="session")
def minilm():
    """all-MiniLM-L6-v2 as sentence-transformers computes it, loaded."""
    encoder = MiniLM(backend="torch")
    try:
        encoder.encode_queries(["load"])
    except EncoderUnavailable as error:
        pytest.skip(f"no weights of all-MiniLM-L6-v2: {error}")
    return encoder


@pytest.fixture(scope="session")
def fast_cache(minilm, tmp_path_factory) -> Path:
    """A cache folder with the graph of all-MiniLM-L6-v2, made for this session."""
    folder = tmp_path_factory.mktemp("graphs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMLAB_CACHE", str(folder))
        minilm.prepare()
    return folder


@pytest.fixture(scope="session")
def fast(fast_cache):
    """all-MiniLM-L6-v2 as ONNX Runtime computes it, loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMLAB_CACHE", str(fast_cache))
        encoder = MiniLM(backend="onnx")
        encoder.encode_queries(["load"])
    return encoder


@pytest.fixture
def prepared(fast_cache, monkeypatch) -> None:
    """The cache folder with the graph is the environment's."""
    monkeypatch.setenv("MEMLAB_CACHE", str(fast_cache))


@pytest.fixture(scope="session")
def model_folder(minilm) -> Path:
    return minilm.folder.path


@pytest.fixture(scope="session")
def tiny_folder(model_folder, tmp_path_factory) -> Path:
    """A model with random weights, MiniLM's tokenizer, a dense layer to 24 dimensions, and prompts."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel

    torch.manual_seed(7)
    base = tmp_path_factory.mktemp("tiny-base")
    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64
    )
    BertModel(config).save_pretrained(base)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(model_folder / name, base / name)
    transformer = modules.Transformer(str(base), max_seq_length=48)
    model = SentenceTransformer(
        modules=[transformer, modules.Pooling(32, "mean"), modules.Dense(32, 24)],
        prompts={"query": "question: ", "passage": "answer: "},
        device="cpu",
    )
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save(str(folder), create_model_card=False)
    config_file = folder / "config_sentence_transformers.json"
    settings = json.loads(config_file.read_text())
    # The library adds an empty "document" prompt of its own when it saves.
    settings["prompts"] = {"query": "question: ", "passage": "answer: "}
    config_file.write_text(json.dumps(settings))
    return folder


@pytest.fixture
def linked(tmp_path):
    """Copy a model's folder with symbolic links, so that single files can be replaced cheaply."""

    def link(folder: Path, name: str = "linked") -> Path:
        target = tmp_path / name
        shutil.copytree(folder, target, copy_function=os.symlink)
        return target

    return link


class _Fake:
    """An encoder whose tokenizer is all that is asked for."""

    name = "fake"
    fingerprint = "sha256:0"
    dimension = 2
    query_prefix = document_prefix = ""

    def __init__(self, token_limit: int) -> None:
        self.token_limit = token_limit
        self.characters = 0

    def encode_queries(self, texts):
        return np.tile(np.array([[1, 0]], dtype=np.float32), (len(texts), 1))

    encode_documents = encode_queries


class ByteEncoder(_Fake):
    """A token for each byte of UTF-8, as byte-level BPE has at worst: tokens share characters."""

    def count_tokens(self, texts):
        self.characters += sum(map(len, texts))
        return [len(text.encode("utf-8", "surrogatepass")) + 2 for text in texts]

    def token_spans(self, text):
        self.characters += len(text)
        spans = [(place, place + 1) for place, char in enumerate(text) for _ in char.encode("utf-8", "surrogatepass")]
        return np.array(spans, dtype=np.int64).reshape(-1, 2)


class MetaspaceEncoder(_Fake):
    """Tokens that begin with the white space before them, as SentencePiece has."""

    pattern = re.compile(r"\s*\w{1,4}|\s*[^\w\s]|\s+")

    def count_tokens(self, texts):
        return [len(self.pattern.findall(text)) + 2 for text in texts]

    def token_spans(self, text):
        return np.array([m.span() for m in self.pattern.finditer(text)], dtype=np.int64).reshape(-1, 2)


class UndercountingEncoder(_Fake):
    """Locates words but counts characters: no plan made from the spans holds."""

    def count_tokens(self, texts):
        return [len(text) for text in texts]

    def token_spans(self, text):
        return np.array([m.span() for m in re.finditer(r"\S+", text)], dtype=np.int64).reshape(-1, 2)


@pytest.fixture(scope="session")
def fakes():
    return {"bytes": ByteEncoder, "metaspace": MetaspaceEncoder, "undercounting": UndercountingEncoder}
