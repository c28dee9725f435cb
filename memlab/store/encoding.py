"""The encoder of a store: which one it is, that it is the right one, and content to vectors with it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from memlab.checks import whole
from memlab.encoders.base import Encoder, EncoderStamp, FloatMatrix, check_vectors, stamp
from memlab.errors import EncoderError, EncoderMismatch, EncoderUnavailable, InvalidValue, MissingDependency
from memlab.store.connection import on_fork
from memlab.store.query_vectors import QueryVectors


class _Auto:
    def __repr__(self) -> str:
        return "AUTO"


AUTO: Final = _Auto()
"""The store's own encoder; all-MiniLM-L6-v2 for a new store."""

EncoderChoice = Encoder | None | _Auto
AGGREGATES = ("length-weighted", "mean", "first", "truncate")


@dataclass(frozen=True)
class PassagePolicy:
    """How content becomes vectors.

    Parameters
    ----------
    overlap : int
        Tokens that neighbouring passages share.
    aggregate : {"length-weighted", "mean", "first", "truncate"}
        How passage vectors make the document vector: their mean weighted by length, their plain mean, the first one
        alone; ``"truncate"`` makes no passages and encodes what fits, as most published figures do.

    Raises
    ------
    InvalidValue
        If a value is another one.
    """

    overlap: int = 0
    aggregate: str = "length-weighted"

    def __post_init__(self) -> None:
        if self.aggregate not in AGGREGATES:
            raise InvalidValue(f"aggregate: expected one of {', '.join(AGGREGATES)}; found {self.aggregate!r}")
        object.__setattr__(self, "overlap", whole(self.overlap, "overlap", least=0))


@dataclass(frozen=True)
class Encoded:
    """A content's document vector, and its passages where there are two or more.

    Attributes
    ----------
    vector : bytes
        Little-endian float32.
    passages : tuple of (start, end, vector)
        Character offsets and little-endian float32.
    """

    vector: bytes
    passages: tuple[tuple[int, int, bytes], ...] = ()


