"""The one place that knows numba: compile a loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
import torch

Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(function: Loop, *, fused: bool = False, any_order: bool = False) -> Loop:
    """Compile a loop over arrays to machine code, kept on disk between runs.

    The loop lets go of the interpreter lock, so that `in_threads` can run blocks side by side.
    (numba's own threads abort a process that forks or that calls from two threads.)
    Arguments hold no NaN (the door has seen to that), so smallest and largest may use vector
    instructions; sums keep their order. With `fused`, a * b + c may be rounded once: faster, but
    not everywhere alike, so not for distances that tie. In `any_order`, neither are sums.
    """
    liberties = {"nnan", "nsz"} | ({"contract"} if fused else set())
    liberties |= {"reassoc"} if any_order else set()
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


def compiled_sum(function: Loop) -> Loop:
    return compiled(function, fused=True, any_order=True)


def foreign(name: str, address: int, arguments: int) -> Any:
    """A function at this address that loops can call, its arguments addresses and nothing else."""
    kind = numba.types.void(*[numba.types.intp] * arguments)
    return numba.types.ExternalFunction(foreign_symbol(name, address), kind)


def foreign_symbol(name: str, address: int) -> str:
    """The name, by which compiled code on disk finds the address of this process."""
    llvm.add_symbol(name, address)
    return name


def has_compiled_loops(tensor: torch.Tensor) -> bool:
    """Whether compiled loops can work on it, or their twins in torch must."""
    return tensor.is_cpu


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
