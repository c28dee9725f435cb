"""memlab: build, look into and measure the memory of AI coding assistants."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memlab.encoders import HashingEncoder, MiniLM, SentenceTransformerEncoder
    from memlab.errors import MemlabError
    from memlab.retrieval import RRF, ConvexFusion, HybridRetriever, OlderRetriever, RecencyRanker
    from memlab.sample_data import Sample, sample
    from memlab.store import Filters, Memory, MemoryStore, PassagePolicy

# Public name to the module it lives in. Each is imported when it is first asked for.
_HOMES = {
    "ConvexFusion": "memlab.retrieval",
    "Filters": "memlab.store",
    "HashingEncoder": "memlab.encoders",
    "HybridRetriever": "memlab.retrieval",
    "MemlabError": "memlab.errors",
    "Memory": "memlab.store",
    "MemoryStore": "memlab.store",
    "MiniLM": "memlab.encoders",
    "OlderRetriever": "memlab.retrieval",
    "PassagePolicy": "memlab.store",
    "RRF": "memlab.retrieval",
    "RecencyRanker": "memlab.retrieval",
    "Sample": "memlab.sample_data",
    "SentenceTransformerEncoder": "memlab.encoders",
    "sample": "memlab.sample_data",
}

__all__ = [
    "RRF",
    "ConvexFusion",
    "Filters",
    "HashingEncoder",
    "HybridRetriever",
    "MemlabError",
    "Memory",
    "MemoryStore",
    "MiniLM",
    "OlderRetriever",
    "PassagePolicy",
    "RecencyRanker",
    "Sample",
    "SentenceTransformerEncoder",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memlab' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
