"""Products of matrices inside compiled loops, by the BLAS of torch or of scipy.

Calling the interpreter for each of many small products would take longer than the products.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from crossedge.runtime.compiled import compiled, foreign
from crossedge.runtime.threads import libraries_of_torch
from crossedge.runtime.types import Floats

TRANSPOSE_CODES = np.frombuffer(b"NT", np.uint8)  # of BLAS: N for a matrix, T for its transpose


def _address() -> int:
    """Return the address of dgemm with 32-bit integers, of torch if it is loaded, else of scipy."""
    found: int | None
    for library in libraries_of_torch():
        with suppress(AttributeError):
            found = ctypes.cast(library.dgemm_, ctypes.c_void_p).value
            if found:
                return found
    found = get_cython_function_address("scipy.linalg.cython_blas", "dgemm")
    return found


_dgemm: Any = foreign("crossedge_dgemm", _address(), 13)


@compiled
def add_product(
    out: Floats, old: float, left: Floats, turn_left: bool, right: Floats, turn_right: bool
) -> None:
    """Write old * out + left @ right to out, where a factor that is turned is transposed first.

    Each row must be contiguous, but rows may lie far apart. BLAS stores matrices by columns and
    therefore sees the transposes of ours: it is asked for right' left'.
    """
    inner = left.shape[0 if turn_left else 1]
    if old == 0.0 and inner == 0:
        out[:] = 0.0  # BLAS would leave it unchanged
    turns, sizes, factors = np.empty(2, np.uint8), np.empty(6, np.int32), np.empty(2)
    turns[0], turns[1] = TRANSPOSE_CODES[int(turn_right)], TRANSPOSE_CODES[int(turn_left)]
    rows, columns = out.shape
    sizes[0], sizes[1], sizes[2] = columns, rows, inner
    sizes[3], sizes[4], sizes[5] = right.strides[0] // 8, left.strides[0] // 8, out.strides[0] // 8
    factors[0], factors[1] = 1.0, old
    t, s, f = turns.ctypes.data, sizes.ctypes.data, factors.ctypes.data
    a, b, c = right.ctypes.data, left.ctypes.data, out.ctypes.data
    _dgemm(t, t + 1, s, s + 4, s + 8, f, a, s + 12, b, s + 16, f + 8, c, s + 20)
    turns[0], sizes[0], factors[0] = 0, 0, 0.0  # keeps the arrays alive: addresses alone do not
