"""Smoothed graphs restricted to the nearest neighbours of each point."""

from __future__ import annotations

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import distance_matrix, matrix_distances, point_distances

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 3))
TWINS = POINTS.copy()
TWINS[[5, 6, 30, 31, 32]] = TWINS[7]


@pytest.mark.parametrize("points", [POINTS, TWINS], ids=["distinct", "twins"])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("temperature", [0.001, 0.3, (0.1, 5.0)])
def test_all_neighbours_are_the_complete_graph(points, k, temperature):
    distances = point_distances(points, 2.0)
    found = ce.NearestNeighbours(k, temperature, neighbours=100).pairs(distances)
    complete = ce.NearestNeighbours(k, temperature)(distance_matrix(distances))
    np.testing.assert_allclose(found.dense(), complete, atol=1e-12)
    assert found.left_out == 0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("neighbours", [3, 6, 20])
def test_left_out_is_a_bound(k, temperature, neighbours):
    distances = point_distances(TWINS, 2.0)
    found = ce.NearestNeighbours(k, temperature, neighbours).pairs(distances)
    complete = ce.NearestNeighbours(k, temperature)(distance_matrix(distances))
    complete[found.i, found.j] = complete[found.j, found.i] = 0.0
    outside = complete.sum() / 2 / (k * len(TWINS))
    assert outside <= found.left_out * (1 + 1e-9) + 1e-15
    assert found.left_out <= 1


