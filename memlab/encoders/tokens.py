"""The tokens of a text, counted and located by the model's own tokenizer, without torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from memlab.encoders._require import require
from memlab.encoders.base import IntMatrix
from memlab.encoders.model_files import ModelFacts
from memlab.errors import EncoderUnavailable, InvalidValue

__all__ = ["ModelTokens", "checked_texts", "clean"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"\w+|[^\w\s]")


def clean(text: str) -> str:
    """``text`` with every lone surrogate replaced by U+FFFD, one code point for one, so that offsets hold."""
    return _SURROGATE.sub("\ufffd", text)


def checked_texts(texts: Sequence[str]) -> list[str]:
    """``texts`` as a list of clean strings.

    Raises
    ------
    InvalidValue
        If it is one string rather than a sequence of them, or an item is not a string.
    """
    if isinstance(texts, str | bytes):
        raise InvalidValue("expected a list of texts, found a single one; put it into a list: [text]")
    checked = list(texts)
    for number, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidValue(f"expected texts, found {type(text).__name__} at place {number}")
    return [clean(text) for text in checked]


class ModelTokens:
    """A model's tokenizer with its truncation and padding switched off.

    The file tokenizer.json of all-MiniLM-L6-v2 truncates at 128 and pads to 128, while the model takes
    256; a count must not know either. Reads tokenizer.json with the package ``tokenizers``; a model
    without that file goes through ``transformers``.

    Parameters
    ----------
    facts : ModelFacts
        Says where the tokenizer is and how the model uses it.
    owner : str
        The encoder's name, for messages.

    Raises
    ------
    EncoderUnavailable
        If the folder has no usable tokenizer.
    """

    def __init__(self, facts: ModelFacts, owner: str) -> None:
        self._specials = facts.special_tokens
        self._slow: Any = None
        file = facts.tokenizer_folder / "tokenizer.json"
        try:
            if file.is_file():
                package = require("tokenizers", "tokenizers", owner)
                self._fast = package.Tokenizer.from_file(str(file))
            else:
                package = require("transformers", "transformers", owner)
                loaded = package.AutoTokenizer.from_pretrained(str(facts.tokenizer_folder), local_files_only=True)
                self._fast = loaded.backend_tokenizer if loaded.is_fast else None
                self._slow = None if loaded.is_fast else loaded
        except EncoderUnavailable:
            raise
        except Exception as error:  # `tokenizers` raises bare Exception
            raise EncoderUnavailable(f"{owner}: no tokenizer in {facts.tokenizer_folder}: {error}") from error
        if self._fast is not None:
            self._fast.no_truncation()
            self._fast.no_padding()
            if facts.lower_case:
                normalizers = require("tokenizers.normalizers", "tokenizers", owner)
                before = [self._fast.normalizer] if self._fast.normalizer is not None else []
                self._fast.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens included, nothing cut off."""
        if not texts:
            return []
        if self._fast is None:
            return [len(self._slow(text, truncation=False)["input_ids"]) for text in texts]
        encodings = self._fast.encode_batch_fast(list(texts), add_special_tokens=self._specials)
        return [len(encoding) for encoding in encodings]

    def spans(self, text: str) -> IntMatrix:
        """Code point offsets of the tokens, special tokens left out: ``(n_tokens, 2)`` int64."""
        if self._fast is None:
            # Python tokenizers keep no offsets; words are coarser, and pieces are counted afterwards anyway.
            offsets = [match.span() for match in _WORD.finditer(text)]
        else:
            offsets = self._fast.encode(text, add_special_tokens=False).offsets
        return np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
