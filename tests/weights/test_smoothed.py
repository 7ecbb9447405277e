"""Smoothed weights against enumeration, high precision and their limits."""

from itertools import combinations, product

import numpy as np
import pytest
import torch

import brute_force
import crossedge as ce
import high_precision
from crossedge.autograd.distances import lp_distances
from crossedge.numerics.neighbours.cardinality import TILTED
from crossedge.numerics.neighbours.marginals import neighbour_model
from crossedge.numerics.neighbours.row_softmax import softmax_rows
from crossedge.numerics.trees import marginals as tree_marginals
from crossedge.numerics.trees.minimum import arrivals_of_matrix
from smoothed_cases import (
    FAMILIES,
    KINDS,
    assert_relatively_close,
    data,
    distances_of,
    each_family,
    gradient_along,
    median,
    symmetric_direction,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 30.0])
def test_trees_are_those_of_enumeration(kind, temperature):
    for n in (2, 3, 5, 6):
        distances = distances_of(kind, n)
        trees = brute_force.trees_on(n)
        lengths = distances.numpy()[trees[..., 0], trees[..., 1]].sum(-1)
        share = np.exp(-(lengths - lengths.min()) / temperature)
        share /= share.sum()
        expected = np.zeros((n, n))
        for edges, weight in zip(trees, share, strict=True):
            expected[edges[:, 0], edges[:, 1]] += weight
        W = ce.SpanningTree(temperature)(distances)
        np.testing.assert_allclose(W, expected + expected.T, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 30.0])
def test_neighbours_are_those_of_enumeration(kind, temperature):
    n = 7
    distances = distances_of(kind, n)
    for k in range(1, n):
        mu = np.zeros((n, n))
        for i in range(n):
            sets = [list(s) for s in combinations([j for j in range(n) if j != i], k)]
            lengths = np.array([distances[i, s].sum() for s in sets])
            share = np.exp(-(lengths - lengths.min()) / temperature)
            for s, weight in zip(sets, share / share.sum(), strict=True):
                mu[i, s] += weight
        W = ce.NearestNeighbours(k, temperature)(distances)
        np.testing.assert_allclose(W, mu + mu.T, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.05, 1e-2, 1e-3])
def test_trees_to_full_precision(kind, relative):
    """Entry by entry, where the inverse of the Laplacian in doubles has no digit left."""
    distances = distances_of(kind, 9)
    temperature = relative * median(distances)
    expected = high_precision.tree_marginals(distances.numpy(), temperature)
    W = ce.SpanningTree(temperature)(distances)
    assert_relatively_close(W, expected, 1e-10)
    assert float(W.sum()) / 2 == pytest.approx(8, rel=1e-12)


@pytest.mark.parametrize(("kind", "relative"), [("clusters", 0.1), ("line", 0.03)])
def test_more_points_to_full_precision(kind, relative):
    distances = distances_of(kind, 45)
    temperature = relative * median(distances)
    expected = high_precision.tree_marginals(distances.numpy(), temperature)
    assert_relatively_close(ce.SpanningTree(temperature)(distances), expected, 1e-10)


@pytest.mark.parametrize(
    ("kind", "relative", "k"),
    [
        *product(KINDS, [1e3, 1.0, 1e-3], [1, 3]),
        *product(["normal", "near-duplicates", "grid"], [1.0, 1e-3], [TILTED + 1, 38]),
    ],
)
def test_neighbours_to_full_precision(kind, relative, k):
    distances = distances_of(kind, 40)
    temperature = relative * median(distances)
    if k == 1:
        total, nearest, mu = np.empty(40), np.empty(40, np.int64), np.empty((40, 40))
        odd = np.zeros(1, bool)
        softmax_rows(0, 40, distances.numpy(), temperature, odd, total, nearest, mu)
        mu /= total[:, None]
    else:
        mu = neighbour_model(distances.numpy(), k, temperature, np.empty((40, 40))).chosen()
    others = np.delete(np.arange(40), 31)
    expected = high_precision.row_marginals(distances.numpy()[31, others], k, temperature)
    assert_relatively_close(mu[31, others], expected, 1e-10)


@each_family
@pytest.mark.parametrize("kind", KINDS)
def test_the_lower_limit_is_temperature_zero(family, kind):
    distances = distances_of(kind, 30)
    for temperature in (1e-300, 1e-100, 1e-30):
        W = family(temperature)(distances)
        np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)
        gradient = gradient_along(family(temperature), distances, symmetric_direction(30))
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("family", [FAMILIES["tree"], FAMILIES["1-NN"]])
@pytest.mark.parametrize("places", [[0.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e-308])
def test_cold_and_evenly_spaced(family, places, temperature):
    """All that matters is at one distance, but the diagonal is far below it."""
    distances = lp_distances(torch.tensor(places)[:, None].double(), 2.0)
    W = family(temperature)(distances)
    np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)
    gradient = gradient_along(family(temperature), distances, symmetric_direction(len(places)))
    assert torch.isfinite(gradient).all()


