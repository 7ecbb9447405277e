"""Labellings of n points, n_x of them in x, drawn at random or listed, many at a time, by numpy.

Labels are (n, lanes) bytes, one column for each labelling; 1 means x. Compiled counters take them
packed: (n, WORDS) words, with one bit for each of LANES labellings.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, sqrt

import numpy as np

from crossedge.runtime.types import Ints, Labels, Words

WORDS = 8  # 64-bit words in a row of labels: a cache line
LANES = 64 * WORDS  # labellings in a block
COIN_DIGITS = 12  # binary digits of the probability of a coin
RARE_SHARE = 1 / 8  # of x: below it, setting a label is quicker than finding one to clear


def draw_labels(key: int, block: int, n: int, n_x: int, lanes: int) -> Labels:
    """Draw (n, lanes) labellings, each uniform among those with n_x ones.

    First every label is an independent coin with probability about n_x / n. A labelling with c ones
    is then uniform among those with c ones, and stays uniform when randomly chosen ones (or zeros)
    are flipped until n_x ones are left: about sqrt(n) flips instead of the n draws of a shuffle.
    """
    rng = np.random.Generator(np.random.SFC64([int(key), block]))
    words = _coins(rng, n, n_x, lanes // 64)
    labels = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    surplus = labels.sum(0, dtype=np.int64) - n_x
    open_lanes = np.flatnonzero(surplus)
    while len(open_lanes):
        points = rng.integers(n, size=len(open_lanes))
        fits = (labels[points, open_lanes] == 1) == (surplus[open_lanes] > 0)
        flipped = open_lanes[fits]
        labels[points[fits], flipped] ^= 1
        surplus[flipped] -= np.sign(surplus[flipped])
        open_lanes = open_lanes[surplus[open_lanes] != 0]
    return labels


def _coins(rng: np.random.Generator, n: int, n_x: int, words: int) -> Words:
    """Draw (n, words) of bits, each 1 with probability n_x / n rounded to COIN_DIGITS digits.

    If x is rare, the probability is lower, so that hardly any label has to be cleared afterwards.
    Each binary digit of the probability, lowest first, takes a random bit: "or" for 1, "and" for 0.
    """
    mean = n_x if n_x > RARE_SHARE * n else max(n_x - 3 * sqrt(n_x), 0.0)
    digits = min(round(mean / n * 2**COIN_DIGITS), 2**COIN_DIGITS - 1)
    coins, begun = np.zeros((n, words), np.uint64), False
    for digit in range(COIN_DIGITS):
        one = (digits >> digit) & 1
        begun = begun or one == 1  # trailing zeros change nothing
        if begun:
            fresh = rng.integers(2**64, size=coins.shape, dtype=np.uint64)
            coins = coins | fresh if one else coins & fresh
    return coins


def list_labels(ranks: Ints, n: int, n_x: int) -> Labels:
    """Return (n, lanes) labellings, of these ranks in lexicographic order.

    The rank from the end is a sum of binomials C(m_1, n_x) + C(m_2, n_x - 1) + ..., m_1 > m_2 > ...
    (the combinatorial number system), and the ones are at points n - 1 - m.
    """
    binomials = _binomials(n, n_x)
    rest, lanes = comb(n, n_x) - 1 - ranks, np.arange(len(ranks))
    labels = np.zeros((n, len(ranks)), np.uint8)
    for wanted in range(n_x, 0, -1):
        m = np.searchsorted(binomials[wanted], rest, side="right") - 1
        labels[n - 1 - m, lanes] = 1
        rest -= binomials[wanted, m]
    return labels


@lru_cache(maxsize=4)
def _binomials(n: int, n_x: int) -> Ints:
    """Return the (n_x + 1, n) table of C(m, wanted), cut at C(n, n_x), which no rank reaches."""
    total = comb(n, n_x)
    rows = [[min(comb(m, wanted), total) for m in range(n)] for wanted in range(n_x + 1)]
    return np.array(rows, np.int64)


def packed(labels: Labels) -> Words:
    """Pack (n, up to LANES) labels into (n, WORDS) words."""
    room = np.zeros((len(labels), LANES), np.uint8)
    room[:, : labels.shape[1]] = labels
    words: Words = np.packbits(room, axis=1, bitorder="little").view(np.uint64)
    return words


def unpacked(words: Words) -> Labels:
    """Unpack (n, WORDS) words into (n, LANES) labels."""
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
