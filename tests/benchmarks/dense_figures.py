"""Dense-only retrieval figures on public sets, to compare with the published ones of all-MiniLM-L6-v2.

    python tests/benchmarks/dense_figures.py FOLDER [FOLDER ...] [--cache DIR] [--passages]

Each folder holds a set in BEIR layout (corpus.jsonl, queries.jsonl, qrels/test.tsv). Texts are cut at 256 tokens, as
the published figures are; ``--passages`` shows beside it what whole texts in passages give. The encoder, the store and
the vector channel are memlab's own, the measure is ir-measures' ``nDCG@10``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures

from memlab import HybridRetriever, MemoryStore, PassagePolicy
from memlab.retrieval import VectorChannel

PUBLISHED = {"scifact": 64.51, "xquad.es": 63.23}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def build(folder: Path, cache: Path, policy: PassagePolicy) -> MemoryStore:
    """A store of the corpus, made once a policy."""
    corpus = (folder / "corpus.jsonl").read_bytes()
    name = f"{folder.name}-{policy.aggregate}-{hashlib.sha256(corpus).hexdigest()[:12]}.db"
    store = MemoryStore(cache / name, passages=policy)
    records: list[dict[str, str]] = [
        {"memory_id": row["_id"], "content": " ".join(filter(None, (row.get("title"), row["text"])))}
        for row in lines(folder / "corpus.jsonl")
    ]
    # By length: batches then hold texts of one size, which is quicker and changes no vector.
    records.sort(key=lambda record: len(record["content"]))
    store.remember_many(records, batch_size=512, progress=True)
    return store


def measure(folder: Path, store: MemoryStore) -> tuple[float, int]:
    """Mean nDCG@10 in per cent over the judged queries, and their number."""
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        qrels = [
            ir_measures.Qrel(row["query-id"], row["corpus-id"], int(row["score"]))
            for row in csv.DictReader(file, delimiter="\t")
        ]
    judged = {qrel.query_id for qrel in qrels}
    queries = [row for row in lines(folder / "queries.jsonl") if row["_id"] in judged]
    vectors = store.encode_queries([row["text"] for row in queries])
    retriever = HybridRetriever(store, channels=(VectorChannel(),), depth=10)
    run = [
        ir_measures.ScoredDoc(row["_id"], hit.memory_id, hit.raw_score)
        for row, vector in zip(queries, vectors, strict=True)
        for hit in retriever.gather(row["text"], query_vector=vector).results[0].hits
    ]
    ndcg = ir_measures.nDCG @ 10
    return 100 * ir_measures.calc_aggregate([ndcg], qrels, run)[ndcg], len(queries)


def main() -> None:
    """Print one line a folder and recipe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path, help="keep the stores here, so that a second run is quick")
    parser.add_argument("--passages", action="store_true", help="also whole texts, in passages")
    options = parser.parse_args()
    policies = [PassagePolicy(aggregate="truncate")] + ([PassagePolicy()] if options.passages else [])
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.cache or Path(temporary)
        cache.mkdir(parents=True, exist_ok=True)
        print(f"{'set':<16}{'texts':<18}{'queries':>8}{'nDCG@10':>9}{'published':>11}{'seconds':>9}")
        for folder in options.folders:
            for policy in policies:
                started = time.perf_counter()
                with build(folder, cache, policy) as store:
                    value, count = measure(folder, store)
                published = (
                    f"{PUBLISHED[folder.name]:.2f}" if folder.name in PUBLISHED and policy == policies[0] else "-"
                )
                spent = time.perf_counter() - started
                print(
                    f"{folder.name:<16}{policy.aggregate:<18}{count:>8}{value:>9.2f}{published:>11}{spent:>9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
