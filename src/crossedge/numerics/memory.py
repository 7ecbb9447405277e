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

KEPT, MOST = 256 << 20, 64  # bytes, and blocks, that may wait
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
        if self.block.size > KEPT:
            return
        _waiting.appendleft(self.block)
        with suppress(IndexError):  # another thread was faster
            while len(_waiting) > MOST or sum(block.size for block in tuple(_waiting)) > KEPT:
                _waiting.pop()


class _Block:
    def __init__(self, size: int) -> None:
        self.size, self.memory = size, np.empty(size + LINE, np.uint8)
        self.start = -(-self.memory.ctypes.data // LINE) * LINE


_waiting: deque[_Block] = deque()  # the latest first


def _taken(size: int) -> _Block:
    for block in tuple(_waiting):
        if block.size == size:
            with suppress(ValueError):  # another thread was faster
                _waiting.remove(block)
                return block
    return _Block(size)
