from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import RRF, ConvexFusion, HashingEncoder, HybridRetriever, MemoryStore, RecencyRanker, ScoreFusion
from memlab.errors import EncoderMismatch, InvalidValue
from memlab.retrieval import KeywordChannel, PassageChannel, StemChannel, VectorChannel
from memlab.retrieval.channels import Channel

from .plane import PlaneEncoder, cosine

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
WORDS = ["retry", "sync", "webhook", "cache", "postgres", "tablet", "merge", "release", "合并", "caché"]


def test_a_recall_by_hand(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.remember("retry with jitter @40", memory_id="a", created_at=NOW - timedelta(days=14))
    store.remember("cache of pages @10", memory_id="b", created_at=NOW - timedelta(days=28))
    store.remember("retry retry retry @80", memory_id="c", created_at=NOW)
    retriever = HybridRetriever(store, channels=(KeywordChannel(), VectorChannel(), PassageChannel()), fusion=RRF())
    retriever = retriever.replace(recency=RecencyRanker())
    recall = retriever.recall("retry @0", recency_boost=True, now=NOW)
    # keyword "retry" and "0": c before a (three times the word); vector: b, a, c.
    expected = {
        "a": (1 / 62 + 1 / 62) * 1.075,
        "b": 1 / 61 * 1.0375,
        "c": (1 / 61 + 1 / 63) * 1.15,
    }
    assert recall.ids == ("c", "a", "b")
    for hit in recall:
        assert hit.score == pytest.approx(expected[hit.memory_id], rel=1e-14)
    assert recall.trace.mode == "hybrid"
    assert recall.trace.note == ""
    assert recall.trace.encoder == "plane"
    assert recall.trace.searched == 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    k=st.floats(0, 100),
    weights=st.dictionaries(st.sampled_from(["keyword", "vector", "passage"]), st.floats(0, 5)),
    kind=st.sampled_from([RRF, ConvexFusion, ScoreFusion]),
    grouped=st.booleans(),
    strength=st.floats(0, 2),
    half_life=st.floats(0.1, 400),
    boost=st.booleans(),
    limit=st.integers(0, 60),
)
def test_contributions_times_recency_are_the_score_to_the_last_bit(
    hashed: MemoryStore, words: list[str], k: float, weights: dict[str, float], kind: type, grouped: bool,
    strength: float, half_life: float, boost: bool, limit: int,
) -> None:  # fmt: skip
    groups = (("vector", "passage"),) if grouped else ()
    fusion = RRF(k, weights, groups) if kind is RRF else kind(weights=weights, one_vote=groups)
    retriever = HybridRetriever(hashed, fusion=fusion, recency=RecencyRanker(half_life, strength))
    recall = retriever.recall(" ".join(words), recency_boost=boost, now=NOW, limit=limit)
    frame, parts = recall.frame, recall.contributions
    assert len(frame) == len(recall) <= limit
    for row in frame.to_dict("records"):
        own = parts[parts.memory_id == row["memory_id"]].contribution
        assert math.fsum(own) == row["fused"]
        assert row["fused"] * row["recency_factor"] == row["score"]
    for place in recall.trace.ranked:
        assert math.fsum(part.contribution for part in place.contributions) * place.recency_factor == place.score
    order = [(-place.score, place.memory_id) for place in recall.trace.ranked]
    assert order == sorted(order)
    assert [place.rank for place in recall.trace.ranked] == list(range(1, len(order) + 1))


