"""Graphs of samples that fill several leaves, against all distances at once."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

import brute_force
import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.numerics import SMALL
from crossedge.numerics.trees.boruvka import arrivals_of_tree, tree_of_points

N = SMALL + 1  # the first size that goes through leaves; the last leaf has one point


def all_distances(points, p):
    if p == 2:
        return cdist(points, points)
    return (
        cdist(points, points, "chebyshev")
        if p == np.inf
        else cdist(points, points, "minkowski", p=p)
    )


def graph(weights, points, p=2.0):
    return weights.pairs(point_distances(np.asarray(points, float), p)).dense()


def cloud(kind, n, d):
    rng = np.random.default_rng(n + d)
    normal = rng.normal(size=(n, d))
    if kind == "two far clusters":
        normal[: n // 3] += 1e4
    elif kind == "line":
        return rng.normal(size=(n, 1)) * rng.normal(size=d)
    elif kind == "heavy tails":
        return rng.standard_t(1, size=(n, d))
    elif kind == "nested scales":
        return normal * 10.0 ** rng.integers(0, 9, size=(n, 1))
    elif kind == "spiral":
        turn = np.sort(rng.random(n))[:, None]
        return turn * np.cos(40 * turn + np.arange(d))
    return normal


KINDS = ["normal", "two far clusters", "line", "heavy tails", "nested scales", "spiral"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("d", "p"),
    [(1, 1.0), (2, 1.5), (2, np.inf), (3, 2.0), (3, 3.0), (10, 1.0), (10, 2.0), (40, 2.0)],
)
def test_graphs_are_those_of_all_distances(kind, d, p):
    points = cloud(kind, N + d, d)
    distances = all_distances(points, p)
    tree = minimum_spanning_tree(distances).toarray()
    found = graph(ce.SpanningTree(), points, p)
    assert found.sum() == pytest.approx(2 * (len(points) - 1), rel=1e-12)
    # lengths, since on a line scipy's rounding may differ from ours
    assert (found * distances).sum() / 2 == pytest.approx(tree.sum(), rel=1e-12)
    for k in (1, 5):
        nearer = graph(ce.NearestNeighbours(k), points, p)
        np.testing.assert_allclose(
            nearer, brute_force.neighbours_by_counting(distances, k), atol=1e-9
        )


@pytest.mark.parametrize("n", [N, 1100, pytest.param(2500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_edges_of_the_tree(n, kind):
    points = cloud(kind, n, 3)
    tree = minimum_spanning_tree(cdist(points, points)).toarray() > 0
    if kind == "line":  # equal lengths in plan, up to rounding, are no ties here
        assert graph(ce.SpanningTree(), points).sum() == 2 * (n - 1)
    else:
        np.testing.assert_array_equal(graph(ce.SpanningTree(), points), tree | tree.T)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize(("d", "levels"), [(1, 900), (2, 30), (3, 11), (6, 3)])
def test_grids_and_copies(p, d, levels):
    """Integers tie, and many of them are copies of each other."""
    points = np.random.default_rng(d).integers(0, levels, size=(900, d)) * 0.1
    distances = all_distances(points, p)
    found = graph(ce.SpanningTree(), points, p)
    np.testing.assert_allclose(found, brute_force.kruskal_average(distances), atol=1e-8)
    for k in (1, 4):
        nearer = graph(ce.NearestNeighbours(k), points, p)
        np.testing.assert_allclose(
            nearer, brute_force.neighbours_by_counting(distances, k), atol=1e-9
        )


def test_more_neighbours_than_a_leaf_has_points():
    points = cloud("normal", 700, 3)
    distances = cdist(points, points)
    found = graph(ce.NearestNeighbours(200), points)
    np.testing.assert_allclose(found, brute_force.neighbours_by_counting(distances, 200), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_tie_far_from_the_lists(seed):
    """Two bridges of equal length between two clusters, among lengths that all differ."""
    rng = np.random.default_rng(seed)
    left, right = rng.random((300, 2)), rng.random((350, 2)) + np.array([9, 0])
    left[:2], right[:2] = [[2, 0], [2, 1]], [[8, 0], [8, 1]]
    points = np.vstack([left, right])[rng.permutation(650)]
    found = graph(ce.SpanningTree(), points)
    np.testing.assert_allclose(found, brute_force.kruskal_average(cdist(points, points)), atol=1e-9)
    assert np.count_nonzero(found == 0.5) == 4


def test_a_tree_without_ties_reports_none():
    points = cloud("normal", 3000, 2)
    assert tree_of_points(points, 2.0).tied == []
    points[0] = points[1] + [1e-3, 0]
    points[2] = points[1] + [0, 1e-3]
    assert tree_of_points(points, 2.0).tied != []


def test_arrivals_are_in_the_order_of_prim():
    """The longest edge on the path between two arrivals is the largest key in between."""
    points = cloud("normal", 300, 2)
    tree = tree_of_points(points, 2.0)
    order, parent, key = arrivals_of_tree(tree.i, tree.j, tree.length)
    place = np.argsort(order)
    longest = np.zeros((300, 300))
    for step in range(1, 300):
        before = place[parent[step]]
        assert before < step
        longest[step, :step] = np.maximum(longest[before, :step], key[step])
        longest[:step, step] = longest[step, :step]
    for a in range(299):
        np.testing.assert_array_equal(longest[a, a + 1 :], np.maximum.accumulate(key[a + 1 :]))
