"""Products of matrices inside compiled loops, by the library that torch uses.

To ask torch for each of many small products would take longer than the products.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from numba.extending import get_cython_function_address

from crossedge.compiled import compiled, foreign
from crossedge.threads import libraries_of_torch

Floats = npt.NDArray[np.float64]

LETTERS = np.frombuffer(b"NT", np.uint8)


def _address() -> int:
    """Of dgemm with integers of 32 bits: torch's, which has torch's threads, or else scipy's."""
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
    """Write old out + left right to out, where a factor that is turned stands for its transpose.

    Rows are contiguous, and may lie far apart. The library has matrices column by column, to which
    ours are their transposes: right' left' is what it is asked for.
    """
    inner = left.shape[0 if turn_left else 1]
    if old == 0.0 and inner == 0:
        out[:] = 0.0  # the library would leave it as it is
    turns, sizes, factors = np.empty(2, np.uint8), np.empty(6, np.int32), np.empty(2)
    turns[0], turns[1] = LETTERS[int(turn_right)], LETTERS[int(turn_left)]
    rows, columns = out.shape
    sizes[0], sizes[1], sizes[2] = columns, rows, inner
    sizes[3], sizes[4], sizes[5] = right.strides[0] // 8, left.strides[0] // 8, out.strides[0] // 8
    factors[0], factors[1] = 1.0, old
    t, s, f = turns.ctypes.data, sizes.ctypes.data, factors.ctypes.data
    a, b, c = right.ctypes.data, left.ctypes.data, out.ctypes.data
    _dgemm(t, t + 1, s, s + 4, s + 8, f, a, s + 12, b, s + 16, f + 8, c, s + 20)
    turns[0], sizes[0], factors[0] = 0, 0, 0.0  # addresses alone would not keep them until here
