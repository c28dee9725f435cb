from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memlab import Filters, HybridRetriever, MemoryStore, evaluate
from memlab.errors import InvalidValue
from memlab.retrieval import KeywordChannel, PassageChannel, StemChannel, VectorChannel
from memlab.retrieval.channels import Channel, ChannelResult, Query

from .plane import cosine

NOTHING: frozenset[int] = frozenset()
# Six words a passage at the most (the plane encoder's limit is 8 tokens).
LONG = "first part of it lies @{0} here. second part of it lies @{1} there."


def ask(store: MemoryStore, channel: Channel, text: str, depth: int = 50, **filters: object) -> ChannelResult:
    vector = store.encode_query(text) if channel.needs_vector else None
    with store.view(Filters.of(filters)) as view:
        return channel.search(Query(text, vector), view, depth, NOTHING)


def listed(result: ChannelResult) -> list[tuple[str, int | None]]:
    return [(hit.memory_id, hit.rank) for hit in result.hits]


def test_vector_ranks_by_exact_cosine_and_ties_by_id(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("@50", "@20 x", "@20 y", "@-20 z", "@5")
    result = ask(store, VectorChannel(), "@0")
    # b, c and d lie 20 degrees away, d on the other side; cos is even but float32 sines are not involved in it.
    assert [row[0] for row in listed(result)] == ["e", "b", "c", "d", "a"]
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4, 5]
    assert result.hits[0].raw_score == pytest.approx(cosine(5), abs=1e-7)
    assert listed(ask(store, VectorChannel(), "@0", depth=2)) == [("e", 1), ("b", 2)]


def test_vector_equals_brute_force_on_the_sample(hashed: MemoryStore) -> None:
    ids, matrix = hashed.vectors()
    for text in ("webhook retries", "SQLITE_BUSY on Android", "合并 冲突"):
        query = hashed.encode_query(text).astype(np.float64)
        cosines = (matrix.astype(np.float64) * query).sum(axis=1)
        expected = sorted(zip(-cosines, ids, strict=True))[:30]
        assert [hit.memory_id for hit in ask(hashed, VectorChannel(), text, depth=30).hits] == [i for _, i in expected]


