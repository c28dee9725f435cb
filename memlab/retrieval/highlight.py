"""Where the words of a query are in a text, and the stretch of it that shows most of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from re import compile as pattern

from memlab.store.analysis import analyse, is_unspaced

Spans = list[tuple[int, int]]
_MOST_SPANS = 150  # more matches than that make no better excerpt


def fold(text: str) -> str:
    """``text`` in lower case and without accents, character by character, so that offsets stay."""
    return "".join(_fold(char) for char in text)


def _fold(char: str) -> str:
    plain = unicodedata.normalize("NFD", char)[0].lower()
    return plain if len(plain) == 1 else char


def matches(text: str, terms: Iterable[str]) -> Spans:
    """Character offsets of whole words of ``text`` that are among ``terms``, as FTS5's unicode61 would see them.

    Scripts that are written without spaces have no whole words: there a term is found wherever it stands.
    """
    folded = fold(text)
    found: Spans = []
    for term in {fold(term) for term in terms if term}:
        start = folded.find(term)
        while start >= 0:
            end = start + len(term)
            if is_unspaced(term) or (
                not (_is_word(folded, start - 1) and _is_word(folded, start))
                and not (_is_word(folded, end) and _is_word(folded, end - 1))
            ):
                found.append((start, end))
            start = folded.find(term, start + 1)
    # Of foo and foo.bar the longer one is marked.
    kept: Spans = []
    for start, end in sorted(set(found), key=lambda span: (span[0], -span[1])):
        if not kept or end > kept[-1][1]:
            kept.append((start, end))
    return kept


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or unicodedata.category(text[at])[0] == "M")


_WORD = pattern(r"\w+")


def words_with(text: str, tokens: Iterable[str]) -> set[str]:
    """The words of ``text`` that give one of these tokens of the term index: ``retries`` for ``retry``.

    Of scripts that are written without spaces the tokens themselves, which are pairs of characters.
    """
    wanted = set(tokens)
    found = {token for token in wanted if is_unspaced(token) and token in text}
    for word in set(_WORD.findall(text)):
        if not is_unspaced(word):
            found.update(part for part in word.split("_") if part and not wanted.isdisjoint(analyse(part)))
    return found


def window(text: str, spans: Sequence[tuple[int, int]], length: int) -> tuple[int, int]:
    """The stretch of at most ``length`` characters that shows most of the matched words.

    Different words count, each by its length; of equal stretches the first is taken. It begins at the beginning, or a
    little before a match, at a border between words.
    """
    if len(text) <= length:
        return 0, len(text)
    spans = spans[:_MOST_SPANS]
    best, best_weight = 0, _weight(text, spans, 0, length)
    for first, _ in spans:
        start = max(0, first - length // 5)
        start = text.rfind(" ", 0, start) + 1 if start else 0
        weight = _weight(text, spans, start, start + length)
        if weight > best_weight:
            best, best_weight = start, weight
    end = min(len(text), best + length)
    if end < len(text):
        end = max(text.rfind(" ", best, end), end - 24)
    return best, end


def _weight(text: str, spans: Sequence[tuple[int, int]], start: int, end: int) -> int:
    return sum(len(word) for word in {text[a:b].lower() for a, b in spans if start <= a and b <= end})
