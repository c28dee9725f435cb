"""How many threads a computation should take on this machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = ["usable_cores"]

_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(cpus: Path = _CPUS, quota: Path = _QUOTA) -> int:
    """Physical cores that this process may use, at least 1.

    Two hardware threads of one core share its arithmetic units, so they count once where the system tells (Linux). The
    processors that the process is bound to, the share of a container and OMP_NUM_THREADS are upper limits.
    """
    try:
        allowed = os.sched_getaffinity(0)
        count = len({_siblings(cpus, cpu) for cpu in allowed})
    except AttributeError:  # not Linux
        count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    for limit in (_container(quota), _environment()):
        count = min(count, limit or count)
    return max(1, count)


def _siblings(cpus: Path, cpu: int) -> str:
    try:
        return (cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return str(cpu)


def _container(quota: Path) -> int | None:
    """The share that a container has of the processors, in whole ones (cgroup v2: microseconds in a period)."""
    try:
        share, period = quota.read_text(encoding="ascii").split()[:2]
        return None if share == "max" else max(1, math.ceil(int(share) / int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _environment() -> int | None:
    named = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(named) if named.isdecimal() and int(named) > 0 else None
