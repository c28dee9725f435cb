"""The hash that says whose weights a folder holds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from memlab.errors import EncoderUnavailable

__all__ = ["file_sha256", "fingerprint", "weight_files"]

# safetensors first: it is what transformers loads when both formats are there.
_FORMATS = (
    ("model.safetensors", "model-*-of-*.safetensors", "adapter_model.safetensors"),
    ("pytorch_model.bin", "pytorch_model-*-of-*.bin", "adapter_model.bin"),
)
_HASHES: dict[tuple[str, int, int], str] = {}


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
    """Hash a file: SHA-256 as 64 hex digits, remembered while its size and modification time stay the same."""
    status = file.stat()
    key = (str(file.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _HASHES:
        with file.open("rb") as stream:
            _HASHES[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _HASHES[key]
