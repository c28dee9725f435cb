"""The machine that a measurement was made on, in the words that belong beside the figures."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "onnxruntime", "sentence-transformers", "tokenizers", "torch")
_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "asimd", "amx_bf16")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system and versions, as plain JSON values; ``None`` where it cannot be told."""
    import memlab

    name, flags = _processor()
    return {
        "processor": name,
        "instructions": flags,
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "memlab": memlab.__version__,
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "load": _load(),
    }


def told(facts: dict[str, Any]) -> str:
    """The machine in one line."""
    parts = [
        facts["processor"] or "unknown processor",
        f"{facts['cores']} cores",
        ", ".join(facts["instructions"]),
        f"{facts['memory_gb']:.0f} GB" if facts["memory_gb"] else "",
        facts["system"],
        f"Python {facts['python']}",
        f"SQLite {facts['sqlite']}",
        *(f"{name} {found}" for name, found in facts["packages"].items()),
    ]
    return ", ".join(part for part in parts if part)


def resident_mb() -> float | None:
    """What this process holds in memory, in MB; the most it held where the present cannot be told."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    with suppress(ImportError):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1e6 if sys.platform == "darwin" else most / 1e3
    return None


def _processor() -> tuple[str, list[str]]:
    name, flags = platform.processor(), []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        name = facts.get("model name", name)
        flags = facts.get("flags", facts.get("Features", "")).split()
    return name, [flag for flag in _FLAGS if flag in flags]


def _memory_gb() -> float | None:
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _load() -> float | None:
    with suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return None
