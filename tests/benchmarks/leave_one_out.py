"""Leave one set out: the default's settings chosen on all sets but one, and measured on that one.

    python tests/benchmarks/leave_one_out.py FOLDER FOLDER [FOLDER ...] [--cache DIR] [--measure nDCG@10]

Each folder holds a set in BEIR layout; the stores are made once and kept where ``memlab eval`` keeps them. For every
set the table shows each channel alone, ``classic``, the default with the settings that were best on the *other* sets,
which these were, and the default as it ships.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from memlab.evaluation import build_store, read_folder
from memlab.evaluation.evaluate import measured
from memlab.evaluation.gathering import gather_all, judged
from memlab.evaluation.measures import needed_depth, parse_measures
from memlab.retrieval import HybridRetriever, ScoreFusion, StemChannel, profile

KEYWORD = (0.34, 0.38, 0.42, 0.46, 0.5)
PAIRS = (0.25, 0.5)
WORDS = (0.0, 0.2, 0.4)
SHOWN = ("vector", "keyword", "classic", "default")


def candidates(retriever: HybridRetriever) -> dict[str, HybridRetriever]:
    """The settings that are tried, by name; each is the default but for three numbers."""
    found = {}
    for keyword, pairs, words in itertools.product(KEYWORD, PAIRS, WORDS):
        channels = [
            replace(channel, pairs=pairs, words=words) if isinstance(channel, StemChannel) else channel
            for channel in retriever.channels
        ]
        weights = {"keyword": keyword, "vector": 1 - keyword, "passage": 1 - keyword}
        fusion = ScoreFusion({name: round(weight, 4) for name, weight in weights.items()})
        found[f"keyword {keyword:g}, pairs {pairs:g}, words {words:g}"] = retriever.replace(
            channels=channels, fusion=fusion
        )
    return found


def figures(folder: Path, cache: Path | None, measure: str) -> tuple[dict[str, float], dict[str, float]]:
    """Means in per cent of one set: of the profiles, and of the settings that are tried."""
    labelled = read_folder(folder)
    (chosen,) = parse_measures([measure])
    with build_store(labelled, cache, progress=True) as store:
        both = judged(labelled.queries, labelled.qrels)
        tried = candidates(HybridRetriever(store))
        asked = {name: profile(name, store) for name in SHOWN} | tried
        gathered = gather_all(asked, both.queries, limit=needed_depth([chosen], 10), label=labelled.name, progress=True)
        means = {
            name: 100 * measured(run, both, [chosen], queries=gathered.queries).mean(measure)
            for name, run in gathered.runs.items()
        }
    return {name: means[name] for name in SHOWN}, {name: means[name] for name in tried}


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path, help="where the stores are kept")
    parser.add_argument("--measure", default="nDCG@10")
    options = parser.parse_args()
    if len(options.folders) < 2:
        parser.error("leaving one set out takes two or more")
    measured_sets = [figures(folder, options.cache, options.measure) for folder in options.folders]
    print(f"| {options.measure} | {' | '.join(SHOWN)} | left out | chosen on the others |")
    print("|---|" + "---:|" * (len(SHOWN) + 1) + "---|")
    columns = []
    for place, (folder, (shown, tried)) in enumerate(zip(options.folders, measured_sets, strict=True)):
        others = [other for number, (_, other) in enumerate(measured_sets) if number != place]
        best = max(tried, key=lambda name: float(np.mean([other[name] for other in others])))
        columns.append([*shown.values(), tried[best]])
        print(f"| {folder.name} | {' | '.join(f'{value:.1f}' for value in columns[-1])} | {best} |")
    means = np.mean(columns, axis=0)
    print(f"| mean | {' | '.join(f'{value:.1f}' for value in means)} | |")


if __name__ == "__main__":
    main()
