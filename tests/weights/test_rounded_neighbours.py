"""Smoothed neighbours in whole units: what they round, ties, copies, and points left out."""

import numpy as np
import pytest

from crossedge.data.distances import distance_matrix, point_distances
from crossedge.weights import NearestNeighbours
from crossedge.weights.rounded_neighbours import RoundedNeighbours


@pytest.fixture(autouse=True)
def few_points_are_searched_as_many_are(monkeypatch):
    monkeypatch.setattr("crossedge.weights.searches.SMALL", 0)


def median_gap(matrix, size):
    ordered = np.sort(matrix, axis=1)  # the first distance is that of a point to itself
    return np.median(ordered[:, size] - ordered[:, 1])


@pytest.mark.parametrize("copies", [1, 3])
def test_they_are_smoothed_neighbours_but_for_half_a_unit(copies):
    points = np.random.default_rng(0).normal(size=(150, 2))
    every = np.repeat(points, copies, axis=0)
    distances = point_distances(every, 2.0)
    temperature = median_gap(distance_matrix(point_distances(points, 2.0)), 4)
    exact = NearestNeighbours(1, temperature).pairs(distances).dense()
    edges = RoundedNeighbours(149, size=4).pairs(distances)
    assert np.array_equal(edges.weight, np.rint(edges.weight))
    found = edges.dense() / 128
    assert abs(found - exact).max() <= 1 / 128 + 1e-12  # both points of a pair may choose it
    assert found.sum() == pytest.approx(exact.sum(), rel=0.08)  # small ones are lost


def test_points_that_are_equally_far_are_all_in_or_all_out():
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(9.0)), axis=-1).reshape(-1, 2)
    points = np.concatenate([grid, 0.3 * np.random.default_rng(0).normal(size=(200, 2))])
    order = np.random.default_rng(1).permutation(len(points))
    weights = RoundedNeighbours(16, size=4)
    found = weights.pairs(point_distances(points, 2.0)).dense()
    other = weights.pairs(point_distances(points[order], 2.0)).dense()
    assert np.array_equal(other, found[np.ix_(order, order)])


def test_a_grid_alone_has_its_classical_graph():
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(9.0)), axis=-1).reshape(-1, 2)
    distances = point_distances(grid, 2.0)
    found = RoundedNeighbours(16, size=4).pairs(distances).dense()
    assert np.array_equal(found, NearestNeighbours(4).pairs(distances).dense())


def test_among_some_points_the_others_have_no_edges():
    points = np.random.default_rng(0).normal(size=(400, 3))
    found = RoundedNeighbours(16, among=300, size=4).pairs(point_distances(points, 2.0)).dense()
    chosen = np.flatnonzero(found.sum(0))
    assert len(chosen) == 300
    alone = RoundedNeighbours(16, size=4).pairs(point_distances(points[chosen], 2.0)).dense()
    assert np.array_equal(found[np.ix_(chosen, chosen)], alone)
