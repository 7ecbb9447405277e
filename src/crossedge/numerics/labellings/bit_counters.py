"""Sums of many rows of bits, lane by lane: a few logic operations advance 512 counters at once.

A row of eight 64-bit words holds one bit for each of 512 labellings. To add such rows up, each
binary digit of the 512 sums is kept as a row of its own. A row that is added at a digit is parked
there. The next row to arrive meets it in a full adder, and the carry moves to the next digit. So a
digit is visited half as often as the one below it: one full adder (five logic operations) per row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.numerics.labellings.draws import WORDS
from crossedge.runtime.compiled import compiled, inlined
from crossedge.runtime.types import Words

DIGITS = 63  # binary digits of a sum: it fits an int64


@compiled
def new_counter() -> Words:
    """Return a counter at 0, (3, DIGITS, WORDS).

    It holds the digits of the sums, the row parked at each digit, and a flag whether one is parked.
    """
    return np.zeros((3, DIGITS, WORDS), np.uint64)


@inlined
def add_row(counter: Words, row: Words, digit: int) -> None:
    """Add 2^digit times a row of bits to the counter. The row is overwritten."""
    one = np.uint64(1)
    while counter[2, digit, 0] == one:
        for word in range(WORDS):
            total = counter[0, digit, word]
            parked = counter[1, digit, word]
            both = total ^ parked
            carry = (total & parked) | (both & row[word])
            counter[0, digit, word] = both ^ row[word]
            row[word] = carry
        counter[2, digit, 0] = np.uint64(0)
        digit += 1
    for word in range(WORDS):
        counter[1, digit, word] = row[word]
    counter[2, digit, 0] = one


@compiled
def read_sums(counter: Words, sums: npt.NDArray[np.int64]) -> None:
    """Write the (LANES,) sums: at each digit, its row and the row parked there."""
    sums[:] = 0
    for digit in range(DIGITS):
        waiting = counter[2, digit, 0] == np.uint64(1)
        for word in range(WORDS):
            total = counter[0, digit, word]
            parked = counter[1, digit, word]
            if not waiting:
                parked = np.uint64(0)
            if total | parked:
                for bit in range(64):
                    shift = np.uint64(bit)
                    ones = np.int64((total >> shift) & np.uint64(1))
                    ones += np.int64((parked >> shift) & np.uint64(1))
                    sums[64 * word + bit] += ones << digit
