"""Lines of a JSON Lines file to checked memories, every complaint with file and line."""

from __future__ import annotations

import base64
import binascii
import codecs
import contextlib
import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

import numpy as np

from memlab.errors import FormatError, InvalidValue
from memlab.interchange.json_text import json_text
from memlab.store.encoding import Encoded
from memlab.store.records import FIELDS, check_content, check_text, draft
from memlab.store.transfer import Arrival
from memlab.timestamps import format_time, parse_time

_OWN = tuple(name for name in FIELDS if name != "content")
METADATA = ("project", "category", "subcategory", "tags", "importance", "created_at", "source", "related_files")
_BESIDES = ("revisions", "idempotency_keys", "encoder", "vector", "passages")
_BEIR = ("_id", "title", "text", "metadata")
_HASH = re.compile("[0-9a-f]{64}")
_MOST = 2**63 - 1


class LineReader:
    """Reads memories from a file in batches.

    Parameters
    ----------
    source : str, Path or file
    encoder : mapping or None
        The facts of the store's encoder; vectors of another one are left out.
    now : datetime or str
        For memories without a time.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | IO[bytes] | IO[str],
        encoder: Mapping[str, Any] | None,
        now: datetime | str,
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self.total: int | None = None
        self._encoder = encoder
        self._now = parse_time(now, "now")
        self._same: Counter[str] = Counter()
        self._own_file = isinstance(source, (str, os.PathLike))
        if isinstance(source, (str, os.PathLike)):
            path = Path(source).expanduser()
            self._name = str(path)
            try:
                self._file: IO[bytes] | IO[str] = path.open("rb")
            except (OSError, ValueError) as error:
                raise FormatError(f"{self._name}: cannot be read: {getattr(error, 'strerror', error)}") from error
            if path.is_file():
                self.total = _count_lines(path)
        else:
            self._file = source
            self._name = str(getattr(source, "name", "input"))

    def __enter__(self) -> LineReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._own_file:
            self._file.close()

    def batches(self, size: int) -> Iterator[list[Arrival]]:
        """Checked memories, ``size`` at a time; raises :class:`FormatError` before a batch with a faulty line."""
        batch: list[Arrival] = []
        for number, line in self._lines():
            label = f"{self._name}, line {number}"
            try:
                batch.append(self._arrival(_object(line), label))
            except InvalidValue as error:
                raise FormatError(f"{label}: {error}") from error
            if len(batch) == size:
                yield batch
                batch = []
        if batch:
            yield batch

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            for number, raw in enumerate(_split(self._file), 1):
                if number == 1:
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise FormatError(
                        f"{self._name}, line {number}: expected UTF-8, found the byte {raw[error.start]:#04x} "
                        f"at offset {error.start}"
                    ) from error
                if line.strip(" \t\r\n"):
                    yield number, line
        except OSError as error:
            raise FormatError(f"{self._name}: cannot be read: {error.strerror or error}") from error

    def _arrival(self, line: dict[str, Any], label: str) -> Arrival:
        given = {name: value for name, value in line.items() if value is not None}
        for name in given:
            if name not in (*_OWN, "content", *_BESIDES, *_BEIR):
                known = ", ".join(("content", *_OWN, *_BESIDES))
                _fail(f"the key {name!r} is unknown; the keys are {known} (or, as in BEIR, {', '.join(_BEIR)})")
        values = {name: given[name] for name in _OWN if name in given}
        for name, value in self._metadata(given.get("metadata", {})).items():
            if name in values:
                _fail(f"{name} is given twice, in the object and in its metadata")
            values[name] = value
        if "_id" in given:
            if "memory_id" in given:
                _fail("expected memory_id or _id, found both")
            values["memory_id"] = given["_id"]
        content = _content(given)
        for name in ("tags", "related_files"):
            if not isinstance(values.get(name, []), list):
                _fail(f"{name}: expected a list of strings, found {values[name]!r}")
        count = values.pop("access_count", 0)
        if isinstance(count, int) and count > _MOST:
            _fail(f"access_count: {count} is too large")
        new = draft(
            content,
            **{name: values.pop(name, None) for name in _OWN if name not in ("created_at", "access_count")},
            created_at=values.get("created_at", self._now),
            access_count=count,
            key=None if "memory_id" in given or "_id" in given else self._key(line),
        )
        return Arrival(
            draft=new,
            label=label,
            revisions=tuple(_revision(item) for item in _list(given, "revisions")),
            keys=dict(_idempotency_key(item) for item in _list(given, "idempotency_keys")),
            encoded=self._encoded(given, new.content),
        )

    def _metadata(self, metadata: Any) -> dict[str, Any]:
        if not isinstance(metadata, dict):
            _fail(f"metadata: expected an object, found {type(metadata).__name__}")
        self.left_out.update(name for name in metadata if name not in METADATA)
        return {name: metadata[name] for name in METADATA if metadata.get(name) is not None}

    def _key(self, line: dict[str, Any]) -> str:
        """A key for a line without an id: the same for the same line (and its nth repetition) in every run."""
        text = hashlib.sha256(json_text(line).encode("utf-8")).hexdigest()[:32]
        self._same[text] += 1
        return f"import/{text}/{self._same[text]}"

    def _encoded(self, given: dict[str, Any], content: str) -> Encoded | None:
        if "vector" not in given:
            return None
        facts = given.get("encoder")
        if not isinstance(facts, dict) or not isinstance(facts.get("dimension"), int):
            _fail("encoder: expected an object with name, fingerprint and dimension beside a vector")
        vector = _vector(given["vector"], facts["dimension"], "vector")
        passages = tuple(_passage(item, facts["dimension"]) for item in _list(given, "passages"))
        reached = 0
        for start, end, _ in passages:
            if start > reached or not start < end <= len(content):
                _fail(f"passages: {start} to {end} does not go on from {reached}; the content ends at {len(content)}")
            reached = end
        if passages and (passages[0][0] != 0 or reached != len(content)):
            _fail(f"passages: expected them to cover the content from 0 to {len(content)}, found an end at {reached}")
        same = self._encoder is not None and all(
            facts.get(name) == value for name, value in self._encoder.items() if name != "name"
        )
        return Encoded(vector, passages) if same else None


def _object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_no_constant, object_pairs_hook=_no_repetition)
    except json.JSONDecodeError as error:
        raise InvalidValue(f"expected JSON, found an error at column {error.colno}: {error.msg}") from error
    except InvalidValue:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"expected JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        _fail(f"expected an object, found {type(value).__name__}")
    return value


def _no_constant(name: str) -> NoReturn:
    _fail(f"{name} is no JSON")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        _fail(f"the key {twice[0]!r} is given twice")
    return values


def _content(given: dict[str, Any]) -> str:
    if "content" in given and "text" in given:
        _fail("expected content or text, found both")
    if "title" in given and "text" not in given:
        _fail("title: expected beside text, as in a BEIR corpus; put it into the content")
    content = given.get("content", given.get("text"))
    if content is None:
        _fail("expected content (or text), found neither")
    title = given.get("title", "")
    if not isinstance(title, str):
        _fail(f"title: expected text, found {type(title).__name__}")
    return check_content(f"{title}\n\n{content}" if title and isinstance(content, str) else content)


def _list(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = given.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        _fail(f"{name}: expected a list of objects, found {items!r:.80}")
    return items


def _has_keys(item: dict[str, Any], name: str, *keys: str) -> None:
    if set(item) != set(keys):
        found = ", ".join(map(repr, item)) or "none"
        _fail(f"{name}: expected objects with the keys {', '.join(keys)}; found {found}")


def _revision(item: dict[str, Any]) -> tuple[str, str]:
    _has_keys(item, "revisions", "content", "replaced_at")
    return check_content(item["content"]), format_time(parse_time(item["replaced_at"], "revisions: replaced_at"))


def _idempotency_key(item: dict[str, Any]) -> tuple[str, str]:
    _has_keys(item, "idempotency_keys", "key", "content_hash")
    hashed = item["content_hash"]
    if not isinstance(hashed, str) or not _HASH.fullmatch(hashed):
        _fail(f"idempotency_keys: expected a content_hash of 64 hexadecimal digits, found {hashed!r:.80}")
    return check_text(item["key"], "idempotency_keys: key"), hashed


def _passage(item: dict[str, Any], dimension: int) -> tuple[int, int, bytes]:
    _has_keys(item, "passages", "start", "end", "vector")
    for name in ("start", "end"):
        if isinstance(item[name], bool) or not isinstance(item[name], int):
            _fail(f"passages: {name}: expected a whole number, found {item[name]!r:.80}")
    return item["start"], item["end"], _vector(item["vector"], dimension, "passages: vector")


def _vector(text: Any, dimension: int, name: str) -> bytes:
    raw = b""
    if isinstance(text, str):
        with contextlib.suppress(binascii.Error, ValueError):
            raw = base64.b64decode(text, validate=True)
    if not raw or len(raw) != 4 * dimension:
        _fail(f"{name}: expected base64 of {dimension} little-endian float32, found {text!r:.40}")
    norm = float(np.linalg.norm(np.frombuffer(raw, "<f4").astype(np.float64)))
    if not abs(norm - 1.0) < 1e-3:  # also true of NaN
        _fail(f"{name}: expected a vector of length 1, found {norm:.4g}")
    return raw


def _split(file: IO[bytes] | IO[str]) -> Iterator[bytes]:
    """Lines end with a line feed and nothing else: U+2028 and its like belong to the text."""
    if isinstance(file, io.TextIOBase) or hasattr(file, "encoding"):
        rest = ""
        while chunk := file.read(1 << 16):
            *whole, rest = (rest + str(chunk)).split("\n")
            for line in whole:
                yield line.encode("utf-8", "surrogatepass")
        if rest:
            yield rest.encode("utf-8", "surrogatepass")
    else:
        yield from file  # type: ignore[misc]


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        count, last = 0, b""
        while chunk := file.read(1 << 20):
            count, last = count + chunk.count(b"\n"), chunk
    return count + (not last.endswith(b"\n") and bool(last))


def _fail(what: str) -> NoReturn:
    raise InvalidValue(what)
