"""Text to the words of the search index: what FTS5's tokenizer ``unicode61 remove_diacritics 2`` makes of it.

To it an ASCII character is a letter, a digit, or an end of a word, and every word stands for itself in lower case. What
is beyond ASCII only SQLite knows: runs with such characters are cut by a tokenizer of its own, once for each run.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache

_RUNS = re.compile("[0-9A-Za-z\x80-\U0010ffff]+")
_LONGEST = 1000  # characters; SQLite cuts words somewhere beyond that
_MOST_KNOWN = 1 << 16
BORDER = "\x01"
"""Stands between two texts in :func:`plain_words`."""
_TABLE = bytearray(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256))
_TABLE[ord(BORDER)] = ord(BORDER)


def is_plain(text: str) -> bool:
    """Whether :func:`plain_words` can cut the text."""
    return text.isascii()


def plain_words(texts: Sequence[str]) -> list[str]:
    """The words of texts of ASCII alone, in order, with :data:`BORDER` between two texts."""
    joined = f" {BORDER} ".join(texts)
    if joined.count(BORDER) >= len(texts):
        joined = f" {BORDER} ".join(text.replace(BORDER, " ") for text in texts)
    return joined.encode("ascii").translate(_TABLE).decode("ascii").split()


@lru_cache(maxsize=4096)
def cut(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(Cutter().words([text])[0])


class Cutter:
    """Cuts any text into words; remembers what SQLite said of a run of characters."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text, in order."""
        runs = [_RUNS.findall(text) for text in texts]
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._learn({run for found in runs for run in found if run not in self._known})
        joined = (" ".join(filter(None, map(self._known.__getitem__, found))) for found in runs)
        return [words.split(" ") if words else [] for words in joined]

    def _learn(self, runs: Iterable[str]) -> None:
        odd = []
        for run in runs:
            if run.isascii() and len(run) <= _LONGEST:
                self._known[run] = run.lower()
            else:
                self._known[run] = ""
                odd.append(run)
        if odd:
            for at, words in enumerate(_as_sqlite_does(odd)):
                self._known[odd[at]] = words


def _as_sqlite_does(texts: Sequence[str]) -> list[str]:
    """The words of each text, joined by spaces."""
    found: list[list[str]] = [[] for _ in texts]
    connection = _tokenizer()
    connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
    for word, at in connection.execute('SELECT term, doc FROM words ORDER BY doc, "offset"'):
        found[at].append(word)
    connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
    _local.held = (os.getpid(), connection)  # nothing went wrong: it serves again
    return [" ".join(words) for words in found]


_local = threading.local()


def _tokenizer() -> sqlite3.Connection:
    """A database in memory of the calling thread, with an empty search index and its vocabulary."""
    held: tuple[int, sqlite3.Connection] | None = getattr(_local, "held", None)
    _local.held = None
    if held is not None and held[0] == os.getpid():  # no connection crosses a fork
        return held[1]
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(
        "CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance)")
    return connection
