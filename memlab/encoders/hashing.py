"""A deterministic encoder without a model, for tests and for teaching: texts that share words are near."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from itertools import islice

import numpy as np
import numpy.typing as npt

from memlab.checks import whole
from memlab.encoders.base import FloatMatrix, IntMatrix
from memlab.encoders.tokens import checked_texts

__all__ = ["HashingEncoder"]

_VERSION = 1
_WORD_WEIGHT = 2
_GRAM_WEIGHT = 1
_GRAM = 3
_WORD_KEPT = 64
_GRAM_CHARACTERS = 64
# Scripts written without spaces: kana, CJK ideographs with their extensions, and compatibility forms.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\S")


class HashingEncoder:
    """Words and character trigrams, hashed with a sign into a vector of fixed length.

    A token is a run of word characters, one CJK character, or one other character that is not white
    space. It is folded (NFKC, case), adds 2 at the place and with the sign that BLAKE2b gives it, and
    each of its trigrams (word borders included) adds 1. Order does not matter; the same words give
    the same vector, on any platform and in any process: all sums are of whole numbers. Signed feature
    hashing is due to Weinberger et al. 2009, https://arxiv.org/abs/0902.2206.

    Parameters
    ----------
    dimension : int
        Length of a vector.
    token_limit : int
        Tokens of a text that take part; the rest is ignored, as a model would.

    Raises
    ------
    InvalidValue
        If one of them is not a whole number of at least 1.
    """

    def __init__(self, dimension: int = 384, token_limit: int = 256) -> None:
        dimension = whole(dimension, "dimension", least=1)
        token_limit = whole(token_limit, "token_limit", least=1)
        self._dimension = dimension
        self._token_limit = token_limit

    def __repr__(self) -> str:
        return f"HashingEncoder(dimension={self._dimension}, token_limit={self._token_limit})"

    @property
    def name(self) -> str:
        """``hashing-`` and the dimension."""
        return f"hashing-{self._dimension}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    @property
    def token_limit(self) -> int:
        """Tokens of a text that take part."""
        return self._token_limit

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and the hash of what decides a vector: version, dimension, weights and length of n-grams."""
        recipe = (
            f"memlab hashing {_VERSION} dimension={self._dimension} word={_WORD_WEIGHT} "
            f"gram={_GRAM_WEIGHT} n={_GRAM} characters={_GRAM_CHARACTERS}"
        )
        return f"sha256:{sha256(recipe.encode()).hexdigest()}"

    @property
    def query_prefix(self) -> str:
        """Empty: queries and documents are the same to this encoder."""
        return ""

    @property
    def document_prefix(self) -> str:
        """Empty: queries and documents are the same to this encoder."""
        return ""

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode queries: ``(len(texts), dimension)`` float32, each row of length 1."""
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode documents: ``(len(texts), dimension)`` float32, each row of length 1.

        A text without tokens, or one whose tokens cancel out, gets a fixed vector.

        Raises
        ------
        InvalidValue
            If ``texts`` is not a sequence of strings.
        """
        checked = checked_texts(texts)
        vectors = np.zeros((len(checked), self._dimension), dtype=np.float32)
        for row, text in enumerate(checked):
            vectors[row] = self._vector(text)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, untruncated; there are no special tokens."""
        return [sum(1 for _ in _TOKEN.finditer(text)) for text in checked_texts(texts)]

    def token_spans(self, text: str) -> IntMatrix:
        """Code point offsets of the tokens, untruncated: ``(n_tokens, 2)`` int64."""
        spans = [match.span() for match in _TOKEN.finditer(checked_texts([text])[0])]
        return np.asarray(spans, dtype=np.int64).reshape(-1, 2)

    def _vector(self, text: str) -> npt.NDArray[np.float64]:
        sums = np.zeros(self._dimension, dtype=np.int64)
        words = Counter(match.group() for match in islice(_TOKEN.finditer(text), self._token_limit))
        for word, count in words.items():
            for feature, weight in _features(word):
                sums[(feature >> 1) % self._dimension] += count * (weight if feature & 1 else -weight)
        square = int(sums @ sums)
        if square == 0:
            sums[(_hash("\x00no tokens") >> 1) % self._dimension] = square = 1
        return np.asarray(sums / np.sqrt(np.float64(square)), dtype=np.float64)


def _hash(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _features(word: str) -> tuple[tuple[int, int], ...]:
    # A pasted word of a megabyte must not stay in the cache.
    return _features_kept(word) if len(word) <= _WORD_KEPT else _features_of(word)


@lru_cache(maxsize=50_000)
def _features_kept(word: str) -> tuple[tuple[int, int], ...]:
    return _features_of(word)


def _features_of(word: str) -> tuple[tuple[int, int], ...]:
    folded = unicodedata.normalize("NFKC", word.casefold())
    # The prefixes keep a word and a trigram of the same letters apart.
    features = [(_hash("w" + folded), _WORD_WEIGHT)]
    edged = f"<{folded[:_GRAM_CHARACTERS]}>"
    if len(folded) >= _GRAM:
        grams = (edged[start : start + _GRAM] for start in range(len(edged) - _GRAM + 1))
        features += [(_hash("g" + gram), _GRAM_WEIGHT) for gram in grams]
    return tuple(features)