@each_family
@pytest.mark.parametrize("kind", KINDS)
def test_the_upper_limit_is_uniform(family, kind):
    distances = distances_of(kind, 30)
    for temperature in (1e30, 1e300, float("inf")):
        W = family(temperature)(distances)
        uniform = W.sum() / (30 * 29) * (1 - torch.eye(30, dtype=torch.float64))
        torch.testing.assert_close(W, uniform, rtol=1e-12, atol=0)
        gradient = gradient_along(family(temperature), distances, symmetric_direction(30))
        assert gradient.abs().max() < 1e-20


@each_family
def test_equal_points_at_the_end_of_the_range(family):
    """1 / temperature is no longer a double."""
    distances = torch.zeros(6, 6, dtype=torch.float64)
    W = family(1e-310)(distances)
    assert_relatively_close(W, family(1.0)(distances), 1e-12)


@each_family
def test_the_lower_limit_on_a_grid_that_ties_in_plan_only(family):
    distances = lp_distances(torch.as_tensor(data("grid", 24)) * 0.1, 2.0)
    W = family(1e-300)(distances)
    np.testing.assert_allclose(W, family(0.0)(distances), atol=1e-12)


def test_near_ties_count_at_temperatures_that_can_tell_them():
    u = 2.0**-21
    distances = torch.tensor([[0, 1, 1e6], [1, 0, 1e6 + u], [1e6, 1e6 + u, 0]]).double()
    distances[1, 2] = distances[2, 1] = 1e6 + u
    for family in (ce.SpanningTree, ce.NearestNeighbours):
        weights = family(temperature=1e-3)
        assert float(weights(distances)[2, 0]) == pytest.approx(
            1 / (1 + np.exp(-u / 1e-3)), rel=1e-10
        )


def test_trees_of_distances_that_are_not_symmetric():
    distances = torch.as_tensor(np.random.default_rng(1).random((8, 8)))
    cold = ce.SpanningTree(1e-300)(distances)
    np.testing.assert_allclose(ce.SpanningTree()(distances), cold, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [5.0, 0.5, 0.05])
def test_two_recursions_agree_on_more_than_a_panel(kind, temperature):
    """Plain elimination by halves, and elimination with a scale for every pair."""
    distances, direction = distances_of(kind, 200).numpy(), symmetric_direction(200).numpy()
    order, key = arrivals_of_matrix(distances)
    mu, other, slope, other_slope = (np.empty_like(distances) for _ in range(4))
    plain = tree_marginals._plain(distances, 0.0, temperature, mu)
    banded = tree_marginals._banded(distances, order, key, temperature, other)
    assert_relatively_close(torch.from_numpy(mu), other, 1e-11)
    plain.pull_back(direction, mu, slope)
    banded.pull_back(direction, other, other_slope)
    np.testing.assert_allclose(slope * temperature, other_slope * temperature, atol=1e-12)


@each_family
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision(family, kind):
    distances = distances_of(kind, 40).float()
    for relative in (1.0, 0.1):
        temperature = relative * median(distances)
        W = family(temperature)(distances)
        assert W.dtype == torch.float32
        exact = family(temperature)(distances.double())
        torch.testing.assert_close(W.double(), exact, rtol=1e-4, atol=1e-30)


@each_family
def test_several_temperatures_are_averaged(family):
    distances = distances_of("normal", 20)
    expected = sum(family(t)(distances) for t in (0.0, 0.1, 5.0)) / 3
    for temperature in ((0.0, 0.1, 5.0), [0.0, 0.1, 5.0], np.array([0.0, 0.1, 5.0])):
        torch.testing.assert_close(family(temperature)(distances), expected)
    odd = distances_of("normal", 15)  # 105 pairs, so the median is one of the distances
    assert torch.equal(family("median")(odd), family(median(odd))(odd))


@each_family
def test_medians_of_a_batch_some_of_them_zero(family):
    far, equal = distances_of("normal", 6), torch.zeros(6, 6, dtype=torch.float64)
    for order in ([far, equal], [equal, far]):
        leaf = torch.stack(order).requires_grad_()
        W = family("median")(leaf)
        for found, matrix in zip(W, order, strict=True):
            np.testing.assert_allclose(found.detach(), family("median")(matrix), atol=1e-15)
        W.pow(2).sum().backward()
        assert torch.isfinite(leaf.grad).all()


def test_a_temperature_may_be_a_numpy_number():
    assert (
        ce.SpanningTree(np.array(0.5)) == ce.SpanningTree(np.float64(0.5)) == ce.SpanningTree(0.5)
    )


@each_family
def test_smoothed_tests_run_end_to_end(family):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) + 1.5
    for temperature in (0.2, 1.0, "median", (0.1, 1.0)):
        for null in ("permutation", "normal"):
            options = {"null": null, "n_resamples": 199, "rng": 0}
            assert ce.two_sample(x, y, family(temperature), **options).pvalue < 0.01
            assert ce.two_sample(x, x[:20], family(temperature), **options).pvalue > 0.01
    shift = 1e280
    far = ce.two_sample(x * shift, y * shift, family(0.5 * shift), rng=0)
    assert far.zscore == pytest.approx(ce.two_sample(x, y, family(0.5), rng=0).zscore)