def test_left_out_bound_is_sharp_where_it_is_small():
    distances = point_distances(POINTS, 2.0)
    assert ce.NearestNeighbours(1, 0.05, 20).pairs(distances).left_out < 1e-4


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, np.inf])
def test_any_distance(p):
    distances = point_distances(TWINS * 1e200, p)
    matrix = matrix_distances(distance_matrix(distances))
    weights = ce.NearestNeighbours(2, 3e199, neighbours=8)
    one, other = weights.pairs(distances), weights.pairs(matrix)
    np.testing.assert_allclose(one.dense(), other.dense(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weights(matrix.matrix), one.dense(), rtol=1e-9, atol=1e-12)


def test_order_of_points_makes_no_difference():
    weights = ce.NearestNeighbours(2, 0.3, neighbours=6)
    order = np.random.default_rng(1).permutation(len(TWINS))
    one = weights.pairs(point_distances(TWINS, 2.0)).dense()
    other = weights.pairs(point_distances(TWINS[order], 2.0)).dense()
    np.testing.assert_allclose(one[np.ix_(order, order)], other, atol=1e-13)


@pytest.mark.parametrize(
    "weights",
    [ce.SpanningTree(0.3, 6, 0.2), ce.SpanningTree(0.3, accuracy=0.2)],
    ids=["sparse", "all pairs"],
)
def test_random_projections_do_not_see_the_order_of_points(weights):
    points = np.random.default_rng(5).normal(size=(400, 3))
    order = np.random.default_rng(6).permutation(400)
    one, other = (
        weights.pairs(point_distances(some, 2.0)).dense() for some in (points, points[order])
    )
    np.testing.assert_allclose(one[np.ix_(order, order)], other, rtol=1e-5, atol=1e-8)
    assert (
        np.abs(one - ce.SpanningTree(0.3)(distance_matrix(point_distances(points, 2.0)))).max()
        > 1e-3
    )


def test_result_says_what_is_left_out():
    result = ce.two_sample(POINTS[:30], POINTS[30:], ce.NearestNeighbours(1, 0.2, 10), rng=0)
    assert 0 < result.left_out < 1
    assert "among 10 neighbours" in str(result)
    assert "left out" in str(result)
    complete = ce.two_sample(POINTS[:30], POINTS[30:], ce.NearestNeighbours(1, 0.2), rng=0)
    assert complete.left_out == 0
    assert "left out" not in str(complete)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.5, 0), "neighbours=0 is too small"),
        ((1, 0.5, 2.5), r"neighbours=2\.5 is not an integer"),
        ((3, 0.5, 2), "leaves less than k=3"),
        ((3, 0.0, 5), "no meaning at temperature 0"),
    ],
)
def test_bad_neighbours(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ce.NearestNeighbours(*arguments)


@pytest.mark.parametrize("points", [POINTS, TWINS], ids=["distinct", "twins"])
@pytest.mark.parametrize("temperature", [1e-6, 0.05, 0.5, (0.1, 5.0)])
def test_tree_of_all_pairs_is_the_complete_one(points, temperature):
    distances = point_distances(points, 2.0)
    found = ce.SpanningTree(temperature, neighbours=100).pairs(distances)
    complete = ce.SpanningTree(temperature)(distance_matrix(distances))
    np.testing.assert_allclose(found.dense(), complete, atol=1e-10)
    assert found.left_out == 0


@pytest.mark.parametrize("temperature", [0.002, 0.02, 0.1])
@pytest.mark.parametrize("neighbours", [3, 12, 30])
def test_left_out_of_a_tree_is_a_bound(temperature, neighbours):
    points = TWINS.copy()
    points[0] = 20.0  # far from all others
    distances = point_distances(points, 2.0)
    found = ce.SpanningTree(temperature, neighbours).pairs(distances)
    complete = ce.SpanningTree(temperature)(distance_matrix(distances))
    complete[found.i, found.j] = complete[found.j, found.i] = 0.0
    assert complete.sum() / 2 / (len(points) - 1) <= found.left_out + 1e-12


def test_left_out_of_a_cold_tree_is_little():
    found = ce.SpanningTree(0.01, neighbours=20).pairs(point_distances(POINTS, 2.0))
    assert 0 < found.left_out < 1e-3


def test_far_clusters_are_joined():
    points = np.concatenate([POINTS, POINTS + 1e6])
    found = ce.SpanningTree(0.3, neighbours=5).pairs(point_distances(points, 2.0))
    assert found.total == pytest.approx(len(points) - 1)
    between = (found.i < 60) & (found.j >= 60)
    assert found.weight[between].sum() == pytest.approx(1)


def test_accuracy_of_a_tree():
    points = np.random.default_rng(2).normal(size=(600, 3))
    distances = point_distances(points, 2.0)
    exact = ce.SpanningTree(0.2, neighbours=8).pairs(distances)
    found = ce.SpanningTree(0.2, neighbours=8, accuracy=0.1).pairs(distances)
    error = found.weight / exact.weight - 1
    assert 0 < np.sqrt((error**2).mean()) < 0.15
    assert found.total == pytest.approx(599, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0.5, 1.0), None, 0.1), "needs one temperature"),
        ((0.0, None, 0.1), "needs one temperature"),
        ((0.5, 5, 0.0), "not between"),
        ((0.5, 5, "high"), "not a real number"),
    ],
)
def test_bad_accuracy(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ce.SpanningTree(*arguments)


@pytest.mark.parametrize("null", ["normal", "pearson3", "permutation"])
def test_tree_of_all_pairs_without_a_matrix(null):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 3)), rng.normal(size=(250, 3)) + 0.1
    given = {"null": null, "n_resamples": 199, "rng": 0}
    exact = ce.two_sample(x, y, ce.SpanningTree(0.5), **given)
    found = ce.two_sample(x, y, ce.SpanningTree(0.5, accuracy=0.05), **given)
    assert found.statistic == pytest.approx(exact.statistic, rel=0.01)
    assert found.zscore == pytest.approx(exact.zscore, abs=0.2)
    assert found.null_std == pytest.approx(exact.null_std, rel=0.02)
    assert found.null_skewness == pytest.approx(exact.null_skewness, abs=0.05)
    assert np.log(found.pvalue) == pytest.approx(np.log(exact.pvalue), abs=0.5)


def test_weights_in_blocks_of_rows():
    """Sums, moments and labellings are those of the matrix."""
    from crossedge.moments import LabelMoments
    from crossedge.null.labellings import Labellings, observe, relabel
    from crossedge.weights import DenseWeights, StreamedWeights

    W = np.random.default_rng(4).random((300, 300))
    W = np.triu(W, 1) + np.triu(W, 1).T
    one, other = StreamedWeights(300, lambda first, last: W[first:last]), DenseWeights(W)
    in_x = np.arange(300) < 120
    np.testing.assert_allclose(observe(one, in_x)[:2], observe(other, in_x)[:2])
    few = Labellings(300, 120, 99, 0)
    for a, b in zip(
        relabel(one, few, range(1))[:2], relabel(other, few, range(1))[:2], strict=True
    ):
        np.testing.assert_allclose(a, b)
    a, b = LabelMoments(one, 120, 180), LabelMoments(other, 120, 180)
    for form in (a.weighted, a.difference):
        assert float(a.std(form)) == pytest.approx(float(b.std(form)))
        assert float(a.skewness(form)) == pytest.approx(float(b.skewness(form)), abs=0.03)


