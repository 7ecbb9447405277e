"""The one place that knows numba: compile a loop, and run blocks of it on several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import torch

Loop = TypeVar("Loop", bound=Callable[..., object])
Block = TypeVar("Block")
Answer = TypeVar("Answer")


def compiled(function: Loop, *, fused: bool = False) -> Loop:
    """Compile a loop over arrays to machine code, kept on disk between runs.

    The loop lets go of the interpreter lock, so that `in_threads` can run blocks side by side.
    Threads are ours rather than numba's: those abort a process that forks or that calls from two
    threads. (Products of matrices are torch's: after a fork, they need torch.set_num_threads(1).)
    Arguments hold no NaN (the door has seen to that), so smallest and largest may use vector
    instructions; sums keep their order. With `fused`, a * b + c may be rounded once: faster, but
    not everywhere alike, so not for distances that tie.
    """
    liberties = {"nnan", "nsz", "contract"} if fused else {"nnan", "nsz"}
    options: dict[str, Any] = {"nogil": True, "fastmath": liberties, "error_model": "numpy"}
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


def compiled_fused(function: Loop) -> Loop:
    return compiled(function, fused=True)


def has_compiled_loops(tensor: torch.Tensor) -> bool:
    """Whether compiled loops can work on it, or their twins in torch must."""
    return tensor.device.type == "cpu"


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

    As many threads as torch uses: `torch.set_num_threads` is the one setting that users know. The
    caller takes blocks like the others and never waits for a thread that has not begun. Work that
    comes here again goes on in its thread.
    """
    threads = min(torch.get_num_threads(), len(blocks))
    if threads <= 1 or getattr(_here, "busy", False):
        return [work(block) for block in blocks]
    answers: dict[int, Answer] = {}
    todo = iter(enumerate(blocks))  # its next() is atomic

    def drain() -> None:
        _here.busy = True
        try:
            for place, block in todo:
                answers[place] = work(block)
        finally:
            _here.busy = False

    helpers = []
    with suppress(RuntimeError):  # no new threads while the interpreter shuts down
        helpers = [_pool().submit(drain) for _ in range(threads - 1)]
    try:
        drain()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return [answers[place] for place in range(len(blocks))]


_here = threading.local()


@cache
def _pool() -> ThreadPoolExecutor:
    """Kept from call to call: to start a thread costs as much as a small matrix."""
    return ThreadPoolExecutor(thread_name_prefix="crossedge")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
