"""One pass over distances before they are used: are they valid, and how large is the largest?

Non-negative doubles are ordered as their bits are, read as integers; infinity and NaN come last.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.checks import check_values
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints

SIGN_BIT, MAGNITUDE_BITS, INFINITE_BITS = (
    np.int64(-(2**63)),
    np.int64(2**63 - 1),
    np.int64(0x7FF << 52),
)  # of a double: the sign, exponent and mantissa (also the largest integer), and infinity


def largest_of(distances: Floats) -> float:
    """Return the largest distance; raise ValueError if one is negative, infinite or NaN."""
    largest, is_odd = _largest_of(distances.ravel())
    if is_odd:  # or a -0, which passes
        check_values(distances)
    return largest


@compiled
def _largest_of(distances: Floats) -> tuple[float, bool]:
    least, most = ends_of_bits(distances.view(np.int64))
    return np.int64(most).view(np.float64), is_odd(least, most)


@compiled
def ends_of_bits(bits: Ints) -> tuple[np.int64, np.int64]:
    """Return the smallest and largest entry; without entries, the largest and smallest int64."""
    least, most = MAGNITUDE_BITS, SIGN_BIT
    for j in range(len(bits)):
        least, most = min(least, bits[j]), max(most, bits[j])
    return least, most


@compiled
def is_odd(least: np.int64, most: np.int64) -> bool:
    """Return whether a range of bits includes a negative number, an infinity or NaN."""
    return bool(least < 0 or most >= INFINITE_BITS)
