"""Vectors of queries: made in one batch, and kept, so that a second evaluation loads no model."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from memlab.encoders.base import EncoderStamp, FloatMatrix, stamp
from memlab.errors import EncoderError
from memlab.progress import Progress, Show
from memlab.retrieval.channels import Query
from memlab.retrieval.terms import clean

if TYPE_CHECKING:
    from memlab.store import MemoryStore

_BATCH = 512


class _Known(dict[str, FloatMatrix]):
    """By text, over vectors that are filed by the hash of it: the file holds no words of anybody's queries."""

    def __init__(self, filed: dict[str, FloatMatrix]) -> None:
        super().__init__()
        self.filed = filed

    def __contains__(self, text: object) -> bool:
        if not super().__contains__(text) and isinstance(text, str) and (key := _key(text)) in self.filed:
            self[text] = self.filed[key]
        return super().__contains__(text)

    def all_filed(self) -> dict[str, FloatMatrix]:
        """What belongs in the file: what was there, and what is new."""
        return {**self.filed, **{_key(text): row for text, row in self.items()}}


_KEPT: WeakKeyDictionary[MemoryStore, tuple[EncoderStamp, _Known]] = WeakKeyDictionary()


def prepared(store: MemoryStore, texts: Sequence[str], *, needed: bool = True, progress: Show = None) -> list[Query]:
    """The queries in the form that channels need, in order.

    Vectors are kept for as long as the store object lives; beside a store that :func:`build_store` made they are kept
    in a file too.

    Parameters
    ----------
    store : MemoryStore
    texts : sequence of str
    needed : bool
        Whether any channel needs vectors.
    progress : bool or callable, optional

    Returns
    -------
    list of Query
        Without vectors if no encoder can be had; their notes say why.
    """
    if not needed:
        return [Query(text, None, "no channel needs the query's vector") for text in texts]
    recorded = store.encoder_stamp
    if recorded is None:
        why = "no memory has a vector yet" if store.wants_encoder else "the store was opened with encoder=None"
        return [Query(text, None, why) for text in texts]
    made_by, known = _kept(store, recorded)
    wanted = [text for text in dict.fromkeys(texts) if text not in known and clean(text).strip()]
    if wanted:
        try:
            made_by = stamp(store.encoder())
            with Progress("encoding queries", len(wanted), progress) as shown:
                for start in range(0, len(wanted), _BATCH):
                    part = wanted[start : start + _BATCH]
                    known.update(zip(part, store.encode_queries(part), strict=True))
                    shown.advance(len(part))
        except EncoderError as error:
            return [Query(text, None, str(error)) for text in texts]
        finally:
            _KEPT[store] = (made_by, known)
            _write(store, made_by, known)
    elif known and _empty(vector_file(store.path)):
        _write(store, made_by, known)  # another store's vectors, shared
    return [
        Query(text, known[text], made_by=made_by) if text in known else Query(text, None, "the query is blank")
        for text in texts
    ]


def share(origin: MemoryStore, copy: MemoryStore) -> None:
    """Let two stores with the same encoder use the same vectors of queries, so that none is made twice."""
    if (recorded := origin.encoder_stamp) is None:
        return
    kept = _kept(origin, recorded)
    kept[1].filed.update(_read(vector_file(copy.path), recorded))
    _KEPT[origin] = _KEPT[copy] = kept


def vector_file(path: Path) -> Path:
    """Where the vectors of queries lie for a store of the cache."""
    return path.with_name(f"{path.stem}.queries.npz")


def _empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def _kept(store: MemoryStore, recorded: EncoderStamp) -> tuple[EncoderStamp, _Known]:
    """What is known already, in memory or beside the store, if it is of the store's encoder."""
    if (kept := _KEPT.get(store)) is not None and recorded.compatible(kept[0]):
        return kept
    return recorded, _Known(_read(vector_file(store.path), recorded))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path, recorded: EncoderStamp) -> dict[str, FloatMatrix]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            made_by = EncoderStamp(**json.loads(str(file["made_by"])))
            keys, vectors = file["keys"].tolist(), file["vectors"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return {}  # not there, or not whole: it can be made again
    if not recorded.compatible(made_by) or vectors.shape != (len(keys), recorded.dimension):
        return {}
    return dict(zip(keys, vectors.astype(np.float32, copy=False), strict=True))


def _write(store: MemoryStore, made_by: EncoderStamp, known: _Known) -> None:
    """File the vectors beside a store of the cache, whole or not at all; a disk that is full costs only the cache."""
    path = vector_file(store.path)
    if not path.exists():
        return
    filed = known.all_filed()
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with suppress(OSError):
        try:
            with part.open("wb") as file:
                np.savez(
                    file,
                    made_by=np.array(json.dumps(asdict(made_by))),
                    keys=np.array(list(filed)),
                    vectors=np.array(list(filed.values()), np.float32),
                )
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
