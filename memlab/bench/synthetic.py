"""Synthetic memories of any number: texts, vectors, questions, and stores of them.

Everything follows from the seed, in chunks, so that the first thousand memories of a million are those of a store of
a thousand. Texts are sentences of the bundled sample, put together anew by theme, with words exchanged for others that
are drawn by Zipf's law out of a vocabulary of 60,000. Vectors are no model's, see :mod:`memlab.bench.geometry`; texts
and vectors of one theme go together. They are for measuring speed, and how far two searches agree; how well questions
are answered only labelled sets can tell.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.bench.geometry import DIMENSION, THEMES, space, zipf
from memlab.bench.wording import Wording, wording
from memlab.checks import whole
from memlab.encoders.base import FloatMatrix, IntMatrix, stamp
from memlab.errors import EncoderError, InvalidValue
from memlab.progress import Progress, Show
from memlab.store import AUTO, MemoryStore
from memlab.store.analysis import ANALYSIS_VERSION, STOP_WORDS
from memlab.store.codes import CODES_VERSION
from memlab.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from memlab.encoders.base import Encoder
    from memlab.store.encoding import EncoderChoice

VERSION = 1  # of what is made; a change makes stores anew
PROJECTS = ("atlas", "beacon", "cobalt", "dynamo", "ember", "falcon", "garnet", "harbor", "indigo", "juniper")
NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
_CHUNK = 1024
_LENGTH = 280  # characters of a text, about
_THEME, _TEXT, _VECTOR, _QUESTION = range(4)  # streams of random numbers
_DAYS = 1000
_EXCHANGED = 0.3  # of the words that may be
_CHUNKS_STORED = 16  # in one transaction
_CHUNKS_ASKED = 16  # most chunks that questions are about
_OWN_SENTENCES = 12  # that a theme prefers
_FORMS = (
    "why does {0} {1} when {2} is {3}",
    "how do we handle {0} with {1} and {2}",
    "what was decided about {0} for the {1} {2}",
    "where is the {0} of {1} set to {2}",
    "which {0} should I use if the {1} is not {2} in {3}",
    "what happens to {0} after the {1} {2}",
)


@dataclass(frozen=True)
class Question:
    """A question about one synthetic memory.

    Attributes
    ----------
    text : str
    vector : ndarray of float32, shape (384,)
        Near the memory's.
    memory_id : str
    """

    text: str
    vector: FloatMatrix
    memory_id: str


def memories(size: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Records for :meth:`MemoryStore.remember_many`, without vectors.

    Parameters
    ----------
    size : int
    seed : int

    Yields
    ------
    dict
        ``memory_id`` (``s-0000001`` and so on), ``content`` (about 280 characters), ``project``, ``category``,
        ``tags``, ``importance``, ``created_at``, ``source``, and sometimes ``related_files``.
    """
    for chunk, count in _chunks(size):
        yield from _records(chunk, seed)[:count]


def vectors(size: int, seed: int = 0) -> FloatMatrix:
    """Their vectors, float32, shape (size, 384), each of length 1; a million take 1.5 GB."""
    matrix = np.empty((whole(size, "size", least=0), DIMENSION), np.float32)
    for chunk, count in _chunks(size):
        matrix[chunk * _CHUNK : chunk * _CHUNK + count] = _vectors(chunk, seed)[:count]
    return matrix


