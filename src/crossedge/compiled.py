"""The one place that knows numba: compile a loop, and run blocks of it on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

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
    decorate = numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz"}, error_model="numpy")
    return cast(Loop, decorate(function))


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
