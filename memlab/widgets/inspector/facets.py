"""What of a store can be chosen from: the values that filters take, and the span of its times."""

from __future__ import annotations

from typing import Any

from memlab.retrieval.render import visible
from memlab.store import MemoryStore

_MOST = 400  # values of one kind; the rest can be filtered by from Python


def facets(store: MemoryStore) -> dict[str, Any]:
    """Projects, categories, tags and sources with their counts, most first; and the span of creation times."""
    tallies = {
        "project": store.projects(),
        "category": store.categories(),
        "tags": store.tags(),
        "source": store.sources(),
    }
    values = {
        name: [
            {"value": value, "shown": visible(value), "count": count} for value, count in list(tally.items())[:_MOST]
        ]
        for name, tally in tallies.items()
    }
    with store.view() as view:
        oldest, newest, count = view.connection.execute(
            "SELECT min(created_at), max(created_at), count(*) FROM memories WHERE trashed_at IS NULL"
        ).fetchone()
    return {"values": values, "oldest": oldest, "newest": newest, "memories": count}
