"""Query to trace: channels, fusion, recency, and the retrievers that put them together."""

from memlab.retrieval.candidates import Candidates
from memlab.retrieval.channels import KeywordChannel, PassageChannel, StemChannel, VectorChannel
from memlab.retrieval.fusion import RRF, ConvexFusion, ScoreFusion
from memlab.retrieval.older import OlderRetriever
from memlab.retrieval.profiles import PROFILES, profile
from memlab.retrieval.recall import Hit, Recall
from memlab.retrieval.recency import RecencyRanker
from memlab.retrieval.recording import replay, retriever_of, settings_of
from memlab.retrieval.retriever import HybridRetriever
from memlab.retrieval.trace import Contribution, RankedMemory, Trace

__all__ = [
    "PROFILES",
    "RRF",
    "Candidates",
    "Contribution",
    "ConvexFusion",
    "Hit",
    "HybridRetriever",
    "KeywordChannel",
    "OlderRetriever",
    "PassageChannel",
    "RankedMemory",
    "Recall",
    "RecencyRanker",
    "ScoreFusion",
    "StemChannel",
    "Trace",
    "VectorChannel",
    "profile",
    "replay",
    "retriever_of",
    "settings_of",
]
