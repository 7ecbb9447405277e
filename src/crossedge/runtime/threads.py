"""Run blocks of work on several threads, of OpenMP where it is available.

Waking a Python thread takes longer than the work on a small matrix. OpenMP's threads wait about a
millisecond for the next call before they sleep. If torch is loaded, its team of threads is used,
since two teams would compete for the cores; otherwise the team of the system's GNU OpenMP. The
entry points are part of the ABI of GNU OpenMP, and of the libraries that replace it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.progress import Progress
from crossedge.runtime.types import Array

Block = TypeVar("Block")
Answer = TypeVar("Answer")


def has_compiled_loops(array: Array) -> bool:
    """Return whether compiled loops can work on an array: not on tensors of other devices."""
    return not is_tensor(array) or bool(array.is_cpu)


def in_threads(work: Callable[[Block], Answer], blocks: Sequence[Block]) -> list[Answer]:
    """Run the work on every block, and return the answers in the order of the blocks.

    If torch is loaded there are as many threads as torch uses, since `torch.set_num_threads` is the
    setting that users know. Otherwise OMP_NUM_THREADS decides, or the number of cores. A nested
    call runs in the thread that makes it, and so does a single block, whose loops have all threads.
    """
    if len(blocks) == 1 or getattr(_here, "busy", False):
        return [_checked(work, block) for block in blocks]
    progress = Progress(len(blocks))
    try:
        return _run(work, blocks, progress)
    finally:
        progress.close()


def _run(
    work: Callable[[Block], Answer], blocks: Sequence[Block], progress: Progress
) -> list[Answer]:
    threads = min(_threads(), len(blocks))
    answers: dict[int, Answer] = {}
    errors: list[BaseException] = []
    todo = iter(enumerate(blocks))  # its next() is atomic

    def drain() -> None:
        try:
            _here.busy = True
            for place, block in todo:
                checkpoint()
                answers[place] = work(block)
                progress.step()
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)
            for _ in todo:
                pass
        finally:
            _here.busy = False

    if threads <= 1:
        drain()
    elif not _in_team(drain):
        _in_pool(drain, threads)
    if errors:
        raise errors[0]
    return [answers[place] for place in range(len(blocks))]


def _threads() -> int:
    """Return the number of threads that our own loops may use."""
    kept: int | None = getattr(_here, "threads", None)
    if kept is not None:
        return kept
    torch = sys.modules.get("torch")
    return _limit or (_cores() if torch is None else int(torch.get_num_threads()))


@cache
def _cores() -> int:
    """Return OMP_NUM_THREADS, or the number of cores that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit our loops, and torch if it is loaded, to one thread in the whole process."""
    global _limit
    torch, before = sys.modules.get("torch"), _limit
    threads = 1 if torch is None else torch.get_num_threads()
    _limit = 1
    if threads != 1:
        torch.set_num_threads(1)  # type: ignore[union-attr]
    try:
        yield
    finally:
        _limit = before
        if threads != 1:
            torch.set_num_threads(threads)  # type: ignore[union-attr]


_limit: int | None = None


@contextmanager
def torch_in_one_thread() -> Iterator[None]:
    """Run torch's own operations in the calling thread; our loops keep all threads.

    A test calls many small operations of torch, each of which would wait for all threads.
    """
    threads, openmp = _threads(), _openmp_of_torch()
    if threads == 1 or openmp is None or getattr(_here, "threads", None) is not None:
        yield  # there is one thread, torch cannot be told, or it has been told already
        return
    _here.threads = threads
    openmp.omp_set_num_threads(1)  # for this thread alone, unlike torch.set_num_threads
    try:
        yield
    finally:
        openmp.omp_set_num_threads(threads)
        _here.threads = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run numpy's products of matrices in the thread that calls them.

    Threads that share a product wait for each other, and one late core delays all of them. On a
    busy machine a product can take fifty times as long.
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
    """Return the controller of the threads of all loaded BLAS libraries."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _checked(work: Callable[[Block], Answer], block: Block) -> Answer:
    checkpoint()
    return work(block)


