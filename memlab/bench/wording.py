"""Words and sentences for synthetic memories: the bundled sample cut into sentences, with places for other words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memlab.sample_data import sample
from memlab.store.analysis import STOP_WORDS

VOCABULARY = 60_000
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")
_LONG_WORD = re.compile(r"(?<![\w.`/-])[a-z]{5,}(?![\w`/-])")
_WORD = re.compile(r"[a-z]{4,}")
_ENGLISH = re.compile(r"\b(?:the|a|is|are|was|of|and|to|in)\b")
_SYLLABLES = ("ba", "cor", "den", "fi", "gra", "hel", "jo", "kan", "lim", "mor", "nex", "or", "pli", "quo", "ra", "sel")
_CODES = ("E", "ERR-", "SEC-", "RFC-", "OPS-", "BUG-")


@dataclass(frozen=True)
class Wording:
    """What synthetic texts are made of.

    Attributes
    ----------
    sentences : tuple of tuple of str
        Each as parts in turn: what stays, a word that may be exchanged, what stays, ...
    lengths : tuple of int
        Characters of each sentence.
    vocabulary : tuple of str
        By rank: the sample's words by frequency, then compounds, identifiers, invented names and codes without end in
        sight, as in a growing corpus.
    tags, files, categories : tuple of str
        The sample's; categories as often as they occur there.
    """

    sentences: tuple[tuple[str, ...], ...]
    lengths: tuple[int, ...]
    vocabulary: tuple[str, ...]
    tags: tuple[str, ...]
    files: tuple[str, ...]
    categories: tuple[str, ...]


@lru_cache(maxsize=1)
def wording() -> Wording:
    """The sample's wording, read once."""
    records = [record for record in sample().records if record["content"].isascii()]
    texts = [" ".join(record["content"].split()) for record in records]
    whole = [sentence for text in texts for sentence in _SENTENCE.split(text)]
    kept = sorted({sentence for sentence in whole if 30 <= len(sentence) <= 150 and _ENGLISH.search(sentence)})
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return Wording(
        sentences=tuple(_parts(sentence) for sentence in kept),
        lengths=tuple(map(len, kept)),
        vocabulary=tuple(_vocabulary(words)),
        tags=tuple(sorted({tag for record in records for tag in record.get("tags", ())})),
        files=tuple(sorted({file for record in records for file in record.get("related_files", ())})),
        categories=tuple(record["category"] for record in records),
    )


def _parts(sentence: str) -> tuple[str, ...]:
    """The sentence cut before and after each long word; the words stand at the odd places."""
    parts: list[str] = []
    end = 0
    for match in _LONG_WORD.finditer(sentence):
        parts += [sentence[end : match.start()], match.group()]
        end = match.end()
    return (*parts, sentence[end:])


def _vocabulary(words: list[str]) -> list[str]:
    """The words, then made-up ones up to :data:`VOCABULARY`; each occurs once."""
    rng = np.random.default_rng(384)
    found = dict.fromkeys(words)
    while len(found) < VOCABULARY:
        count = VOCABULARY
        pairs = (len(words) * rng.random((count, 2)) ** 2).astype(np.int64).tolist()  # the frequent ones more often
        syllables = rng.integers(len(_SYLLABLES), size=(count, 3)).tolist()
        numbers, prefixes = rng.integers(10_000, size=count).tolist(), rng.integers(len(_CODES), size=count).tolist()
        for place, form in enumerate(rng.integers(6, size=count).tolist()):
            one, two = (words[at] for at in pairs[place])
            if form == 0:
                made = f"{one}_{two}"
            elif form == 1:
                made = f"{one}{two.title()}"
            elif form == 2:
                made = f"{one.title()}{two.title()}"
            elif form == 3:
                made = "".join(_SYLLABLES[at] for at in syllables[place])
            elif form == 4:
                made = "".join(_SYLLABLES[at] for at in syllables[place]) + f"-{one}"
            else:
                made = f"{_CODES[prefixes[place]]}{numbers[place]}"
            found.setdefault(made)
            if len(found) == VOCABULARY:
                break
    return list(found)
