"""Check before allocating whether n x n matrices fit into the free memory."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

UNCHECKED_POINTS = 1000  # up to this many points, matrices are too small to need a check
GIB = 2**30  # bytes


DEFAULT_REMEDY = "take a graph at temperature 0, which needs no such matrix, or"


def check_room(n: int, matrices: float, remedy: str = DEFAULT_REMEDY) -> None:
    """Raise MemoryError unless this number of (n, n) matrices of doubles fits into free memory.

    The message ends with the remedy and the largest number of points that would fit.
    """
    if n <= UNCHECKED_POINTS:
        return
    needed, free = 8.0 * n * n * matrices, free_memory()
    if needed > free:
        most = int(math.sqrt(free / (8 * matrices))) // 100 * 100
        raise MemoryError(
            f"{n:,} points need about {needed / GIB:.1f} GiB for matrices of all pairs and "
            f"{free / GIB:.1f} GiB are free: {remedy} at most {most:,} points"
        )


def check_bytes(needed: float, what: str, remedy: str) -> None:
    """Raise MemoryError unless so many bytes fit into free memory."""
    free = free_memory()
    if needed > free:
        raise MemoryError(
            f"{what} need about {needed / GIB:.1f} GiB and {free / GIB:.1f} GiB are free: {remedy}"
        )


def free_memory() -> float:
    """Return the bytes that this process can still allocate; infinite if this is not known."""
    return max(min(_machine(), _control_group(), _limit_of_process()), 0.0)


def _machine() -> float:
    """Return the available memory of the machine."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _control_group() -> float:
    """Return the limit of the container less what this process uses; infinite without a limit."""
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            allowed = float((Path("/sys/fs/cgroup") / limit).read_text())
            resident = int(Path("/proc/self/statm").read_text().split()[1])
            return allowed - resident * os.sysconf("SC_PAGE_SIZE")
    return math.inf


def _limit_of_process() -> float:
    """Return what is left of the address space that `ulimit -v` allows."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return float(limit - pages * resource.getpagesize())
    return math.inf
