"""Any sentence-transformers model as an encoder; torch is loaded at the first text and not before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np

from memlab.checks import whole
from memlab.encoders._require import require
from memlab.encoders.base import FloatMatrix, IntMatrix, check_vectors
from memlab.encoders.model_files import ModelFacts, read_facts
from memlab.encoders.tokens import ModelTokens, checked_texts, clean
from memlab.encoders.weights import ModelFolder, check_folder, locate_model, repository
from memlab.errors import EncoderError, EncoderUnavailable, InvalidValue

__all__ = ["DEFAULT_TOKEN_LIMIT", "SentenceTransformerEncoder"]

DEFAULT_TOKEN_LIMIT = 512
# Enough characters to fill any window: a sort key needs no more.
_CHARACTERS_PER_TOKEN = 16
# transformers' progress bar is one switch for the whole process.
_BARS = RLock()


class SentenceTransformerEncoder:
    """A sentence-transformers model, by name or by path, of any dimension.

    Nothing is read when the object is made, except that a path must be the folder of a model. The
    configuration and the tokenizer are read when they are asked for, the weights at the first text.
    May be used by several threads.

    Parameters
    ----------
    model : str or Path
        A folder, or a name on the Hugging Face hub that is in the local cache.
    query_prefix, document_prefix : str, optional
        Put before every query or document. By default the model's own prompts: ``query``, and the
        first of ``document``, ``passage`` and ``corpus``.
    batch_size : int
        Texts to a batch. Batches are made of texts with like numbers of tokens: 8 to 16 was fastest.
    allow_download : bool
        Whether the model may be fetched when it is not on this machine.
    token_limit : int, optional
        Use fewer or more tokens than the model states. A model that states nothing gets 512.
    device : str
        Where torch computes, for example ``cpu``, ``cuda`` or ``mps``.

    Raises
    ------
    EncoderUnavailable
        If ``model`` is a path that holds no model; for a name, at the first use.
    InvalidValue
        If a size is not a whole number of at least 1, or the token limit is beyond the model's positions.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        batch_size: int = 16,
        allow_download: bool = False,
        token_limit: int | None = None,
        device: str = "cpu",
    ) -> None:
        whole(batch_size, "batch_size", least=1)
        if token_limit is not None:
            whole(token_limit, "token_limit", least=1)
        self._model = repository(model) or check_folder(model)
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._batch_size = batch_size
        self._allow_download = allow_download
        self._token_limit = token_limit
        self._device = device
        self._lock = RLock()
        self._loaded: Any = None

    def __repr__(self) -> str:
        state = "loaded" if self.loaded else "not loaded yet"
        return f"<{type(self).__name__} {self._model}, {state}>"

    @property
    def name(self) -> str:
        """``owner/name`` on the hub, or the absolute path of the folder."""
        return str(self._model)

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._loaded is not None

    @cached_property
    def folder(self) -> ModelFolder:
        """Where the model lies and what its weights hash to; located at the first use."""
        with self._lock:
            return self._locate()

    @cached_property
    def facts(self) -> ModelFacts:
        """What the model's configuration files say."""
        return read_facts(self.folder.path)

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of the weights."""
        return self.folder.fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector; from the configuration, or from the loaded model where no file tells."""
        return self.facts.dimension or self._dimension_loaded

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part, special tokens and prefix included."""
        if self._token_limit is None:
            return self.facts.token_limit or DEFAULT_TOKEN_LIMIT
        most = self.facts.position_limit
        if most is not None and self._token_limit > most:
            raise InvalidValue(f"token_limit: {self.name} takes at most {most} tokens, found {self._token_limit}")
        return self._token_limit

    @property
    def query_prefix(self) -> str:
        """Put before every query."""
        return self.facts.prompt("query") if self._query_prefix is None else self._query_prefix

    @property
    def document_prefix(self) -> str:
        """Put before every document."""
        own = self._document_prefix
        return self.facts.prompt("document", "passage", "corpus") if own is None else own

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode queries: ``(len(texts), dimension)`` float32, each row of length 1.

        Raises
        ------
        EncoderUnavailable
            If the model or a package is not on this machine, or cannot be loaded.
        EncoderError
            If the model fails, or gives vectors that are not finite.
        InvalidValue
            If ``texts`` is not a sequence of strings.
        """
        return self._encode(texts, clean(self.query_prefix), "encode_query")

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode documents: ``(len(texts), dimension)`` float32, each row of length 1; raises as queries do."""
        return self._encode(texts, clean(self.document_prefix), "encode_document")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a document, untruncated, special tokens and prefix included."""
        prefix = clean(self.document_prefix)
        return self._tokens.count([prefix + text for text in checked_texts(texts)])

    def token_spans(self, text: str) -> IntMatrix:
        """Code point offsets of the tokens, untruncated: ``(n_tokens, 2)`` int64, no special tokens, no prefix."""
        return self._tokens.spans(checked_texts([text])[0])

    def _locate(self) -> ModelFolder:
        return locate_model(self._model, allow_download=self._allow_download)

    @cached_property
    def _tokens(self) -> ModelTokens:
        with self._lock:
            return ModelTokens(self.facts, self.name)

    @cached_property
    def _dimension_loaded(self) -> int:
        dimension = self._load().get_embedding_dimension()
        if not isinstance(dimension, int):
            raise EncoderUnavailable(f"{self.name}: the model does not tell the dimension of its vectors")
        return dimension

    def _encode(
        self, texts: Sequence[str], prefix: str, method: Literal["encode_query", "encode_document"]
    ) -> FloatMatrix:
        checked = checked_texts(texts)
        vectors = np.zeros((len(checked), self.dimension), dtype=np.float32)
        if not checked:
            return vectors
        encode = getattr(self._load(), method)
        for batch in self._batches(checked, prefix):
            # One lock for a batch, not for the whole: a query need not wait for a bulk write. Without
            # any lock two threads meet in the tokenizer, which fails with "Already borrowed".
            try:
                with self._lock:
                    vectors[batch] = encode(
                        [checked[number] for number in batch],
                        prompt=prefix,
                        batch_size=len(batch),
                        show_progress_bar=False,
                        normalize_embeddings=True,
                    )
            except Exception as error:
                raise EncoderError(f"{self.name} failed to encode {len(batch)} texts: {error}") from error
        for number in np.flatnonzero(~vectors.any(axis=1)):
            # A model that adds no special tokens has nothing to average for a blank text.
            if not checked[number].strip():
                vectors[number, 0] = 1.0
        return check_vectors(vectors, len(checked), self.dimension, self.name)

    def _batches(self, texts: list[str], prefix: str) -> Iterator[list[int]]:
        if len(texts) <= 1:
            yield list(range(len(texts)))
            return
        limit = self.token_limit
        # sentence-transformers sorts by characters; by tokens, batches pad far less (1.6 times the speed).
        counts = self._tokens.count([(prefix + text)[: _CHARACTERS_PER_TOKEN * limit] for text in texts])
        order = np.argsort(-np.minimum(counts, limit), kind="stable").tolist()
        for start in range(0, len(order), self._batch_size):
            yield order[start : start + self._batch_size]

    def _load(self) -> Any:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._read_weights()
        return self._loaded

    def _read_weights(self) -> Any:
        folder, limit = self.folder.path, self.token_limit
        with warnings.catch_warnings():
            # tqdm misses its widget in a notebook; the bars are off here anyway.
            warnings.filterwarnings("ignore", message="IProgress not found")
            package = require("sentence_transformers", "sentence-transformers", self.name)
        try:
            with _no_progress_bars():
                model = package.SentenceTransformer(str(folder), device=self._device, local_files_only=True)
            # tokenizer.json may truncate elsewhere (MiniLM's: at 128); the limit that counts is the stated one.
            if model.max_seq_length != limit and self.facts.special_tokens:
                model.max_seq_length = limit
        except Exception as error:
            raise EncoderUnavailable(
                f"{self.name} could not be loaded from {folder} ({type(error).__name__}: {error}); "
                "the folder may be incomplete, or made for other versions of sentence-transformers"
            ) from error
        found, expected = model.get_embedding_dimension(), self.facts.dimension
        if expected is not None and found != expected:
            raise EncoderUnavailable(f"{self.name}: the files say {expected} dimensions, the loaded model has {found}")
        return model


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    logging = require("transformers.utils.logging", "transformers", "sentence-transformers")
    with _BARS:
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                logging.enable_progress_bar()