@pytest.mark.parametrize("n", [138, 144])
def test_estimates_do_not_tell_equal_points_apart(n):
    """All labellings of equal points are alike, whatever the noise of the projections."""
    zeros = np.zeros((n, 1))
    found = ce.two_sample(zeros, zeros, ce.SpanningTree(1.0, 3, 0.3), rng=0, n_resamples=99)
    assert found.pvalue == 1
    grid = np.random.default_rng(0).integers(0, 9, size=(600, 2)).astype(float)
    weights = ce.SpanningTree(0.5, 6, 0.2)
    one, swapped = (
        ce.two_sample(*some, weights, null="normal").statistic
        for some in ((grid[:300], grid[300:]), (grid[300:], grid[:300]))
    )
    assert one == pytest.approx(swapped, rel=1e-9)


def test_result_says_that_weights_are_estimates():
    x, y = np.random.default_rng(0).normal(size=(2, 300, 3))
    found = ce.two_sample(x, y, ce.SpanningTree(0.2, 8, 0.1), null="normal")
    exact = ce.two_sample(x, y, ce.SpanningTree(0.2, 8), null="normal")
    assert exact.standard_error == 0
    assert 0 < abs(found.statistic - exact.statistic) < 4 * found.standard_error
    assert "accuracy 0.1" in str(found)
    assert "statistic ±" in str(found)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_tree_of_all_pairs_in_any_unit(unit):
    x, y = np.random.default_rng(0).normal(size=(2, 150, 3))
    weights = ce.SpanningTree(0.3 * unit, accuracy=0.1)
    found = ce.two_sample(unit * x, unit * y, weights, null="normal")
    expected = ce.two_sample(x, y, ce.SpanningTree(0.3), null="normal")
    assert found.statistic == pytest.approx(expected.statistic, rel=0.02)
    assert weights.pairs(point_distances(unit * x, 2.0)).total == pytest.approx(149)


def test_tree_of_all_pairs_says_where_it_ends():
    x, y = np.random.default_rng(0).normal(size=(2, 150, 3))
    with pytest.raises(ValueError, match=r"temperature=0\.03 is too low"):
        ce.two_sample(x, y, ce.SpanningTree(0.03, accuracy=0.1))
    with pytest.raises(ValueError, match="needs distinct points"):
        ce.two_sample(x, x, ce.SpanningTree(0.3, accuracy=0.1))


def test_left_out_bound_of_candidates_with_tiny_probabilities():
    """Far candidates of point 0 have odds too small for a double, which count k times."""
    k, n = 2, 97
    d = np.full((n, n), 1e5)
    np.fill_diagonal(d, 0.0)

    def join(i, j, length):
        d[i, j] = d[j, i] = length

    for first in range(1, n, 3):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            join(first + i, first + j, 1.0)
    for i in (1, 2, 3):
        join(i, i + 3, 15.9)
    for i, length in zip(range(1, 7), [14.0, 14.0, 16.0, 16.0001, 16.0001, 16.0001], strict=True):
        join(0, i, length)
    for far in range(7, n):
        join(0, far, 2000.0)
    found = ce.NearestNeighbours(k, 1.0, 3).pairs(matrix_distances(d))
    complete = ce.NearestNeighbours(k, 1.0)(d)
    complete[found.i, found.j] = complete[found.j, found.i] = 0.0
    outside = complete.sum() / 2 / (k * n)
    assert 1e-4 < outside <= found.left_out


def test_projections_of_all_pairs_tell_their_error():
    """Over samples, the difference from the exact statistic is as large as it is said to be."""
    rng = np.random.default_rng(0)
    ratios, errors = [], []
    for _ in range(40):
        x, y = rng.normal(size=(2, 25, 2))
        given = {"null": "normal"}
        exact = ce.two_sample(x, y, ce.SpanningTree(1.0), **given)
        found = ce.two_sample(x, y, ce.SpanningTree(1.0, accuracy=0.3), **given)
        assert exact.standard_error == 0
        assert f"statistic ± {found.standard_error:.2g}" in repr(found)
        ratios.append((found.statistic - exact.statistic) / found.standard_error)
        errors.append(found.standard_error)
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.6
    assert np.median(errors) < 0.1 * exact.statistic
