"""Tails from tilted labellings, against laws that are known."""

import itertools
import math

import numpy as np
import pytest

from crossedge.numerics.labellings.canonical import canonical_order
from crossedge.numerics.labellings.exchanges import run_chains
from crossedge.numerics.labellings.tilted import TiltedLabellings


def all_labellings(n, n_x):
    chosen = np.array(list(itertools.combinations(range(n), n_x)))
    s = -np.ones((len(chosen), n))
    np.put_along_axis(s, chosen, 1.0, 1)
    return s


def random_form(n, seed, linear):
    rng = np.random.default_rng(seed)
    A = rng.exponential(size=(n, n)) * rng.exponential(size=n)
    return np.triu(A, 1) + np.triu(A, 1).T, linear * n * rng.exponential(size=n)


def values_of(A, c, s):
    return ((s @ A) * s).sum(1) / 2 + s @ c


def known(values, many=5):
    return np.array([(values**k).mean() for k in range(many)])


@pytest.mark.parametrize(
    ("n", "n_x", "linear", "many"),
    [(20, 7, 0.0, 4), (20, 7, 1.0, 5), (19, 13, 0.0, 5), (19, 13, 1.0, 4), (26, 5, 1.0, 5)],
)
def test_tails_are_those_of_all_labellings(n, n_x, linear, many):
    A, c = random_form(n, n_x, linear)
    values = values_of(A, c, all_labellings(n, n_x))
    # of mean 0 and variance 1; a constant goes to labels, whose sum is fixed
    mean, std = values.mean(), values.std()
    A, c, values = A / std, (c - mean / (2 * n_x - n)) / std, (values - mean) / std
    drawn = TiltedLabellings(A, c, n_x, known(values, many))
    for level in (0.9, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        z = np.sort(values)[-math.ceil(level * len(values))]
        log_p, reached = drawn.log_tail(z - 1e-9)
        assert reached == z - 1e-9
        assert math.exp(log_p) == pytest.approx((values >= z - 1e-9).mean(), rel=0.06)


def test_rank_sums():
    """Those of Wilcoxon, 12 of 40 ranks, by counting subsets with a given sum."""
    n, n_x = 40, 12
    ways = np.zeros((n_x + 1, n * n_x + 1))
    ways[0, 0] = 1
    for rank in range(1, n + 1):
        ways[1:, rank:] = ways[1:, rank:] + ways[:-1, :-rank]
    law = ways[n_x] / ways[n_x].sum()
    sums = np.arange(len(law))
    mean, std = law @ sums, math.sqrt(law @ (sums - law @ sums) ** 2)
    moments = np.array([law @ ((sums - mean) / std) ** k for k in range(5)])
    c = (np.arange(1, n + 1) - (n + 1) / 2) / (2 * std)
    drawn = TiltedLabellings(np.zeros((n, n)), c, n_x, moments)
    for level in (0.1, 0.01, 1e-4, 1e-6, 1e-8):
        least = np.flatnonzero(np.cumsum(law[::-1])[::-1] <= level)[0]
        log_p, _ = drawn.log_tail((least - 0.5 - mean) / std)
        assert log_p == pytest.approx(math.log(law[least:].sum()), abs=0.08)


@pytest.mark.parametrize("tilt", [0.0, 1.3])
def test_chains_have_the_tilted_law(tilt):
    n, n_x, chains = 8, 3, 4096
    A, c = random_form(n, 1, 0.3)
    s = all_labellings(n, n_x)
    A, c = A / values_of(A, c, s).std(), c / values_of(A, c, s).std()
    values = values_of(A, c, s)
    probability = np.exp(tilt * (values - values.max()))
    probability /= probability.sum()
    order = np.tile(np.argsort(-s[0], kind="stable"), (chains, 1))
    field, value = np.tile(A @ s[0] + c, (chains, 1)), np.full(chains, values[0])
    seen = np.empty((2, chains))
    run_chains(A, tilt, n_x, order, field, value, seen, 60, np.uint64(0), 0)
    at_end = -np.ones((chains, n))
    np.put_along_axis(at_end, order[:, :n_x], 1.0, 1)
    np.testing.assert_allclose(value, values_of(A, c, at_end), atol=1e-9)
    np.testing.assert_allclose(field, at_end @ A + c, atol=1e-9)
    np.testing.assert_array_equal(value, seen[-1])
    count = np.array([(np.abs(value - one) < 1e-9).sum() for one in values])
    expected = chains * probability
    often = expected > 5
    chi_square = ((count - expected) ** 2 / expected)[often].sum()
    assert chi_square < often.sum() + 4 * math.sqrt(2 * often.sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("equal_parts", [1, 4])
def test_a_matrix_looks_the_same_in_its_canonical_order(seed, equal_parts):
    """Also where parts of a graph are alike, or points inside of one."""
    rng = np.random.default_rng(seed)
    part = (rng.random((9, 9)) < 0.3).astype(float)
    part = np.triu(part, 1) + np.triu(part, 1).T
    A = np.kron(np.eye(equal_parts), part)
    c = A.sum(1)
    shuffle = rng.permutation(len(A))
    B, d = A[np.ix_(shuffle, shuffle)], c[shuffle]
    first, second = canonical_order(A, c), canonical_order(B, d)
    assert sorted(first) == list(range(len(A)))
    np.testing.assert_array_equal(A[np.ix_(first, first)], B[np.ix_(second, second)])
    np.testing.assert_array_equal(c[first], d[second])
