"""memlab: build, look into and measure the memory of AI coding assistants."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memlab.encoders import HashingEncoder, MiniLM, SentenceTransformerEncoder
    from memlab.errors import MemlabError
    from memlab.evaluation.ablate import ablate
    from memlab.evaluation.articles import vector_recall
    from memlab.evaluation.compare import compare
    from memlab.evaluation.encoders import compare_encoders
    from memlab.evaluation.evaluate import evaluate
    from memlab.evaluation.folders import read_folder
    from memlab.evaluation.judgments import Qrels
    from memlab.evaluation.queries import LabelledQuery
    from memlab.evaluation.recency import measure_recency
    from memlab.evaluation.runs import Run
    from memlab.evaluation.sweep import sweep
    from memlab.projection import project
    from memlab.retrieval import (
        RRF,
        ConvexFusion,
        HybridRetriever,
        KeywordChannel,
        OlderRetriever,
        PassageChannel,
        RecencyRanker,
        ScoreFusion,
        StemChannel,
        VectorChannel,
        profile,
        replay,
    )
    from memlab.sample_data import Sample, sample
    from memlab.server.serving import serve
    from memlab.store import Filters, Memory, MemoryStore, PassagePolicy
    from memlab.widgets.inspector import inspect
    from memlab.widgets.labelling import label
    from memlab.widgets.map import map
    from memlab.widgets.reopening import reopen

# Public name to the module it lives in. Each is imported when it is first asked for.
_HOMES = {
    "ConvexFusion": "memlab.retrieval",
    "Filters": "memlab.store",
    "HashingEncoder": "memlab.encoders",
    "HybridRetriever": "memlab.retrieval",
    "KeywordChannel": "memlab.retrieval",
    "LabelledQuery": "memlab.evaluation",
    "MemlabError": "memlab.errors",
    "Memory": "memlab.store",
    "MemoryStore": "memlab.store",
    "MiniLM": "memlab.encoders",
    "OlderRetriever": "memlab.retrieval",
    "PassageChannel": "memlab.retrieval",
    "PassagePolicy": "memlab.store",
    "Qrels": "memlab.evaluation",
    "RRF": "memlab.retrieval",
    "RecencyRanker": "memlab.retrieval",
    "Run": "memlab.evaluation",
    "Sample": "memlab.sample_data",
    "ScoreFusion": "memlab.retrieval",
    "SentenceTransformerEncoder": "memlab.encoders",
    "StemChannel": "memlab.retrieval",
    "VectorChannel": "memlab.retrieval",
    "ablate": "memlab.evaluation",
    "compare": "memlab.evaluation",
    "evaluate": "memlab.evaluation",
    "inspect": "memlab.widgets.inspector",
    "label": "memlab.widgets.labelling",
    "map": "memlab.widgets.map",
    "measure_recency": "memlab.evaluation",
    "compare_encoders": "memlab.evaluation",
    "profile": "memlab.retrieval",
    "project": "memlab.projection",
    "read_folder": "memlab.evaluation",
    "reopen": "memlab.widgets.reopening",
    "replay": "memlab.retrieval",
    "sample": "memlab.sample_data",
    "serve": "memlab.server.serving",
    "sweep": "memlab.evaluation",
    "vector_recall": "memlab.evaluation",
}

__all__ = [
    "RRF",
    "ConvexFusion",
    "Filters",
    "HashingEncoder",
    "HybridRetriever",
    "KeywordChannel",
    "LabelledQuery",
    "MemlabError",
    "Memory",
    "MemoryStore",
    "MiniLM",
    "OlderRetriever",
    "PassageChannel",
    "PassagePolicy",
    "Qrels",
    "RecencyRanker",
    "Run",
    "Sample",
    "ScoreFusion",
    "SentenceTransformerEncoder",
    "StemChannel",
    "VectorChannel",
    "ablate",
    "compare",
    "compare_encoders",
    "evaluate",
    "inspect",
    "label",
    "map",
    "measure_recency",
    "profile",
    "project",
    "read_folder",
    "reopen",
    "replay",
    "sample",
    "serve",
    "sweep",
    "vector_recall",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memlab' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
