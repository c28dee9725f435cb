"""The hash that says whose weights a folder holds."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from memlab.cached import cache_home, write_whole
from memlab.errors import EncoderUnavailable

__all__ = ["file_sha256", "fingerprint", "weight_files"]

# safetensors first: it is what transformers loads when both formats are there.
_FORMATS = (
    ("model.safetensors", "model-*-of-*.safetensors", "adapter_model.safetensors"),
    ("pytorch_model.bin", "pytorch_model-*-of-*.bin", "adapter_model.bin"),
)
_HASHES: dict[tuple[str, int, int], str] = {}
# Reading and hashing 90 MB takes longer than loading them, so large files are hashed once and not at every start.
_LARGE = 8_000_000
_SETTLED_NS = 2_000_000_000
_MOST_REMEMBERED = 64


def weight_files(folder: Path) -> list[Path]:
    """List the files that a model's weights are loaded from, sorted by their path inside the folder.

    A sentence-transformers model keeps its modules in sub-folders named in modules.json; each of them
    may have weights of its own.
    """
    folders = {folder}
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        folders |= {folder / module["path"] for module in modules if module.get("path")}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass  # a plain transformers folder; what is wrong with a broken file is said when it is read for its facts
    found: set[Path] = set()
    for place in folders:
        for patterns in _FORMATS:
            files = {file for pattern in patterns for file in place.glob(pattern) if file.is_file()}
            if files:
                found |= files
                break
    return sorted(found, key=lambda file: file.relative_to(folder).as_posix())


def fingerprint(folder: Path) -> str:
    """Return ``sha256:`` and the hash of a model's weights.

    One file: the SHA-256 of that file. Several (shards, dense layers): the SHA-256 of the lines
    ``<path inside the folder> <SHA-256 of the file>``, each ended by a newline, in the order of the paths.

    Raises
    ------
    EncoderUnavailable
        If the folder has no weights, or they cannot be read.
    """
    files = weight_files(folder)
    if not files:
        raise EncoderUnavailable(f"{folder} has no weights: expected model.safetensors or pytorch_model.bin")
    try:
        if len(files) == 1:
            return f"sha256:{file_sha256(files[0])}"
        lines = "".join(f"{file.relative_to(folder).as_posix()} {file_sha256(file)}\n" for file in files)
    except OSError as error:
        raise EncoderUnavailable(f"the weights in {folder} cannot be read: {error}") from error
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def file_sha256(file: Path) -> str:
    """Hash a file: SHA-256 as 64 hex digits, remembered while the file stays the same.

    For the life of the process by path, size and modification time. Of a large file the hash is also kept in the cache
    folder, by path, size, inode, and the times of the last change of content and of anything else about the file: the
    latter no program can set. A file that was changed in the last two seconds is not kept there, for a second change in
    the same tick of the clock would go unnoticed.
    """
    status = file.stat()
    path = str(file.resolve())
    key = (path, status.st_size, status.st_mtime_ns)
    if key not in _HASHES:
        _HASHES[key] = _kept_hash(path, status) or _hash(file, path, status)
    return _HASHES[key]


def _hash(file: Path, path: str, before: os.stat_result) -> str:
    started = time.time_ns()
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    settled = max(before.st_mtime_ns, before.st_ctime_ns) < started - _SETTLED_NS
    if before.st_size >= _LARGE and settled and _identity(before) == _identity(file.stat()):
        with contextlib.suppress(OSError):
            rows = {name: row for name, row in _kept().items() if name != path and os.path.exists(name)}
            rows = dict(list(rows.items())[1 - _MOST_REMEMBERED :]) | {path: [*_identity(before), digest]}
            write_whole(_hashes_file(), json.dumps(rows, indent=0).encode())
    return digest


def _kept_hash(path: str, status: os.stat_result) -> str | None:
    if status.st_size < _LARGE:
        return None
    row = _kept().get(path)
    if not isinstance(row, list) or row[:-1] != _identity(status):
        return None
    digest = row[-1]
    return digest if isinstance(digest, str) and len(digest) == 64 else None


def _kept() -> dict[str, list[object]]:
    try:
        rows = json.loads(_hashes_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}


def _identity(status: os.stat_result) -> list[object]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _hashes_file() -> Path:
    return cache_home() / "hashes.json"
