"""Files that can be made again at any time: where they lie, and how they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["cache_home", "write_whole"]


def cache_home() -> Path:
    """The folder for what is made once and kept: the environment's MEMLAB_CACHE, else the user's cache folder."""
    if named := os.environ.get("MEMLAB_CACHE", "").strip():
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("memlab", appauthor=False))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, whatever happens meanwhile; its folder is made.

    Raises
    ------
    OSError
        If that is not possible; nothing is left behind then.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
