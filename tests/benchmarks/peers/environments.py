"""An environment of its own for every peer, made by pip from a file of pinned versions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
_PATIENCE = 1800


class CannotInstall(Exception):
    """An environment cannot be made; the message says why."""


def environment(name: str, cache: Path) -> Path:
    """The Python of a peer's environment, made if it is not there or its requirements changed.

    Parameters
    ----------
    name : str
        ``requirements/NAME.txt`` says what is in it. Without such a file it is this very Python.
    cache : Path

    Raises
    ------
    CannotInstall
        If pip cannot, or would bring CUDA packages (gigabytes that nothing here needs).
    """
    wanted = HERE / "requirements" / f"{name}.txt"
    if not wanted.exists():
        return Path(sys.executable)
    folder = cache / "envs" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    mark = folder / "requirements.sha256"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text(encoding="ascii") == digest:
        return python
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:"]
    plan = _run([*pip, "--dry-run", "-r", str(wanted)])
    if cuda := cuda_packages(plan):
        raise CannotInstall(f"pip would install CUDA packages ({', '.join(cuda[:3])}); pin a CPU build of torch")
    _run([*pip, "--quiet", "-r", str(wanted)])
    mark.write_text(digest, encoding="ascii")
    return python


def cuda_packages(plan: str) -> list[str]:
    """Names in pip's "Would install ..." line that belong to CUDA."""
    lines = [line for line in plan.splitlines() if line.startswith("Would install")]
    return sorted({word for line in lines for word in line.split() if word.startswith(("nvidia-", "cuda-"))})


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(str(error)) from error
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        raise CannotInstall((errors or ["pip failed"])[0][:300])
    return done.stdout
