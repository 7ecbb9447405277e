"""Neighbours among some of the points: the graph of these points, whatever the order."""

from dataclasses import replace

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.moments.edges import closed_triangles, sampled_walks
from crossedge.null.labellings import Labellings, relabel
from crossedge.parts import Views, sparse_parts
from crossedge.weights import LowRankWeights, NearestNeighbours
from crossedge.weights.thinned_neighbours import ThinnedNeighbours


def test_edges_are_those_of_the_chosen_points():
    points = np.random.default_rng(0).normal(size=(400, 3))
    found = ThinnedNeighbours(3, among=300).pairs(point_distances(points, 2.0)).dense()
    chosen = np.flatnonzero(found.sum(0))
    assert len(chosen) == 300
    alone = NearestNeighbours(3).pairs(point_distances(points[chosen], 2.0)).dense()
    assert np.array_equal(found[np.ix_(chosen, chosen)], alone)
    order = np.random.default_rng(1).permutation(400)
    other = ThinnedNeighbours(3, among=300).pairs(point_distances(points[order], 2.0)).dense()
    assert np.array_equal(other, found[np.ix_(order, order)])


def test_estimated_triangles_are_about_right():
    points = np.repeat(np.random.default_rng(0).normal(size=(400, 3)), 2, axis=0)
    graph = ThinnedNeighbours(8, among=250).pairs(point_distances(points, 2.0))
    exact = np.trace(np.linalg.matrix_power(graph.dense(), 3))
    row2 = graph.row_sums(graph.weight**2)
    assert closed_triangles(graph, row2) == pytest.approx(exact)
    assert closed_triangles(graph, row2, nearly=True) == pytest.approx(exact, rel=0.02)
    assert sampled_walks(replace(graph, weight=0 * graph.weight)) == 0


def test_copies_count_once():
    points = np.repeat(np.random.default_rng(0).normal(size=(50, 2)), 3, axis=0)
    distances = point_distances(points, 2.0)
    every = NearestNeighbours(4).pairs(distances).dense()
    assert np.array_equal(ThinnedNeighbours(4, among=50).pairs(distances).dense(), every)
    some = ThinnedNeighbours(4, among=20).pairs(distances).dense()
    assert (some.sum(0) > 0).sum() == 60


def test_the_default_is_valid_and_powerful_with_them(monkeypatch):
    monkeypatch.setattr("crossedge.parts.MOST_WIDE_POINTS", 300)
    monkeypatch.setattr("crossedge.adaptive.MOST_DENSE_POINTS", 100)
    rng = np.random.default_rng(0)
    names = ["weighted", "fisher"]
    wide = Views(point_distances(rng.normal(size=(400, 13)), 2.0), dense=False)
    assert {type(part.weights).__name__ for part in sparse_parts(wide, names)} == {
        "ThinnedNeighbours",
        "RoundedNeighbours",
        "EnergyKernel",
        "QuadraticKernel",
    }
    narrow = Views(point_distances(rng.normal(size=(400, 12)), 2.0), dense=False)
    assert not any(getattr(part.weights, "among", None) for part in sparse_parts(narrow, names))
    for shift, limit in ((0.0, 0.02), (0.4, 0.01)):
        x, y = rng.normal(size=(200, 13)), rng.normal(size=(200, 13)) + shift
        p = ce.two_sample(x, y, n_resamples=199, rng=0).pvalue
        assert (p <= limit) == (shift > 0)


def test_single_precision_changes_nothing_that_one_sees(monkeypatch):
    rng = np.random.default_rng(0)
    weights = LowRankWeights(rng.normal(size=(3000, 30)) @ np.diag(np.geomspace(1, 1e-3, 30)))
    labellings = Labellings(3000, 1200, 500, 0)
    double = relabel(weights, labellings, range(labellings.blocks))
    monkeypatch.setattr("crossedge.null.labellings.SINGLE_POINTS", 1000)
    single = relabel(weights, labellings, range(labellings.blocks))
    assert not np.array_equal(single.x, double.x)
    assert single.x == pytest.approx(double.x, abs=1e-5 * double.x.std())
    features = rng.normal(size=(3000, 30))
    features[0, 0] = 1e6  # its square is subtracted again
    far = relabel(LowRankWeights(features), labellings, range(labellings.blocks))
    monkeypatch.setattr("crossedge.null.labellings.SINGLE_POINTS", 10**6)
    exact = relabel(LowRankWeights(features), labellings, range(labellings.blocks))
    assert np.array_equal(far.x, exact.x)