def test_the_default_by_hand(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retries with jitter @40", "cache of pages @10", "a retry for every webhook @80")
    recall = HybridRetriever(store).recall("how does it retry webhooks? @0", recency_boost=True, now=NOW)
    keyword = recall.trace.channel("keyword")
    assert keyword is not None
    assert keyword.terms is not None
    assert keyword.terms.used == ("retry", "webhoo", "0")
    assert [hit.memory_id for hit in keyword.hits] == ["c", "a"]  # stems: retries is retry, webhook webhooks
    share = keyword.hits[1].raw_score / keyword.hits[0].raw_score
    expected = {
        "a": 0.42 * share + 0.58 * cosine(40),
        "b": 0.58 * cosine(10),
        "c": 0.42 + 0.58 * cosine(80),
    }
    for hit in recall:
        assert hit.score == pytest.approx(expected[hit.memory_id] * 1.3, rel=1e-6)
    assert len(recall) == 3


def test_the_same_recall_twice_is_the_same_trace(hashed: MemoryStore) -> None:
    retriever = HybridRetriever(hashed)
    first = retriever.recall("webhook retries", now=NOW, recency_boost=True)
    second = retriever.recall("webhook retries", now=NOW, recency_boost=True)
    assert first.trace.ranked == second.trace.ranked
    assert [r.hits for r in first.trace.channels] == [r.hits for r in second.trace.channels]


def test_ties_break_by_id(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    for memory_id in ("m3", "m1", "m2"):
        store.remember("the very same @5", memory_id=memory_id)
    # keyword ranks and vector ranks are by id as well, so the sums differ and agree with the ids' order
    assert HybridRetriever(store).recall("same @0", now=NOW).ids == ("m1", "m2", "m3")
    swapped = ConvexFusion().contributions({"keyword": [], "vector": []})
    assert swapped == {}
    scores = HybridRetriever(store, fusion=ConvexFusion()).recall("same @0", now=NOW)
    assert scores.ids == ("m1", "m2", "m3")
    assert len({hit.score for hit in scores}) == 1


@pytest.mark.parametrize("limit", [0, 1, 3, 10_000])
def test_limits(hashed: MemoryStore, limit: int) -> None:
    recall = HybridRetriever(hashed).recall("webhook", limit=limit, now=NOW)
    assert len(recall) == min(limit, len(recall.trace.ranked))
    assert list(recall.frame.columns)[:4] == ["rank", "memory_id", "score", "content"]
    assert list(recall.contributions.columns) == ["memory_id", "channel", "rank", "raw_score", "contribution"]


@pytest.mark.parametrize("limit", [-1, 2.5, "3", True])
def test_bad_limits(hashed: MemoryStore, limit: object) -> None:
    with pytest.raises(InvalidValue, match="limit"):
        HybridRetriever(hashed).recall("x", limit=limit)  # type: ignore[arg-type]


def test_an_empty_store_gives_an_empty_answer(make_store: Callable[..., MemoryStore], plane: PlaneEncoder) -> None:
    recall = HybridRetriever(make_store()).recall("anything @0", now=NOW)
    assert recall.ids == ()
    assert not recall
    assert recall.frame.empty
    assert recall.trace.searched == 0
    assert "no hits" in repr(recall)
    assert plane.encoded == 0  # no model is loaded to compare with nothing


def test_without_an_encoder_keywords_answer_and_the_trace_says_so(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter", "cache of pages", encoder=None)
    recall = HybridRetriever(store).recall("retry", now=NOW)
    assert recall.ids == ("a",)
    assert recall.trace.mode == "keyword-only"
    assert "vector and passage channels did not run" in recall.trace.note
    assert "encoder=None" in recall.trace.note
    assert recall.trace.note in repr(recall)


def test_an_encoder_that_fails_in_a_recall_leaves_keywords(
    make_store: Callable[..., MemoryStore], plane: PlaneEncoder
) -> None:
    store = make_store("retry with jitter @10", "cache of pages @0")
    plane.broken = RuntimeError("out of memory")
    recall = HybridRetriever(store).recall("retry @5", now=NOW)
    assert recall.ids == ("a",)
    assert recall.trace.mode == "keyword-only"
    assert "RuntimeError: out of memory" in recall.trace.note
    plane.broken = None
    assert HybridRetriever(store).recall("retry @0", now=NOW).trace.mode == "hybrid"


def test_an_encoder_that_gives_nan_leaves_keywords(
    make_store: Callable[..., MemoryStore], plane: PlaneEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store("retry with jitter @10")
    monkeypatch.setattr(plane, "encode_queries", lambda texts: np.full((len(texts), 2), np.nan, np.float32))
    recall = HybridRetriever(store).recall("retry @0", now=NOW)
    assert recall.trace.mode == "keyword-only"
    assert "NaN" in recall.trace.note


def test_a_store_reembedded_elsewhere_is_not_searched_with_the_old_encoder(
    make_store: Callable[..., MemoryStore], plane: PlaneEncoder
) -> None:
    store = make_store("retry with jitter @10")
    retriever = HybridRetriever(store)
    assert retriever.recall("retry @0", now=NOW).trace.mode == "hybrid"
    other = PlaneEncoder()
    other.name, other.fingerprint = "other", "other-1"  # same dimension, other weights
    with MemoryStore(store.path) as second:
        second._writer.slot._encoder = None
        assert second.reembed(other) == 1
    recall = retriever.recall("retry @0", now=NOW)
    assert recall.trace.mode == "keyword-only"
    assert "other" in recall.trace.note
    with pytest.raises(EncoderMismatch, match="reembed"):
        MemoryStore(store.path, plane)


def test_ranking_again_embeds_nothing(make_store: Callable[..., MemoryStore], plane: PlaneEncoder) -> None:
    store = make_store("retry @10", "retry @20", "cache @-1")
    retriever = HybridRetriever(store)
    candidates = retriever.gather("retry @5")
    before = plane.encoded
    ids = {
        retriever.replace(fusion=RRF(weights={"keyword": 0})).rank(candidates, now=NOW).ids,
        retriever.replace(fusion=RRF(weights={"vector": 0})).rank(candidates, now=NOW).ids,
    }
    assert ids == {("a", "c", "b"), ("a", "b")}
    assert plane.encoded == before
    assert retriever.rank(candidates, now=NOW).trace.ranked == retriever.recall("retry @5", now=NOW).trace.ranked


def test_a_query_vector_can_be_given(make_store: Callable[..., MemoryStore], plane: PlaneEncoder) -> None:
    store = make_store("x @10", "y @80")
    retriever = HybridRetriever(store)
    before = plane.encoded
    found = retriever.gather("nothing of it", query_vector=np.array([0.0, 1.0], np.float32))
    assert retriever.rank(found, now=NOW).ids == ("b", "a")
    assert plane.encoded == before
    with pytest.raises(InvalidValue, match=r"query_vector: expected vectors of shape \(1, 2\), found \(1, 3\)"):
        retriever.gather("x", query_vector=np.ones(3, np.float32))
    with pytest.raises(InvalidValue, match="query_vector: vector 0 holds NaN"):
        retriever.gather("x", query_vector=np.array([np.nan, 1], np.float32))
    longer = retriever.gather("x", query_vector=np.array([0.0, 1000.0], np.float32))
    assert longer.results[1].hits[0].raw_score <= 1.0


def test_now_is_injected_and_must_name_its_zone(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @10")
    retriever = HybridRetriever(store, recency=RecencyRanker(14, 0.15), recency_boost=True)
    later = retriever.recall("retry", now="2026-09-15T14:00:00+02:00")
    assert later[0].place.age_days == 14.0
    assert later[0].place.recency_factor == pytest.approx(1.075)
    with pytest.raises(InvalidValue, match="names no time zone"):
        retriever.recall("retry", now=datetime(2026, 9, 1))


def test_variants(hashed: MemoryStore) -> None:
    retriever = HybridRetriever(hashed)
    assert [c.name for c in retriever.only("vector").channels] == ["vector"]
    assert [c.name for c in retriever.without("vector").channels] == ["keyword", "passage"]
    assert retriever.only("vector").recall("webhook", now=NOW).trace.mode == "vector-only"
    assert retriever.only("keyword").recall("webhook", now=NOW).trace.note == ""
    changed = retriever.replace(recency=None, fusion=RRF(k=10, weights={"keyword": 2}))
    assert changed.recall("webhook", now=NOW).trace.fusion == "RRF(k=10, weights={'keyword': 2.0})"
    with pytest.raises(InvalidValue, match="recency=None"):
        changed.recall("webhook", recency_boost=True)
    assert retriever.fusion == ScoreFusion()  # the original stays as it was


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depht": 3}, "'depht' is no setting; the settings are store, channels"),
        ({"depth": 0}, "depth: expected a whole number of at least 1"),
        ({"depth": 10**12}, "depth: expected a whole number from 1 to 1000000000, found"),
        ({"channels": ()}, "one or more channels"),
        ({"channels": (KeywordChannel(), KeywordChannel())}, "different names"),
        ({"fusion": RRF(weights={"keywords": 2})}, "'keywords' is no channel"),
        ({"channels": KeywordChannel()}, "channels: expected several"),
        ({"channels": ("keyword",)}, r"channels: expected objects such as KeywordChannel\(\).*, found 'keyword'"),
        ({"channels": "keyword"}, "channels: expected objects"),
        ({"fusion": None}, r"fusion: expected objects such as RRF\(\) and ScoreFusion\(\), found None"),
        ({"fusion": RRF}, "fusion: expected objects"),
        ({"recency": 14}, r"recency: expected objects such as RecencyRanker\(\), or None, found 14"),
    ],
)
def test_bad_settings(hashed: MemoryStore, change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        HybridRetriever(hashed).replace(**change)


def test_unknown_names_list_the_known_ones(hashed: MemoryStore) -> None:
    with pytest.raises(InvalidValue, match="it has keyword, vector, passage"):
        HybridRetriever(hashed).only("vectors")
    with pytest.raises(InvalidValue, match=r"filters: expected Filters or a mapping .*, found \['p'\]"):
        HybridRetriever(hashed).recall("hello", filters=["p"])  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="the filters are project, category"):
        HybridRetriever(hashed).recall("x", projekt="p")
    with pytest.raises(InvalidValue, match="query: expected text, found int"):
        HybridRetriever(hashed).recall(3)  # type: ignore[arg-type]


def test_a_buried_fact_is_found_by_its_passage(make_store: Callable[..., MemoryStore]) -> None:
    long = "talk of one thing lies @90 here. " * 6 + "the buried fact lies @1 there."
    store = make_store(long, *[f"other @{angle}" for angle in range(20, 30)])
    vector_only = HybridRetriever(store).only("vector").recall("@0", now=NOW, limit=11)
    assert vector_only.ids[-1] == "a"
    hybrid = HybridRetriever(store, channels=(VectorChannel(), PassageChannel())).recall("@0", now=NOW)
    assert hybrid.ids[0] == "a"
    start, end = hybrid[0].passage or (0, 0)
    assert "buried fact" in hybrid[0].content[start:end]


def test_recall_reads_only(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @10")
    statements: list[str] = []
    store.db.conn.set_trace_callback(statements.append)
    HybridRetriever(store).recall("retry @0", now=NOW)
    store.db.conn.set_trace_callback(None)
    assert statements
    # FTS5 asks for `PRAGMA data_version` by itself, behind a comment mark.
    told = {statement.lstrip("- ") for statement in statements if "data_version" not in statement}
    told.discard("PRAGMA user_version")  # without a value it reads
    assert {statement.split()[0].upper() for statement in told} <= {"SELECT", "BEGIN", "ROLLBACK"}


def test_a_purged_memory_takes_no_place_when_ranking_again(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @1", "retry @2", "retry @3")
    retriever = HybridRetriever(store)
    candidates = retriever.gather("retry @0")
    store.forget("a")
    recall = retriever.rank(candidates, limit=1, now=NOW)
    assert recall.ids == ("b",)
    assert recall[0].rank == 1
    assert [place.memory_id for place in recall.trace.ranked] == ["b", "c"]
    store.purge("a")
    assert retriever.rank(candidates, limit=2, now=NOW).ids == ("b", "c")


def test_the_first_recall_after_a_reembedding_elsewhere_is_hybrid(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "x.db", HashingEncoder(64))
    store.remember("retry with jitter")
    store.close()
    with MemoryStore(tmp_path / "x.db") as reader, MemoryStore(tmp_path / "x.db") as other:
        retriever = HybridRetriever(reader)
        assert retriever.recall("retry", now=NOW).trace.encoder == "hashing-64"
        other.reembed(HashingEncoder(32))
        recall = retriever.recall("retry", now=NOW)
        assert (recall.trace.mode, recall.trace.encoder, recall.trace.note) == ("hybrid", "hashing-32", "")


def test_numbers_of_numpy_are_numbers(hashed: MemoryStore) -> None:
    seven: Any = np.int64(7)
    ten: Any = np.int64(10)
    two: Any = np.float32(2)
    retriever = HybridRetriever(hashed, depth=seven, fusion=RRF(k=ten, weights={"keyword": two}))
    recall = retriever.recall("webhook", limit=seven - 4, now=NOW)
    assert len(recall) == 3
    assert recall.trace.fusion == "RRF(k=10, weights={'keyword': 2.0})"
    for depth in (2**63, 2**80):
        with pytest.raises(InvalidValue, match="depth"):
            retriever.replace(depth=depth)


def test_a_recall_inside_an_older_look_sees_what_that_look_sees(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @10")
    retriever = HybridRetriever(store)
    with store.view():
        writer = threading.Thread(target=lambda: (store.remember("retry @1", memory_id="new"), store.vectors()))
        writer.start()
        writer.join()
        assert retriever.recall("retry @0", now=NOW).ids == ("a",)
    assert set(retriever.recall("retry @5", now=NOW).ids) == {"new", "a"}


def test_notes_mention_the_filters(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry @10")
    channels = HybridRetriever(store).recall("retry @0", now=NOW, project="p").trace.channels
    assert [channel.note for channel in channels] == [
        "no memory that passes the filters has any of the terms",
        "no memory that passes the filters has a vector to compare",
        "no memory that passes the filters has several passages",
    ]


def test_the_timings_cover_the_recall(hashed: MemoryStore) -> None:
    timings = HybridRetriever(hashed).recall("webhook", now=NOW).trace.timings
    assert set(timings) == {"encode", "open", "keyword", "vector", "passage", "facts", "look up", "rank", "fetch"}
    assert all(value >= 0 for value in timings.values())


@pytest.mark.parametrize("channel", [KeywordChannel(), StemChannel(candidates=1)])
def test_filters_do_not_repeat_the_search_for_every_memory(hashed: MemoryStore, channel: Channel) -> None:
    """FTS5 must not be given the rowid as a constraint: it would run the MATCH once a memory."""
    statements: list[str] = []
    connection = hashed.db.conn
    connection.set_trace_callback(statements.append)
    retriever = HybridRetriever(hashed, channels=(channel,), depth=1)
    retriever.recall("decision", now=NOW, min_importance=3)
    connection.set_trace_callback(None)
    search = next(statement for statement in statements if "MATCH" in statement and "bm25" in statement)
    plan = " ".join(row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + search))
    assert "VIRTUAL TABLE INDEX" in plan
    assert "=" not in plan.split("VIRTUAL TABLE INDEX", 1)[1].split("SCAN")[0].split("LIST")[0]


def test_scores_are_looked_up_beyond_the_depth(make_store: Callable[..., MemoryStore]) -> None:
    # One candidate a channel: a has the words, b lies nearest; c has neither.
    store = make_store("retry with jitter @10", "cache of many retry pages @0", "nothing of it @180")
    retriever = HybridRetriever(store, fusion=ScoreFusion({"keyword": 0.5, "vector": 0.5}), depth=1)
    recall = retriever.recall("retry jitter @0", now=NOW)
    assert recall.ids == ("a", "b")
    parts = {(hit.memory_id, part.channel): part for hit in recall for part in hit.place.contributions}
    assert parts["a", "vector"].rank is None
    assert parts["a", "vector"].contribution == pytest.approx(0.5 * cosine(10), rel=1e-6)
    assert parts["a", "keyword"].contribution == 0.5
    assert parts["b", "keyword"].rank is None
    assert 0 < parts["b", "keyword"].contribution < 0.5
    assert parts["b", "vector"].contribution == pytest.approx(0.5, rel=1e-6)
    assert "beyond the depth" in recall.explain("a")
    assert recall.contributions["rank"].isna().sum() == 2
    # Looked up is not found: ranks are given to the first of each list alone, and RRF counts nothing else.
    ranks = retriever.replace(fusion=RRF()).recall("retry jitter @0", now=NOW)
    assert [len(hit.place.contributions) for hit in ranks] == [1, 1]


def test_candidates_of_a_fusion_of_ranks_are_completed_when_scores_are_wanted(
    make_store: Callable[..., MemoryStore], plane: PlaneEncoder
) -> None:
    store = make_store("retry with jitter @60", "cache of retry pages and many other words @0")
    ranks, scores = (HybridRetriever(store, fusion=fusion, depth=1) for fusion in (RRF(), ScoreFusion()))
    candidates = ranks.gather("retry jitter @0")
    encoded = plane.encoded
    late = scores.rank(candidates, now=NOW)
    assert late.trace.ranked == scores.recall("retry jitter @0", now=NOW).trace.ranked
    assert plane.encoded == encoded  # neither embeds: the vector of the query is among the last ones


def test_what_is_looked_up_respects_the_filters(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @60", "cache of retry pages @0", "retry @0")
    store.update("c", project="other")
    store.update("a", project="mine")
    store.update("b", project="mine")
    retriever = HybridRetriever(store, fusion=ScoreFusion(), depth=1)
    assert set(retriever.recall("retry jitter @0", project="mine", now=NOW).ids) == {"a", "b"}


def test_late_scores_are_not_mixed_with_another_encoders(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @10", "cache of retry pages @0", "a retry @80")
    scores = HybridRetriever(store, fusion=ScoreFusion(), depth=1)
    candidates = scores.replace(fusion=RRF()).gather("retry @0")
    store.reembed(HashingEncoder(16), progress=False)
    late = scores.rank(candidates, now=NOW)
    assert "nothing was looked up beyond the depth" in late.trace.note
    vectors = [part for row in late.trace.ranked for part in row.contributions if part.channel == "vector"]
    assert [part.rank for part in vectors] == [1]  # of the time of the search, and none beside it


def test_candidates_are_completed_by_name(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @10", "cache of retry pages @0")
    ranks = HybridRetriever(store, fusion=RRF(), depth=1)
    scores = ranks.replace(fusion=ScoreFusion(), channels=ranks.channels[::-1])
    candidates = ranks.gather("retry jitter @0")
    late = scores.rank(candidates, now=NOW)
    assert late.trace.ranked == ranks.replace(fusion=ScoreFusion()).recall("retry jitter @0", now=NOW).trace.ranked
    with pytest.raises(InvalidValue, match="expected those of the channels vector, found one of keyword"):
        scores.only("vector").rank(candidates)


def test_single_passages_are_looked_up_by_their_only_vector(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store("retry with jitter @10", "cache of retry pages @0")
    channels = (KeywordChannel(), PassageChannel(single_passages=True))
    found = HybridRetriever(store, channels=channels, fusion=ScoreFusion(one_vote=()), depth=1).recall("jitter @0")
    passages = {row.memory_id: part for row in found.trace.ranked if (part := row.of("passage"))}
    assert set(passages) == {"a", "b"}
    assert passages["a"].raw_score == pytest.approx(cosine(10), rel=1e-6)


def test_weights_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"weights: expected \{channel"):
        RRF(weights=[1, 2])  # type: ignore[arg-type]
