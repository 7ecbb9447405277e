"""Random labellings of n points, n_x of them in x: 512 at a time, packed in bits, compiled."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from crossedge.numerics.labellings.bit_counters import add_row, new_counter, read_sums
from crossedge.numerics.labellings.draws import LANES, WORDS
from crossedge.runtime.compiled import compiled, inlined
from crossedge.runtime.types import Words


@inlined
def _rotate(word: Any, left: int) -> Any:
    return (word << np.uint64(left)) | (word >> np.uint64(64 - left))


@inlined
def next_random(state: Words) -> Any:
    """Return 64 random bits by xoshiro256++ (Blackman and Vigna, 2019)."""
    result = _rotate(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotate(state[3], 45)
    return result


@compiled
def random_state(key: np.uint64, block: int) -> Words:
    """Seed a generator for each block, so that threads do not matter (by splitmix64)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    state = np.empty(4, np.uint64)
    seed = key
    for position in range(8):
        if position == 4:  # the key is mixed; now the block enters
            seed = (state[0] ^ state[3]) + np.uint64(block) * np.uint64(0xD1342543DE82EF95)
        seed += golden
        mixed = (seed ^ (seed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[position % 4] = mixed ^ (mixed >> np.uint64(31))
    return state


@inlined
def _random_below(state: Words, n: int) -> int:
    """Return a uniform integer in [0, n) for n < 2^32, without bias (Lemire, 2019)."""
    bound = np.uint64(n)
    low_half = np.uint64(0xFFFFFFFF)
    product = (next_random(state) >> np.uint64(32)) * bound
    if (product & low_half) < bound:
        reject_below = (np.uint64(1) << np.uint64(32)) % bound
        while (product & low_half) < reject_below:
            product = (next_random(state) >> np.uint64(32)) * bound
    return int(product >> np.uint64(32))


@compiled
def _coin(n: int, n_x: int, digits: int) -> int:
    """Return n_x / n rounded to units of 2^-digits, and below 1."""
    return min(((n_x << digits) + n // 2) // n, (1 << digits) - 1)


@compiled
def draw_packed(key: np.uint64, block: int, n: int, n_x: int, digits: int) -> Words:
    """Draw LANES labellings, packed as (n, WORDS), each uniform among those with n_x ones.

    First every bit is an independent coin with probability n_x / n, rounded to `digits` binary
    digits; as many random words make 64 coins. A labelling with c ones is then uniform among those
    with c ones, and stays uniform when randomly chosen ones (or zeros) are flipped until n_x ones
    are left: about sqrt(n) flips instead of the n draws of a shuffle.
    """
    state = random_state(key, block)
    labels = np.empty((n, WORDS), np.uint64)
    counter = new_counter()
    row = np.empty(WORDS, np.uint64)
    q = _coin(n, n_x, digits)
    for point in range(n):
        for word in range(WORDS):
            coins = np.uint64(0)
            for digit in range(digits):
                if (q >> digit) & 1:
                    coins |= next_random(state)
                else:
                    coins &= next_random(state)
            labels[point, word] = coins
            row[word] = coins
        add_row(counter, row, 0)
    ones = np.empty(LANES, np.int64)
    read_sums(counter, ones)
    for lane in range(LANES):
        word = lane // 64
        bit = np.uint64(1) << np.uint64(lane % 64)
        surplus = ones[lane] - n_x
        while surplus != 0:
            point = _random_below(state, n)
            if ((labels[point, word] & bit) != np.uint64(0)) == (surplus > 0):
                labels[point, word] ^= bit
                surplus += -1 if surplus > 0 else 1
    return labels


def coin_digits(n: int, n_x: int) -> int:
    """Return how many binary digits of n_x / n the coins of `draw_packed` should have.

    This minimises the number of operations. Each digit costs n random words; too few digits leave
    more bits to flip, and a flip takes several tries where the bits to flip are rare.
    """

    def cost(digits: int) -> float:
        q = _coin(n, n_x, digits) / (1 << digits)
        bias, spread = n * q - n_x, 0.4 * sqrt(n * q * (1 - q))
        to_set = (spread + max(-bias, 0.0)) / (1 - n_x / n)
        to_clear = (spread + max(bias, 0.0)) / (n_x / n)
        return n * WORDS * (0.5 + digits) + LANES * 4 * (to_set + to_clear)

    return min(range(25), key=cost)