@dataclass(eq=False)
class EncoderSlot:
    """Holds the encoder of a store; loads it when it is first needed, and remembers why it cannot be had."""

    choice: EncoderChoice
    recorded: EncoderStamp | None
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _encoder: Encoder | None = field(default=None, repr=False)
    _stamp: EncoderStamp | None = field(default=None, repr=False)
    _absent: EncoderError | None = field(default=None, repr=False)
    _recent: QueryVectors = field(default_factory=QueryVectors, repr=False)

    def get(self) -> Encoder:
        """The encoder, checked against what the store recorded.

        Raises
        ------
        EncoderUnavailable
            If there is none, or its weights or packages are missing.
        EncoderMismatch
            If the store's vectors are another encoder's.
        """
        with self._lock:
            if self._encoder is not None:
                return self._encoder
            if self._absent is not None:
                raise self._absent
            if self.choice is None:
                raise EncoderUnavailable("the store was opened with encoder=None: recall goes by keywords alone")
            try:
                encoder = self._resolve(self.choice)
                self._stamp = self._matching(stamp(encoder))
            except MissingDependency as error:
                self._absent = EncoderUnavailable(str(error))
                raise self._absent from error
            except (EncoderUnavailable, EncoderMismatch) as error:
                self._absent = error
                raise
            except EncoderError:
                raise
            except Exception as error:
                # Somebody's own encoder may raise anything; not remembered, for it may have been a passing fault.
                raise EncoderError(f"the encoder cannot be used: {type(error).__name__}: {error}") from error
            self._encoder = encoder
            return encoder

    def __post_init__(self) -> None:
        on_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # a thread that held it does not exist in the child
        self._recent = QueryVectors()

    def _resolve(self, choice: Encoder | _Auto) -> Encoder:
        if not isinstance(choice, _Auto):
            return choice
        from memlab.encoders import MiniLM, encoder_from_name

        if self.recorded is None:
            return MiniLM()
        return encoder_from_name(
            self.recorded.name,
            dimension=self.recorded.dimension,
            fingerprint=self.recorded.fingerprint,
            token_limit=self.recorded.token_limit,
            document_prefix=self.recorded.document_prefix,
        )

    def _matching(self, found: EncoderStamp) -> EncoderStamp:
        if self.recorded is not None and not self.recorded.compatible(found):
            raise mismatch(self.recorded, found)
        return found

    def check_choice(self) -> None:
        """On opening: refuse an encoder that was named and is not the store's. Nothing is loaded for ``AUTO``."""
        if self.recorded is None or self.choice is None or isinstance(self.choice, _Auto):
            return
        try:
            self._matching(stamp(self.choice))
        except EncoderUnavailable:
            # No weights to compare, so the name decides; keyword recall works without them.
            if (self.choice.name, self.choice.dimension) != (self.recorded.name, self.recorded.dimension):
                unread = EncoderStamp(self.choice.name, "", self.choice.dimension, self.choice.token_limit)
                raise mismatch(self.recorded, unread) from None

    def follow(self, recorded: EncoderStamp | None) -> None:
        """Take over what the store records now (another process may have re-embedded it)."""
        if recorded == self.recorded:
            return  # without the lock, which is held while an encoder loads: a recall by keywords must not wait for it
        with self._lock:
            if recorded == self.recorded:
                return
            self.recorded = recorded
            # What could not be had or did not match before may do so now; `get` looks again.
            self._absent = None
            if self._stamp is not None and recorded is not None and not recorded.compatible(self._stamp):
                self._encoder = self._stamp = None

    def encode_queries(self, texts: Sequence[str]) -> tuple[FloatMatrix, EncoderStamp]:
        """Query vectors, float32, shape (len(texts), dimension), and whose they are; raises :class:`EncoderError`.

        A single query is encoded once, as long as it is among the last few hundred.
        """
        encoder = self.get()
        made_by = stamp(encoder)
        if len(texts) != 1 or not isinstance(texts[0], str):
            return _guarded(encoder, "encode_queries", texts), made_by
        vector = self._recent.get(texts[0], encoder, made_by)
        if vector is None:
            vector = _guarded(encoder, "encode_queries", texts)
            self._recent.keep(texts[0], vector, encoder, made_by)
        return vector, made_by

    def encode_contents(self, contents: Sequence[str], policy: PassagePolicy) -> tuple[list[Encoded], EncoderStamp]:
        """Document and passage vectors of contents, and whose they are; raises :class:`EncoderError`."""
        encoder = self.get()
        return encode_contents(encoder, contents, policy), stamp(encoder)

    def encode_each(
        self, contents: Sequence[str], policy: PassagePolicy
    ) -> tuple[list[Encoded | None], EncoderStamp | None, str]:
        """The same without an exception: where all in one go fails, one content at a time.

        Returns
        -------
        encoded : list of Encoded or None
            ``None`` where it failed.
        made_by : EncoderStamp or None
            Whose vectors they are.
        note : str
            What went wrong last; empty if nothing did.
        """
        try:
            encoder = self.get()
        except EncoderError as error:
            return [None] * len(contents), None, str(error)
        try:
            return list(encode_contents(encoder, contents, policy)), stamp(encoder), ""
        except EncoderError as error:
            note = str(error)
        results: list[Encoded | None] = [None] * len(contents)
        failed_in_a_row = 0
        for i, content in enumerate(contents if len(contents) > 1 else ()):
            if failed_in_a_row == _GIVE_UP_AFTER:
                break
            try:
                results[i] = encode_contents(encoder, [content], policy)[0]
                failed_in_a_row = 0
            except EncoderError as error:
                note, failed_in_a_row = str(error), failed_in_a_row + 1
        return results, stamp(encoder), note


# One bad text must not leave its whole batch without vectors; a broken encoder must not be asked for every text.
_GIVE_UP_AFTER = 3


