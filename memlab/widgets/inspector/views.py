"""Recalls, hits and opened hits as plain JSON values. Text is cut into pieces here, so the script needs no offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from memlab.retrieval import Hit, Recall
from memlab.retrieval.explain import explain
from memlab.retrieval.highlight import matches, words_with
from memlab.retrieval.render import LOOKED_AT, RECENCY, Excerpt, age_words, excerpt, look, no_hits, visible, words_of
from memlab.retrieval.terms import terms
from memlab.store import Memory
from memlab.store.records import shorten
from memlab.timestamps import format_time
from memlab.widgets.inspector.workbench import Workbench

_EXCERPT = 240  # characters of a hit in the list
_SHORT = 120  # of a neighbour or a find
_OPENED = 20_000  # of a hit that is opened; a pasted book is shown around what matched
_UNITS = {"keyword": "bm25", "vector": "cosine", "passage": "cosine"}

Pieces = list[dict[str, Any]]
Words = tuple[tuple[str, ...], tuple[str, ...]]


def palette(channels: Sequence[str]) -> list[dict[str, str]]:
    """Name, colours and letter of each channel and of recency, in the order in which bars stack them."""
    names = [*channels, RECENCY]
    letters: list[str] = []
    for name in names:
        free = [char.upper() for char in name if char.upper() not in letters]
        letters.append(free[0] if free else str(len(letters)))
    return [
        {"name": name, "colour": look(name).colour, "ink": look(name).ink, "letter": letter}
        for name, letter in zip(names, letters, strict=True)
    ]


def pieces(text: str, marked: Iterable[tuple[int, int]], passage: tuple[int, int] | None = None) -> Pieces:
    """``text`` cut where a mark or the passage begins or ends: ``text``, ``mark``, ``passage`` each."""
    spans = sorted(marked)
    cuts = {0, len(text)} | {at for span in spans for at in span}
    if passage is not None:
        cuts |= {min(at, len(text)) for at in passage}
    borders = sorted(cuts)
    found: Pieces = []
    for start, end in pairwise(borders):
        piece: dict[str, Any] = {"text": text[start:end]}
        if any(first <= start and end <= last for first, last in spans):
            piece["mark"] = True
        if passage is not None and passage[0] <= start and end <= passage[1]:
            piece["passage"] = True
        found.append(piece)
    return found


def excerpt_pieces(part: Excerpt) -> Pieces:
    """An excerpt in pieces, with the dots that say where more is."""
    found = pieces(part.text, part.marked)
    before, after = [{"text": "… "}] if part.before else [], [{"text": " …"}] if part.after else []
    return [*before, *found, *after]


def side(recall: Recall, milliseconds: float, recorded: bool) -> dict[str, Any]:
    """What one list of the view shows."""
    trace = recall.trace
    keyword = trace.channel("keyword")
    return {
        "hits": [hit_values(hit, query_words(recall)) for hit in recall],
        "top": max((hit.score for hit in recall), default=0.0),
        "ranked": len(trace.ranked),
        "searched": trace.searched,
        "mode": trace.mode,
        "note": visible(trace.note),
        "none": visible(no_hits(recall)) if not recall else "",
        "milliseconds": milliseconds,
        "recorded": recorded,
        "fusion": trace.fusion,
        "recency": trace.recency,
        "now": format_time(trace.now),
        "terms": [visible(term) for term in keyword.terms.used] if keyword and keyword.terms else [],
        "left_out": [visible(term) for term in keyword.terms.stop_words] if keyword and keyword.terms else [],
        "channels": [
            {
                "name": result.channel,
                "ran": result.ran,
                "found": len(result.hits),
                "note": visible(result.note),
            }
            for result in trace.channels
        ],
    }


def query_words(recall: Recall) -> Words:
    """The query's terms; and their stems, where stems were looked for."""
    keyword = recall.trace.channel("keyword")
    looked_for = keyword.terms if keyword is not None else None
    return terms(recall.query).used, looked_for.used if looked_for is not None and looked_for.stemmed else ()


class _Text(NamedTuple):
    content: str
    passage: tuple[int, int] | None


# A knob moves the hits and leaves their texts: cutting these is most of the work of an answer.
@lru_cache(maxsize=128)
def _excerpt(text: _Text, words: Words) -> Pieces:
    plain, stems = words
    own = words_with(text.content[:LOOKED_AT], stems) if stems else ()
    return excerpt_pieces(excerpt(text, _EXCERPT, (*plain, *sorted(own))))


def hit_values(hit: Hit, words: Words) -> dict[str, Any]:
    """One row of a list."""
    place, memory = hit.place, hit.memory
    return {
        "id": hit.memory_id,
        "shown_id": visible(hit.memory_id),
        "rank": hit.rank,
        "score": hit.score,
        "excerpt": _excerpt(_Text(hit.content, hit.passage), words),
        "facts": facts(memory, age_words(place.age_days)),
        "created": format_time(memory.created_at),
        "parts": [
            {"channel": part.channel, "rank": part.rank, "value": part.contribution, "counted": part.counted}
            for part in place.contributions
        ],
        "factor": place.recency_factor,
        "gain": place.recency_gain,
    }


