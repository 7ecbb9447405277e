"""One search serves graphs of all smaller sizes."""

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import point_distances, rows_of
from crossedge.numerics.neighbours.nearest import edges_of, nearest_of_points
from crossedge.numerics.neighbours.plain import nearest_in_rows
from crossedge.parts import Views


def summed(edges, n):
    W = np.zeros((n, n))
    np.add.at(W, edges[:2], edges[2])
    return W


@pytest.mark.parametrize("kind", ["apart", "copies on a fine grid", "copies on a coarse grid"])
def test_smaller_graphs_are_read_off_a_search(kind):
    """Copies and ties that end inside the lists, and ties that do not."""
    rng = np.random.default_rng(0)
    sides = {"copies on a fine grid": 30, "copies on a coarse grid": 6}
    points = rng.integers(0, sides[kind], (900, 2)) * 1.0 if kind in sides else rng.random((300, 3))
    points, copies = np.unique(points, axis=0, return_counts=True)
    n, distances = len(points), point_distances(points, 2.0)
    found = nearest_of_points(distances.points, 21, 2.0, copies)
    for k in (1, 2, 5, 13, 21):
        expected = summed(nearest_in_rows(rows_of(distances), k, copies), n)
        np.testing.assert_array_equal(summed(edges_of(found, k), n), expected)


def test_views_search_once(monkeypatch):
    points = np.random.default_rng(0).normal(size=(600, 2))
    distances = point_distances(points, 2.0)
    views = Views(distances, dense=False)
    large = views.pairs(ce.NearestNeighbours(9), "")
    monkeypatch.setattr(ce.NearestNeighbours, "search", None)
    found = views.pairs(ce.NearestNeighbours(4), "")
    monkeypatch.undo()
    alone = ce.NearestNeighbours(4).pairs(distances)
    np.testing.assert_array_equal(found.dense(), alone.dense())
    assert large.total == 600 * 9
