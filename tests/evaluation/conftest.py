"""A small labelled set that is the same every time, and stores of it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from memlab import RRF, HashingEncoder, HybridRetriever, MemoryStore
from memlab.evaluation.folders import LabelledSet
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.queries import LabelledQuery
from memlab.retrieval.channels import KeywordChannel, PassageChannel, VectorChannel

WORDS = [
    "webhook",
    "retry",
    "jitter",
    "invoice",
    "sequence",
    "index",
    "migration",
    "cache",
    "token",
    "session",
    "timeout",
    "queue",
    "worker",
    "deploy",
    "rollback",
    "schema",
    "vector",
    "passage",
    "keyword",
    "ranking",
    "decay",
    "cursor",
    "batch",
    "stream",
    "lock",
    "thread",
    "pool",
    "socket",
    "header",
    "cookie",
]
MEMORIES, QUERIES = 40, 12


def labelled_set(name: str = "small", seed: int = 7) -> LabelledSet:
    """40 memories of random words, 12 queries made of words of the memories that answer them."""
    random_ = random.Random(seed)
    texts = [[random_.choice(WORDS) for _ in range(random_.randint(4, 24))] for _ in range(MEMORIES)]
    corpus = [
        {
            "memory_id": f"m{number:02}",
            "content": " ".join(words),
            "created_at": f"2026-0{1 + number % 8}-{1 + number % 27:02}T12:00:00.000Z",
            "project": "even" if number % 2 == 0 else "odd",
        }
        for number, words in enumerate(texts)
    ]
    queries, judgments = [], {}
    for number in range(QUERIES):
        answers = random_.sample(range(MEMORIES), 1 + number % 3)
        text = " ".join(random_.choice(texts[answer]) for answer in answers for _ in range(3))
        queries.append(LabelledQuery(f"q{number:02}", text))
        judgments[f"q{number:02}"] = {f"m{answer:02}": 1 + place % 2 for place, answer in enumerate(answers)}
    return LabelledSet(name, tuple(corpus), tuple(queries), Qrels(judgments))


@pytest.fixture
def small() -> LabelledSet:
    return labelled_set()


@pytest.fixture
def filled(make_store: Callable[..., MemoryStore], small: LabelledSet) -> MemoryStore:
    """A store of the small set with HashingEncoder(64)."""
    store = make_store()
    store.remember_many(small.corpus, progress=False)
    return store


@pytest.fixture
def retriever(filled: MemoryStore) -> HybridRetriever:
    """Plain rank fusion of the three channels, whatever the default is."""
    return HybridRetriever(filled, channels=(KeywordChannel(), VectorChannel(), PassageChannel()), fusion=RRF())


class CountingEncoder(HashingEncoder):
    """Counts the queries it encodes."""

    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension)
        self.queries = 0

    def encode_queries(self, texts):
        self.queries += len(texts)
        return super().encode_queries(texts)


@pytest.fixture
def counting() -> CountingEncoder:
    return CountingEncoder()
