"""One look at distances before they are used: whether they are some, and how large.

Doubles without a sign have the order of their bits, and infinity and NaN come last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import compiled
from crossedge.distances import check_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIGN_BIT, ALL_OTHERS, INFINITE_BITS = (
    np.int64(-(2**63)),
    np.int64(2**63 - 1),
    np.int64(0x7FF << 52),
)


def largest_of(distances: Floats) -> float:
    """Or a clear error, if there are negative, infinite or unknown ones."""
    largest, is_odd = _largest_of(distances.ravel())
    if is_odd:  # perhaps a -0
        check_values(torch.from_numpy(distances))
    return largest


@compiled
def _largest_of(distances: Floats) -> tuple[float, bool]:
    least, most = ends_of_bits(distances.view(np.int64))
    return np.int64(most).view(np.float64), is_odd(least, most)


@compiled
def ends_of_bits(bits: Ints) -> tuple[np.int64, np.int64]:
    """The least and the most, of at least none."""
    least, most = ALL_OTHERS, SIGN_BIT
    for j in range(len(bits)):
        least, most = min(least, bits[j]), max(most, bits[j])
    return least, most


@compiled
def is_odd(least: np.int64, most: np.int64) -> bool:
    """Whether there is a sign, an infinity or NaN between them."""
    return bool(least < 0 or most >= INFINITE_BITS)
