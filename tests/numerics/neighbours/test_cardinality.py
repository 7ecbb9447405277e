"""Points taken out by division against the sweeps over all others."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from crossedge.numerics.exponential import decay_of
from crossedge.numerics.neighbours.cardinality import choose_marginals, choose_tangent, decays
from crossedge.numerics.neighbours.cardinality_few import _is_safe, choose_few, choose_few_tangent
from crossedge.runtime.compiled import compiled_fused

CASES = [(3, 2), (9, 3), (9, 8), (40, 2), (40, 5), (40, 31), (130, 12), (65, 24)]


def both_ways(points, k, temperature, rng):
    n = len(points)
    distances = np.abs(points[:, None] - points[None])
    kth, nearest, decay = np.empty(n), np.empty((n, k), np.int64), np.empty((n, n))
    decays(0, n, distances, k, temperature, kth, nearest, decay)
    few, swept, d_few, d_swept = (np.empty((n, n)) for _ in range(4))
    direction = rng.normal(size=(n, n)) + 100.0
    np.fill_diagonal(direction, 0.0)
    choose_few(0, n, distances, decay, kth, nearest, few)
    choose_marginals(0, n, distances, decay, kth, k, swept)
    choose_few_tangent(0, n, distances, decay, kth, nearest, direction, temperature, d_few)
    choose_tangent(0, n, distances, decay, kth, k, direction, d_swept)
    return few, swept, d_few, d_swept / -temperature


@pytest.mark.parametrize(("n", "k"), CASES)
@pytest.mark.parametrize("temperature", [1e-3, 0.03, 1.0, 1e3])
@pytest.mark.parametrize("ties", [False, True])
def test_division_agrees_with_sweeps(n, k, temperature, ties):
    rng = np.random.default_rng(n + k)
    points = rng.integers(0, 4, n).astype(float) if ties else rng.normal(size=n)
    few, swept, d_few, d_swept = both_ways(points, k, temperature, rng)
    np.testing.assert_allclose(few, swept, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(few.sum(1), k, rtol=1e-12)
    scale = np.abs(d_swept).max(1, keepdims=True) + 1e-13 * 100 / temperature
    np.testing.assert_allclose(d_few / scale, d_swept / scale, atol=1e-9)


def test_rows_where_division_loses_too_much_are_swept():
    """26 points in one place: taking out the last of 25 leaves alternating sums of binomials."""
    both = np.array([comb(25, j) for j in range(25)], float)
    assert not _is_safe(np.array([1.0]), both)
    few, swept, _, _ = both_ways(np.zeros(26), 24, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(few, swept, rtol=1e-13)


@compiled_fused
def _decays_of(x, out):
    for i in range(len(x)):
        out[i] = decay_of(x[i])


def test_our_exponential_is_the_library_s():
    x = np.concatenate([[0.0, 5e-324, 1e-300, 707.99], np.geomspace(1e-17, 707, 20_000)])
    out = np.empty_like(x)
    _decays_of(x, out)
    np.testing.assert_allclose(out, np.exp(-x), rtol=4e-16)
    far = np.array([708.0, 745.0, 1e10, 1e300])
    _decays_of(far, out[:4])
    assert not out[:4].any()
