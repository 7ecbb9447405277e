"""Smoothed trees on sparse graphs: elimination, windows, random projections, gradients."""

from itertools import combinations

import numpy as np
import pytest

from crossedge.numerics.trees import sparse_marginals
from crossedge.numerics.trees.marginals import tree_marginals
from crossedge.numerics.trees.sparse_marginals import sparse_tree_marginals
from crossedge.numerics.trees.tied import spanning_tree_of_matrix
from high_precision import sparse_tree_marginals as in_high_precision
from sparse_graphs import neighbour_graph, random_graph

TEMPERATURES = [1e-300, 1e-12, 1e-4, 1e-3, 0.01, 0.1, 1.0, 1e3, 1e300]


def is_tree(n, i, j):
    part = list(range(n))
    for a, b in zip(i, j, strict=True):
        one, other = part[a], part[b]
        if one == other:
            return False
        part = [one if p == other else p for p in part]
    return True


def by_enumeration(n, i, j, length, t):
    mu, total = np.zeros(len(i)), 0.0
    for tree in map(list, combinations(range(len(i)), n - 1)):
        if is_tree(n, i[tree], j[tree]):
            odds = np.exp(-length[tree].sum() / t)
            mu[tree] += odds
            total += odds
    return mu / total


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_enumeration(n):
    rng = np.random.default_rng(n)
    i, j = random_graph(n, 2 * n, rng)
    length = rng.integers(3, size=len(i)) * 0.7  # with ties and lengths of 0
    found = sparse_tree_marginals(n, i, j, length, 0.9)
    np.testing.assert_allclose(found.mu, by_enumeration(n, i, j, length, 0.9), rtol=1e-12)
    assert not found.standard_error.any()


@pytest.mark.parametrize("t", TEMPERATURES)
def test_the_complete_graph_agrees_with_dense_elimination(t):
    rng = np.random.default_rng(0)
    points = np.round(rng.normal(size=(60, 2)), 1)  # some are equal
    d = np.linalg.norm(points[:, None] - points, axis=-1)
    n, (i, j) = len(d), np.triu_indices(len(d), 1)
    dense, direction, out = np.empty((n, n)), rng.normal(size=(n, n)), np.empty((n, n))
    model = tree_marginals(d, dense, dense, t)
    found = sparse_tree_marginals(n, i, j, d[i, j], t)
    # exponents of size d / t are rounded
    np.testing.assert_allclose(found.mu, dense[i, j], rtol=1e-11, atol=1e-200)
    model.pull_back(direction, dense, out)
    pulled = found.pull_back((direction + direction.T)[i, j])
    scale = np.abs(out).max()
    np.testing.assert_allclose(pulled / 2 / scale, out[i, j] / scale, atol=1e-10)


def test_a_cold_tree_is_the_average_over_minimum_trees():
    square = np.array([[a, b] for a in range(5) for b in range(6)], float) * 0.1
    d = np.linalg.norm(square[:, None] - square, axis=-1)
    n, (i, j) = len(d), np.triu_indices(len(d), 1)
    tree, expected = spanning_tree_of_matrix(d, np.ones(n, np.int64)), np.zeros((n, n))
    expected[tree.i, tree.j] = tree.weight
    found = sparse_tree_marginals(n, i, j, d[i, j], 1e-30)
    np.testing.assert_allclose(found.mu, (expected + expected.T)[i, j], atol=1e-12)


def ladder(rungs, spread):
    """Two paths with rungs between them, whose lengths grow from step to step."""
    rng = np.random.default_rng(3)
    top = np.arange(rungs)
    i = np.concatenate([top[:-1], rungs + top[:-1], top])
    j = np.concatenate([top[1:], rungs + top[1:], rungs + top])
    step = np.concatenate([top[:-1], top[:-1], top])
    return 2 * rungs, i, j, spread * step / rungs + rng.exponential(2, len(i))


@pytest.mark.parametrize("spread", [100.0, 2000.0])
def test_windows_against_high_precision(spread):
    graph = ladder(8, spread)
    found = sparse_tree_marginals(*graph, 1.0)
    np.testing.assert_allclose(found.mu, in_high_precision(*graph, 1.0), rtol=1e-11)
    assert len(found.solved) == (1 if spread < 600 else 3)


def test_narrow_windows_against_high_precision():
    """The windows of random projections, but solved exactly: what they leave out is small."""
    graph = ladder(8, 300.0)
    found = sparse_tree_marginals(*graph, 1.0, accuracy=0.05)
    assert len(found.solved) > 3
    np.testing.assert_allclose(found.mu, in_high_precision(*graph, 1.0), rtol=1e-7)


