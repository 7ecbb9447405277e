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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from crossedge.interrupts import checkpoint

Block = TypeVar("Block")
Answer = TypeVar("Answer")


def has_compiled_loops(tensor: torch.Tensor) -> bool:
    """Whether compiled loops can work on it, or their twins in torch must."""
    return tensor.is_cpu


def in_threads(work: Callable[[Block], Answer], blocks: Sequence[Block]) -> list[Answer]:
    """Do the work on every block, answers in the order of the blocks.

    As many threads as torch uses: `torch.set_num_threads` is the one setting that users know. Work
    that comes here again goes on in its thread, and so do torch's own products inside it.
    """
    threads = min(_threads(), len(blocks))
    if threads <= 1 or getattr(_here, "busy", False):
        return [_checked(work, block) for block in blocks]
    answers: dict[int, Answer] = {}
    errors: list[BaseException] = []
    todo = iter(enumerate(blocks))  # its next() is atomic

    def drain() -> None:
        try:
            _here.busy = True
            for place, block in todo:
                checkpoint()
                answers[place] = work(block)
        except BaseException as error:  # the caller's, whichever thread met it
            errors.append(error)
            for _ in todo:
                pass
        finally:
            _here.busy = False

    if not _in_team(drain):
        _in_pool(drain, threads)
    if errors:
        raise errors[0]
    return [answers[place] for place in range(len(blocks))]


def _threads() -> int:
    """How many threads our own loops may use."""
    kept: int | None = getattr(_here, "threads", None)
    return torch.get_num_threads() if kept is None else kept


@contextmanager
def torch_in_one_thread() -> Iterator[None]:
    """Have torch's own operations done by the calling thread; our loops still have all threads.

    A test asks torch for many small things, and each of them would wait for all threads.
    """
    threads, openmp = _threads(), _openmp()
    if threads == 1 or openmp is None or getattr(_here, "threads", None) is not None:
        yield  # one thread, no way to tell torch, or told already
        return
    _here.threads = threads
    openmp.omp_set_num_threads(1)  # of this thread alone, unlike torch.set_num_threads
    try:
        yield
    finally:
        openmp.omp_set_num_threads(threads)
        _here.threads = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have numpy's products of matrices done by the thread that asks for them.

    Threads that share a product wait for each other, and a core that is late holds up all of them:
    where other work is on the machine, a product can take fifty times as long.
    """
    global _blas_users, _blas_limit
    with _blas_lock:
        if _blas_users == 0:
            _blas_limit = _blas().limit(limits=1)
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.restore_original_limits()


_blas_lock = threading.Lock()
_blas_users, _blas_limit = 0, cast(Any, None)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _checked(work: Callable[[Block], Answer], block: Block) -> Answer:
    checkpoint()
    return work(block)


_here = threading.local()
_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def expect_team() -> None:
    """Torch's threads are about to be used, here or by a product of matrices."""
    global _used
    _used = True


def team_size() -> int:
    """How many threads `in_team` may have, here and now."""
    if getattr(_here, "busy", False) or _openmp() is None:
        return 1
    threads = _threads()
    if threads > 1:
        expect_team()
    return threads


def start_of_team() -> int:
    """The address of the function that starts them; of any function where there is no team."""
    openmp = _openmp()
    start = ctypes.pythonapi.Py_IncRef if openmp is None else openmp.GOMP_parallel
    return ctypes.cast(start, ctypes.c_void_p).value or 0


def _in_team(drain: Callable[[], None]) -> bool:
    """Whether OpenMP has done it.

    With all of torch's threads, since a smaller team would end the others. The caller's part is a
    plain call: an interrupt inside a callback would be lost.
    """
    openmp = _openmp()
    if openmp is None:
        return False
    expect_team()
    task, threads = _Task(lambda _: drain()), _threads()
    start, end = openmp.GOMP_parallel_start, openmp.GOMP_parallel_end
    try:
        start(task, None, threads)  # the first call here, since interrupts come after calls
        drain()
    finally:
        end()
    return True


_used = False


@cache
def _openmp() -> Any:
    """The very library that torch has loaded, if it speaks the language of GNU's."""
    for openmp in libraries_of_torch():
        with suppress(AttributeError):  # no such runtime: Windows, some of the Macs
            openmp.GOMP_parallel.restype = openmp.omp_set_num_threads.restype = None
            openmp.GOMP_parallel_start.argtypes = [_Task, ctypes.c_void_p, ctypes.c_uint]
            openmp.GOMP_parallel_start.restype = openmp.GOMP_parallel_end.restype = None
            return openmp
    return None


def libraries_of_torch() -> Iterator[ctypes.CDLL]:
    """What torch has loaded for the CPU: its threads, and its products of matrices."""
    for library in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        with suppress(OSError):
            yield ctypes.CDLL(str(library))


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
    """A child has none of its parent's threads, and OpenMP would wait for them for ever."""
    global _openmp, _blas_lock, _blas_users
    _blas_lock, _blas_users = threading.Lock(), 0
    if _used:
        torch.set_num_threads(1)
    _openmp = cache(lambda: None)
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