_here = threading.local()
_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def expect_team() -> None:
    """Record that OpenMP's threads will be used, here or by BLAS: forked children must not."""
    global _used
    _used = True


def team_size() -> int:
    """Return the number of threads that `in_team` may use here and now."""
    if getattr(_here, "busy", False) or _openmp() is None:
        return 1
    threads = _threads()
    if threads > 1:
        expect_team()
    return threads


def start_of_team() -> int:
    """Return the address of the function that starts the team; of any function without a team."""
    openmp = _openmp()
    start = ctypes.pythonapi.Py_IncRef if openmp is None else openmp.GOMP_parallel
    return ctypes.cast(start, ctypes.c_void_p).value or 0


def _in_team(drain: Callable[[], None]) -> bool:
    """Run `drain` on the team of OpenMP, and return whether there is one.

    All of torch's threads take part, since a smaller team would end the others. In the calling
    thread `drain` is a plain call, since an interrupt inside a callback would be lost.
    """
    openmp = _openmp()
    if openmp is None:
        return False
    expect_team()
    task, threads = _Task(lambda _: drain()), _threads()
    start, end = openmp.GOMP_parallel_start, openmp.GOMP_parallel_end
    try:
        start(task, None, threads)  # first in `try`: an interrupt comes only after a call
        drain()
    finally:
        end()
    return True


_used = False


@cache
def _openmp() -> Any:
    """Return the OpenMP library that starts our teams, the same until the process ends."""
    return _openmp_of_torch() or _openmp_of(_system_libraries())


def _openmp_of_torch() -> Any:
    return None if "torch" not in sys.modules or _forked else _loaded_openmp_of_torch()


@cache
def _loaded_openmp_of_torch() -> Any:
    return _openmp_of(libraries_of_torch())


def _openmp_of(libraries: Iterator[ctypes.CDLL]) -> Any:
    """Return the first library with the entry points of GNU OpenMP; None if there is none."""
    for openmp in libraries:
        with suppress(AttributeError):  # not GNU OpenMP, as on Windows and some Macs
            openmp.GOMP_parallel.restype = openmp.omp_set_num_threads.restype = None
            openmp.GOMP_parallel_start.argtypes = [_Task, ctypes.c_void_p, ctypes.c_uint]
            openmp.GOMP_parallel_start.restype = openmp.GOMP_parallel_end.restype = None
            return openmp
    return None


def _system_libraries() -> Iterator[ctypes.CDLL]:
    with suppress(OSError):
        yield ctypes.CDLL("libgomp.so.1")


def libraries_of_torch() -> Iterator[ctypes.CDLL]:
    """Yield torch's libraries for the CPU, which have its OpenMP and its BLAS."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for library in (Path(str(torch.__file__)).parent / "lib").glob("libtorch_cpu.*"):
        with suppress(OSError):
            yield ctypes.CDLL(str(library))


def _in_pool(drain: Callable[[], None], threads: int) -> None:
    """Run `drain` in a pool of Python threads and in the calling thread.

    The caller never waits for a thread that has not begun.
    """
    helpers = []
    with suppress(RuntimeError):  # no new threads while the interpreter shuts down
        helpers = [_pool().submit(drain) for _ in range(threads - 1)]
    drain()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the pool, kept between calls: starting a thread costs as much as a small matrix."""
    return ThreadPoolExecutor(thread_name_prefix="crossedge")


def _after_fork() -> None:
    """Forget the threads of the parent, for which OpenMP in the child would wait forever."""
    global _openmp, _blas_lock, _blas_users, _forked
    _blas_lock, _blas_users, _forked = threading.Lock(), 0, True
    if _used and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    _openmp = cache(lambda: None)
    _pool.cache_clear()


_forked = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