def test_the_order_of_edges_does_not_matter():
    rng = np.random.default_rng(1)
    i, j, length = neighbour_graph(rng.normal(size=(300, 3)))
    order, other = rng.permutation(len(i)), rng.random(len(i)) < 0.5
    turned = np.where(other, i, j)[order], np.where(other, j, i)[order]
    expected = sparse_tree_marginals(300, i, j, length, 0.05).mu[order]
    found = sparse_tree_marginals(300, *turned, length[order], 0.05).mu
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("t", [0.02, 0.5])
def test_the_gradient_is_that_of_finite_differences(t):
    rng = np.random.default_rng(2)
    n = 120
    i, j, length = neighbour_graph(rng.normal(size=(n, 2)), 5)
    gradient, direction, h = rng.normal(size=len(i)), rng.normal(size=len(i)), 1e-5 * t

    def loss(step):
        return gradient @ sparse_tree_marginals(n, i, j, length + step * direction, t).mu

    expected = (loss(h) - loss(-h)) / (2 * h)
    found = sparse_tree_marginals(n, i, j, length, t).pull_back(gradient) @ direction
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("t", [0.005, 0.05, 1.0])
def test_standard_errors_of_random_projections_are_true(t, monkeypatch):
    """At the lowest temperature there are several windows."""
    monkeypatch.setattr(sparse_marginals, "EXACT_UP_TO", 0)
    rng = np.random.default_rng(4)
    n, seeds = 400, range(10)
    i, j, length = neighbour_graph(rng.normal(size=(n, 2)), 8)
    mu = sparse_tree_marginals(n, i, j, length, t).mu
    drawn = [sparse_tree_marginals(n, i, j, length, t, 0.1, seed) for seed in seeds]
    # edges that are nearly certain, either way, have errors far from normal
    uncertain = (mu > 0.01) & (mu < 0.99)
    for among in (uncertain & (mu < 0.2), uncertain & (mu > 0.3)):
        errors = np.array([(one.mu - mu)[among] for one in drawn])
        expected = np.array([one.standard_error[among] for one in drawn])
        if errors.size > 500:
            assert 0.8 < np.sqrt(np.mean(errors**2) / np.mean(expected**2)) < 1.2
            assert np.abs(errors.mean()) < 0.1 * expected.mean()
    relative = np.array([(one.mu / mu - 1)[uncertain] for one in drawn])
    assert np.sqrt(np.mean(relative**2)) < 0.1
    for one in drawn:
        assert ((one.mu >= 0) & (one.mu <= 1)).all()
        np.testing.assert_allclose(one.mu.sum(), n - 1)
        assert np.abs(one.mu - mu)[~uncertain].max(initial=0) < 0.01


def test_projections_beat_the_plain_estimate_near_one():
    """The mean of y^2 alone errs by sqrt(2 / N) there."""
    rng = np.random.default_rng(5)
    n = 500
    i, j, length = neighbour_graph(rng.normal(size=(n, 2)), 5)
    mu = sparse_tree_marginals(n, i, j, length, 0.01).mu
    found = sparse_tree_marginals(n, i, j, length, 0.01, 0.1).mu
    near_one = (mu > 0.9) & (mu < 1)
    assert near_one.sum() > 20
    assert np.sqrt(np.mean((found - mu)[near_one] ** 2)) < 0.01


def test_the_gradient_by_projections():
    rng = np.random.default_rng(6)
    n = 400
    i, j, length = neighbour_graph(rng.normal(size=(n, 3)), 8)
    gradient = 5.0 + rng.normal(size=len(i))
    exact = sparse_tree_marginals(n, i, j, length, 0.1).pull_back(gradient)
    found = sparse_tree_marginals(n, i, j, length, 0.1, 0.05).pull_back(gradient)
    assert np.linalg.norm(found - exact) < 0.06 * np.linalg.norm(exact)


def test_the_same_seed_gives_the_same_marginals():
    rng = np.random.default_rng(7)
    graph = 400, *neighbour_graph(rng.normal(size=(400, 3)), 8)
    one, same, other = (sparse_tree_marginals(*graph, 0.1, 0.2, seed).mu for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_bridges_are_certain():
    rng = np.random.default_rng(8)
    one, two = (neighbour_graph(rng.normal(size=(300, 2)), 5) for _ in range(2))
    i, j, length = (
        np.concatenate([one[0], two[0] + 300, [17]]),
        np.concatenate([one[1], two[1] + 300, [423]]),
        np.concatenate([one[2], two[2], [50.0]]),
    )
    found = sparse_tree_marginals(600, i, j, length, 0.3, 0.2)
    assert found.mu[-1] == 1.0
    assert found.standard_error[-1] == 0.0
    np.testing.assert_allclose(found.mu[: len(one[0])].sum(), 299)


@pytest.mark.parametrize("accuracy", [None, 0.5])
@pytest.mark.parametrize("t", [1e-300, 1e-5, 1.0, 1e300])
def test_extremes_are_finite(accuracy, t, monkeypatch):
    monkeypatch.setattr(sparse_marginals, "EXACT_UP_TO", 0)
    rng = np.random.default_rng(9)
    n = 50
    i, j = random_graph(n, 60, rng)
    length = rng.choice([0.0, 1e-9, 1.0, 1.0 + 1e-13, 3.0, 1e8], len(i))
    found = sparse_tree_marginals(n, i, j, length, t, accuracy)
    assert np.isfinite(found.mu).all()
    assert ((found.mu >= 0) & (found.mu <= 1 + 1e-12)).all()
    np.testing.assert_allclose(found.mu.sum(), n - 1)
    assert np.isfinite(found.standard_error).all()
    pulled = found.pull_back(rng.normal(size=len(i)) * min(t, 1.0))
    assert np.isfinite(pulled).all()


def test_two_points_and_one():
    pair = np.array([0]), np.array([1]), np.array([3.0])
    for accuracy in (None, 0.1):
        found = sparse_tree_marginals(2, *pair, 0.1, accuracy)
        np.testing.assert_array_equal(found.mu, [1.0])
        np.testing.assert_array_equal(found.pull_back(np.ones(1)), [0.0])
        nothing = np.empty(0, np.int64)
        alone = sparse_tree_marginals(1, nothing, nothing, np.empty(0), 0.1, accuracy)
        assert len(alone.mu) == len(alone.pull_back(np.empty(0))) == 0
