"""Why is this memory not among the hits? By its id, or by a search for it."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from memlab.errors import UnknownMemory
from memlab.retrieval import Recall
from memlab.retrieval.explain import WhyNot
from memlab.retrieval.render import visible
from memlab.store import Filters
from memlab.widgets.inspector.views import find_values
from memlab.widgets.inspector.workbench import Workbench

_CHOICES = 6
_FILTERS = frozenset(item.name for item in fields(Filters))


def why(bench: Workbench, recall: Recall, text: str) -> dict[str, Any]:
    """The answer for an id; for other text the memories that it may mean."""
    wanted = text.strip()
    if not wanted:
        return {"choices": [], "said": "Type the id of a memory, or some words of it."}
    try:
        return {"answer": _values(recall.why_not(wanted))}
    except UnknownMemory:
        pass
    # A search of its own, without the filters that may be what keeps the memory out.
    retriever = bench.retriever
    found = retriever.rank(retriever.gather(wanted), limit=_CHOICES, recency_boost=False)
    choices = [find_values(recall, hit.memory) for hit in found]
    said = "" if choices else f"No memory has the id {visible(wanted)!r}, and none matches these words."
    return {"choices": choices, "said": said}


def _values(answer: WhyNot) -> dict[str, Any]:
    return {
        "id": answer.memory_id,
        "shown_id": visible(answer.memory_id),
        "found": answer.found,
        "reasons": [visible(reason) for reason in answer.reasons],
        "remedies": [{"words": visible(remedy), "changes": changes(remedy)} for remedy in answer.remedies],
    }


def changes(remedy: str) -> dict[str, Any] | None:
    """The knobs that a remedy of :class:`WhyNot` turns; ``None`` for one that changes the store."""
    found: dict[str, Any] = {}
    setting = remedy.rpartition(": it would come")[0] or remedy
    if depth := re.search(r"^replace\(depth=(\d+)\)", setting):
        found["depth"] = int(depth[1])
    if limit := re.search(r"(?:^| and )limit=(\d+)$", setting):
        found["limit"] = int(limit[1])
    if setting.startswith("leave out "):
        names = [name for name in re.findall(r"(?:^leave out |, )(\w+)=", setting) if name in _FILTERS]
        if names:
            found["without_filters"] = names
    return found or None