def encode_contents(encoder: Encoder, contents: Sequence[str], policy: PassagePolicy) -> list[Encoded]:
    """Split contents, encode every passage in one call and aggregate.

    Raises
    ------
    EncoderError
        If the encoder fails or gives unusable vectors.
    """
    if policy.aggregate == "truncate":
        return [Encoded(vector_bytes(row)) for row in _guarded(encoder, "encode_documents", contents)]
    from memlab.encoders import PassageSplitter, aggregate

    splitter = PassageSplitter(overlap=policy.overlap)
    try:
        cuts = [splitter.split(content, encoder) for content in contents]
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"{encoder.name}: its tokenizer failed: {type(error).__name__}: {error}") from error
    texts = [content[p.start : p.end] for content, pieces in zip(contents, cuts, strict=True) for p in pieces]
    vectors = _guarded(encoder, "encode_documents", texts)
    result, at = [], 0
    for pieces in cuts:
        rows = vectors[at : at + len(pieces)]
        at += len(pieces)
        if len(pieces) == 1:
            result.append(Encoded(vector_bytes(rows[0])))
            continue
        lengths = np.array([p.end - p.start for p in pieces])
        document = aggregate(rows, lengths, how=policy.aggregate)
        passages = tuple((p.start, p.end, vector_bytes(row)) for p, row in zip(pieces, rows, strict=True))
        result.append(Encoded(vector_bytes(document), passages))
    return result


def _guarded(encoder: Encoder, method: str, texts: Sequence[str]) -> FloatMatrix:
    """Call an encoder; any failure of it becomes an :class:`EncoderError`, so that callers lose nothing."""
    if not texts:
        return np.empty((0, encoder.dimension), np.float32)
    try:
        vectors = getattr(encoder, method)(list(texts))
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"{encoder.name}: encoding failed: {type(error).__name__}: {error}") from error
    return check_vectors(vectors, len(texts), encoder.dimension, encoder.name)


def vector_bytes(vector: FloatMatrix) -> bytes:
    """The form in which the store keeps a vector: little-endian float32."""
    return vector.astype("<f4").tobytes()


def mismatch(recorded: EncoderStamp, found: EncoderStamp) -> EncoderMismatch:
    """The error for two encoders on one store."""
    what = (
        f"{found.name} ({found.dimension} dimensions)"
        if (found.name, found.dimension) != (recorded.name, recorded.dimension)
        else f"{found.name} with other weights ({found.fingerprint[:19]}… instead of {recorded.fingerprint[:19]}…)"
    )
    return EncoderMismatch(
        f"the store's vectors were made by {recorded.name} ({recorded.dimension} dimensions), the encoder at hand "
        f"is {what}; vectors of two models cannot be compared. Open the store without naming an encoder, or move it "
        f"over with `memlab reembed --encoder {found.name}` (in Python: MemoryStore(path).reembed(encoder))"
    )


# -- what the file records -------------------------------------------------------------------------------------------


def recorded_encoder(connection: sqlite3.Connection) -> tuple[int | None, EncoderStamp | None]:
    """The id and the stamp of the encoder whose vectors the store holds; ``(None, None)`` before the first."""
    row = connection.execute(
        "SELECT e.id, e.name, e.fingerprint, e.dimension, e.token_limit, e.document_prefix FROM store_settings s "
        "JOIN encoders e ON e.id = CAST(s.value AS INTEGER) WHERE s.key = 'encoder_id'"
    ).fetchone()
    return (None, None) if row is None else (row[0], EncoderStamp(*row[1:]))


def record_encoder(connection: sqlite3.Connection, wanted: EncoderStamp) -> int:
    """The id of ``wanted`` among the encoders of the store, added if it is new, else given its name and limit."""
    key = (wanted.fingerprint, wanted.dimension, wanted.document_prefix)
    find = "SELECT id FROM encoders WHERE fingerprint = ? AND dimension = ? AND document_prefix = ?"
    row = connection.execute(find, key).fetchone()
    if row is None:
        connection.execute(
            "INSERT INTO encoders (name, fingerprint, dimension, token_limit, document_prefix) VALUES (?, ?, ?, ?, ?)",
            (wanted.name, wanted.fingerprint, wanted.dimension, wanted.token_limit, wanted.document_prefix),
        )
        row = connection.execute(find, key).fetchone()
    else:
        connection.execute(
            "UPDATE encoders SET name = ?, token_limit = ? WHERE id = ?", (wanted.name, wanted.token_limit, row[0])
        )
    return int(row[0])


def set_setting(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Write one row of ``store_settings``."""
    connection.execute(
        "INSERT INTO store_settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def get_setting(connection: sqlite3.Connection, key: str) -> str | None:
    """Read one row of ``store_settings``."""
    row = connection.execute("SELECT value FROM store_settings WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
