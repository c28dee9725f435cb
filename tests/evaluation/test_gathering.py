"""Many queries, many retrievers, and nothing asked twice."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from memlab import RRF, ConvexFusion, Filters, HashingEncoder, HybridRetriever, MemoryStore, RecencyRanker
from memlab.errors import EncoderUnavailable, InvalidValue
from memlab.evaluation import LabelledQuery, Qrels
from memlab.evaluation.gathering import gather_all, judged, missing_memories
from memlab.evaluation.vectors import prepared
from memlab.retrieval import KeywordChannel, PassageChannel, VectorChannel
from memlab.retrieval.candidates import Reuse

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def variants(retriever):
    classic = (KeywordChannel(), VectorChannel(), PassageChannel(scope="candidates", single_passages=True))
    return {
        "default": retriever,
        "vector": retriever.only("vector"),
        "keyword": retriever.only("keyword"),
        "classic": retriever.replace(channels=classic, fusion=RRF(one_vote=())),
        "convex": retriever.replace(fusion=ConvexFusion({"keyword": 2})),
        "shallow": retriever.replace(depth=3),
        "late": retriever.replace(recency=RecencyRanker(30, 0.5), recency_boost=True),
        "turned round": retriever.replace(channels=tuple(reversed(classic)), fusion=RRF(one_vote=())),
    }


@pytest.fixture
def queries(small):
    """Some with filters and days of their own, one that matches nothing by keyword."""
    first, second, *rest = small.queries
    return (
        replace(first, filters=Filters(project="odd")),
        replace(second, now=NOW - timedelta(days=100)),
        *rest,
        LabelledQuery("strange", "zzzz"),
    )


def test_runs_are_what_recall_gives(retriever, queries):
    systems = variants(retriever)
    gathered = gather_all(systems, queries, limit=7, now=NOW, progress=False)
    assert list(gathered.runs) == list(systems)
    assert gathered.queries == queries
    assert not gathered.interrupted
    for name, system in systems.items():
        run = gathered.runs[name]
        assert run.name == name
        assert run.query_ids == tuple(query.query_id for query in queries)
        for query in queries:
            recall = system.recall(query.text, limit=7, now=query.now or NOW, filters=query.filters)
            assert run.rankings[query.query_id] == tuple((hit.memory_id, hit.score) for hit in recall)


@dataclass(frozen=True)
class Counted:
    """The vector channel, counting."""

    name: ClassVar[str] = "vector"
    needs_vector: ClassVar[bool] = True
    looks_at_found: ClassVar[bool] = False
    asked: ClassVar[list] = []

    def search(self, query, view, depth, found):
        self.asked.append((query.text, depth))
        return VectorChannel().search(query, view, depth, found)

    def locate(self, query, view, number, found):
        return VectorChannel().locate(query, view, number, found)


def test_an_equal_channel_is_asked_once_a_query_and_depth(retriever, small):
    Counted.asked.clear()
    systems = {
        "a": retriever.replace(channels=(KeywordChannel(), Counted())),
        "b": retriever.replace(channels=(Counted(),), fusion=ConvexFusion()),
        "c": retriever.replace(channels=(Counted(), PassageChannel()), depth=5),
    }
    gather_all(systems, small.queries, progress=False)
    assert sorted(Counted.asked) == sorted((query.text, depth) for query in small.queries for depth in (50, 5))


def test_a_channel_that_looks_at_what_was_found_is_asked_again(retriever, small):
    scoped = PassageChannel(scope="candidates", single_passages=True)
    query = prepared(retriever.store, [small.queries[0].text])[0]
    reuse = Reuse()
    with retriever.store.view() as view:
        for first in (KeywordChannel(), VectorChannel(), KeywordChannel()):
            system = retriever.replace(channels=(first, scoped), depth=4)
            shared, alone = system.ask(query, view, reuse=reuse), system.ask(query, view)
            assert [result.hits for result in shared.results] == [result.hits for result in alone.results]
            assert shared.facts == alone.facts
    names = [(type(channel).__name__, depth) for channel, depth, _, _ in reuse.results]
    assert names == [("KeywordChannel", 4), ("PassageChannel", 4), ("VectorChannel", 4), ("PassageChannel", 4)]


def test_an_unknown_channel_is_taken_to_look_at_what_was_found(retriever, small):
    @dataclass(frozen=True)
    class Own:
        name: ClassVar[str] = "own"
        needs_vector: ClassVar[bool] = False
        seen: ClassVar[list] = []

        def search(self, query, view, depth, found):
            self.seen.append(len(found))
            return KeywordChannel().search(query, view, depth, found)

    systems = {
        "after": retriever.replace(channels=(KeywordChannel(), Own())),
        "alone": retriever.replace(channels=(Own(),)),
        "again": retriever.replace(channels=(Own(),), fusion=RRF(k=1)),
    }
    gather_all(systems, small.queries[:1], progress=False)
    assert len(Own.seen) == 2


def test_queries_are_encoded_once_and_in_one_batch(make_store, small, counting):
    store = make_store(encoder=counting)
    store.remember_many(small.corpus, progress=False)
    retriever = HybridRetriever(store)
    for _ in range(2):
        gather_all(variants(retriever), small.queries, now=NOW, progress=False)
    assert counting.queries == len(small.queries)
    gather_all({"k": retriever.only("keyword")}, [LabelledQuery("new", "entirely new")], progress=False)
    assert counting.queries == len(small.queries)


def test_vectors_of_another_encoder_are_not_used_again(make_store, small):
    store = make_store()
    store.remember_many(small.corpus, progress=False)
    gather_all({"v": HybridRetriever(store)}, small.queries, progress=False)
    store.reembed(HashingEncoder(32), progress=False)
    (run,) = gather_all({"v": HybridRetriever(store)}, small.queries, progress=False).runs.values()
    assert run.notes == ()
    vector = prepared(store, ["webhook"])[0].vector
    assert vector is not None
    assert vector.shape == (32,)


def test_several_stores(make_store, small):
    stores = [make_store(f"{size}.db", HashingEncoder(size)) for size in (16, 64)]
    for store in stores:
        store.remember_many(small.corpus, progress=False)
    systems = {str(number): HybridRetriever(store).only("vector") for number, store in enumerate(stores)}
    both = gather_all(systems, small.queries, progress=False)
    for name, system in systems.items():
        alone = gather_all({name: system}, small.queries, progress=False)
        assert both.runs[name] == alone.runs[name]


def test_a_channel_that_could_not_run_is_counted(tmp_path, small):
    with MemoryStore(tmp_path / "k.db", None) as store:
        store.remember_many(small.corpus, progress=False)
        retriever = HybridRetriever(store)
        run = gather_all({"d": retriever}, small.queries, progress=False).runs["d"]
        assert len(run.notes) == 2
        assert "d: the vector channel did not run for 12 queries (q00, q01, q02, q03, q04, …): " in run.notes[0]
        with pytest.raises(EncoderUnavailable, match="needs the vectors of the queries"):
            gather_all({"v": retriever.only("vector")}, small.queries, progress=False)


def test_a_blank_query_is_no_reason_to_fail(retriever):
    gathered = gather_all({"v": retriever.only("vector")}, [LabelledQuery("a", " "), LabelledQuery("b", "x")])
    assert gathered.runs["v"].rankings["a"] == ()
    assert "did not run for 1 query (a): the query is blank" in gathered.runs["v"].notes[0]


def test_an_interruption_keeps_the_finished_queries(retriever, small, monkeypatch):
    calls = []
    original = HybridRetriever.ask

    def ask(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 8:  # the second retriever of the fourth query
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(HybridRetriever, "ask", ask)
    systems = {"a": retriever, "b": retriever.only("keyword")}
    gathered = gather_all(systems, small.queries, progress=False)
    assert gathered.interrupted
    assert gathered.queries == small.queries[:3]
    assert all(run.query_ids == ("q00", "q01", "q02") for run in gathered.runs.values())
    calls[:] = [1] * 6
    with pytest.raises(KeyboardInterrupt):
        gather_all(systems, small.queries, progress=False)


def test_progress_is_reported(retriever, small):
    seen = []
    gather_all({"a": retriever}, small.queries, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12, 12)


def test_bad_arguments(retriever, small):
    with pytest.raises(InvalidValue, match="expected one or more retrievers"):
        gather_all({}, small.queries)
    with pytest.raises(InvalidValue, match="a: expected a HybridRetriever, found str"):
        gather_all({"a": "vector"}, small.queries)  # type: ignore[dict-item]
    with pytest.raises(InvalidValue, match="the retriever a has recency=None"):
        gather_all({"a": retriever.replace(recency=None)}, small.queries, recency_boost=True)
    with pytest.raises(InvalidValue, match="limit"):
        gather_all({"a": retriever}, small.queries, limit=0)


def test_judged_counts_what_it_leaves_out():
    queries = tuple(LabelledQuery(f"q{number}", "x") for number in range(8))
    qrels = Qrels.of({"q1": ["a"], "q0": {"b": 0}, "x": ["a"], "y": ["c"]})
    both = judged(queries, qrels)
    assert [query.query_id for query in both.queries] == ["q0", "q1"]
    assert both.qrels.query_ids == ("q0", "q1")
    assert both.notes == (
        "left out, having no judgment: 6 queries (q2, q3, q4, q5, q6, …)",
        "left out, being judged but not among the queries: 2 queries (x, y)",
        "no memory is relevant, which counts as 0: 1 query (q0)",
    )
    with pytest.raises(
        InvalidValue, match=r"none of the 8 queries .* has a judgment; the judgments are of 1 query \(z\)"
    ):
        judged(queries, Qrels.of({"z": ["a"]}))


def test_missing_memories(filled):
    filled.forget("m03")
    qrels = Qrels.of({"q": {"m01": 1, "m03": 1, "gone": 2, "nobody": 0}})
    assert missing_memories(filled, qrels) == (
        "judged relevant but not in memory.db, so never found: 2 memories (gone, m03)",
    )
    assert missing_memories(filled, Qrels.of({"q": ["m01"]})) == ()
    with pytest.raises(InvalidValue, match=r"none of the relevant memories \(1 memory \(gone\)\)"):
        missing_memories(filled, Qrels.of({"q": ["gone"]}))


def test_judgments_of_nothing_are_said_to_be_none(small):
    with pytest.raises(InvalidValue, match="nothing is judged yet"):
        judged(small.queries, Qrels({}))


def test_memories_without_a_vector_are_counted(retriever, small):
    """Saved while no encoder was at hand: the vectors look worse than they are, and nobody would know why."""
    store = retriever.store
    asked = {"vector": retriever.only("vector"), "keyword": retriever.only("keyword")}
    assert gather_all(asked, small.queries, progress=False).runs["vector"].notes == ()
    with MemoryStore(store.path, None) as other:
        other.remember_many([{"content": f"saved without an encoder {i}"} for i in range(3)], progress=False)
    runs = gather_all(asked, small.queries, progress=False).runs
    assert runs["vector"].notes == (
        "vector: 3 memories have no vector that can be used, so vectors cannot find what is in there",
    )
    assert runs["keyword"].notes == ()
