"""Exact moments of the counts of edges inside and between several samples.

Let C_ab be the sum of W over the pairs with one point in a and one in b, or both in a if a = b. A
second moment of two counts is a sum over two edges, which are the same, share one point or share
none. For W less its mean over pairs, which moves the counts by constants only, these sums are

    A = sum of W^2,    B = sum of squared degrees - 2 A,    and  - A - B, as all edges sum to 0.

Each is multiplied by the probability that the two, three or four points lie in the samples named.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import perm

import numpy as np

from crossedge.moments.centred import SecondSums
from crossedge.runtime.types import Floats

PairOfSamples = tuple[int, int]


def pairs_of_samples(count: int) -> list[PairOfSamples]:
    """Return all pairs (a, b) with a <= b, in the order of the moments."""
    return list(combinations_with_replacement(range(count), 2))


def count_moments(second: SecondSums, sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the means and covariances of all counts, over all labellings with these sizes.

    `second` has the sums over weights without row effects, from which those over W less its mean
    follow.
    """
    n = sum(sizes)
    degree2 = float(second.degree2)
    same = float(second.squares) + (degree2 / (n - 2) if n > 2 else 0.0)  # of W less its mean
    sharing = degree2 - 2 * same

    def chance(*samples: int) -> float:
        """Return the probability that distinct points lie in these samples."""
        if len(samples) > n:
            return 0.0
        found = 1
        for sample, size in enumerate(sizes):
            found *= perm(size, samples.count(sample))
        return found / perm(n, len(samples))

    def ways(pair: PairOfSamples) -> set[PairOfSamples]:
        """Return the samples of the first and second end of an edge."""
        return {pair, pair[::-1]}

    pairs = pairs_of_samples(len(sizes))
    mean = np.array([sum(chance(*way) for way in ways(pair)) for pair in pairs])
    covariance = np.empty((len(pairs), len(pairs)))
    for i, j in product(range(len(pairs)), repeat=2):
        one, other = ways(pairs[i]), ways(pairs[j])
        equal = mean[i] if i == j else 0.0
        shared = sum(chance(a, b, d) for a, b in one for c, d in other if c == a)
        apart = sum(chance(*first, *last) for first in one for last in other)
        covariance[i, j] = same * (equal - apart) + sharing * (shared - apart)
    return mean * float(second.total), covariance
