"""Labellings within strata, drawn and listed."""

from itertools import permutations
from math import comb

import numpy as np
import pytest
from scipy import stats

from crossedge.numerics.labellings.blocked import (
    draw_codes,
    groups_of,
    labellings_up_to,
    list_codes,
)

DESIGNS = {
    "free": ([0] * 6, [[3, 3]]),
    "pairs": ([0, 1, 2, 0, 1, 2], [[1, 1]] * 3),
    "unlike strata": ([1, 0, 1, 0, 1, 2, 0, 2], [[1, 2], [2, 1], [0, 2]]),
    "three samples": ([0, 1, 0, 1, 0, 0], [[1, 1, 2], [1, 0, 1]]),
    "one of each": ([0] * 4, [[1, 1, 1, 1]]),
}


def everything(stratum, counts):
    """All distinct codes with these counts in the strata, as a sorted array of rows."""
    start = np.empty(len(stratum), int)
    for place, row in enumerate(counts):
        start[np.asarray(stratum) == place] = np.repeat(np.arange(len(row)), row)
    found = set()
    for order in permutations(range(len(stratum))):
        if all(stratum[a] == stratum[b] for a, b in enumerate(order)):
            found.add(tuple(start[list(order)]))
    return sorted(found)


@pytest.mark.parametrize(("stratum", "counts"), DESIGNS.values(), ids=DESIGNS)
def test_every_labelling_is_listed_once_and_drawn_as_often(stratum, counts):
    stratum, counts = np.array(stratum), np.array(counts)
    groups, expected = groups_of(stratum, counts), everything(stratum, counts.tolist())
    total = labellings_up_to(counts, 10_000)
    assert total == len(expected)
    assert labellings_up_to(counts, total) == total
    assert labellings_up_to(counts, total - 1) is None
    listed = list_codes(np.arange(total), groups, len(stratum)).T
    assert sorted(map(tuple, listed.tolist())) == expected
    drawn = np.concatenate([draw_codes(7, b, groups, len(stratum), 512).T for b in range(12)])
    found, times = np.unique(drawn, axis=0, return_counts=True)
    assert sorted(map(tuple, found.tolist())) == expected
    assert stats.chisquare(times).pvalue > 1e-4


def test_strata_are_independent():
    stratum, counts = np.arange(40) % 10, np.tile([1, 3], (10, 1))
    labels = draw_codes(1, 0, groups_of(stratum, counts), 40, 64 * 500) == 0
    covariance = np.cov(labels)
    same = stratum[:, None] == stratum
    np.testing.assert_allclose(covariance[~same], 0, atol=5 * (3 / 16) / 32_000**0.5)
    off = same & ~np.eye(40, dtype=bool)
    np.testing.assert_allclose(covariance[off], -1 / 16, atol=0.007)


def test_huge_numbers_are_not_counted_to_the_end():
    assert labellings_up_to(np.array([[50_000, 50_000]]), 10**7) is None
    assert labellings_up_to(np.ones((2000, 2), int), 10**7) is None
    assert labellings_up_to(np.array([[10, 10], [0, 9]]), 10**6) == comb(20, 10)
