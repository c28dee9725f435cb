"""Twenty queries with one relevant memory each, and runs that find it at known places."""

from __future__ import annotations

QUERIES = {f"q{i:02}": f"question {i}" for i in range(20)}
QRELS = {name: {f"m-{name}": 1} for name in QUERIES}


def ranked(places: dict[str, int]) -> dict[str, dict[str, float]]:
    """A run in which the answer to a query stands at the given place."""
    run: dict[str, dict[str, float]] = {}
    for name, place in places.items():
        ids = [f"n{i}" for i in range(1, place)] + [f"m-{name}"]
        run[name] = {memory_id: 1 / rank for rank, memory_id in enumerate(ids, 1)}
    return run


FIRST = ranked(dict.fromkeys(QUERIES, 1))
SECOND = ranked(dict.fromkeys(QUERIES, 2))
MIXED = ranked({name: 1 if i < 14 else 2 if i < 17 else 4 for i, name in enumerate(QUERIES)})
