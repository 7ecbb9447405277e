"""Memory for large matrices, kept for those that come after.

The system hands out fresh memory page by page and fills it with zeros, which can take longer than
what is done with it. So a block that nobody uses any more waits here for the next matrix of its
size, and lines of the cache begin where its rows do.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

KEPT = 256 << 20  # bytes that may wait
LARGE = 1 << 17  # others are cheap
LINE = 64


def empty_array(*shape: int) -> Floats:
    size = 8 * prod(shape)
    return np.asarray(_Lease(shape, size)) if size >= LARGE else np.empty(shape)


class _Lease:
    """A block as long as an array or a tensor refers to it."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        self.block = _taken(size)
        self.__array_interface__: dict[str, Any] = {
            "data": (self.block.start, False),
            "shape": shape,
            "typestr": "<f8",
            "version": 3,
        }

    def __del__(self) -> None:
        size = self.block.size
        if size > KEPT:
            return
        _waiting[size] = alike = _waiting.pop(size, deque())  # the last of all sizes
        alike.append(self.block)
        while waiting_bytes() > KEPT:
            with suppress(IndexError, KeyError, StopIteration):  # another thread was faster
                oldest = next(iter(tuple(_waiting)))
                if _waiting[oldest]:
                    _waiting[oldest].popleft()
                else:
                    del _waiting[oldest]


class _Block:
    def __init__(self, size: int) -> None:
        self.size, self.memory = size, np.empty(size + LINE, np.uint8)
        self.start = -(-self.memory.ctypes.data // LINE) * LINE


# by size, that which was used last at the end, as in each of them
_waiting: dict[int, deque[_Block]] = {}


def waiting_bytes() -> int:
    return sum(size * len(alike) for size, alike in tuple(_waiting.items()))


def _taken(size: int) -> _Block:
    with suppress(KeyError, IndexError):  # none, or another thread was faster
        return _waiting[size].pop()
    return _Block(size)
