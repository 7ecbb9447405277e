"""The one place that knows numba: compile a loop."""

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

MOST_VERSIONS = 8  # of the loops, whose machine code stays on disk

Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(function: Loop, *, fused: bool = False, any_order: bool = False) -> Loop:
    """Compile a loop over arrays to machine code, kept on disk between runs.

    It returns numbers, arrays or plain tuples of them: a named tuple is made by the interpreter,
    and a signal that it handles meanwhile ends the process.

    The loop lets go of the interpreter lock, so that `in_threads` can run blocks side by side.
    (numba's own threads abort a process that forks or that calls from two threads.)
    Arguments hold no NaN (the door has seen to that), so smallest and largest may use vector
    instructions; sums keep their order. With `fused`, a * b + c may be rounded once: faster, but
    not everywhere alike, so not for distances that tie. In `any_order`, neither are sums.
    """
    liberties = {"nnan", "nsz"} | ({"contract"} if fused else set())
    liberties |= {"reassoc"} if any_order else set()
    options: dict[str, Any] = {"nogil": True, "fastmath": liberties, "error_model": "numpy"}
    dispatcher: Any = numba.njit(**options)(function)
    _keep(dispatcher)
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


def _keep(dispatcher: Any) -> None:
    """Keep the machine code on disk, in a folder that is named by the content of all loops.

    numba's own folder is named by the path of the source, and its stamp is that of one file: it
    compiles anew in every checkout, and does not when a function in another file changes.
    """
    folder = _folder()
    if folder is None:
        return
    found: Any = FunctionCache(dispatcher.py_func)  # type: ignore[no-untyped-call]
    path = folder / dispatcher.py_func.__module__
    with suppress(OSError):  # what cannot be kept is compiled anew
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
    """The folder of these sources; None where there is nowhere to write."""
    try:
        given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
        above = (Path(given) if given else Path.home() / ".cache") / "crossedge"
        folder = above / _content_hash()
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _drop_oldest(above)
        os.utime(folder)
        return folder if os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # a full disk, or nobody's home
        return None


def _content_hash() -> str:
    """The hash of all files that hold loops, or what loops use."""
    package = Path(__file__).parent
    names = [package / "compiled.py", package / "tolerances.py"]
    digest = hashlib.sha256()
    for file in [*names, *sorted((package / "numerics").rglob("*.py"))]:
        digest.update(file.relative_to(package).as_posix().encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _drop_oldest(above: Path) -> None:
    """Forget the code of all versions but those that were used last."""
    by_use = sorted(above.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_use[MOST_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)


def inlined(function: Loop) -> Loop:
    """Compile a small function into the body of each loop that calls it."""
    return cast(Loop, numba.njit(nogil=True, inline="always", error_model="numpy")(function))