def facts(memory: Memory, age: str) -> list[str]:
    """Metadata on one line."""
    known = [memory.project, memory.category, age, *(f"#{tag}" for tag in memory.tags[:6])]
    return [shorten(visible(item), 40) for item in known if item]


def opened(bench: Workbench, recall: Recall, memory_id: str) -> dict[str, Any]:
    """All about one hit, or about a memory that is none: its text, its sum, its ranks, its neighbours."""
    store = bench.retriever.store
    hit = next((hit for hit in recall if hit.memory_id == memory_id), None)
    place = hit.place if hit is not None else recall.trace.place(memory_id)
    memory = hit.memory if hit is not None else store.get(memory_id)
    near = bench.neighbours(memory_id)
    others = {other.memory_id: other for other in store.get_many([other for other, _ in near])}
    return {
        "id": memory_id,
        "shown_id": visible(memory_id),
        "text": _whole_text(memory, hit, words_of(recall)),
        "passages": len(store.passages(memory_id)),
        "passage": _passage_number(place),
        "metadata": _metadata(memory),
        "sum": None if place is None else _sum(place),
        "sentence": "" if place is None else visible(str(explain(recall.trace, place))),
        "ranks": _ranks(bench, recall, memory_id, place),
        "neighbours": [
            {
                "id": other,
                "shown_id": visible(other),
                "cosine": cosine,
                "text": shorten(visible(" ".join(others[other].content[:1000].split())), _SHORT),
                "rank": _rank(recall, other),
            }
            for other, cosine in near
            if other in others
        ],
    }


def find_values(recall: Recall, memory: Memory) -> dict[str, Any]:
    """A memory as one of several to choose from."""
    return {
        "id": memory.memory_id,
        "shown_id": visible(memory.memory_id),
        "text": shorten(visible(" ".join(memory.content[:1000].split())), _SHORT),
        "rank": _rank(recall, memory.memory_id),
    }


def _rank(recall: Recall, memory_id: str) -> int | None:
    place = recall.trace.place(memory_id)
    return None if place is None else place.rank


def _passage_number(place: Any) -> int | None:
    part = None if place is None else place.of("passage")
    return None if part is None or part.passage is None else part.passage + 1


def _whole_text(memory: Memory, hit: Hit | None, words: Sequence[str]) -> Pieces:
    passage = hit.passage if hit is not None else None
    content, start = memory.content, 0
    if len(content) > _OPENED:
        start = max(0, passage[0] - _OPENED // 4) if passage else 0
        content = content[start : start + _OPENED]
    text = visible(content)
    inside = None if passage is None else (max(0, passage[0] - start), max(0, min(passage[1] - start, len(text))))
    found = pieces(text, matches(text, words), inside)
    left = len(memory.content) - start - len(content)
    if start:
        found.insert(0, {"text": f"[{start:,} characters before this]\n", "note": True})
    if left:
        found.append({"text": f"\n[{left:,} more characters]", "note": True})
    return found


def _metadata(memory: Memory) -> list[list[str]]:
    rows = [
        ("project", memory.project),
        ("category", " / ".join(filter(None, (memory.category, memory.subcategory)))),
        ("tags", ", ".join(memory.tags)),
        ("importance", f"{memory.importance} of 10"),
        ("created", f"{memory.created_at:%Y-%m-%d %H:%M} UTC"),
        ("updated", f"{memory.updated_at:%Y-%m-%d %H:%M} UTC" if memory.updated_at else None),
        ("used", f"{memory.access_count:,} times" if memory.access_count else None),
        ("source", memory.source),
        ("files", ", ".join(memory.related_files)),
    ]
    return [[name, shorten(visible(value), 400)] for name, value in rows if value]


def _sum(place: Any) -> dict[str, Any]:
    return {
        "rank": place.rank,
        "parts": [
            {"channel": part.channel, "formula": part.formula, "value": part.contribution, "counted": part.counted}
            for part in place.contributions
        ],
        "fused": place.fused,
        "factor": place.recency_factor,
        "gain": place.recency_gain,
        "age": age_words(place.age_days),
        "age_days": place.age_days,
        "score": place.score,
    }


def _ranks(bench: Workbench, recall: Recall, memory_id: str, place: Any) -> list[dict[str, Any]]:
    """A row a channel: where the memory stands in its list, however deep."""
    located = bench.ranks(recall, memory_id)
    rows = []
    for name in bench.channels:
        at = located.get(name, "it did not take part")
        row: dict[str, Any] = {"channel": name, "unit": _UNITS.get(name, "score")}
        if isinstance(at, str):
            row["why"] = visible(at)
        else:
            row["rank"], row["raw"] = at
            row["beyond"] = at[0] > recall.trace.depth
        rows.append(row)
    return rows
