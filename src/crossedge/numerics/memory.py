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

KEPT, SIZES = 256 << 20, 16  # bytes that may wait, and sizes of blocks
LARGE = 1 << 17  # others are cheap
LINE = 64


def empty_array(*shape: int) -> Floats:
    size = 8 * prod(shape)
    return np.asarray(_Lease(shape, size)) if size >= LARGE else np.empty(shape)


class _Lease:
    """A block as long as an array or a tensor refers to it."""

    block: _Block | None = None

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        self.block = block = _taken(size)
        self.__array_interface__: dict[str, Any] = {
            "data": (block.start, False),
            "shape": shape,
            "typestr": "<f8",
            "version": 3,
        }

    def __del__(self) -> None:
        """Also in the middle of another one, or in another thread, or at the end of the process."""
        block = self.block
        if block is None or not KEPT or block.size > KEPT:
            return
        _waiting[block.size] = alike = _waiting.pop(block.size, deque())  # the last of all sizes
        alike.append(block)
        with suppress(IndexError, RuntimeError, StopIteration):  # another thread was faster
            while len(_waiting) > SIZES or waiting_bytes() > KEPT:
                if len(_waiting) > 1:
                    _waiting.pop(next(iter(_waiting)), None)
                else:
                    alike.popleft()


class _Block:
    def __init__(self, size: int) -> None:
        self.size, self.memory = size, np.empty(size + LINE, np.uint8)
        self.start = -(-self.memory.ctypes.data // LINE) * LINE


# by size, that which was used last at the end, as in each of them
_waiting: dict[int, deque[_Block]] = {}


def waiting_bytes() -> int:
    return sum(size * len(_waiting.get(size, ())) for size in list(_waiting))


def _taken(size: int) -> _Block:
    with suppress(KeyError, IndexError):  # none, or another thread was faster
        return _waiting[size].pop()
    return _Block(size)
