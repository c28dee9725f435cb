"""Query text to search terms. What a person types is text, never query syntax."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from memlab.store.analysis import STOP_WORDS as STOP_WORDS

# Marks that hold an identifier together: ADR-016, foo.bar, a/b, memory:safe, don't, C:\repo\main.py, snake_case.
JOINERS = "-._/:'\u2019\\@+#~&="
# Most tokens of one phrase: FTS5 takes minutes over one of ten thousand (a pasted path list, a line of CSV).
_MOST_PARTS = 12
# Surrogates cannot be encoded; NUL ends text for some of SQLite's functions.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Terms:
    """The terms of a query.

    Attributes
    ----------
    used : tuple of str
        What is searched for, in order of appearance, lower case.
    stop_words : tuple of str
        What was left out because it says nothing.
    cut : int
        How many more terms the query had than are used.
    stemmed : bool
        Whether they are tokens of the term index and not words as they stand in the query.
    """

    used: tuple[str, ...]
    stop_words: tuple[str, ...] = ()
    cut: int = 0
    stemmed: bool = False

    @property
    def match(self) -> str:
        """The FTS5 expression: every term quoted, joined by OR. A term with joiners becomes a phrase."""
        return " OR ".join('"' + term.replace('"', '""') + '"' for term in self.used)


def clean(text: str) -> str:
    """``text`` with lone surrogates and NUL replaced, so that SQLite and tokenizers can take it."""
    return _UNUSABLE.sub(" ", text)


def terms(text: str, *, limit: int = 32, stop_words: frozenset[str] = STOP_WORDS, joiners: str = JOINERS) -> Terms:
    """Cut a query into terms.

    Letters and digits (Unicode categories L, N, Co, and marks that follow them) make terms, as in FTS5's ``unicode61``;
    a joiner between two of them stays, so that ``ADR-016`` is looked for as a phrase.

    Parameters
    ----------
    text : str
        Anything.
    limit : int
        Most terms that are used.
    stop_words : frozenset of str
        Left out, unless nothing else is there.
    joiners : str
        Characters that hold two words together; all others part them.
    """
    found: dict[str, None] = {}
    for word in _words(clean(text).lower(), joiners):
        found.setdefault(word, None)
    kept = [word for word in found if word not in stop_words]
    dropped = tuple(word for word in found if word in stop_words) if kept else ()
    if not kept:
        kept = list(found)
    return Terms(tuple(kept[:limit]), dropped, max(0, len(kept) - limit))


@lru_cache(maxsize=8)
def _ascii_words(joiners: str) -> re.Pattern[str]:
    """What :func:`_words` finds in text of ASCII alone."""
    return re.compile(f"[0-9a-z]+(?:[{re.escape(joiners)}][0-9a-z]+){{0,{_MOST_PARTS - 1}}}")


def _words(text: str, joiners: str) -> list[str]:
    if text.isascii() and joiners and not any(map(_is_token_char, joiners)):
        return _ascii_words(joiners).findall(text)
    words: list[str] = []
    word: list[str] = []
    joiner = ""
    parts = 0
    for char in text:
        if _is_token_char(char):
            if joiner and parts == _MOST_PARTS:
                words.append("".join(word))
                word, parts = [], 0
            elif joiner:
                word.append(joiner)
            if joiner or not word:
                parts += 1
            joiner = ""
            word.append(char)
        elif char in joiners and word and not joiner:
            joiner = char
        else:
            if word:
                words.append("".join(word))
            word, joiner, parts = [], "", 0
    if word:
        words.append("".join(word))
    return words


def _is_token_char(char: str) -> bool:
    if char.isascii():
        return char.isalnum()
    category = unicodedata.category(char)
    return category[0] in "LNM" or category == "Co"
