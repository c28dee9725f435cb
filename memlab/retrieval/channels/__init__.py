"""The channels: each ranks the memories of a store for one query, in its own way."""

from memlab.retrieval.channels.base import Channel, ChannelHit, ChannelResult, Query, Scores, timed
from memlab.retrieval.channels.keyword import KeywordChannel
from memlab.retrieval.channels.stems import StemChannel
from memlab.retrieval.channels.vectors import PassageChannel, VectorChannel

__all__ = [
    "Channel",
    "ChannelHit",
    "ChannelResult",
    "KeywordChannel",
    "PassageChannel",
    "Query",
    "Scores",
    "StemChannel",
    "VectorChannel",
    "timed",
]
