"""What a recency boost gains and costs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memlab import HybridRetriever, MemoryStore, RecencyRanker
from memlab.errors import InvalidValue
from memlab.evaluation import LabelledQuery, RecencyStudy, evaluate, measure_recency
from memlab.sample_data import SampleQuery, sample, sample_folder

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOPICS = 6


@pytest.fixture
def dated(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """By topic an old decision that matches a little better, and a new one; and an old fact with a new neighbour."""
    store = make_store()
    for i in range(TOPICS):
        word = f"topic{i}"
        ages = {"old": 200 + i, "new": i}
        for name, age in ages.items():
            content = f"{word} decided {name}" + ("" if name == "old" else f" filler{i} rest{i}")
            store.remember(content, memory_id=f"{name}{i}", created_at=NOW - timedelta(days=age))
        store.remember(f"fact{i} holds", memory_id=f"fact{i}", created_at=NOW - timedelta(days=300))
        store.remember(f"fact{i} neighbour{i} other{i}", memory_id=f"near{i}", created_at=NOW - timedelta(days=1))
    return store


def labels() -> tuple[list[LabelledQuery], dict[str, dict[str, int]]]:
    queries, qrels = [], {}
    for i in range(TOPICS):
        for copy in "ab":
            name = f"latest{i}{copy}"
            queries.append(LabelledQuery(name, f"topic{i} decided", NOW, tests="latest decision", topic=f"t{i}"))
            qrels[name] = {f"new{i}": 2, f"old{i}": 0}
        queries.append(LabelledQuery(f"fact{i}", f"fact{i} holds", NOW, tests="old fact", topic=f"f{i}"))
        qrels[f"fact{i}"] = {f"fact{i}": 2}
    return queries, qrels


@pytest.fixture
def study(dated: MemoryStore) -> RecencyStudy:
    queries, qrels = labels()
    retriever = HybridRetriever(dated).only("keyword")
    return measure_recency(retriever, queries, qrels, half_lives=(14, 400), strengths=(0, 0.1, 3), progress=False)


def test_the_same_figures_by_single_evaluations(study: RecencyStudy, dated: MemoryStore) -> None:
    queries, qrels = labels()
    base = HybridRetriever(dated).only("keyword")
    for row in study.table.to_dict("records"):
        own = base
        if row["strength"]:
            ranker = RecencyRanker(row["half_life_days"], row["strength"])
            own = base.replace(recency=ranker, recency_boost=True)
        kind = [query for query in queries if query.tests == row["kind"]]
        judged = {query.query_id: qrels[query.query_id] for query in kind}
        assert row["mean"] == evaluate(own, kind, judged, "Success@1", progress=False).mean("Success@1")


def test_gain_cost_and_the_best(study: RecencyStudy) -> None:
    assert study.kinds.keys() == {"latest decision", "old fact"}
    assert study.gaining == "latest decision"
    assert [str(one) for one in study.settings] == [
        "no boost",
        "half-life 14 days, strength 0.1",
        "half-life 14 days, strength 3",
        "half-life 400 days, strength 0.1",
        "half-life 400 days, strength 3",
    ]
    table = study.table
    first = table[table["half_life_days"].isna()]
    assert (first["strength"] == 0).all()
    assert (first["difference"] == 0).all()
    for one, place in zip(study.settings, range(5), strict=True):
        gained, lost = (study.effects[place, kind].difference for kind in study.kinds)
        assert one.gain == gained
        assert one.cost == max(0.0, -lost)
    gains = [one.gain for one in study.settings]
    costs = [one.cost for one in study.settings]
    assert max(gains) == 1.0  # a boost of three takes every new decision to the first place
    assert max(costs) > 0  # and every new neighbour above the old fact
    unlimited = study.best(1.0)
    assert unlimited.gain == max(gains)
    assert unlimited.cost == min(one.cost for one in study.settings if one.gain == max(gains))
    cheap = study.best(0.0)
    assert cheap.cost == 0
    assert cheap.gain == max(one.gain for one in study.settings if one.cost == 0)
    with pytest.raises(InvalidValue, match="most_cost"):
        study.best(-1)


def test_intervals_are_by_topic(study: RecencyStudy) -> None:
    row = study.table.query("strength == 3 and half_life_days == 14 and kind == 'latest decision'").iloc[0]
    assert (row["queries"], row["topics"]) == (12, 6)
    assert (round(row["low"], 3), row["high"]) == (0.61, 1.0)  # Wilson for 6 of 6
    assert "12 queries, 6 topics" in repr(study)


def test_kinds_and_topics_given(dated: MemoryStore) -> None:
    queries, qrels = labels()
    plain = {query.query_id: query.text for query in queries}
    kinds = {"b": ["fact0", "fact1", "nowhere"], "a": ["latest0a", "latest0b", "latest1a"]}
    study = measure_recency(
        HybridRetriever(dated).only("keyword"),
        plain,
        qrels,
        half_lives=[14],
        strengths=[3],
        kinds=kinds,
        gaining="a",
        topics={"latest0a": "x", "latest0b": "x"},
        measure="nDCG@10",
        now=NOW,
        progress=False,
    )
    assert study.kinds == {"a": ("latest0a", "latest0b", "latest1a"), "b": ("fact0", "fact1")}
    assert [study.topics_of(kind) for kind in study.kinds] == [2, 2]
    assert study.measure == "nDCG@10"
    assert any("b: left out, being no judged 1 query (nowhere)" in note for note in study.notes)
    assert any("left out, being of no kind: 13 queries" in note for note in study.notes)


def test_the_retriever_s_own_recency_does_not_count(dated: MemoryStore) -> None:
    queries, qrels = labels()
    tables = [
        measure_recency(
            HybridRetriever(dated, recency=recency, recency_boost=boost).only("keyword"),
            queries,
            qrels,
            half_lives=[14],
            strengths=[0.1],
            progress=False,
        ).table
        for recency, boost in ((None, False), (RecencyRanker(1, 9), True))
    ]
    assert tables[0].equals(tables[1])


def test_the_channels_are_asked_once(dated: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.retrieval.channels import VectorChannel

    calls: list[int] = []
    search = VectorChannel.search

    def counted(self: VectorChannel, *rest: Any) -> Any:
        calls.append(1)
        return search(self, *rest)

    monkeypatch.setattr(VectorChannel, "search", counted)
    queries, qrels = labels()
    measure_recency(HybridRetriever(dated), queries, qrels, progress=False)
    assert len(calls) == len(queries)


def test_ages_counted_from_the_present_are_noted(dated: MemoryStore) -> None:
    queries, qrels = labels()
    kinds = {"latest decision": ["latest0a"], "old fact": ["fact0"]}
    texts = {query.query_id: query.text for query in queries}
    study = measure_recency(
        HybridRetriever(dated).only("keyword"), texts, qrels, half_lives=[1], strengths=[1], kinds=kinds, progress=False
    )
    assert any("ages count from the present: 2 queries" in note for note in study.notes)
    assert math.isnan(study.effects[0, "old fact"].low)  # one query
    assert not re.search("nan", repr(study) + study._repr_html_())


def test_stopped_half_way(dated: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = HybridRetriever.ask, []

    def ask(self: HybridRetriever, *arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(HybridRetriever, "ask", ask)
    queries, qrels = labels()
    retriever = HybridRetriever(dated).only("keyword")
    study = measure_recency(retriever, queries, qrels, half_lives=[14], strengths=[1], progress=False)
    assert study.interrupted
    assert study.kinds == {"latest decision": ("latest0a", "latest0b")}  # two settings, two queries
    assert "interrupted" in repr(study)
    assert any("stopped after 2 of 18 queries" in note for note in study.notes)
    calls[:] = [1, 1]
    queries.reverse()
    with pytest.raises(KeyboardInterrupt):  # before any query that should gain
        measure_recency(retriever, queries, qrels, half_lives=[14], strengths=[1], progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_lives": 14}, "half_lives: expected numbers such as"),
        ({"half_lives": []}, "half_lives: expected one number or more"),
        ({"half_lives": [0]}, "half_life_days: expected a number above 0"),
        ({"strengths": [-1]}, "strengths: expected a number of at least 0"),
        ({"strengths": [0]}, "strengths: expected one or more above 0"),
        ({"measure": "R@1,R@5"}, "measure: expected one, found R@1, R@5"),
        ({"kinds": "kind"}, "kinds: expected {kind"),
        ({"kinds": {"a": "latest0a"}}, "kinds: a: expected query ids"),
        ({"kinds": {"latest decision": ["q"]}}, "kinds: latest decision: expected ids of judged queries"),
        ({"gaining": "newest"}, "expected one of the kinds latest decision, old fact; found 'newest'"),
    ],
)
def test_bad_input(dated: MemoryStore, options: dict[str, Any], message: str) -> None:
    queries, qrels = labels()
    with pytest.raises(InvalidValue, match=re.escape(message)):
        measure_recency(HybridRetriever(dated).only("keyword"), queries, qrels, progress=False, **options)


def test_queries_that_say_nothing_of_their_kind(dated: MemoryStore) -> None:
    _, qrels = labels()
    with pytest.raises(InvalidValue, match="none of the queries says what it tests"):
        measure_recency(HybridRetriever(dated), {"latest0a": "topic0"}, qrels)
    with pytest.raises(InvalidValue, match="expected a HybridRetriever"):
        measure_recency(dated, {"latest0a": "topic0"}, qrels)  # type: ignore[arg-type]


def test_text_html_and_picture(study: RecencyStudy) -> None:
    html = study._repr_html_()
    assert set(re.findall(r"<\s*/?\s*([a-zA-Z]+)", html)) <= {"table", "tbody", "tr", "td", "div", "b"}
    plain = re.sub(r"<[^>]+>", " ", html)
    for number in re.findall(r"(?<![\w.])[+-]?\d+\.\d", repr(study)):
        assert number in plain
    lines = repr(study).splitlines()
    assert lines[2].startswith("no boost")
    assert [line for line in lines if line.endswith("  *")] == [lines[2 + study.settings.index(study.best())]]
    assert lines[-1].startswith("Largest gain that costs at most 2.0 points")
    pytest.importorskip("matplotlib")
    assert study.plot().png().startswith(b"\x89PNG")


def test_the_temporal_set_comes_with_memlab(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dated = sample("temporal")
    assert len(dated.queries) == 226
    assert dated.folder == sample().folder / "temporal"
    topics = {query.query_id: query.topic for query in dated.queries}
    assert all(topics.values())
    assert len({query.topic for query in dated.queries if query.tests == "latest decision"}) == 60
    # A folder of that name with a set in it is what is meant where there is one.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporal").mkdir()
    assert sample_folder("temporal") == dated.folder
    (tmp_path / "temporal" / "corpus.jsonl").touch()
    assert str(sample_folder("temporal")) == "temporal"
    # As a wheel has it.
    package = tmp_path / "site" / "memlab"
    (package / "_sample" / "temporal").mkdir(parents=True)
    (package / "_sample" / "corpus.jsonl").touch()
    monkeypatch.setattr("memlab.sample_data.__file__", str(package / "sample_data.py"))
    monkeypatch.chdir(package)
    assert sample_folder("temporal") == package / "_sample" / "temporal"
    assert sample_folder() == package / "_sample"


def test_samples_measured_with_their_own_kinds(make_store: Callable[..., MemoryStore]) -> None:
    dated = sample("temporal")
    store = make_store(encoder=None)
    store.remember_many(dated.records, progress=False)
    qrels = {query.query_id: query.judgments for query in dated.queries}
    chosen: list[SampleQuery] = list(dated.queries[::4])
    study = measure_recency(
        HybridRetriever(store).only("keyword"), chosen, qrels, half_lives=[30], strengths=[0.3], progress=False
    )
    assert study.kinds.keys() == {"latest decision", "old fact", "either"}
    assert study.best(1.0).gain > 0
    assert study.topics_of("latest decision") < len(study.kinds["latest decision"])
