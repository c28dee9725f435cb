"""The files that memories are about: their checksums when a memory is stored, and whether they still hold."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memlab.store import Memory

MOST_BYTES = 64 * 1024 * 1024  # of a file; a larger one is not read


@dataclass(frozen=True)
class Looked:
    """Related files as they go into the store.

    Attributes
    ----------
    paths : tuple of str
        Absolute where the file is there, as given where it is not.
    checksums : dict of str to str
        Of those that could be read.
    missing : tuple of str
        Of which there is no checksum.
    """

    paths: tuple[str, ...]
    checksums: Mapping[str, str]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Stale:
    """What became of a memory's files; ``unknown`` counts those without a kept checksum."""

    changed: tuple[str, ...]
    vanished: tuple[str, ...]
    unreadable: tuple[str, ...]
    files: int
    unknown: int


@dataclass(frozen=True)
class Files:
    """Reads files to tell whether they changed; their content goes nowhere.

    Parameters
    ----------
    base : Path
        What relative paths start from.
    """

    base: Path
    _seen: dict[str, str | None] = field(default_factory=dict, compare=False)

    def fresh(self) -> Files:
        """The same with nothing seen yet: what was read holds for one call."""
        return Files(self.base)

    def look(self, paths: Iterable[str]) -> Looked:
        """Take the checksums of ``paths``."""
        kept: list[str] = []
        checksums: dict[str, str] = {}
        for path in paths:
            whole = str(self._absolute(path))
            if (found := self.checksum(whole)) is None:
                kept.append(path)
            else:
                kept.append(whole)
                checksums[whole] = found
        kept = list(dict.fromkeys(kept))
        return Looked(tuple(kept), checksums, tuple(path for path in kept if path not in checksums))

    def compare(self, memory: Memory) -> Stale:
        """The files of a memory against the checksums that it was stored with."""
        changed: list[str] = []
        vanished: list[str] = []
        unreadable: list[str] = []
        unknown = 0
        paths = list(dict.fromkeys([*memory.related_files, *memory.file_checksums]))
        for path in paths:
            before = memory.file_checksums.get(path)
            if before is None:
                unknown += 1
                continue
            whole = str(self._absolute(path))
            now = self.checksum(whole)
            if now is None:
                (unreadable if _is_there(whole) else vanished).append(path)
            elif now.rpartition(":")[2] != before.rpartition(":")[2].lower():
                changed.append(path)
        return Stale(tuple(changed), tuple(vanished), tuple(unreadable), len(paths), unknown)

    def checksum(self, path: str) -> str | None:
        """``sha256:`` and the digest of a regular file; ``None`` if it is none, too large or not readable."""
        if path not in self._seen:
            self._seen[path] = _checksum(path)
        return self._seen[path]

    def _absolute(self, path: str) -> Path:
        # Unlike Path.expanduser this leaves the ~ of a user that is not known where it is.
        return Path(os.path.abspath(self.base / os.path.expanduser(path)))


def _is_there(path: str) -> bool:
    """Whether there is such a file, or may be: that of a folder which nobody lets us look into is not known to be gone.

    A folder or a device in its place is not the file.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True


def _checksum(path: str) -> str | None:
    try:
        # Opened without waiting: a pipe that nobody writes to would hold the call for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return None
    finally:
        os.close(descriptor)
