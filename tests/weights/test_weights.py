"""One contract for every family of weights."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import KDTree

import brute_force
import crossedge as ce
from brute_force import lp_distances
from contract import KINDS, WeightsContract, points_of
from crossedge.data.distances import point_distances

FAMILIES = [
    ce.SpanningTree(),
    ce.NearestNeighbours(),
    ce.NearestNeighbours(4),
    ce.SpanningTree(0.4),
    ce.NearestNeighbours(1, 0.4),
    ce.NearestNeighbours(4, (0.2, 1.0)),
    ce.SpanningTree("median"),
]


def total_weight(weights, n):
    return n - 1 if isinstance(weights, ce.SpanningTree) else weights.k * n


def witness(weights, distances):
    if isinstance(weights, ce.SpanningTree):
        return brute_force.spanning_trees(distances)
    return brute_force.nearest_neighbours(distances, weights.k)


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("loops")
class TestContract(WeightsContract):
    def test_marginals_are_not_negative_and_have_a_fixed_sum(self, weights, kind):
        W = weights(torch.as_tensor(lp_distances(points_of(kind, 40))))
        assert (W >= 0).all()
        assert W.sum() / 2 == pytest.approx(total_weight(weights, 40), rel=1e-13)


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize("n", [2, 3, 5, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_ties_are_averaged_as_enumeration_says(n, kind):
    for p in (1.0, 2.0, np.inf):
        points = points_of(kind, n)
        distances = lp_distances(points, p)
        for weights in [ce.SpanningTree(), *(ce.NearestNeighbours(k) for k in range(1, n))]:
            expected = witness(weights, distances)
            for W in (
                weights(torch.as_tensor(distances)),
                weights.pairs(point_distances(points, p)).dense(),
            ):
                np.testing.assert_allclose(W, expected, atol=1e-12)


small_grids = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=7).map(
    np.array
)


# each example is of its own, and the fixture is the same for all
SAME_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("graphs")
@SAME_FIXTURE
@given(points=small_grids, scale=st.sampled_from([1.0, 0.1, 1 / 3, 1e-9]), k=st.integers(1, 6))
def test_ties_on_grids_of_any_spacing(points, scale, k):
    """Multiples of 0.1 tie in plan, though not to the last bit."""
    points = points * scale
    for weights in (ce.SpanningTree(), ce.NearestNeighbours(min(k, len(points) - 1))):
        W = weights.pairs(point_distances(points, 2.0)).dense()
        np.testing.assert_allclose(W, witness(weights, lp_distances(points)), atol=1e-9)


@pytest.mark.usefixtures("graphs")
@SAME_FIXTURE
@given(
    st.integers(2, 6).flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n * n, max_size=n * n))
)
def test_ties_in_any_symmetric_matrix(entries):
    """Precomputed distances need not obey the triangle inequality."""
    n = int(len(entries) ** 0.5)
    distances = np.tril(np.reshape(entries, (n, n)), -1).astype(float)
    distances += distances.T
    for weights in (ce.SpanningTree(), ce.NearestNeighbours(n - 1), ce.NearestNeighbours(1)):
        W = weights(torch.as_tensor(distances))
        np.testing.assert_allclose(W, witness(weights, distances), atol=1e-12)


def planted_tie(n, gap, seed):
    """Two clusters of continuous points with just two bridges, equally long but for the gap."""
    rng = np.random.default_rng(seed)
    half = n // 2
    left, right = rng.random((half, 2)) * 0.5, rng.random((n - half, 2)) * 0.5 + [10, 0]
    left[:2] = [[1.0, 0.0], [1.0, 4.0]]
    right[:2] = [[9.0, 0.0], [9.0 + 8 * gap, 4.0]]
    return np.vstack([left, right])[rng.permutation(n)]


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize("n", [4, 5, 60, 140])
@pytest.mark.parametrize(("gap", "p"), [(0.0, 1.0), (1e-13, 2.0), (-4e-13, 2.0), (0.0, 3.0)])
def test_one_tie_among_many_points_is_found(n, gap, p):
    """Wherever the two edges stand: same leaf or another, an offer or a choice of the next."""
    for seed in range(4):
        points = planted_tie(n, gap, seed)
        distances = lp_distances(points, p)
        expected = brute_force.kruskal_average(distances)
        np.testing.assert_allclose(np.unique(expected.round(9)), [0, 0.5, 1])
        for W in (
            ce.SpanningTree().pairs(point_distances(points, p)).dense(),
            ce.SpanningTree()(torch.as_tensor(distances)).numpy(),
        ):
            np.testing.assert_allclose(W, expected, atol=1e-9)


@pytest.mark.usefixtures("graphs")
def test_the_smallest_tie_in_any_order():
    """Two sides of a triangle, 0.5 each: equal in plan, and not in binary."""
    corners = np.array([[0, 0], [0, 5], [3, 4]]) * 0.1
    for order in permutations(range(3)):
        W = ce.SpanningTree().pairs(point_distances(corners[list(order)], 2.0)).dense()
        far = [order.index(corner) for corner in range(3)]
        np.testing.assert_allclose(W[np.ix_(far, far)], [[0, 0.5, 0.5], [0.5, 0, 1], [0.5, 1, 0]])


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(
    ("shape", "scale"), [((40, 1), 1.0), ((300, 2), 1 / 3), ((150, 4), 0.1), ((260, 3), 0.1)]
)
def test_discrete_points_in_many_leaves(shape, scale):
    for levels in (3, 9):
        points = np.random.default_rng(1).integers(0, levels, shape) * scale
        distances = lp_distances(points)
        expected = brute_force.kruskal_average(distances)
        W = ce.SpanningTree().pairs(point_distances(points, 2.0)).dense()
        np.testing.assert_allclose(W, expected, atol=1e-9)
        for k in (1, 3, 7):
            by_points = ce.NearestNeighbours(k).pairs(point_distances(points, 2.0)).dense()
            by_count = brute_force.neighbours_by_counting(distances, k)
            np.testing.assert_allclose(by_points, by_count, atol=1e-12)


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(("n", "d"), [(2, 1), (500, 1), (500, 2), (700, 10), (300, 60)])
def test_the_tree_is_that_of_scipy(n, d):
    points = np.random.default_rng(n).standard_t(2, size=(n, d))
    W = ce.SpanningTree().pairs(point_distances(points, 2.0)).dense()
    tree = minimum_spanning_tree(lp_distances(points)).toarray() > 0
    np.testing.assert_array_equal(W, tree | tree.T)


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(("n", "d", "k"), [(2, 1, 1), (500, 1, 3), (900, 2, 5), (700, 10, 20)])
def test_the_neighbours_are_those_of_scipy(n, d, k):
    points = np.random.default_rng(n).standard_t(2, size=(n, d))
    W = ce.NearestNeighbours(k).pairs(point_distances(points, 2.0)).dense()
    expected = np.zeros((n, n))
    for i, near in enumerate(KDTree(points).query(points, k + 1)[1]):
        expected[i, near[near != i]] = 1
    np.testing.assert_array_equal(W, expected + expected.T)


def test_many_copies_need_no_more_memory_than_one():
    points = np.zeros((100_000, 2))
    points[50_000:] = 1
    for weights in (ce.SpanningTree(), ce.NearestNeighbours(3)):
        graph = weights.pairs(point_distances(points, 2.0))
        assert len(graph.weight) <= 3
        assert graph.total == pytest.approx(total_weight(weights, 100_000), rel=1e-12)


def test_a_large_grid_of_ties():
    """Every edge of a square grid is in some minimum tree, and the weights sum to n - 1."""
    side = 60
    points = np.indices((side, side)).reshape(2, -1).T * 1.0
    graph = ce.SpanningTree().pairs(point_distances(points, 2.0))
    assert len(graph.weight) == 2 * side * (side - 1)
    assert graph.total == pytest.approx(side**2 - 1, rel=1e-12)
    in_the_middle = (np.abs(points - (side - 1) / 2).max(1) < 1)[graph.i]
    np.testing.assert_allclose(graph.weight[in_the_middle], 0.5, atol=1e-3)  # 1/2 as side grows


BAD_WEIGHTS = {
    "negative": (lambda: ce.SpanningTree(-1.0), "temperature=-1.0 is not at least 0"),
    "NaN": (lambda: ce.NearestNeighbours(1, float("nan")), "temperature=nan"),
    "a word": (
        lambda: ce.SpanningTree("warm"),
        "temperature='warm' is unknown",
    ),
    "none": (lambda: ce.SpanningTree([]), "temperature is an empty sequence"),
    "one of several": (lambda: ce.SpanningTree([1.0, -2.0]), "temperature=-2.0 is not at least 0"),
    "complex": (lambda: ce.SpanningTree(1j), "temperature=1j is not a real number"),
    "true neighbours": (lambda: ce.NearestNeighbours(True), "k=True is not an integer"),
    "a list": (lambda: ce.SpanningTree()([[0.0, 1.0], [1.0, 0.0]]), "distances is of type list"),
    "whole numbers": (lambda: ce.SpanningTree()(np.zeros((3, 3), int)), "distances is int64"),
    "no neighbours": (lambda: ce.NearestNeighbours(0), "k=0 is too small"),
    "half a neighbour": (lambda: ce.NearestNeighbours(1.5), "k=1.5 is not an integer"),
    "too many": (lambda: ce.NearestNeighbours(3)(torch.zeros(3, 3)), "k=3 is too large for 3"),
    "not square": (lambda: ce.SpanningTree()(torch.zeros(3, 4)), "distances has shape (3, 4)"),
    "a vector": (lambda: ce.SpanningTree()(torch.zeros(3)), "distances has shape (3,)"),
    "one point": (lambda: ce.SpanningTree()(torch.zeros(1, 1)), "distances has 1 points"),
    "integers": (lambda: ce.SpanningTree()(torch.zeros(3, 3).int()), "distances is torch.int32"),
    "a learned matrix": (
        lambda: ce.SpanningTree(torch.ones(2, 2, requires_grad=True)),
        "temperature is a tensor of shape (2, 2): give one floating point number",
    ),
    "learned below 0": (
        lambda: ce.SpanningTree(torch.tensor(-1.0, requires_grad=True)),
        "temperature=-1.0 is not above 0",
    ),
    "one of several learned": (
        lambda: ce.GaussianKernel([1.0, torch.tensor(1.0, requires_grad=True)]),
        "bandwidth is a sequence with a tensor that requires a gradient: give one tensor",
    ),
    "minus": (lambda: ce.SpanningTree()(-torch.ones(3, 3)), "negative entries"),
}


@pytest.mark.parametrize(("call", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
def test_bad_weights_get_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
