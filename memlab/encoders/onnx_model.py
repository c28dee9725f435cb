"""A sentence encoder in ONNX Runtime with the package ``tokenizers``; torch is not loaded."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.encoders._require import require
from memlab.encoders.base import FloatMatrix, IntMatrix
from memlab.encoders.threads import usable_cores
from memlab.errors import EncoderUnavailable

__all__ = ["OnnxModel"]

# Small batches of like lengths: their numbers stay in the processor's cache, and little is padded.
_MOST_TEXTS = 8
_MOST_TOKENS = 2048
_MODELS: weakref.WeakSet[OnnxModel] = weakref.WeakSet()


class OnnxModel:
    """A graph and a tokenizer that make unit vectors of texts.

    May be used by several threads, and after a fork.

    Parameters
    ----------
    graph : Path
        An ONNX file: int64 ``input_ids``, ``attention_mask`` and perhaps ``token_type_ids`` of shape
        ``(batch, sequence)``, to vectors of texts ``(batch, dimension)`` or of tokens ``(batch, sequence, dimension)``.
    tokenizer : Path
        A tokenizer.json. What it says about truncation and padding does not count.
    token_limit : int
        Most tokens of a text, special tokens included; what is beyond is cut off.
    threads : int, optional
        By default :func:`~memlab.encoders.threads.usable_cores`.

    Raises
    ------
    EncoderUnavailable
        If a package is missing, or one of the files cannot be loaded.
    """

    def __init__(self, graph: Path, tokenizer: Path, token_limit: int, threads: int | None = None) -> None:
        self._graph = graph
        self._threads = threads or usable_cores()
        self._runtime = require("onnxruntime", "onnxruntime", "the fast path of MiniLM")
        package = require("tokenizers", "tokenizers", "the fast path of MiniLM")
        try:
            self._tokenizer = package.Tokenizer.from_file(str(tokenizer))
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(token_limit)
        except Exception as error:  # `tokenizers` raises bare Exception
            raise EncoderUnavailable(f"{tokenizer} cannot be loaded: {error}") from error
        self._lock = threading.Lock()
        self._session = self._load()
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._owner = os.getpid()
        self._left: list[Any] = []
        _MODELS.add(self)

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """Vectors of texts: ``(len(texts), dimension)`` float32, each row of length 1; at least one text."""
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        rows = [encoding.ids for encoding in encodings]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        if len(rows) == 1:
            return self._run(np.array(rows, dtype=np.int64), lengths)
        vectors: FloatMatrix | None = None
        for batch in _batches(lengths):
            within = lengths[batch]
            ids = np.zeros((len(batch), int(within.max())), dtype=np.int64)
            for place, number in enumerate(batch):
                ids[place, : lengths[number]] = rows[number]
            part = self._run(ids, within)
            if vectors is None:
                vectors = np.empty((len(rows), part.shape[1]), dtype=np.float32)
            vectors[batch] = part
        assert vectors is not None
        return vectors

    def _run(self, ids: IntMatrix, lengths: IntMatrix) -> FloatMatrix:
        mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        feeds = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        vectors: FloatMatrix = self._ready().run(None, feeds)[0]
        if vectors.ndim == 3:  # a graph of others ends with the tokens
            vectors = (vectors * mask[:, :, None].astype(np.float32)).sum(axis=1)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _ready(self) -> Any:
        if self._owner != os.getpid():
            with self._lock:
                if self._owner != os.getpid():
                    # The threads of the parent's session are not in this process, and ending it would wait for them.
                    self._left.append(self._session)
                    self._session = self._load()
                    self._owner = os.getpid()
        return self._session

    def _load(self) -> Any:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait by spinning take the processor from those of numpy's products, and from everybody's.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return self._runtime.InferenceSession(str(self._graph), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a dozen kinds, none of them public
            raise EncoderUnavailable(
                f"{self._graph} cannot be loaded by ONNX Runtime ({type(error).__name__}: {error}); "
                "make it anew with: memlab prepare --force"
            ) from error


def _batches(lengths: IntMatrix) -> Iterator[IntMatrix]:
    """Places of texts in batches, the longest first: the most memory is taken at once, or not at all."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, min(_MOST_TEXTS, _MOST_TOKENS // int(lengths[order[start]])))
        yield order[start : start + size]
        start += size


def _renew_locks() -> None:
    for model in list(_MODELS):
        model._lock = threading.Lock()  # a thread that held it does not exist in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
