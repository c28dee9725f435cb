"""From the name that a store recorded back to the encoder."""

from __future__ import annotations

import re

from memlab.encoders.base import Encoder
from memlab.encoders.half_precision import BFLOAT16
from memlab.encoders.hashing import HashingEncoder
from memlab.encoders.minilm import MiniLM
from memlab.encoders.sentence_transformer import SentenceTransformerEncoder
from memlab.encoders.weights import MINILM
from memlab.errors import EncoderMismatch, InvalidValue

__all__ = ["encoder_from_name"]

_SHORT = MINILM.split("/")[1]
_HASHING = re.compile(r"hashing-([1-9][0-9]*)")


def encoder_from_name(
    name: str,
    dimension: int | None = None,
    fingerprint: str | None = None,
    *,
    token_limit: int | None = None,
    document_prefix: str | None = None,
) -> Encoder:
    """Make the encoder that a store's stamp names, from what is on this machine; nothing is downloaded.

    Parameters
    ----------
    name : str
        ``sentence-transformers/all-MiniLM-L6-v2`` (or without the owner; or with ``+bfloat16`` after it),
        ``hashing-N``, or the name or path of any other sentence-transformers model.
    dimension, fingerprint : optional
        What the store recorded. If given, the encoder is located now and compared.
    token_limit, document_prefix : optional
        What the store recorded; by default the model's own.

    Raises
    ------
    EncoderUnavailable
        If the model is not on this machine (when something is compared, else at the first use).
    EncoderMismatch
        If the model found under this name has another dimension or other weights.
    InvalidValue
        If the name is empty.
    """
    if not name.strip():
        raise InvalidValue("name: expected the name of an encoder, found an empty one")
    encoder: Encoder
    if match := _HASHING.fullmatch(name):
        encoder = HashingEncoder(int(match[1]), token_limit or 256)
    elif name in (MINILM, _SHORT) and not document_prefix:
        encoder = MiniLM(token_limit=token_limit)
    elif name in (f"{MINILM}{BFLOAT16}", f"{_SHORT}{BFLOAT16}") and not document_prefix:
        encoder = MiniLM(token_limit=token_limit, precision="bfloat16")
    else:
        encoder = SentenceTransformerEncoder(name, token_limit=token_limit, document_prefix=document_prefix)
    for label, expected, found in (
        ("dimension", dimension, lambda: encoder.dimension),
        ("fingerprint", fingerprint, lambda: encoder.fingerprint),
    ):
        if expected is not None and found() != expected:
            raise EncoderMismatch(
                f"{name}: the store recorded the {label} {expected}, the encoder on this machine ({encoder.name}) "
                f"has {found()}; use the encoder that the store was made with, or re-embed: memlab reembed"
            )
    return encoder
