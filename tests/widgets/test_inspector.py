"""The inspector as an object: what it computes, what it tells its view, what can be read from it and set on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import memlab
from memlab import RRF, ConvexFusion, Filters, HashingEncoder, HybridRetriever, RecencyRanker, ScoreFusion
from memlab.errors import InvalidValue, StoreClosed, UnknownMemory
from memlab.retrieval.neighbours import neighbours
from memlab.widgets.inspector import Inspector, Settings, inspect
from memlab.widgets.inspector.views import palette, pieces
from memlab.widgets.inspector.whynot import changes

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
QUERY = "how do failing webhooks retry?"
HOSTILE = "<script>window.hacked=1</script> webhooks <img src=x onerror=alert(1)> \x1b[31mred\x1b[0m \u202eevil"
NOTES = {
    "m-jitter": "Webhooks retry with full jitter, capped at 5 min.",
    "m-linear": "Linear backoff made all failing merchants retry in the same second.",
    "m-hmac": "Webhook signatures use HMAC with a rotating secret.",
    "m-index": "The search index is rebuilt at night.",
    "m-hostile": HOSTILE,
    "m-long": "Introduction to payments. " * 120
    + "Failing webhooks retry for a day, then stop. "
    + "Annex of the notes. " * 120,
}


class Counting(HashingEncoder):
    queries = 0

    def encode_queries(self, texts):
        Counting.queries += len(texts)
        return super().encode_queries(texts)


@pytest.fixture
def store(make_store):
    store = make_store(encoder=Counting(128))
    for number, (memory_id, content) in enumerate(NOTES.items()):
        store.remember(
            content,
            memory_id=memory_id,
            project=("billing", "search")[number % 2],
            tags=["note", f"t{number}"],
            source="told" if number else None,
            created_at=f"2026-0{number + 1}-01T00:00:00Z",
        )
    return store


@pytest.fixture
def retriever(store):
    return HybridRetriever(store)


@pytest.fixture
def inspector(retriever):
    return inspect(retriever, QUERY, now=NOW)


def ask(inspector, kind="recall", **message):
    """What the view gets to see: JSON, to the last value."""
    return json.loads(json.dumps(inspector.answer(kind, message).body, allow_nan=False))


def turned(inspector, query=QUERY, **changed):
    knobs = ask(inspector, "hello")["state"]["knobs"]["a"]
    return ask(inspector, query=query, knobs={"a": {**knobs, **changed}})


# -- recall and settings ---------------------------------------------------------------------------------------------


def test_what_is_shown_is_the_retrievers_own_recall(inspector, retriever):
    own = retriever.recall(QUERY, limit=10, now=NOW)
    assert inspector.recall.ids == own.ids
    assert inspector.recall.trace.ranked == own.trace.ranked
    assert inspector.recall.trace.now == own.trace.now
    shown = turned(inspector)["a"]
    assert [hit["id"] for hit in shown["hits"]] == list(own.ids)
    assert [hit["score"] for hit in shown["hits"]] == [hit.score for hit in own]
    assert shown["ranked"] == len(own.trace.ranked)
    assert shown["top"] == own[0].score


@pytest.mark.parametrize(
    ("changed", "same_as"),
    [
        (
            {"fusion": "rrf", "k": 3, "weights": {"keyword": 2, "vector": 1, "passage": 1}},
            {"fusion": RRF(3, {"keyword": 2})},
        ),
        ({"fusion": "convex", "weights": {"keyword": 1, "vector": 1, "passage": 1}}, {"fusion": ConvexFusion()}),
        (
            {"weights": {"keyword": 0, "vector": 1, "passage": 1}},
            {"fusion": ScoreFusion({"keyword": 0, "vector": 1, "passage": 1})},
        ),
        ({"one_vote": False}, {"fusion": ScoreFusion(one_vote=())}),
        ({"depth": 2}, {"depth": 2}),
        ({"boost": True, "half_life": 7, "strength": 0.9}, {"recency": RecencyRanker(7, 0.9), "recency_boost": True}),
    ],
)
def test_every_knob_does_what_replace_does(inspector, retriever, changed, same_as):
    shown = turned(inspector, **changed)["a"]
    wanted = retriever.replace(**same_as).recall(QUERY, limit=10, now=NOW)
    assert [(hit["id"], hit["score"]) for hit in shown["hits"]] == [(hit.memory_id, hit.score) for hit in wanted]
    assert inspector.recall.trace.fusion == wanted.trace.fusion
    assert inspector.retriever.recall(QUERY, now=NOW).ids == wanted.ids


def test_limit_filters_and_now_are_the_recalls(inspector, retriever):
    shown = turned(inspector, limit=2, filters={"project": ["billing"]}, boost=True, now="2026-03-01T00:00:00.000Z")[
        "a"
    ]
    wanted = retriever.recall(QUERY, limit=2, project="billing", recency_boost=True, now="2026-03-01T00:00:00Z")
    assert [hit["id"] for hit in shown["hits"]] == list(wanted.ids)
    assert shown["now"] == "2026-03-01T00:00:00.000Z"
    assert inspector.settings.filters == Filters(project="billing")


def test_a_knob_embeds_nothing_and_asks_no_channel(inspector):
    turned(inspector)
    queries, gathered = Counting.queries, inspector._bench.gathered
    for changed in (
        {"fusion": "rrf"},
        {"fusion": "convex", "weights": {"keyword": 3, "vector": 1, "passage": 1}},
        {"boost": True, "half_life": 3},
        {"limit": 3, "now": "2026-01-01T00:00:00.000Z"},
    ):
        turned(inspector, **changed)
    assert (Counting.queries, inspector._bench.gathered) == (queries, gathered)
    turned(inspector, depth=3)
    turned(inspector, filters={"project": ["billing"]})
    assert (Counting.queries, inspector._bench.gathered) == (queries, gathered + 2)
    turned(inspector, depth=3)
    assert inspector._bench.gathered == gathered + 2, "the way back is known"
    turned(inspector, query="night")
    assert (Counting.queries, inspector._bench.gathered) == (queries + 1, gathered + 3)


def test_what_is_remembered_meanwhile_is_found(inspector, store):
    before = turned(inspector)["a"]["searched"]
    store.remember(QUERY, memory_id="m-new")
    shown = turned(inspector)["a"]
    assert shown["hits"][0]["id"] == "m-new"
    assert shown["searched"] == before + 1


def test_settings_that_did_not_move_stay_the_very_objects(retriever):
    fusion = ScoreFusion({"keyword": 0.4}, one_vote=(("vector", "passage"), ("keyword",)))
    inspector = inspect(retriever.replace(fusion=fusion, recency=RecencyRanker(20, 0.1)), QUERY)
    turned(inspector, limit=3)
    assert inspector.settings.fusion is fusion
    assert inspector.settings.recency == RecencyRanker(20, 0.1)
    knobs = ask(inspector, "hello")["state"]["knobs"]["a"]
    turned(inspector, weights={**knobs["weights"], "keyword": 0.5})
    assert inspector.settings.fusion.one_vote == fusion.one_vote


def test_a_fusion_of_ones_own_is_kept_and_named(retriever):
    class Own(RRF):
        pass

    inspector = inspect(retriever.replace(fusion=Own(k=5)), QUERY)
    assert ask(inspector, "hello")["state"]["knobs"]["a"]["fusion"] == "own"
    turned(inspector, limit=3)
    assert type(inspector.settings.fusion) is Own
    turned(inspector, fusion="score", weights={"keyword": 1, "vector": 1, "passage": 1})
    assert type(inspector.settings.fusion) is ScoreFusion  # type: ignore[comparison-overlap]


def test_a_retriever_without_recency_can_have_it(retriever):
    inspector = inspect(retriever.replace(recency=None), QUERY, now=NOW)
    assert not inspector.settings.recency_boost
    assert inspector.retriever.recency is None
    assert turned(inspector, boost=True)["a"]["recency"].startswith("RecencyRanker")


def test_channels_are_those_of_the_retriever(retriever):
    hello = ask(inspect(retriever.only("keyword"), QUERY), "hello")
    assert hello["channels"] == ["keyword"]
    assert [look["name"] for look in hello["palette"]] == ["keyword", "recency"]


# -- from Python -----------------------------------------------------------------------------------------------------


def test_set_from_python(inspector):
    inspector.query = "night"
    assert inspector.recall.ids[0] == "m-index"
    inspector.update(query=QUERY, fusion="rrf", k=7, weights={"keyword": 3}, depth=4, limit=2)
    assert inspector.settings.fusion == RRF(7, {"keyword": 3})
    assert (inspector.settings.depth, len(inspector.recall)) == (4, 2)
    inspector.update(half_life_days=3, recency_boost=True)
    assert inspector.settings.recency == RecencyRanker(3, 0.3)
    inspector.settings = {"limit": 1}
    assert len(inspector.recall) == 1
    inspector.settings = Settings(fusion=ConvexFusion(), limit=3)
    assert inspector.settings.now is None
    assert inspector.recall.trace.fusion == "ConvexFusion()"
    assert ask(inspector, "hello")["state"]["knobs"]["a"]["fusion"] == "convex"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nonsense": 1}, "'nonsense' is no setting; the settings are fusion, recency"),
        ({"k": 3}, "k: ScoreFusion() has none"),
        ({"fusion": "best"}, "expected a fusion or one of score, rrf, convex"),
        ({"depth": 0}, "depth"),
        ({"half_life_days": 0}, "half_life_days"),
        ({"now": "2026-01-01"}, "names no time zone"),
        ({"query": 3}, "query: expected text"),
        ({"recency": 3}, "recency: expected a memlab.RecencyRanker, found int"),
        ({"fusion": 3}, "fusion: expected a fusion or one of score, rrf, convex, found int"),
        ({"weights": 3}, "weights: expected {channel: weight}, found int"),
    ],
)
def test_a_wrong_setting_changes_nothing(inspector, wrong, words):
    before = inspector.query, inspector.settings
    with pytest.raises(InvalidValue, match=None) as caught:
        inspector.update(**wrong)
    assert words in str(caught.value)
    assert (inspector.query, inspector.settings) == before
    assert ask(inspector, "hello")["state"]["results"]["a"]["hits"]


@pytest.mark.parametrize("name", ["settings", "settings_b"])
def test_settings_that_are_none_are_refused(inspector, name):
    with pytest.raises(InvalidValue, match=r"settings: expected Settings or \{name: value\}, found int"):
        setattr(inspector, name, 3)
    assert inspector.settings_b is None


def test_a_knob_that_is_wrong_is_refused_and_the_recall_stays(inspector):
    ids = inspector.recall.ids
    with pytest.raises(InvalidValue):
        turned(inspector, depth=0)
    assert inspector.settings.depth == 50
    assert inspector.recall.ids == ids


def test_code_repeats_the_recall(inspector, retriever):
    inspector.update(
        fusion="rrf", k=7, depth=9, limit=2, recency_boost=True, half_life_days=5, filters={"tags": ["note", "t1"]}
    )
    made = {"RRF": RRF, "RecencyRanker": RecencyRanker, "retriever": retriever}
    again = eval(inspector.code, made)
    assert (again.trace.filters, again.trace.depth) == (inspector.settings.filters, 9)
    assert (again.trace.fusion, again.trace.recency) == ("RRF(k=7)", "RecencyRanker(half_life_days=5, strength=0.3)")
    assert [(hit.memory_id, hit.score) for hit in again] == [(hit.memory_id, hit.score) for hit in inspector.recall]


def test_selected_is_read_and_set(inspector, store):
    assert inspector.selected is None
    assert inspector.hit is None
    ask(inspector, "open", id="m-hmac")
    assert inspector.selected == "m-hmac"
    assert inspector.hit.memory_id == "m-hmac"  # type: ignore[attr-defined]
    inspector.selected = "m-index"
    assert ask(inspector, "hello")["state"]["selected"] == "m-index"
    with pytest.raises(UnknownMemory):
        inspector.selected = "nobody"
    ask(inspector, "close")
    assert inspector.selected is None


def test_two_sides(inspector):
    assert inspector.recall_b is None
    with pytest.raises(InvalidValue, match="no side B"):
        _ = inspector.moves
    inspector.settings_b = {"weights": {"keyword": 0}}
    knobs = ask(inspector, "hello")["state"]["knobs"]
    results = ask(inspector, query=QUERY, knobs=knobs)
    assert [hit["id"] for hit in results["b"]["hits"]] == list(inspector.recall_b.ids)  # type: ignore[attr-defined]
    assert results["differences"].startswith("fusion=ScoreFusion(weights={'keyword': 0.0")
    moves = {row.memory_id: (row.rank_a, row.rank_b) for row in inspector.moves.itertuples()}
    assert set(moves) == {*inspector.recall.ids, *inspector.recall_b.ids}  # type: ignore[attr-defined]
    for memory_id, (_, rank_b) in moves.items():
        assert rank_b == inspector.recall_b.trace.place(memory_id).rank  # type: ignore[attr-defined]
    ask(inspector, query=QUERY, knobs={"a": knobs["a"]})
    assert inspector.settings_b is None


# -- opened hits -----------------------------------------------------------------------------------------------------


def test_an_opened_hit_has_its_sum_and_its_ranks(inspector):
    hit = inspector.recall[0]
    found = ask(inspector, "open", id=hit.memory_id)
    assert found["sum"]["score"] == hit.score
    assert sum(part["value"] for part in found["sum"]["parts"]) == pytest.approx(found["sum"]["fused"])
    assert found["sentence"] == inspector.recall.explain(hit.memory_id)
    ranks = {row["channel"]: row for row in found["ranks"]}
    assert list(ranks) == ["keyword", "vector", "passage"]
    for part in hit.place.contributions:
        if part.rank is not None:
            assert ranks[part.channel]["rank"] == part.rank
            assert ranks[part.channel]["raw"] == part.raw_score


def test_ranks_beyond_the_depth_are_worked_out(inspector):
    inspector.update(depth=1)
    last = inspector.recall[-1]
    ranks = {row["channel"]: row for row in ask(inspector, "open", id=last.memory_id)["ranks"]}
    deep = inspector.base.recall(QUERY, now=NOW).trace
    expected = {hit.memory_id: hit.rank for hit in deep.channel("vector").hits}
    assert ranks["vector"]["rank"] == expected[last.memory_id]
    assert ranks["vector"]["beyond"] == (ranks["vector"]["rank"] > 1)


def test_the_passage_that_matched_is_picked_out(inspector):
    found = ask(inspector, "open", id="m-long")
    assert found["passages"] > 1
    picked = "".join(piece["text"] for piece in found["text"] if piece.get("passage"))
    start, end = inspector.hit.passage
    assert picked == NOTES["m-long"][start:end]
    assert 0 < len(picked) < len(NOTES["m-long"]) / 2
    assert "".join(piece["text"] for piece in found["text"]) == NOTES["m-long"]
    assert {piece["text"] for piece in found["text"] if piece.get("mark")} >= {"Failing", "webhooks", "retry"}


def test_a_pasted_book_is_shown_around_what_matched(store, retriever):
    page = " ".join(f"zebra{number} stands{number}" for number in range(150))
    store.remember(f"{'One word after another. ' * 2000}{page} {'And on it goes. ' * 4000}", memory_id="m-book")
    found = ask(inspect(retriever, page[:900]), "open", id="m-book")
    text = "".join(piece["text"] for piece in found["text"])
    assert len(text) < 21_000
    assert text.startswith("[")
    assert "characters before this]" in text
    assert "more characters]" in text
    assert "zebra20 stands20" in "".join(piece["text"] for piece in found["text"] if piece.get("passage"))


def test_neighbours_are_the_nearest_by_cosine(inspector, store):
    found = ask(inspector, "open", id="m-jitter")["neighbours"]
    ids, vectors = store.vectors()
    own = vectors[ids.index("m-jitter")]
    others = sorted(((float(vector @ own), other) for other, vector in zip(ids, vectors, strict=True)), reverse=True)
    others = [(cosine, other) for cosine, other in others if other != "m-jitter"][:5]
    assert [one["id"] for one in found] == [other for _, other in others]
    assert [one["cosine"] for one in found] == pytest.approx([cosine for cosine, _ in others], abs=1e-5)


def test_neighbours_of_what_has_no_vector_are_none(store):
    with store.without_encoder() as mute:
        mute.remember("waits for a vector", memory_id="m-pending")
    with store.view() as view:
        assert neighbours(view, "m-pending") == []
        assert neighbours(view, "nobody") == []
        assert neighbours(view, "m-jitter", 0) == []
    with store.view(Filters(project="search")) as view:
        assert {other for other, _ in neighbours(view, "m-jitter")} <= {"m-linear", "m-index", "m-long"}


def test_a_memory_that_is_no_hit_opens_too(inspector):
    inspector.update(limit=1)
    other = inspector.recall.trace.ranked[1].memory_id
    assert ask(inspector, "open", id=other)["sum"]["rank"] == 2
    inspector.update(filters={"project": "billing"})
    outside = ask(inspector, "open", id="m-linear")
    assert outside["sum"] is None
    assert outside["sentence"] == ""


# -- why not ---------------------------------------------------------------------------------------------------------


def test_why_not_by_id_is_the_recalls_own_answer(inspector):
    inspector.update(limit=1)
    second = inspector.recall.trace.ranked[1].memory_id
    found = ask(inspector, "why", text=f" {second} ")["answer"]
    own = inspector.recall.why_not(second)
    assert (found["found"], found["reasons"]) == (False, list(own.reasons))
    assert [remedy["words"] for remedy in found["remedies"]] == list(own.remedies)
    assert found["remedies"][0]["changes"] == {"limit": 2}


def test_every_remedy_that_turns_knobs_works(inspector, store):
    inspector.update(limit=1, depth=1, filters={"project": "billing"})
    tried = set()
    for memory_id in NOTES:
        answer = ask(inspector, "why", text=memory_id)["answer"]
        for remedy in answer["remedies"]:
            turn = remedy["changes"]
            tried |= turn.keys()
            settings = inspector.settings
            without = turn.pop("without_filters", [])
            filters = {name: value for name, value in settings.filters.given().items() if name not in without}
            assert memory_id in inspector._bench.recall(QUERY, settings.replace(filters=filters, **turn)).ids
    assert tried == {"limit", "depth", "without_filters"}


def test_why_not_by_words_offers_memories_whatever_the_filters(inspector):
    inspector.update(filters={"project": "billing"})
    choices = ask(inspector, "why", text="search index at night")["choices"]
    assert choices[0]["id"] == "m-index"
    assert choices[0]["rank"] is None
    assert "None" not in ask(inspector, "why", text="")["said"]
    assert ask(inspector, "why", text="")["choices"] == []
    inspector.base.store.forget("m-hmac")
    inspector.query = QUERY
    assert "trash" in ask(inspector, "why", text="m-hmac")["answer"]["reasons"][0]


@pytest.mark.parametrize(
    ("remedy", "turn"),
    [
        ("limit=12", {"limit": 12}),
        ("replace(depth=87): it would come 3", {"depth": 87}),
        ("replace(depth=87) and limit=12: it would come 12", {"depth": 87, "limit": 12}),
        ("leave out project='a, limit=3', tags='b': it would come 1", {"without_filters": ["project", "tags"]}),
        ("leave out project='x' and limit=9: it would come 9", {"without_filters": ["project"], "limit": 9}),
        ("restore('limit=3')", None),
        ("embed_pending(), so that it has a vector to be found by", None),
    ],
)
def test_remedies_are_read(remedy, turn):
    assert changes(remedy) == turn


# -- pictures and hostile text ---------------------------------------------------------------------------------------


def test_stored_text_never_becomes_markup_or_control(inspector):
    inspector.query = "webhooks evil"
    assert "m-hostile" in inspector.recall.ids
    html = inspector.picture()["text/html"]
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    inspector.settings_b = {"limit": 20, "fusion": "rrf"}
    assert "<img" not in inspector.picture()["text/html"]
    said = json.dumps([ask(inspector, "open", id="m-hostile"), ask(inspector, "hello")], ensure_ascii=False)
    for char in ("\x1b", "\u202e", "\\u001b"):
        assert char not in said
        assert char not in inspector.picture()["text/plain"]


def test_the_picture_is_the_recalls_table(inspector):
    assert inspector.picture() == {"text/plain": repr(inspector.recall), "text/html": inspector.recall._repr_html_()}
    inspector.settings_b = {"fusion": "rrf"}
    text = inspector.picture()["text/plain"]
    assert "B: fusion=RRF(k=60)" in text
    assert "<b>A and B</b>" in inspector.picture()["text/html"]
    inspector.settings_b = None
    inspector.query = "  "
    assert "no query yet" in inspector.picture()["text/plain"]
    assert "No query yet" in inspector.picture()["text/html"]


def test_pieces_put_together_are_the_text():
    text = "abc def ghi"
    found = pieces(text, [(0, 3), (2, 5)], (1, 9))
    assert "".join(piece["text"] for piece in found) == text
    assert "".join(piece["text"] for piece in found if piece.get("mark")) == "abc d"
    assert "".join(piece["text"] for piece in found if piece.get("passage")) == "bc def g"
    assert pieces("", []) == []


def test_letters_of_the_legend_differ():
    letters = [look["letter"] for look in palette(["passage", "phrase", "p", "pp"])]
    assert len(set(letters)) == len(letters) == 5


# -- beginnings ------------------------------------------------------------------------------------------------------


def test_it_begins_from_a_store_a_recall_or_a_retriever(store, retriever):
    assert inspect(store, QUERY).base == HybridRetriever(store)
    assert isinstance(memlab.inspect(retriever), Inspector)
    recall = retriever.replace(fusion=RRF(9), depth=7).recall(
        QUERY, limit=3, now=NOW, recency_boost=True, project="billing"
    )
    for again in (inspect(recall), inspect(retriever, recall=recall)):
        assert (again.query, again.settings.now, again.settings.depth) == (QUERY, NOW, 7)
        assert again.recall.ids == recall.ids
        assert [hit.score for hit in again.recall] == [hit.score for hit in recall]
    with pytest.raises(InvalidValue, match=r"expected a memlab\.HybridRetriever"):
        inspect(memlab.OlderRetriever(store))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="query: expected text"):
        inspect(retriever, 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="which retriever made it"):
        inspect(memlab.OlderRetriever(store).recall(QUERY))


def test_a_recorded_recall_is_shown_as_it_was(store, retriever):
    recall = retriever.recall(QUERY, now=NOW, limit=3)
    store.remember(QUERY, memory_id="m-new", created_at="2026-08-01T00:00:00Z")
    inspector = inspect(recall)
    assert inspector.recall.ids == recall.ids
    shown = turned(inspector, fusion="rrf")["a"]
    assert shown["recorded"]
    assert "m-new" not in [hit["id"] for hit in shown["hits"]]
    shown = turned(inspector, depth=49)["a"]
    assert not shown["recorded"]
    assert "m-new" in [hit["id"] for hit in shown["hits"]]


def test_a_recall_of_another_store_only_gives_its_settings(retriever, make_store):
    other = make_store("other.db")
    other.remember("webhooks elsewhere", memory_id="x")
    recall = HybridRetriever(other).recall(QUERY, now=NOW)
    inspector = inspect(retriever, recall=recall)
    assert not turned(inspector)["a"]["recorded"]
    assert "x" not in inspector.recall.ids


def test_facets_are_what_the_store_has(inspector):
    facets = ask(inspector, "hello")["facets"]
    assert [(entry["value"], entry["count"]) for entry in facets["values"]["project"]] == [
        ("billing", 3),
        ("search", 3),
    ]
    assert facets["values"]["source"] == [{"value": "told", "shown": "told", "count": 5}]
    assert facets["values"]["tags"][0]["value"] == "note"
    assert (facets["oldest"], facets["memories"]) == ("2026-01-01T00:00:00.000Z", 6)


def test_facets_follow_the_store(inspector, store):
    store.remember("Another project begins.", project="new")
    assert [entry["value"] for entry in ask(inspector, "facets")["values"]["project"]] == ["billing", "search", "new"]


def test_an_empty_store_and_an_empty_query(make_store):
    inspector = inspect(make_store("empty.db"))
    assert turned(inspector, query="")["blank"]
    assert turned(inspector, query="anything")["a"]["none"]
    assert ask(inspector, "hello")["facets"]["oldest"] is None


def test_a_closed_store_says_so(inspector, store):
    store.close()
    with pytest.raises(StoreClosed):
        turned(inspector)
    assert inspector.query == QUERY


# -- in a kernel ------------------------------------------------------------------------------------------------------

CELL = """
import threading, ipywidgets, memlab
from memlab import HashingEncoder, HybridRetriever, MemoryStore
store = MemoryStore({path!r}, HashingEncoder(64))
store.remember("Webhooks retry with full jitter.", memory_id="m-1")
retriever = HybridRetriever(store)
def counts():
    return [len(ipywidgets.widgets.widget._instances), len(get_ipython().kernel.comm_manager.comms),
            threading.active_count()]
"""


def test_a_hundred_runs_leave_the_counts_where_they_were(kernel, tmp_path):
    kernel.run(CELL.format(path=str(tmp_path / "memory.db")))
    code = "memlab.inspect(retriever, 'webhooks')"
    kernel.run(code, "cell")
    before = kernel.value("counts()")
    for _ in range(100):
        kernel.run(code, "cell")
    assert kernel.value("counts()") == before
    kernel.run("None", "cell")
    assert kernel.value("counts()") == [before[0] - 2, before[1] - 2, before[2]]


def test_what_python_sets_the_view_is_told(kernel, tmp_path):
    kernel.run(CELL.format(path=str(tmp_path / "memory.db")))
    kernel.run("inspector = memlab.inspect(retriever, 'webhooks'); inspector.show()", "cell")
    told = kernel.run("inspector.update(k=3, fusion='rrf')")
    (content,) = [got["content"]["data"]["content"] for got in told if got["msg_type"] == "comm_msg"]
    assert content["push"] == "state"
    assert content["body"]["knobs"]["a"]["k"] == 3
    assert content["body"]["results"]["a"]["hits"][0]["id"] == "m-1"
