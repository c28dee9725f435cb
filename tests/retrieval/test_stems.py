"""The keyword channel over stems against the formula worked out by hand, and what its shortcut keeps."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import Filters, HashingEncoder, MemoryStore
from memlab.retrieval import StemChannel
from memlab.retrieval.channels import Query
from memlab.retrieval.terms import terms
from memlab.store.analysis import analyse, query_tokens
from memlab.store.reading import ReadView

from .conftest import NOW

NOTHING: frozenset[int] = frozenset()
NEWS = Path(os.environ.get("MEMLAB_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "cpython-news"
VOCABULARY = (
    "retry",
    "retries",
    "getUserName",
    "user",
    "name",
    "caches",
    "cache",
    "the",
    "configuration",
    "数据库",
    "v2",
)
SENTENCES = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=9).map(" ".join)


def by_hand(store: MemoryStore, text: str, channel: StemChannel) -> dict[str, float]:
    """The score of every memory that has a token: the formula of the docstring, from the texts."""
    memories = store.find(limit=None)
    tokens = {m.memory_id: (analyse(m.content), analyse(m.category) + analyse(m.project or "")) for m in memories}
    words = {
        m.memory_id: [*_unicode61(m.content), "|", *_unicode61(m.category), "|", *_unicode61(m.project or "")]
        for m in memories
    }
    wanted = query_tokens(text)
    mean = sum(len(a) + len(b) for a, b in tokens.values()) / len(memories)

    def idf(having: int) -> float:
        return max(math.log((len(memories) - having + 0.5) / (having + 0.5)), 1e-6)

    def with_pair(first: str, second: str) -> set[str]:
        return {m for m, columns in tokens.items() for c in columns if (first, second) in itertools.pairwise(c)}

    having = {t: {m for m, (a, b) in tokens.items() if t in a or t in b} for t in wanted.used}
    bonuses = [(channel.pairs, with_pair(*pair)) for pair in wanted.pairs]
    bonuses += [(channel.words, {m for m, w in words.items() if word in w}) for word in terms(text).used]
    scores: dict[str, float] = {}
    for memory_id, (content, labels) in tokens.items():
        every = content + labels
        norm = 1.2 * (0.25 + 0.75 * len(every) / mean)
        total = sum(
            idf(len(having[t])) * 2.2 * every.count(t) / (every.count(t) + norm) for t in wanted.used if t in every
        )
        total += sum(weight * idf(len(who)) * 2.2 / (1 + norm) for weight, who in bonuses if memory_id in who)
        if any(t in every for t in wanted.used):
            scores[memory_id] = total
    return scores


def _unicode61(text: str) -> list[str]:
    return text.lower().split()


def listed(view: ReadView, channel: StemChannel, text: str, depth: int = 50) -> list[tuple[str, float]]:
    return [(hit.memory_id, hit.raw_score) for hit in channel.search(Query(text), view, depth, NOTHING).hits]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(SENTENCES, min_size=1, max_size=25),
    text=SENTENCES,
    common=st.sampled_from([1, 3, 5000]),
    projects=st.booleans(),
)
def test_scores_are_the_formula_and_all_are_found(
    tmp_path: Path, contents: list[str], text: str, common: int, projects: bool
) -> None:
    for old in tmp_path.glob("*.db*"):
        old.unlink()
    with MemoryStore(tmp_path / "a.db", None, clock=lambda: NOW) as store:
        store.remember_many(
            [
                {"content": c, "memory_id": f"m{i:02}", "project": "cache" if projects and i % 3 == 0 else None}
                for i, c in enumerate(contents)
            ],
            progress=False,
        )
        if not query_tokens(text).used:
            return
        channel = StemChannel()
        expected = by_hand(store, text, channel)
        order = sorted(expected, key=lambda m: (-expected[m], m))
        with store.view() as view:
            found = listed(view, channel, text)
        assert dict(found) == pytest.approx(expected, rel=1e-9)
        assert [expected[m] for m, _ in found] == pytest.approx([expected[m] for m in order], rel=1e-9)
        assert found == sorted(found, key=lambda row: (-row[1], row[0]))
        # Tokens that bring in nobody by themselves lose nobody where few match, under filters too.
        filters = Filters(project="cache") if projects else Filters()
        with store.view(filters) as view:
            few = listed(view, StemChannel(common=common), text)
        inside = {m.memory_id for m in store.find(limit=None) if not projects or m.project == "cache"}
        assert {m for m, _ in few} == expected.keys() & inside
        if common == 5000:
            assert few == [row for row in found if row[0] in inside]


def test_a_score_is_the_same_however_it_is_asked_for(hashed: MemoryStore) -> None:
    text = "why do webhook retries lose the getUserName cache"
    channel = StemChannel(candidates=5)
    with hashed.view() as view:
        found = channel.search(Query(text), view, 20, NOTHING).hits
        again = channel.score(Query(text), view, [hit.number for hit in found])
    assert again == {hit.number: (hit.raw_score, None) for hit in found}
    for hit in found[::4]:
        with hashed.view() as view:  # nothing is known here yet
            assert channel.score(Query(text), view, [hit.number]) == {hit.number: (hit.raw_score, None)}
        with hashed.view(Filters(project=hashed.get(hit.memory_id).project)) as view:
            located = channel.locate(Query(text), view, hit.number, NOTHING)
            assert not isinstance(located, str)
            assert located[1] == hit.raw_score


def test_a_memory_outside_the_filters_has_no_place(hashed: MemoryStore) -> None:
    with hashed.view(Filters(project="nobody's")) as view:
        number = view.number(hashed.find(limit=1)[0].memory_id)
        assert number is not None
        query = Query(hashed.find(limit=1)[0].content)
        assert StemChannel().locate(query, view, number, NOTHING) == "it does not pass the filters"


def test_a_repeated_token_counts_each_time(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("cache cache cache", "cache and two words", "x", "y", encoder=None)
    channel = StemChannel(words=0, pairs=0)
    with store.view() as view:
        found = dict(listed(view, channel, "cache"))
    assert found == pytest.approx(by_hand(store, "cache", channel), rel=1e-12)
    assert found["a"] > found["b"]


def test_a_filter_loses_nobody_to_common_tokens(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(encoder=None)
    records = [{"content": f"retry jitter of sort {i}", "memory_id": f"m{i}"} for i in range(60)]
    store.remember_many([*records, {"content": "a retry", "memory_id": "z", "project": "p"}], progress=False)
    channel = StemChannel(candidates=2, common=10)
    with store.view(Filters(project="p")) as view:
        assert [memory_id for memory_id, _ in listed(view, channel, "retry jitter", 1)] == ["z"]


def test_many_that_promise_the_same_are_told_apart(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(encoder=None)
    filler = [f"retry {'word ' * (30 - i % 20)}" for i in range(60)]
    store.remember_many([{"content": text} for text in filler], progress=False)
    store.remember("a retry of a retry", memory_id="best", project="p")
    with store.view() as view:
        assert listed(view, StemChannel(candidates=2), "retry", 1)[0][0] == "best"
    with store.view(Filters(project="p")) as view:
        assert listed(view, StemChannel(candidates=2), "retry", 1)[0][0] == "best"


def test_counts_of_common_tokens_follow_every_write(make_store: Callable[..., MemoryStore], tmp_path: Path) -> None:
    store = make_store(*["retry here"] * 4, *["others"] * 9, encoder=None)
    channel = StemChannel(common=1, words=0, pairs=0)

    def scores() -> list[float]:
        with store.view() as view:
            return [score for _, score in listed(view, channel, "retry")]

    def fresh() -> list[float]:
        with MemoryStore(store.path, None, read_only=True) as other, other.view() as view:
            return [score for _, score in listed(view, channel, "retry")]

    assert scores() == scores() == fresh()
    store.remember("one more retry")
    assert scores() == fresh()
    with MemoryStore(store.path, None) as other:
        other.remember("a retry by somebody else")
    assert scores() == fresh()
    before = scores()
    store.db.conn.execute("BEGIN IMMEDIATE")
    store.db.execute("DELETE FROM memories WHERE id = 'a'")
    assert len(scores()) == len(before) - 1  # within the transaction
    store.db.conn.execute("ROLLBACK")
    assert scores() == before == fresh()


@pytest.mark.parametrize("options", [{"candidates": 0}, {"common": 0}, {"candidates": 1.5}])
def test_bad_bounds(options: dict[str, float]) -> None:
    from memlab.errors import InvalidValue

    with pytest.raises(InvalidValue, match=next(iter(options))):
        StemChannel(**options)  # type: ignore[arg-type]


@pytest.mark.skipif(not NEWS.is_dir(), reason=f"the set cpython-news is not at {NEWS} (or set MEMLAB_TEST_DATA)")
def test_the_shortcut_keeps_the_best_ten_of_a_look_at_everything(tmp_path: Path) -> None:
    with (NEWS / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with (NEWS / "queries.jsonl").open(encoding="utf-8") as lines:
        queries = [json.loads(line)["text"] for line in lines][::10]
    with MemoryStore(tmp_path / "news.db", None, clock=lambda: NOW) as store:
        store.remember_many(
            [{"memory_id": row["_id"], "content": f"{row.get('title', '')} {row['text']}".strip()} for row in rows],
            batch_size=2000,
            progress=False,
        )
        kept: list[float] = []
        for text in queries:
            with store.view() as view:
                everything = [m for m, _ in listed(view, StemChannel(candidates=len(rows)), text, 10)]
                # Tokens in more than 500 of 8,000 memories bring nobody in, and a hundred are scored.
                quick = [m for m, _ in listed(view, StemChannel(candidates=100), text, 10)]
            if everything:
                kept.append(len(set(everything) & set(quick)) / len(everything))
        assert len(kept) > 50
        assert np.mean(kept) >= 0.99


@pytest.mark.parametrize("rounds", [1, 4])
def test_a_word_rarer_than_its_stem_where_every_stem_is_common(tmp_path: Path, rounds: int) -> None:
    """Twenty have the word itself, sixty the stem, which is too common to bring anybody in: yet somebody must win."""
    with MemoryStore(tmp_path / "memory.db", HashingEncoder(16)) as store:
        store.remember_many(f"internet call number {n}" for n in range(20))
        store.remember_many(f"internal run {n}" for n in range(40))
        channel = StemChannel(common=30, candidates=1)
        for _ in range(rounds):  # from the file first, then from memory
            with store.view() as view:
                result = channel.search(Query("internet"), view, 1, frozenset())
                (hit,) = result.hits
            assert store.get(hit.memory_id).content.startswith("internet call")