def test_filters_act_before_the_top_is_taken(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(*[f"near word @{i}" for i in range(20)])
    store.remember("far word @90", memory_id="z", project="p", tags=["t"])
    for channel in (VectorChannel(), KeywordChannel()):
        assert listed(ask(store, channel, "word @0", depth=3, project="p")) == [("z", 1)]
        assert listed(ask(store, channel, "word @0", depth=3, project="none")) == []


def test_trashed_memories_use_up_no_place(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(*[f"word @{i}" for i in range(10)])
    for memory_id in "abcdefgh":
        store.forget(memory_id)
    for channel in (VectorChannel(), KeywordChannel()):
        assert sorted(row[0] for row in listed(ask(store, channel, "word @0", depth=2))) == ["i", "j"]


def test_keyword_ties_are_ordered_by_id_and_cut_afterwards(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    for memory_id in ("m9", "m1", "m5", "m3", "m7"):
        store.remember("same words exactly", memory_id=memory_id)
    assert listed(ask(store, KeywordChannel(), "words", depth=3)) == [("m1", 1), ("m3", 2), ("m5", 3)]


def test_keyword_ties_beyond_the_first_fetch(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.remember_many(
        [{"memory_id": f"m{999 - i}", "content": "same words exactly"} for i in range(150)], progress=False
    )
    assert listed(ask(store, KeywordChannel(), "words", depth=2)) == [("m850", 1), ("m851", 2)]


def test_keyword_column_weights_change_the_order(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.remember("postgres is mentioned here", memory_id="content")
    store.remember("something else is said", memory_id="tag", tags=["postgres"])
    first = ask(store, KeywordChannel(weights={"tags": 10.0, "content": 0.1}), "postgres").hits[0]
    assert first.memory_id == "tag"
    assert ask(store, KeywordChannel(weights={"tags": 0.1, "content": 10}), "postgres").hits[0].memory_id == "content"


@pytest.mark.parametrize("weights", [{"id": 1.0}, {"content": -1}, {"content": float("nan")}, {"content": "2"}])
def test_bad_column_weights(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="weights"):
        KeywordChannel(weights=weights)


def test_accents_and_case_do_not_matter_to_keywords(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("La CACHÉ caducó")
    assert listed(ask(store, KeywordChannel(), "cache")) == [("a", 1)]


def test_passage_ranks_count_memories_not_passages(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(LONG.format(80, 2), "@1", LONG.format(3, 4), "@60")
    assert [len(store.passages(memory_id)) for memory_id in "abcd"] == [2, 1, 2, 1]
    result = ask(store, PassageChannel(), "@0")
    # By best passage: b at 1 degree, a at 2, c at 3 (its second passage at 4 takes no place), d at 60.
    assert listed(result) == [("a", 2), ("c", 3)]
    assert [hit.passage for hit in result.hits] == [1, 0]
    assert result.hits[0].raw_score == pytest.approx(cosine(2), abs=1e-7)
    everyone = ask(store, PassageChannel(single_passages=True), "@0")
    assert listed(everyone) == [("b", 1), ("a", 2), ("c", 3), ("d", 4)]


def test_many_passages_of_one_memory_push_nobody_out(make_store: Callable[..., MemoryStore]) -> None:
    long = " ".join(f"passage number {i} of many lies @0 here." for i in range(40))
    store = make_store(long, LONG.format(70, 10), LONG.format(20, 70))
    assert len(store.passages("a")) >= 40
    assert listed(ask(store, PassageChannel(), "@0", depth=3)) == [("a", 1), ("b", 2), ("c", 3)]


def test_a_memory_of_one_passage_casts_no_passage_vote(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("@1", "@2")
    result = ask(store, PassageChannel(), "@0")
    assert result.hits == ()
    assert result.note == "no memory has several passages"


def test_passage_scope_candidates_looks_only_at_what_was_found(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(LONG.format(80, 2), LONG.format(85, 1))
    channel = PassageChannel(scope="candidates")
    vector = store.encode_query("@0")
    with store.view() as view:
        number = view.number("a")
        assert number is not None
        result = channel.search(Query("@0", vector), view, 50, frozenset([number]))
    assert listed(result) == [("a", 1)]
    with pytest.raises(InvalidValue, match="scope"):
        PassageChannel(scope="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "channel",
    [KeywordChannel(), StemChannel(), VectorChannel(), PassageChannel(), PassageChannel(single_passages=True)],
)
def test_locate_agrees_with_a_search_of_everything(hashed: MemoryStore, channel: Channel) -> None:
    text = "why did the sync lose edits on android"
    vector = hashed.encode_query(text)
    with hashed.view() as view:
        query = Query(text, vector)
        everything = channel.search(query, view, 1000, NOTHING).hits
        assert len(everything) > 15
        for hit in everything[::7]:
            located = channel.locate(query, view, hit.number, NOTHING)
            assert not isinstance(located, str)
            assert located[0] == hit.rank
            assert located[1] == pytest.approx(hit.raw_score, abs=1e-12)


def test_the_filtered_scan_equals_brute_force(hashed: MemoryStore) -> None:
    ids, matrix = hashed.vectors()
    allowed = {memory.memory_id for memory in hashed.find(project="tidewater")}
    query = hashed.encode_query("merge conflict")
    cosines = (matrix.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    expected = sorted((-c, i) for c, i in zip(cosines, ids, strict=True) if i in allowed)[:20]
    result = ask(hashed, VectorChannel(), "merge conflict", depth=20, project="tidewater")
    assert [hit.memory_id for hit in result.hits] == [i for _, i in expected]


# -- stems -------------------------------------------------------------------------------------------------------------


def found(store: MemoryStore, channel: Channel, text: str) -> list[str]:
    return [hit.memory_id for hit in ask(store, channel, text).hits]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Retries are capped at five.", "retry cap"),
        ("La migración de la base de datos", "migraciones"),
        ("Call getUserName before the sync.", "user name"),
        ("Call getUserName before the sync.", "getUserName"),
        ("max_retry_count is read by foo.bar-baz", "retry count"),
        ("max_retry_count is read by foo.bar-baz", "foo.bar-baz"),
        ("数据库连接池配置", "连接池"),
        ("データベース接続の設定", "接続"),
        ("데이터베이스를 다시 연결", "데이터베이스"),
    ],
)
def test_stems_parts_and_pairs_of_characters_are_found(
    make_store: Callable[..., MemoryStore], content: str, query: str
) -> None:
    store = make_store(content, "something else altogether", encoder=None)
    assert found(store, StemChannel(), query) == ["a"]


def test_neighbours_come_first(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("a queue that is dead, a letter of it", "the dead letter queue of it, quite", "x", encoder=None)
    plain = ask(store, StemChannel(pairs=0, words=0), "dead letter queue")
    assert plain.hits[0].raw_score == pytest.approx(plain.hits[1].raw_score, rel=0.2)
    lifted = ask(store, StemChannel(pairs=2, words=0), "dead letter queue")
    assert [hit.memory_id for hit in lifted.hits] == ["b", "a"]
    assert lifted.hits[0].raw_score > plain.hits[0].raw_score


def test_the_word_as_it_stands_comes_first(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("the configure step", "the configuration step", "others", "more of others", encoder=None)
    for query, first in (("configure", "a"), ("configuration", "b")):
        equal = ask(store, StemChannel(words=0), query).hits
        assert equal[0].raw_score == equal[1].raw_score
        assert found(store, StemChannel(words=0.2), query)[0] == first


def test_a_query_of_stop_words_alone_is_looked_for_word_by_word(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("to be or not to be", "something else", encoder=None)
    result = ask(store, StemChannel(), "to be or not to be")
    assert listed(result) == [("a", 1)]
    assert result.terms is not None
    assert not result.terms.stemmed


def test_scores_of_some_memories_are_those_of_the_search(hashed: MemoryStore) -> None:
    text = "how often does a webhook delivery get retried"
    for channel in (KeywordChannel(), StemChannel(), VectorChannel()):
        vector = hashed.encode_query(text) if channel.needs_vector else None
        with hashed.view() as view:
            query = Query(text, vector)
            hits = channel.search(query, view, 40, NOTHING).hits[10:20]
            scores = channel.score(query, view, [hit.number for hit in hits])
        assert set(scores) == {hit.number for hit in hits}
        for hit in hits:
            assert scores[hit.number][0] == pytest.approx(hit.raw_score, rel=1e-12)
        with hashed.view() as view:
            assert channel.score(query, view, []) == {}


def test_scores_of_passages_are_those_of_the_search(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store(LONG.format(10, 50), LONG.format(80, 30), "short @0")
    query = Query("@0", store.encode_query("@0"))
    with store.view() as view:
        hits = PassageChannel().search(query, view, 10, NOTHING).hits
        scores = PassageChannel().score(query, view, [1, 2, 3])
    assert scores == {hit.number: (hit.raw_score, hit.passage) for hit in hits}
    assert len(scores) == 2  # the short one is no passage


def test_a_store_whose_stems_cannot_be_written_is_searched_word_by_word(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retries with jitter", "a retry of it", encoder=None)
    with MemoryStore(store.path, None, read_only=True) as other:
        store.db.execute("INSERT INTO memories (id, content) VALUES ('x', 'one more retry')")
        store.db.conn.commit()
        result = ask(other, StemChannel(), "retry")
        assert {hit.memory_id for hit in result.hits} == {"b", "x"}
        assert "index of stems is out of date" in result.note
        retriever = HybridRetriever(other)
        assert "index of stems is out of date" in retriever.recall("retry").trace.note
        measured = evaluate(retriever, {"q": "retry"}, {"q": {"a": 1}}, "R@5")
        assert any("index of stems is out of date" in note for note in measured.notes)
        assert "no letters" in ask(other, StemChannel(), "!?").note
    assert set(found(store, StemChannel(), "retry")) == {"a", "b", "x"}


@pytest.mark.parametrize("options", [{"pairs": -1}, {"words": float("nan")}, {"max_terms": 0}])
def test_bad_settings_of_stems(options: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(options))):
        StemChannel(**options)  # type: ignore[arg-type]


def test_words_are_parted_where_the_joiners_say(hashed: MemoryStore) -> None:
    with hashed.view() as view:
        query = Query("webhook-retries")
        together = KeywordChannel().search(query, view, 50, frozenset())
        apart = KeywordChannel(joiners="_").search(query, view, 50, frozenset())
    assert together.terms is not None
    assert together.terms.used == ("webhook-retries",)
    assert apart.terms is not None
    assert apart.terms.used == ("webhook", "retries")
    assert {hit.number for hit in together.hits} <= {hit.number for hit in apart.hits}
    assert apart.hits
