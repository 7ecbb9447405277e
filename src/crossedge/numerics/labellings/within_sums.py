"""Sums of pair weights inside the first sample, for 512 packed labellings at once.

Each function returns, for every lane, R_x (the weight of pairs inside x) and the sum of degrees
over x. The sum inside y follows from the two.
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.labellings.bit_counters import add_row, new_counter, read_sums
from crossedge.numerics.labellings.draws import LANES, WORDS
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints, Words


@compiled
def count_within(labels: Words, i: Ints, j: Ints, weight: Ints, degree: Ints) -> tuple[Ints, Ints]:
    """Return R_x and degrees of x for integer weights on edges between points, by bit counters."""
    row = np.empty(WORDS, np.uint64)
    inside, degrees = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    counter = new_counter()
    for edge in range(len(i)):
        digit = 0
        rest = weight[edge]
        while rest > 0:
            if rest & 1:
                for word in range(WORDS):
                    row[word] = labels[i[edge], word] & labels[j[edge], word]
                add_row(counter, row, digit)
            rest >>= 1
            digit += 1
    read_sums(counter, inside)
    counter = new_counter()
    for point in range(len(degree)):
        digit = 0
        rest = degree[point]
        while rest > 0:
            if rest & 1:
                for word in range(WORDS):
                    row[word] = labels[point, word]
                add_row(counter, row, digit)
            rest >>= 1
            digit += 1
    read_sums(counter, degrees)
    return inside, degrees


@compiled
def add_within(
    labels: Words, atom: Ints, i: Ints, j: Ints, weight: Floats, degree: Floats
) -> tuple[Floats, Floats]:
    """Return R_x and degrees of x for real weights on edges between atoms of several points."""
    inside, degrees = np.zeros(LANES), np.zeros(LANES)
    in_x = np.empty((len(degree), 64), np.float32)  # how many points of each atom are in x
    for word in range(WORDS):
        in_x[:] = 0.0
        for point in range(len(atom)):
            bits = labels[point, word]
            for bit in range(64):
                in_x[atom[point], bit] += np.float32((bits >> np.uint64(bit)) & np.uint64(1))
        first = 64 * word
        for edge in range(len(i)):
            a, b, w = i[edge], j[edge], weight[edge]
            if a == b:
                for bit in range(64):
                    count = np.float64(in_x[a, bit])
                    inside[first + bit] += 0.5 * w * (count * (count - 1.0))
            else:
                for bit in range(64):
                    inside[first + bit] += w * (np.float64(in_x[a, bit]) * np.float64(in_x[b, bit]))
        for a in range(len(degree)):
            for bit in range(64):
                degrees[first + bit] += degree[a] * np.float64(in_x[a, bit])
    return inside, degrees
