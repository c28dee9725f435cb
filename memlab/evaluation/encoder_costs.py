"""What an encoder costs: the size of its weights, and the time it takes."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeVar

from memlab.encoders.base import Encoder, FloatMatrix, IntMatrix
from memlab.errors import EncoderError

_SINGLE_QUERIES = 20  # as many are encoded one at a time
_Result = TypeVar("_Result")


def weights_of(encoder: Encoder) -> tuple[int | None, int | None]:
    """Parameters and size in bytes of an encoder's weights, as far as its files tell.

    Parameters
    ----------
    encoder : Encoder
        Of a model that lies in a folder, or without a model.

    Returns
    -------
    parameters : int or None
        Elements of all floating-point tensors in the headers of its safetensors files; ``None`` where the weights are
        in another format, 0 for a :class:`~memlab.encoders.HashingEncoder`.
    weights_bytes : int or None
        Size of the files of weights.

    Notes
    -----
    The format: https://huggingface.co/docs/safetensors, a little-endian uint64, then as many bytes of JSON with the
    shape of every tensor. Nothing else of the file is read.
    """
    from memlab.encoders.fingerprint import weight_files
    from memlab.encoders.hashing import HashingEncoder

    if isinstance(encoder, HashingEncoder):
        return 0, 0
    try:
        folder = getattr(getattr(encoder, "folder", None), "path", None)
        files = weight_files(folder) if isinstance(folder, Path) else []
        if not files:
            return None, None
        counts = [_parameters(file) for file in files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None, sum(file.stat().st_size for file in files)
    except (OSError, EncoderError):
        return None, None


def _parameters(file: Path) -> int | None:
    if file.suffix != ".safetensors":
        return None
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, 100_000_000)))
        tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
        return sum(int(math.prod(tensor["shape"])) for tensor in tensors if tensor["dtype"].startswith(("F", "BF")))
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None


@dataclass
class Watched:
    """An encoder that is timed; the loading of its model is timed apart.

    Attributes
    ----------
    seconds : float
        Spent with documents: cutting and encoding.
    documents : int
        Texts that were encoded as documents.
    loaded : bool
        Whether anything was encoded.
    """

    inner: Encoder
    seconds: float = field(default=0.0, init=False)
    documents: int = field(default=0, init=False)
    loaded: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """What people call the model."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.inner.dimension

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part."""
        return self.inner.token_limit

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of the weights."""
        return self.inner.fingerprint

    @property
    def query_prefix(self) -> str:
        """Put before a query."""
        return self.inner.query_prefix

    @property
    def document_prefix(self) -> str:
        """Put before a document."""
        return self.inner.document_prefix

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode queries, untimed."""
        self._load()
        return self.inner.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode documents, timed."""
        self._load()
        self.documents += len(texts)
        return self._timed(lambda: self.inner.encode_documents(texts))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens, timed."""
        self._load()
        return self._timed(lambda: self.inner.count_tokens(texts))

    def token_spans(self, text: str) -> IntMatrix:
        """Locate tokens, timed."""
        self._load()
        return self._timed(lambda: self.inner.token_spans(text))

    def single_ms(self, texts: Sequence[str]) -> float:
        """Milliseconds to encode one query alone, the median over some of them."""
        spent = []
        for text in texts[:: max(1, len(texts) // _SINGLE_QUERIES)][:_SINGLE_QUERIES]:
            started = perf_counter()
            self.inner.encode_queries([text])
            spent.append(1000 * (perf_counter() - started))
        return median(spent)

    def _load(self) -> None:
        if not self.loaded:
            self.inner.encode_documents(["a first text, for which a model is loaded"])
            self.loaded = True

    def _timed(self, work: Callable[[], _Result]) -> _Result:
        started = perf_counter()
        try:
            return work()
        finally:
            self.seconds += perf_counter() - started


def busy() -> str:
    """What else the machine was doing, in words, if that was much; empty where it cannot be told."""
    try:
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
    except (AttributeError, OSError):
        return ""
    return f"the machine had other work (a load of {load:.1f} on {cores} cores)" if load > cores / 2 else ""
