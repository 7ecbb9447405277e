"""The one place that knows numba: compile a loop, and run blocks of it on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import torch

Loop = TypeVar("Loop", bound=Callable[..., object])
Block = TypeVar("Block")
Answer = TypeVar("Answer")


def compiled(function: Loop) -> Loop:
    """Compile a loop over arrays to machine code, kept on disk between runs.

    The loop lets go of the interpreter lock, so that `in_threads` can run blocks side by side.
    Threads are ours rather than numba's: those abort a process that forks or that calls from two
    threads, and a library must be safe in both. Arguments hold no NaN (the door has seen to that),
    so smallest and largest may use vector instructions; sums keep their order.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": {"nnan", "nsz"}, "error_model": "numpy"}
    try:
        dispatcher: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        return cast(Loop, numba.njit(**options)(function))
    # numba recompiles when the file of the function changes, but not when a function that it calls
    # does, in another file: let the code on disk depend on all of them
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = (cache_file._source_stamp, _sources())
    return cast(Loop, dispatcher)


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """The state of the files that hold what loops in other files call or use."""
    package = Path(__file__).parent
    files = [
        package / "compiled.py",
        package / "distances.py",
        *(package / "numerics").glob("*.py"),
    ]
    stats = [(file.name, file.stat()) for file in sorted(files)]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def inlined(function: Loop) -> Loop:
    """Compile a small function into the body of each loop that calls it."""
    return cast(Loop, numba.njit(nogil=True, inline="always", error_model="numpy")(function))


def in_threads(work: Callable[[Block], Answer], blocks: Sequence[Block]) -> list[Answer]:
    """Do the work on every block, answers in the order of the blocks.

    As many threads as torch uses: `torch.set_num_threads` is the one setting that users know.
    """
    threads = min(torch.get_num_threads(), len(blocks))
    if threads <= 1:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, blocks, chunksize=1))
