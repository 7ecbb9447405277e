"""Labellings drawn and listed."""

from math import comb

import numpy as np
import pytest
from scipy import stats

from brute_force import all_labellings
from crossedge.numerics.labellings.draws import LANES, draw_labels, list_labels, packed, unpacked
from crossedge.numerics.labellings.packed import coin_digits, draw_packed


def drawn_labels(how, key, n, n_x, blocks):
    """(labellings, n) of 0 and 1, by numpy or by compiled loops."""
    if how == "numpy":
        return np.concatenate([draw_labels(key, b, n, n_x, LANES).T for b in range(blocks)])
    digits = coin_digits(n, n_x) if how == "compiled" else how
    words = [draw_packed(np.uint64(key), b, n, n_x, digits) for b in range(blocks)]
    return np.concatenate([unpacked(one).T for one in words])


@pytest.mark.parametrize("how", ["numpy", "compiled"])
@pytest.mark.parametrize(
    ("n", "n_x"), [(1000, 500), (1000, 1), (777, 776), (64, 20), (2, 1), (5, 2), (900, 100)]
)
def test_drawn_labellings_have_the_right_number(how, n, n_x):
    labels = drawn_labels(how, 3, n, n_x, 1)
    assert labels.shape == (LANES, n)
    assert (labels.sum(1) == n_x).all()


@pytest.mark.parametrize(("n", "n_x"), [(6, 3), (7, 2), (8, 7), (5, 1), (17, 2)])
@pytest.mark.parametrize("how", ["numpy", "compiled", 0, 1, 10])
def test_drawn_labellings_are_uniform(how, n, n_x):
    code = drawn_labels(how, 9, n, n_x, 60) @ (1 << np.arange(n))
    counts = np.unique(code, return_counts=True)[1]
    assert len(counts) == comb(n, n_x)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("how", ["numpy", 4])
def test_drawn_labellings_are_independent(how):
    labels = drawn_labels(how, 1, 40, 16, 200)
    centred = labels - 0.4
    # between points, whose covariance is known, and between neighbouring lanes, where it is 0
    covariance = centred.T @ centred / len(labels)
    off = covariance[~np.eye(40, dtype=bool)]
    np.testing.assert_allclose(off, -0.24 / 39, atol=5 * 0.24 / len(labels) ** 0.5)
    for lag in (1, 64, LANES):
        overlap = (centred[:-lag] * centred[lag:]).sum(1).mean()
        assert abs(overlap) < 5 * 0.24 * (40 / len(labels)) ** 0.5


@pytest.mark.parametrize(("n", "n_x"), [(8, 3), (12, 6), (20, 1), (2, 1), (14, 4)])
def test_enumeration_visits_each_labelling_once(n, n_x):
    total = comb(n, n_x)
    starts = range(0, total, 100)
    found = [list_labels(np.arange(first, min(first + 100, total)), n, n_x).T for first in starts]
    np.testing.assert_array_equal(np.concatenate(found), all_labellings(n, n_x))


def test_packed_labels_come_back():
    labels = np.random.default_rng(0).integers(0, 2, (40, LANES), dtype=np.uint8)
    np.testing.assert_array_equal(unpacked(packed(labels)), labels)
    np.testing.assert_array_equal(unpacked(packed(labels[:, :70]))[:, :70], labels[:, :70])
