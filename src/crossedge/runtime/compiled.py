"""Compile loops by numba, and keep the machine code on disk."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

LOOP_FOLDERS = "numerics", "runtime"  # packages with compiled loops, or with code that loops use
MOST_VERSIONS = 8  # versions of the sources whose machine code stays on disk

Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(function: Loop, *, fused: bool = False, any_order: bool = False) -> Loop:
    """Compile a loop over arrays to machine code, which is kept on disk between runs.

    The loop must return numbers, arrays or plain tuples of them. A named tuple would be made by the
    interpreter, and a signal that the interpreter handles meanwhile would end the process.

    The loop releases the interpreter lock, so that `in_threads` can run blocks in parallel.
    (numba's own threads abort a process that forks or that calls from two threads.) Arguments hold
    no NaN, which is checked at input, so minima and maxima may use vector instructions. Sums keep
    their order, unless `any_order`. With `fused`, a * b + c may be rounded once. Both are faster,
    but the last digits depend on the machine, so they are not for distances that may tie.
    """
    liberties = {"nnan", "nsz"} | ({"contract"} if fused else set())
    liberties |= {"reassoc"} if any_order else set()
    options: dict[str, Any] = {"nogil": True, "fastmath": liberties, "error_model": "numpy"}
    dispatcher: Any = numba.njit(**options)(function)
    _keep(dispatcher)
    return cast(Loop, dispatcher)


def compiled_fused(function: Loop) -> Loop:
    """Compile a loop in which a * b + c may be rounded once."""
    return compiled(function, fused=True)


def compiled_sum(function: Loop) -> Loop:
    """Compile a loop in which, moreover, sums may be taken in any order."""
    return compiled(function, fused=True, any_order=True)


def foreign(name: str, address: int, arguments: int) -> Any:
    """Return the function at this address for use in loops; all its arguments are addresses."""
    kind = numba.types.void(*[numba.types.intp] * arguments)
    return numba.types.ExternalFunction(foreign_symbol(name, address), kind)


def foreign_symbol(name: str, address: int) -> str:
    """Register an address under a name, by which machine code from disk finds it."""
    llvm.add_symbol(name, address)
    return name


def _keep(dispatcher: Any) -> None:
    """Keep the machine code on disk, in a folder that is named by the content of all loops.

    numba's own folder is named by the path of the source, and its stamp is that of one file. With
    these, every checkout would compile anew, and a change in another file would go unnoticed.
    """
    folder = _folder()
    if folder is None:
        return
    found: Any = FunctionCache(dispatcher.py_func)  # type: ignore[no-untyped-call]
    path = folder / dispatcher.py_func.__module__
    with suppress(OSError):  # code that cannot be kept is compiled anew
        path.mkdir(parents=True, exist_ok=True)
    if not path.is_dir():
        return
    base = found._impl.filename_base
    found._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
        str(path), base, folder.name
    )
    dispatcher._cache = found


@cache
def _folder() -> Path | None:
    """Return the folder for machine code of these sources; None if it cannot be written to."""
    try:
        given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
        above = (Path(given) if given else Path.home() / ".cache") / "crossedge"
        folder = above / _content_hash()
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _drop_oldest(above)
        os.utime(folder)
        return folder if os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # a full disk, or a user without a home folder
        return None


def _content_hash() -> str:
    """Return the hash of all files that the machine code may depend on."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(file for room in LOOP_FOLDERS for file in (package / room).rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _drop_oldest(above: Path) -> None:
    """Delete the machine code of all versions but the most recently used ones."""
    by_use = sorted(above.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_use[MOST_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)


def inlined(function: Loop) -> Loop:
    """Compile a small function into the body of each loop that calls it."""
    return cast(Loop, numba.njit(nogil=True, inline="always", error_model="numpy")(function))
