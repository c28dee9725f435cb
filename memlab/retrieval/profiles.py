"""Named retrievers: what a comparison starts from."""

from __future__ import annotations

from memlab.errors import InvalidValue
from memlab.retrieval.channels import KeywordChannel, PassageChannel, VectorChannel
from memlab.retrieval.fusion import RRF
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore

PROFILES = {
    "vector": "the document vectors alone",
    "keyword": "the keyword channel alone",
    "classic": "keyword, vector and passages of what these find, by plain reciprocal rank fusion: the studied system",
    "default": "what HybridRetriever(store) is",
}


def profile(name: str, store: MemoryStore) -> HybridRetriever:
    """The retriever of this name over a store.

    Raises
    ------
    InvalidValue
        If there is none; the message lists them.
    """
    if name not in PROFILES:
        raise InvalidValue(f"profile: {name!r} is none; the profiles are {', '.join(PROFILES)}")
    retriever = HybridRetriever(store)
    if name == "classic":
        channels = (KeywordChannel(), VectorChannel(), PassageChannel(scope="candidates", single_passages=True))
        return retriever.replace(channels=channels, fusion=RRF(one_vote=()))
    return retriever if name == "default" else retriever.only(name)
