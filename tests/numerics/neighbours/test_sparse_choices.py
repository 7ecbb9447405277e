"""Smoothed neighbours among candidates, against enumeration of all sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from crossedge.numerics.neighbours import sparse_choices
from crossedge.numerics.neighbours.sparse_choices import chosen, chosen_tangent


def enumerated(d, k, temperature):
    """The probability of each candidate to be chosen, by a sum over all sets."""
    least, mu, total = np.sort(d)[:k].sum(), np.zeros(len(d)), 0.0
    for some in map(list, combinations(range(len(d)), k)):
        odds = np.exp((least - d[some].sum()) / temperature)
        total += odds
        mu[some] += odds
    return mu / total


def table(rng, k):
    rows = [rng.random(size) for size in (k, k + 1, 7, 11)]
    rows.append(np.zeros(8))  # all tie
    rows.append(np.repeat([1.0, 2.0], 4))
    return np.cumsum([0, *map(len, rows)]), np.concatenate(rows), rows


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("temperature", [1e-4, 0.02, 0.5, 1e5])
def test_probabilities_are_those_of_all_sets(k, temperature):
    start, length, rows = table(np.random.default_rng(k), k)
    expected = np.concatenate([enumerated(row, k, temperature) for row in rows])
    np.testing.assert_allclose(chosen(start, length, k, temperature), expected, atol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("temperature", [0.02, 0.5])
def test_tangent_is_the_derivative(k, temperature):
    rng = np.random.default_rng(k)
    start, length, _ = table(rng, k)
    along, step = rng.normal(size=len(length)), 1e-5 * temperature
    mu = chosen(start, length, k, temperature)
    there, back = (chosen(start, length - s * along, k, temperature) for s in (step, -step))
    found = chosen_tangent(start, length, mu, k, temperature, along)
    np.testing.assert_allclose(found, (there - back) * temperature / (2 * step), atol=1e-8)


def test_blocks_of_rows_make_no_difference(monkeypatch):
    start, length, _ = table(np.random.default_rng(0), 3)
    whole = chosen(start, length, 3, 0.1)
    monkeypatch.setattr(sparse_choices, "BLOCK_ENTRIES", 5)
    np.testing.assert_array_equal(chosen(start, length, 3, 0.1), whole)
