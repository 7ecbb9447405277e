"""Potentials on all pairs of points, by streaming."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from crossedge.numerics.trees import streamed
from crossedge.numerics.trees.marginals import tree_marginals
from sparse_graphs import neighbour_graph


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("warmth", [0.05, 0.3, 2.0])
def test_potentials_give_the_marginals_of_all_pairs(d, warmth, monkeypatch):
    products = []
    original = streamed._product
    monkeypatch.setattr(streamed, "_product", lambda *given: products.append(1) or original(*given))
    n, probes = 300, 256
    points = np.random.default_rng(d).normal(size=(n, d))
    i, j, _ = neighbour_graph(points)
    distances = cdist(points, points)
    t = warmth * np.median(distances)
    mu = np.empty((n, n))
    tree_marginals(distances, mu, mu, t)
    Z = streamed.streamed_tree_potentials(points, t, i, j, probes, 1)
    a, b = np.triu_indices(n, 1)
    found = np.exp(-distances[a, b] / t) * ((Z[a] - Z[b]) ** 2).sum(1)
    relative = found / mu[a, b] - 1
    assert 0.8 < np.sqrt(np.mean(relative**2) / (2 / probes)) < 1.2
    assert abs(relative.mean()) < 0.02
    assert len(products) <= 15  # few, whatever the temperature


def test_the_seed_decides():
    points = np.random.default_rng(0).normal(size=(40, 2))
    i, j, _ = neighbour_graph(points, 5)
    one, same, other = (
        streamed.streamed_tree_potentials(points, 1.0, i, j, 8, seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
