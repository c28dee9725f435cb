"""How good a place between two tokens is to cut a text at."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import IntMatrix

__all__ = ["LINE", "PARAGRAPH", "SENTENCE", "SPACE", "SYMBOL", "WITHIN_TOKEN", "WITHIN_WORD", "Borders", "find_borders"]

WITHIN_TOKEN, WITHIN_WORD, SYMBOL, SPACE, LINE, SENTENCE, PARAGRAPH = range(-1, 6)

_NEWLINES = "\n\r\v\f\x85\u2028\u2029"
_NEWLINE = rf"(?>\r\n|[{_NEWLINES}])"
_CLOSERS = r"""["'\u201d\u2019\u00bb)\]}*_`\u300d\u300f\uff09\u3009\u300b]"""
_CJK_ENDS = "\u3002\uff01\uff1f\uff1b\uff61\u0964\u061f\u06d4"
# Every pattern starts at one given character and runs over what follows once: no text makes them slow.
_PATTERNS = (
    # A full stop before a small letter is more often an abbreviation (e.g. this), hence no better than a line's end.
    (LINE, re.compile(rf"{_NEWLINE}\s*+|[.!?\u2026]{_CLOSERS}{{0,4}}+\s++")),
    (SENTENCE, re.compile(rf"[.!?\u2026]{_CLOSERS}{{0,4}}+\s++(?![a-z\u00df-\u00f6\u00f8-\u00ff])")),
    (SENTENCE, re.compile(rf"[{_CJK_ENDS}]{_CLOSERS}{{0,4}}+(?![{_CJK_ENDS}])\s*+")),
    (PARAGRAPH, re.compile(rf"{_NEWLINE}[^\S{_NEWLINES}]*+{_NEWLINE}\s*+")),
)
_NEWLINE_ONE = re.compile(f"[{_NEWLINES}]")
_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)


@dataclass(frozen=True)
class Borders:
    """The places before each token of a text.

    Attributes
    ----------
    levels : ndarray of int8, shape (n_tokens + 1,)
        How good the place before token ``i`` is, from WITHIN_WORD (0) to PARAGRAPH (5); WITHIN_TOKEN
        (-1) where tokens share a character. The first and the last are the text's own ends.
    positions : ndarray of int64, shape (n_tokens + 1,)
        Where a cut there falls, in code points: before the token, and after the newlines that precede
        it, so that the indentation of a line stays with the line.
    """

    levels: npt.NDArray[np.int8]
    positions: npt.NDArray[np.int64]


def find_borders(text: str, spans: IntMatrix) -> Borders:
    """Grade the places between the tokens of a text; the time grows with the text's length, not faster.

    Parameters
    ----------
    text : str
        The text.
    spans : ndarray of int64, shape (n_tokens, 2)
        Start and end of the tokens in code points, ascending. They may hold white space (SentencePiece
        tokens begin with it) and may repeat (several byte tokens of one character).
    """
    count = len(spans)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    blank = np.isin(codes, _SPACES)
    # White space at the edge of a token belongs to no token: it may be cut at.
    following = np.where(blank, len(text), np.arange(len(text)))
    following = np.minimum.accumulate(following[::-1])[::-1]
    starts = np.minimum(following[np.minimum(spans[:, 0], len(text) - 1)], spans[:, 1])
    starts = np.maximum.accumulate(starts)
    ends = np.maximum.accumulate(spans[:, 1])

    levels = np.full(count + 1, WITHIN_WORD, dtype=np.int8)
    word = _is_word(codes)
    before, after = starts[1:] - 1, np.minimum(starts[1:], len(text) - 1)
    inner = levels[1:count]
    inner[~(word[before] & word[after])] = SYMBOL
    inner[blank[before]] = SPACE
    for level, pattern in _PATTERNS:
        found = np.fromiter((match.end() for match in pattern.finditer(text)), dtype=np.int64)
        tokens = np.searchsorted(starts, found)
        tokens = tokens[(tokens > 0) & (tokens < count)]
        levels[tokens] = np.maximum(levels[tokens], level)
    inner[ends[:-1] > starts[1:]] = WITHIN_TOKEN

    positions = np.concatenate([[0], starts[1:], [len(text)]]).astype(np.int64)
    newlines = np.fromiter((match.end() for match in _NEWLINE_ONE.finditer(text)), dtype=np.int64)
    if count > 1 and len(newlines):
        last = np.searchsorted(newlines, starts[1:], side="right") - 1
        line = np.where(last >= 0, newlines[np.maximum(last, 0)], 0)
        positions[1:count] = np.where(line >= ends[:-1], np.maximum(line, ends[:-1]), starts[1:])
        positions[1:count] = np.maximum.accumulate(positions[1:count])
    return Borders(levels, positions)


def _is_word(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """ASCII letters, digits and underscore, and everything beyond ASCII but the punctuation of CJK texts."""
    lower = codes | 0x20
    ascii_word = ((lower >= 0x61) & (lower <= 0x7A)) | ((codes >= 0x30) & (codes <= 0x39)) | (codes == 0x5F)
    punctuation = ((codes >= 0x3000) & (codes <= 0x303F)) | ((codes >= 0xFF00) & (codes <= 0xFF20))
    return np.asarray(ascii_word | ((codes >= 0x80) & ~punctuation), dtype=np.bool_)
