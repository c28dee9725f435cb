"""Text to the tokens of the term index, in Python so that the same words come out whatever SQLite was built with.

Pure functions: :func:`analyse` for what is stored, :func:`query_tokens` for what is looked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import add

# Kept in the file: a store whose terms were made by other rules is indexed anew.
ANALYSIS_VERSION = 1

# Words that carry no subject in a question.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both but by can could did
    do does doing done during each for from had has have having he her here him his how i if in into is it its just me
    more most my no nor not now of off on once only or other our out over own same she should so some such than that
    the their them then there these they this those through to too under until up us very was we were what when where
    which while who whom why will with would you your
    """.split()  # noqa: SIM905 - a list of 130 words in quotes is no easier to read
)

_LONGEST = 100  # characters of one word; the rest is cut
_REMEMBERED = 24  # words up to this length are remembered with their tokens
_MOST_KNOWN = 1 << 16
_MOST_PARTS = 12  # of one word: a hash of forty digits and letters in turn is looked for whole
_STEM = 6


def _characters(ranges: str) -> str:
    """The inside of a regex class from hexadecimal code points: ``"30-39 5F"``."""
    return "".join("-".join(chr(int(end, 16)) for end in part.split("-")) for part in ranges.split())


# Combining marks (Unicode 15.1) other than U+0300-036F; gaps that have nothing but letters, digits and code points not
# in use are closed, so that 300 ranges become 130. Letters and digits (L, N) are what `\w` has besides the underscore.
_MARKS = _characters(
    """
    483-489 591-5BD 5BF 5C1-5C2 5C4-5C5 5C7 610-61A 64B-65F 670 6D6-6DC 6DF-6E8 6EA-6ED 711-7F3 7FD 816-82D 859-85B
    898-8E1 8E3-963 981-9E3 9FE-A75 A81-AE3 AFA-B63 B82-BD7 C00-C63 C81-C83 CBC-D4D D57-D63 D81-DF3 E31-E3A E47-E4E
    EB1-ECE F18-F19 F35 F37 F39 F3E-F84 F86-FBC FC6 102B-103E 1056-109D 135D-135F 1712-1734 1752-17D3 17DD 180B-180D
    180F-193B 1A17-1A1B 1A55-1A7F 1AB0-1B44 1B6B-1B73 1B80-1BF3 1C24-1C37 1CD0-1CD2 1CD4-1DFF 20D0-20F0 2CEF-2CF1
    2D7F-2DFF 302A-302F 3099-309A A66F-A672 A674-A67D A69E-A6F1 A802-A827 A82C A880-A8C5 A8E0-A8F1 A8FF-A92D A947-A953
    A980-A9C0 A9E5-AA4D AA7B-AAC1 AAEB-AAEF AAF5-AAF6 ABE3-ABEA ABEC-ABED FB1E FE00-FE0F FE20-FE2F 101FD-1037A
    10A01-10A3F 10AE5-10AE6 10D24-10EAC 10EFD-10F50 10F82-10F85 11000-11046 11070-110BA 110C2 11100-11134 11145-11173
    11180-111C0 111C9-111CC 111CE-111CF 1122C-11237 1123E-11241 112DF-11446 1145E-114C3 115AF-115C0 115DC-11640
    116AB-116B7 1171D-1172B 1182C-1183A 11930-11943 119D1-119E0 119E4-11A3E 11A47-11A99 11C2F-11C3F 11C92-11EF6
    11F00-11F42 13440-13455 16AF0-16AF4 16B30-16B36 16F4F-16F92 16FE4-16FF1 1BC9D-1BC9E 1CF00-1CF46 1D165-1D169
    1D16D-1D172 1D17B-1D182 1D185-1D18B 1D1AA-1D1AD 1D242-1D244 1DA00-1DA36 1DA3B-1DA6C 1DA75 1DA84 1DA9B-1E136
    1E2AE-1E2EF 1E4EC-1E94A E0100-E01EF
    """
)
_PRIVATE = _characters("E000-F8FF F0000-FFFFD 100000-10FFFD")
# Scripts written without spaces between words, or as Korean with particles grown to them.
_UNSPACED = _characters(
    "E00-EFF 1000-109F A9E0-A9FF AA60-AA7F 1780-17FF "  # Thai, Lao; Myanmar; Khmer
    "1100-11FF A960-A97F AC00-D7FF "  # Hangul
    "2E80-2FDF 3005-3007 3021-302F 3031-3035 3038-303C 3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF "  # Han
    "3041-30FF 3100-312F 31A0-31BF 31F0-31FF 1AFF0-1B16F"  # kana, Bopomofo
)
_DIACRITICS = re.compile("[\u0300-\u036f]+")
# What is left between spaces is a word: four times as quick as a search for words.
_ASCII_GAPS = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
# Parts of a word by upper case, lower case and digits: get|User|Name, HTTP|Server, sha|256; IDs is ID and a plural.
_PARTS = re.compile("([A-Z]{2,})s(?![a-z])|[0-9]+|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_DIGIT = re.compile("[0-9]")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """For text beyond ASCII: words; a character of unspaced scripts; runs of these and runs of others."""
    # The looks ahead spare most characters a walk through the ranges.
    private = rf"(?=[\ue000-\U0010ffff])[{_PRIVATE}]"
    rest = rf"(?=[\u0483-\U0010ffff])[{_MARKS}{_PRIVATE}][\w{_MARKS}{_PRIVATE}]*"
    return (
        re.compile(rf"(?:\w|{private})\w*(?:{rest})?"),
        re.compile(rf"(?=[\u0e00-\U0010ffff])[{_UNSPACED}]"),
        re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+"),
    )


@dataclass(frozen=True)
class QueryTokens:
    """What a query looks for in the term index.

    Attributes
    ----------
    used : tuple of str
        Distinct tokens in order of appearance.
    pairs : tuple of (str, str)
        Distinct pairs of them that follow one another in the query.
    """

    used: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


def fold(text: str) -> str:
    """``text`` without diacritics (U+0300-036F), compatibility forms and case; Hangul stays composed."""
    return unicodedata.normalize("NFC", _plain(text).casefold())


def analyse(text: str) -> list[str]:
    """The tokens of a text, in order; neighbours across a stop word are neighbours.

    A word with borders inside (``HTTPServer``, ``sha256``) gives itself and then its parts. Runs of Chinese, Japanese,
    Korean, Thai, Lao, Khmer and Myanmar characters give overlapping pairs of characters.
    """
    joined = joined_tokens(text)
    return joined.split(" ") if joined else []


def joined_tokens(text: str) -> str:
    """The tokens of :func:`analyse` with spaces between them, as the term index stores them."""
    # No step of this loop is Python's: most words were met before.
    return " ".join(filter(None, map(_KNOWN.__getitem__, _words(text))))


def query_tokens(text: str, limit: int = 32) -> QueryTokens:
    """The tokens of a query and the pairs that are worth more where they stand together.

    A whole word and its own first part make no pair, nor do two pairs of characters of an unspaced script: these
    overlap, so one says what the other says.

    Parameters
    ----------
    text : str
        Anything.
    limit : int
        Most tokens that are used.
    """
    used: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    before: tuple[str, bool] | None = None
    for word in _words(text):
        wholes, tokens = _expand(word)
        unspaced = is_unspaced(word)
        for at, token in enumerate(tokens):
            if token not in used:
                if len(used) >= limit:
                    return QueryTokens(tuple(used), tuple(pairs))
                used[token] = None
            if before is not None and not 0 < at <= wholes and not (unspaced and before[1]):
                pairs[before[0], token] = None
            before = (token, unspaced)
    return QueryTokens(tuple(used), tuple(pairs))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", _DIACRITICS.sub("", unicodedata.normalize("NFKD", text)))


def _ascii_words(text: str) -> list[str]:
    return text.encode("ascii").translate(_ASCII_GAPS).decode("ascii").split()  # bytes are translated at once


def _words(text: str) -> list[str]:
    """Words in their own case, each wholly of unspaced scripts or wholly of others."""
    if text.isascii():
        return _ascii_words(text)
    text = _plain(text)
    if text.isascii():
        return _ascii_words(text)
    words, unspaced, runs = _patterns()
    found: list[str] = words.findall(text.replace("_", " "))
    if unspaced.search(text):
        return [run for word in found for run in runs.findall(word)]
    return found


def is_unspaced(word: str) -> bool:
    """Whether a word begins with a character of a script that :func:`analyse` cuts into pairs of characters."""
    return not word.isascii() and _patterns()[1].match(word) is not None


def _expand(word: str) -> tuple[int, tuple[str, ...]]:
    """The tokens of one word, and how many at the head are the whole word, which its parts follow."""
    if word.isascii():  # most words by far have no borders inside
        if word.isdigit():
            return 0, (word[:_LONGEST],)
        if word.isalpha() and (word.islower() or word[1:].islower()):
            whole = word[:_LONGEST].lower()
            return 0, () if whole in STOP_WORDS else (_stem(whole),)
    if is_unspaced(word):
        return 0, tuple(map(add, word, word[1:])) or (word,)
    word = word[:_LONGEST]
    shape = word if word.isascii() else _shape(word)
    whole = unicodedata.normalize("NFC", word.casefold())
    if whole in STOP_WORDS:
        return 0, ()
    spans = [match.span(1 if match[1] else 0) for match in _PARTS.finditer(shape)]
    digits = _DIGIT.search(shape) is not None
    if len(spans) > _MOST_PARTS:
        return 0, (whole,)
    if spans == [(0, len(word))]:
        return 0, (whole if digits else _stem(whole),)
    wholes = [whole]
    parts = list(_parts(word, shape, spans))
    # JavaScript must meet javascript, which has no borders and was stemmed.
    if not digits and (stem := _stem(whole)) not in (whole, *parts):
        wholes.append(stem)
    return len(wholes), (*wholes, *parts)


class _Known(dict[str, str]):
    """Words with their tokens, joined by spaces; emptied when it is full, for the common ones are soon back."""

    def __missing__(self, word: str) -> str:
        tokens = " ".join(_expand(word)[1])
        if len(word) <= _REMEMBERED:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[word] = tokens
        return tokens


_KNOWN = _Known()


def _parts(word: str, shape: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    for start, end in spans:
        part = unicodedata.normalize("NFC", word[start:end].casefold())
        if part not in STOP_WORDS:
            yield part if shape[start].isdigit() else _stem(part)


def _shape(word: str) -> str:
    """The word with ``A`` for upper case, ``0`` for a digit, ``a`` for others; a mark goes with what it stands on."""
    shape = ""
    for char in word:
        category = unicodedata.category(char)
        if category in ("Lu", "Lt"):
            shape += "A"
        elif category[0] == "M" and shape:
            shape += shape[-1]
        else:
            shape += "0" if category[0] == "N" else "a"
    return shape


def _stem(word: str) -> str:
    """A word without its plural, cut at six characters (Porter-like rules would hold for English alone)."""
    if len(word) > 3:
        if word.endswith("ies"):
            word = f"{word[:-3]}y"
        elif word.endswith("s") and not word.endswith("ss"):
            word = word[:-1]
    return word[:_STEM]
