"""How fast the keyword channel and whole recalls are, the query's vector given, beside a plain OR query of FTS5.

    python tests/benchmarks/recall_speed.py --set DIR [--cache DIR] [--queries N] [--rounds N] [--json]
    python tests/benchmarks/recall_speed.py --size 100000 [--cache DIR] ...

A labelled set has questions of its own; a synthetic store of any size is made if it is not in the cache. For every
question all ways take turns, round by round, and the best round of each counts: in wall-clock time, and in the time
that the processor worked for the thread, which says more where others use the machine too. ``plain OR`` is all words of
the question, stop words too, ordered by rank, the best ten. How many of the best ten of a look at every match the
keyword channel keeps is counted in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from memlab import HybridRetriever, MemoryStore
from memlab.bench.keyword_quality import exhaustive
from memlab.bench.reference import PlainSearch
from memlab.retrieval.channels import Channel, Query

NOTHING: frozenset[int] = frozenset()


def of_set(folder: str, cache: str | None, count: int) -> tuple[MemoryStore, list[Query]]:
    """The cached store of a labelled set, and its judged queries with their vectors."""
    from memlab.evaluation.cache import build_store
    from memlab.evaluation.folders import read_folder
    from memlab.evaluation.vectors import prepared

    labelled = read_folder(folder)
    store = build_store(labelled, cache)
    asked = [query.text for query in labelled.queries if labelled.qrels.relevant(query.query_id)]
    return store, prepared(store, asked[:: max(1, len(asked) // count)][:count])


def of_size(size: int, cache: str | None, count: int) -> tuple[MemoryStore, list[Query]]:
    """A synthetic store, and questions about its memories."""
    from memlab.bench.synthetic import cached_store, questions

    store = cached_store(size, cache=cache)
    stamp = store.encoder_stamp
    return store, [Query(item.text, item.vector, made_by=stamp) for item in questions(count, size=size)]


def ways(store: MemoryStore) -> dict[str, Callable[[Query], Any]]:
    """What is timed."""
    retriever = HybridRetriever(store)
    plain = PlainSearch(str(store.path))

    def channel(one: Channel) -> Callable[[Query], Any]:
        def search(query: Query) -> Any:
            with store.view() as view:
                return one.search(query, view, retriever.depth, NOTHING)

        return search

    def whole(query: Query) -> Any:
        return retriever.rank(retriever.gather(query.text, query_vector=query.vector, made_by=query.made_by))

    def traced(query: Query) -> Any:
        return tuple(whole(query).trace.ranked)

    return {
        "plain OR": lambda query: plain.words(query.text, 10),
        **{f"{one.name} channel": channel(one) for one in retriever.channels},
        "recall": whole,
        "recall, every row of the trace": traced,
    }


def kept(store: MemoryStore, queries: list[Query]) -> float:
    """The share of the keyword channel's best ten that a look at every match has too."""
    one = HybridRetriever(store).channels[0]
    other = exhaustive(one) or one
    shares = []
    for query in queries:
        with store.view() as view:
            quick = [hit.number for hit in one.search(query, view, 50, NOTHING).hits[:10]]
        with store.view() as view:
            every = [hit.number for hit in other.search(query, view, 10, NOTHING).hits]
        if every:
            shares.append(len(set(quick) & set(every)) / len(every))
    return float(np.mean(shares))


def main() -> None:
    """Time everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", metavar="DIR", help="a labelled set in BEIR's layout")
    parser.add_argument("--size", type=int, default=12_000, help="of a synthetic store, without --set")
    parser.add_argument("--cache", metavar="DIR")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.set:
        store, queries = of_set(given.set, given.cache, given.queries)
    else:
        store, queries = of_size(given.size, given.cache, given.queries)
    timed = ways(store)
    wall = {name: np.full(len(queries), np.inf) for name in timed}
    work = {name: np.full(len(queries), np.inf) for name in timed}
    for _ in range(given.rounds):
        for at, query in enumerate(queries):
            for name, way in timed.items():
                began, worked = time.perf_counter(), time.thread_time()
                way(query)
                wall[name][at] = min(wall[name][at], 1000 * (time.perf_counter() - began))
                work[name][at] = min(work[name][at], 1000 * (time.thread_time() - worked))
    rows = {
        name: {
            "p50": float(np.median(wall[name])),
            "p95": float(np.percentile(wall[name], 95)),
            "processor p50": float(np.median(work[name])),
            "times faster than plain OR": float(np.median(work["plain OR"] / work[name])),
        }
        for name in timed
    }
    share = kept(store, queries)
    if given.json:
        print(json.dumps({"memories": len(store), "queries": len(queries), "kept": share, "ways": rows}, indent=2))
        return
    print(
        f"{len(store):,} memories, {len(queries)} questions, {platform.machine()}, Python {platform.python_version()}"
    )
    print(f"{'ms':32}{'p50':>8}{'p95':>8}{'processor':>11}{'x plain OR':>12}")
    for name, row in rows.items():
        figures = f"{row['p50']:8.2f}{row['p95']:8.2f}{row['processor p50']:11.2f}"
        print(f"{name:32}{figures}{row['times faster than plain OR']:12.1f}")
    print(f"best ten kept of a look at every match: {share:.3f}")


if __name__ == "__main__":
    main()