def questions(count: int, seed: int = 0, *, size: int = 1000) -> list[Question]:
    """Different questions about some of the first ``size`` memories, in an order that favours none.

    Parameters
    ----------
    count : int
    seed : int
    size : int
        Of the store that will be asked. The memories asked about lie in at most 16 stretches of 1,024.

    Raises
    ------
    InvalidValue
        If so many different ones cannot be made; there are at least 20 a memory.
    """
    chunks = -(-whole(size, "size", least=1) // _CHUNK)
    asked = sorted({place * chunks // min(chunks, _CHUNKS_ASKED) for place in range(min(chunks, _CHUNKS_ASKED))})
    rng = _rng(seed, _QUESTION, 0)
    pool: list[tuple[int, int]] = [
        (chunk, place) for chunk in asked for place in range(min(_CHUNK, size - chunk * _CHUNK))
    ]
    made: dict[str, tuple[int, int, int]] = {}
    for turn in range(50):
        for at in rng.permutation(len(pool)).tolist():
            if len(made) == count:
                break
            chunk, place = pool[at]
            made.setdefault(_question(_cached_records(chunk, seed)[place]["content"], rng), (chunk, place, turn))
    if len(made) < count:
        raise InvalidValue(f"count: {size:,} memories give {len(made):,} different questions, found {count:,} wanted")
    rows: dict[tuple[int, int], FloatMatrix] = {}
    for chunk, _, turn in made.values():
        if (chunk, turn) not in rows:
            fresh = _rng(seed, _QUESTION, 1 + 50 * chunk + turn)
            rows[chunk, turn] = space(seed).queries(_themes(chunk, seed), _rng(seed, _VECTOR, chunk), fresh)
    return [
        Question(text, rows[chunk, turn][place], _memory_id(chunk * _CHUNK + place))
        for text, (chunk, place, turn) in made.items()
    ]


def make_store(
    path: str | os.PathLike[str],
    size: int,
    seed: int = 0,
    *,
    encoder: EncoderChoice = AUTO,
    progress: Show = None,
) -> MemoryStore:
    """Make a store of the first ``size`` memories with their vectors, or go on with one that was begun.

    Parameters
    ----------
    path : str or Path
    size, seed : int
    encoder : Encoder or AUTO
        Whose vectors the store says it holds, so that a recall from text has something to encode with: by default
        all-MiniLM-L6-v2, or where its weights are missing ``HashingEncoder()``.
    progress : bool or callable, optional
        See :class:`memlab.progress.Progress`.

    Returns
    -------
    MemoryStore
        Open for writing.

    Raises
    ------
    InvalidValue
        If the encoder has another dimension than 384, or ``None`` is given for it.
    """
    chosen = _encoder(encoder)
    store = MemoryStore(path, chosen)
    try:
        with Progress("synthetic memories", size, progress) as shown:
            for part in _several(size):
                records = [record for chunk, count in part for record in _records(chunk, seed)[:count]]
                rows = np.concatenate([_vectors(chunk, seed)[:count] for chunk, count in part])
                store.remember_many(records, vectors=rows, batch_size=len(records), progress=False)
                shown.advance(len(records))
    except BaseException:
        store.close()
        raise
    return store


def cached_store(
    size: int,
    seed: int = 0,
    *,
    cache: str | os.PathLike[str] | None = None,
    encoder: EncoderChoice = AUTO,
    progress: Show = None,
) -> MemoryStore:
    """The store of :func:`make_store`, made if it is not in the cache folder, opened for reading.

    Size, seed, encoder and the versions of what is made and of the schema decide the name of the file.
    """
    from memlab.evaluation.cache import cache_folder, kept_store

    chosen = _encoder(encoder)
    versions = [VERSION, SCHEMA_VERSION, ANALYSIS_VERSION, CODES_VERSION]
    made_with = {"versions": versions, "seed": seed, **asdict(stamp(chosen))}
    digest = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest()[:12]
    path = cache_folder(cache) / f"synthetic-{size}-{digest}.db"
    # AUTO finds the encoder that the file records.
    return kept_store(path, AUTO, lambda part: make_store(part, size, seed, encoder=chosen, progress=progress).close())


def _encoder(choice: EncoderChoice) -> Encoder:
    from memlab.encoders import HashingEncoder, MiniLM

    if choice is None:
        raise InvalidValue("encoder: expected one, found None; synthetic stores hold vectors")
    if choice is AUTO:
        chosen: Encoder = MiniLM()
        try:
            chosen.fingerprint  # noqa: B018 - looks for the weights
        except EncoderError:
            chosen = HashingEncoder(DIMENSION)
    else:
        chosen = choice  # type: ignore[assignment]
    if chosen.dimension != DIMENSION:
        raise InvalidValue(f"encoder: expected one of {DIMENSION} dimensions, found {chosen.name}, {chosen.dimension}")
    return chosen


# -- chunks ------------------------------------------------------------------------------------------------------------


def _rng(seed: int, stream: int, chunk: int) -> np.random.Generator:
    return np.random.default_rng([seed, stream, chunk])


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    """Numbers of chunks, and how many memories of each."""
    size = whole(size, "size", least=0)
    for start in range(0, size, _CHUNK):
        yield start // _CHUNK, min(_CHUNK, size - start)


def _several(size: int) -> Iterator[list[tuple[int, int]]]:
    """Chunks, as many together as are stored in one transaction."""
    chunks = list(_chunks(size))
    for start in range(0, len(chunks), _CHUNKS_STORED):
        yield chunks[start : start + _CHUNKS_STORED]


def _themes(chunk: int, seed: int) -> IntMatrix:
    return zipf(_rng(seed, _THEME, chunk).random(_CHUNK), THEMES, 500)


def _vectors(chunk: int, seed: int) -> FloatMatrix:
    return space(seed).vectors(_themes(chunk, seed), _rng(seed, _VECTOR, chunk))


def _memory_id(number: int) -> str:
    return f"s-{number + 1:07d}"


def _records(chunk: int, seed: int) -> list[dict[str, Any]]:
    words, rng = wording(), _rng(seed, _TEXT, chunk)
    themes = _themes(chunk, seed)
    projects = space(seed).subjects[themes] % len(PROJECTS)
    contents = _contents(words, themes.tolist(), rng)
    categories = rng.integers(len(words.categories), size=_CHUNK).tolist()
    tags = zipf(rng.random((_CHUNK, 3)), len(words.tags), 5).tolist()
    tag_counts = rng.integers(4, size=_CHUNK).tolist()
    importance = rng.integers(1, 11, size=_CHUNK).tolist()
    minutes = (rng.random(_CHUNK) * _DAYS * 24 * 60).tolist()
    files = rng.integers(10 * len(words.files), size=_CHUNK).tolist()
    records: list[dict[str, Any]] = []
    for place, content in enumerate(contents):
        record = {
            "memory_id": _memory_id(chunk * _CHUNK + place),
            "content": content,
            "project": PROJECTS[projects[place]],
            "category": words.categories[categories[place]],
            "tags": list(dict.fromkeys(words.tags[tag] for tag in tags[place][: tag_counts[place]])),
            "importance": importance[place],
            "created_at": NOW - timedelta(minutes=minutes[place]),
            "source": "synthetic",
        }
        if files[place] < len(words.files):
            record["related_files"] = [words.files[files[place]]]
        records.append(record)
    return records


_RECENT: dict[tuple[int, int], list[dict[str, Any]]] = {}


def _cached_records(chunk: int, seed: int) -> list[dict[str, Any]]:
    if (chunk, seed) not in _RECENT:
        if len(_RECENT) >= 2 * _CHUNKS_ASKED:
            _RECENT.clear()
        _RECENT[chunk, seed] = _records(chunk, seed)
    return _RECENT[chunk, seed]


def _contents(words: Wording, themes: Sequence[int], rng: np.random.Generator) -> list[str]:
    """One text a theme: sentences until there are about 280 characters, each word in the open places kept or not."""
    count = len(words.sentences)
    most = 10
    own = rng.random((len(themes), most)) < 0.6
    # A theme prefers sentences that stand anywhere, always the same ones.
    preferred = (np.asarray(themes)[:, None] * 7919 + rng.integers(_OWN_SENTENCES, size=own.shape) * 104_729) % count
    chosen = np.where(own, preferred, zipf(rng.random(own.shape), count, 200)).tolist()
    lengths = np.maximum(60, rng.normal(_LENGTH - 40, 90, len(themes))).tolist()
    drawn = iter(_exchange(words, rng, 60 * len(themes)))
    vocabulary = words.vocabulary
    texts = []
    for theme, sentences, length in zip(themes, chosen, lengths, strict=True):
        parts: list[str] = [vocabulary[(theme * 31 + 977) % len(vocabulary)], ": "]
        total = len(parts[0]) + 2
        for sentence in dict.fromkeys(sentences):
            if total > length:
                break
            pieces = words.sentences[sentence]
            for place, piece in enumerate(pieces):
                parts.append((next(drawn, None) or piece) if place % 2 else piece)
            parts.append(" ")
            total += words.lengths[sentence] + 1
        texts.append("".join(parts[:-1]))
    return texts


def _exchange(words: Wording, rng: np.random.Generator, count: int) -> list[str | None]:
    """What to put into open places: a word of the vocabulary by Zipf's law, or ``None`` for what stands there."""
    ranks = zipf(rng.random(count), len(words.vocabulary), 3).tolist()
    changed = (rng.random(count) < _EXCHANGED).tolist()
    vocabulary = words.vocabulary
    return [vocabulary[rank] if change else None for rank, change in zip(ranks, changed, strict=True)]


def _question(content: str, rng: np.random.Generator) -> str:
    """A question in words of the content, common ones and rare ones."""
    bare = (word.strip(".,;:!?()`'\"") for word in content.split())
    found = list(dict.fromkeys(word for word in bare if len(word) > 3 and word.lower() not in STOP_WORDS))
    picked = [found[at] for at in rng.permutation(len(found))[:4].tolist()]
    picked += ["it"] * (4 - len(picked))
    return _FORMS[int(rng.integers(len(_FORMS)))].format(*picked) + ("?" if rng.random() < 0.5 else "")
