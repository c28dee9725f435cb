"""Text to unit vectors: the protocol, the encoders, finding and verifying weights, passages.

Importing this package loads numpy and nothing heavier; the rest comes when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.encoders.aggregation import Aggregation, aggregate
    from memlab.encoders.base import Encoder, EncoderStamp, check_vectors, stamp
    from memlab.encoders.hashing import HashingEncoder
    from memlab.encoders.minilm import MiniLM
    from memlab.encoders.passages import Passage, PassageSplitter
    from memlab.encoders.registry import encoder_from_name
    from memlab.encoders.sentence_transformer import SentenceTransformerEncoder

__all__ = [
    "Aggregation",
    "Encoder",
    "EncoderStamp",
    "HashingEncoder",
    "MiniLM",
    "Passage",
    "PassageSplitter",
    "SentenceTransformerEncoder",
    "aggregate",
    "check_vectors",
    "encoder_from_name",
    "stamp",
]

_HOMES = {
    "Aggregation": "aggregation",
    "Encoder": "base",
    "EncoderStamp": "base",
    "HashingEncoder": "hashing",
    "MiniLM": "minilm",
    "Passage": "passages",
    "PassageSplitter": "passages",
    "SentenceTransformerEncoder": "sentence_transformer",
    "aggregate": "aggregation",
    "check_vectors": "base",
    "encoder_from_name": "registry",
    "stamp": "base",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
