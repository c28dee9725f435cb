"""What an encoder is worth, and how exactly its vectors have to be kept, over labelled sets.

    python tests/benchmarks/encoder_recall.py DIR... [--cache DIR]

For each set all-MiniLM-L6-v2 stands beside the hashing encoder, by its vectors alone and in the default recall; then
its vectors as they are beside the same in half precision and in bytes. Stores are made on first use and kept.
"""

from __future__ import annotations

import argparse

import memlab
from memlab.evaluation import build_store
from memlab.evaluation.precisions import compare_precisions

ENCODERS = {"minilm": "minilm", "hashing": "hashing"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--cache", help="where the stores are kept")
    options = parser.parse_args()
    for folder in options.folders:
        labelled = memlab.read_folder(folder)
        print(f"\n== {labelled.name}")
        print(
            memlab.compare_encoders(
                labelled, ENCODERS, cache=options.cache, measures="nDCG@10", profile=("vector", "default")
            )
        )
        with build_store(labelled, options.cache) as store:
            print(compare_precisions(store, labelled.queries, labelled.qrels, measures="nDCG@10"))


if __name__ == "__main__":
    main()
