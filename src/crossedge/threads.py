"""Run blocks of work on several threads, those of torch where they can be had.

To wake one of Python's threads takes longer than a small matrix. The OpenMP threads of torch wait
for the next call for about a millisecond before they sleep, and two teams would only take the
cores from each other. Their entry point is part of the ABI of GNU's OpenMP, and of those that stand
in for it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch

Block = TypeVar("Block")
Answer = TypeVar("Answer")


def in_threads(work: Callable[[Block], Answer], blocks: Sequence[Block]) -> list[Answer]:
    """Do the work on every block, answers in the order of the blocks.

    As many threads as torch uses: `torch.set_num_threads` is the one setting that users know. Work
    that comes here again goes on in its thread, and so do torch's own products inside it.
    """
    threads = min(torch.get_num_threads(), len(blocks))
    if threads <= 1 or getattr(_here, "busy", False):
        return [work(block) for block in blocks]
    answers: dict[int, Answer] = {}
    errors: list[BaseException] = []
    todo = iter(enumerate(blocks))  # its next() is atomic

    def drain() -> None:
        _here.busy = True
        try:
            for place, block in todo:
                answers[place] = work(block)
        except BaseException as error:  # the caller's, whichever thread met it
            errors.append(error)
            for _ in todo:
                pass
        finally:
            _here.busy = False

    if not _in_team(drain, threads):
        _in_pool(drain, threads)
    if errors:
        raise errors[0]
    return [answers[place] for place in range(len(blocks))]


_here = threading.local()
_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _in_team(drain: Callable[[], None], threads: int) -> bool:
    """Whether OpenMP has done it."""
    parallel = _openmp()
    if parallel is None:
        return False
    parallel(_Task(lambda _: drain()), None, threads, 0)
    return True


@cache
def _openmp() -> Any:
    """`GOMP_parallel` of the very library that torch has loaded."""
    for library in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        with suppress(OSError, AttributeError):  # no such runtime: Windows, some of the Macs
            parallel = ctypes.CDLL(str(library)).GOMP_parallel
            parallel.argtypes = [_Task, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            parallel.restype = None
            return parallel
    return None


def _in_pool(drain: Callable[[], None], threads: int) -> None:
    """The caller takes blocks like the others, and never waits for a thread that has not begun."""
    helpers = []
    with suppress(RuntimeError):  # no new threads while the interpreter shuts down
        helpers = [_pool().submit(drain) for _ in range(threads - 1)]
    drain()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Kept from call to call: to start a thread costs as much as a small matrix."""
    return ThreadPoolExecutor(thread_name_prefix="crossedge")


def _after_fork() -> None:
    """A child has none of its parent's threads, and OpenMP waits for them for ever."""
    global _openmp
    _openmp = cache(lambda: None)
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
