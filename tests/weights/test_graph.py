"""Graphs that were built elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import torch
from scipy.sparse import coo_array
from scipy.spatial import cKDTree

import crossedge as ce

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=(40, 3)) + 0.4
IN_Y = np.arange(100) >= 60
NEAR = cKDTree(np.concatenate([X, Y])).query(np.concatenate([X, Y]), 4)[1][:, 1:]
EDGES = np.stack([np.repeat(np.arange(100), 3), NEAR.ravel()], 1)
OWN = ce.two_sample(X, Y, ce.NearestNeighbours(3), null="pearson3")


def matrix():
    return coo_array((np.ones(len(EDGES)), EDGES.T), (100, 100))


@pytest.mark.parametrize(
    "edges",
    [EDGES, EDGES[:, ::-1], EDGES.tolist(), torch.as_tensor(EDGES), matrix(), matrix().tocsr()],
    ids=["array", "other way", "list", "tensor", "coo", "csr"],
)
def test_known_neighbours_are_the_same_test(edges):
    found = ce.two_sample(None, IN_Y, ce.Graph(edges), null="pearson3")
    assert found.statistic == OWN.statistic
    assert found.pvalue == OWN.pvalue
    assert ce.two_sample(X, Y, ce.Graph(edges), null="pearson3").pvalue == OWN.pvalue


def test_symmetric_matrix_is_the_weights():
    weights = ce.Graph(matrix() + matrix().T)
    assert ce.two_sample(None, IN_Y, weights).statistic == OWN.statistic
    np.testing.assert_array_equal(weights(np.zeros((100, 100))), (matrix() + matrix().T).toarray())


def test_files(tmp_path):
    for place, some in enumerate(np.array_split(EDGES, 3)):
        table = pa.table({"i": some[:, 0], "j": some[:, 1], "weight": np.full(len(some), 2.0)})
        parquet.write_table(table, tmp_path / f"{place}.parquet")
    for given in (tmp_path, str(tmp_path), sorted(tmp_path.iterdir())):
        found = ce.two_sample(None, IN_Y, ce.Graph(given), null="pearson3")
        assert found.statistic == 2 * OWN.statistic
    parquet.write_table(pa.table({"i": [0], "k": [1]}), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad.parquet has no column 'j'"):
        ce.Graph(tmp_path)


def test_weights_of_equal_pairs_add_up():
    graph = ce.Graph([(0, 1), (1, 0), (1, 2)], [1.0, 0.5, 0.25])
    expected = [[0, 1.5, 0], [1.5, 0, 0.25], [0, 0.25, 0]]
    np.testing.assert_array_equal(graph(np.zeros((3, 3))), expected)


def test_one_part_of_an_adaptive_test():
    found = ce.two_sample(X, Y, [ce.Graph(EDGES), ce.SpanningTree()], rng=0, n_resamples=99)
    assert found.members[0].weights.name == "given graph of 300 edges"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([(0, 1), (2, 2)],), "joins point 2 to itself"),
        (([(0, 1.5)],), "is float64: give integers"),
        (([(0, 1, 2)],), r"shape \(1, 3\): give \(m, 2\)"),
        ((np.empty((0, 2), int),), "is empty"),
        (([(0, -1)],), "negative index -1"),
        (([(0, 1)], [np.nan]), "finite and non-negative"),
        (([(0, 1)], [-1.0]), "finite and non-negative"),
        (([(0, 1)], [1.0, 1.0]), "one for each of 1 edges"),
        ((matrix(), np.ones(300)), "does not go with a matrix"),
        ((coo_array((3, 4)),), "give a square one"),
        (("nowhere.parquet",), "does not exist"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        ce.Graph(*arguments)


def test_bad_labels():
    graph = ce.Graph(EDGES)
    with pytest.raises(ValueError, match="an edge at point 99 of 90"):
        ce.two_sample(None, IN_Y[:90], graph)
    for y in (40, np.zeros(100, bool), np.ones(100, bool), np.zeros((100, 1), bool)):
        with pytest.raises(ValueError, match="y must be a mask"):
            ce.two_sample(None, y, graph)
    with pytest.raises(TypeError, match="x is None"):
        ce.two_sample(None, IN_Y, ce.SpanningTree())


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("null", ["normal", "pearson3", "permutation"])
def test_weights_in_any_unit(unit, null):
    weights = RNG.uniform(0.5, 1.0, size=len(EDGES))
    given = {"null": null, "rng": 0, "n_resamples": 99}
    one = ce.two_sample(None, IN_Y, ce.Graph(EDGES, weights), **given)
    other = ce.two_sample(None, IN_Y, ce.Graph(EDGES, unit * weights), **given)
    assert other.pvalue == pytest.approx(one.pvalue)
    assert other.statistic == pytest.approx(unit * one.statistic)


def test_a_graph_is_not_thinned():
    with pytest.raises(ValueError, match="max_points=20 needs"):
        ce.two_sample(X, Y, ce.Graph(EDGES), max_points=20)
