"""Sparsifiers keep the spectrum."""

import numpy as np
import pytest
from scipy.linalg import eigh

import crossedge as ce
from crossedge.numerics.trees.sparsifier import draw_edges, draws_for
from sparse_graphs import neighbour_graph


def laplacian(d, t):
    K = np.exp(-(d + d.T) / 2 / t)
    np.fill_diagonal(K, 0.0)
    return np.diag(K.sum(0)) - K


def distances(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    return np.linalg.norm(points[:, None] - points, axis=-1)


def relative_eigenvalues(new, old):
    """Those of new x = lambda old x, without the constant vectors."""
    n = len(old)
    basis = np.linalg.qr(np.eye(n) - 1 / n)[0][:, : n - 1]
    return eigh(basis.T @ new @ basis, basis.T @ old @ basis, eigvals_only=True)


@pytest.mark.parametrize("t", [0.1, 1.0, "median"])
@pytest.mark.parametrize("epsilon", [0.3, 0.9])
def test_all_quadratic_forms_are_kept(t, epsilon):
    d = distances(150, 0)
    few = ce.sparsify(ce.SpanningTree(t), d, epsilon, rng=0)
    old = laplacian(d, np.median(d[np.triu_indices(150, 1)]) if t == "median" else t)
    found = relative_eigenvalues(few.matrix().toarray(), old)
    assert found.min() >= 1 - epsilon
    assert found.max() <= 1 + epsilon
    # and epsilon is not wasted: the bound is within a factor of three or so
    assert np.abs(found - 1).max() > epsilon / 6
    assert (few.i < few.j).all()


def test_the_laplacian_is_right_in_expectation():
    d, t = distances(12, 1), 0.5
    found = [ce.sparsify(ce.SpanningTree(t), d, 0.99, rng).matrix().toarray() for rng in range(400)]
    error = np.std(found, axis=0) / 20
    assert (np.abs(np.mean(found, axis=0) - laplacian(d, t)) <= 5 * error + 1e-12).all()


def test_fewer_edges():
    mu = np.full(10**6, 1999 / 10**6)  # all pairs of 2,000 points would have twice as many
    edges, factor = draw_edges(mu, draws_for(2000, 0.9), np.random.default_rng(0))
    assert len(edges) < 10**5
    np.testing.assert_allclose(factor.sum(), 10**6, rtol=1e-9)


@pytest.mark.parametrize("n", [100, pytest.param(2500, marks=pytest.mark.slow)])
def test_lists_of_edges(n):
    """The larger graph is drawn by estimated marginals."""
    points = np.random.default_rng(2).random((n, 2))
    i, j, length = neighbour_graph(points)
    t = length.max()
    few = ce.sparsify(ce.SpanningTree(t), (i, j, length), 0.5, rng=0)
    for x in points.T:
        old = np.exp(-length / t) @ (x[i] - x[j]) ** 2
        new = few.conductance @ (x[few.i] - x[few.j]) ** 2
        np.testing.assert_allclose(x @ few.matrix() @ x, new, rtol=1e-6)
        assert abs(new / old - 1) < 0.5


def test_two_points():
    few = ce.sparsify(ce.SpanningTree(1.0), np.array([[0.0, 3.0], [3.0, 0.0]]))
    np.testing.assert_allclose(few.matrix().toarray(), np.exp(-3) * np.array([[1, -1], [-1, 1]]))


def test_refusals():
    d, edge = distances(5, 3), (np.array([0, 1]), np.array([1, 2]), np.ones(2))
    with pytest.raises(TypeError, match="SpanningTree"):
        ce.sparsify(ce.NearestNeighbours(1, 1.0), d)
    with pytest.raises(ValueError, match="one number above 0"):
        ce.sparsify(ce.SpanningTree(), d)
    with pytest.raises(ValueError, match="one number above 0"):
        ce.sparsify(ce.SpanningTree((1.0, 2.0)), edge)
    with pytest.raises(ValueError, match="epsilon"):
        ce.sparsify(ce.SpanningTree(1.0), d, 1.0)
    with pytest.raises(ValueError, match="2 parts"):
        ce.sparsify(ce.SpanningTree(1.0), (np.array([0, 2]), np.array([1, 3]), np.ones(2)))
    with pytest.raises(ValueError, match="each pair once"):
        ce.sparsify(ce.SpanningTree(1.0), (np.array([0, 1]), np.array([1, 0]), np.ones(2)))
    with pytest.raises(ValueError, match="too small for a double"):
        ce.sparsify(ce.SpanningTree(1e-4), d)
    with pytest.raises(ValueError, match="needs all distances"):
        ce.sparsify(ce.SpanningTree("median"), edge)


def test_all_pairs_are_drawn_from_whatever_the_neighbours():
    points = np.random.default_rng(0).normal(size=(60, 2))
    d = np.linalg.norm(points[:, None] - points, axis=-1)
    one, other = (
        ce.sparsify(ce.SpanningTree(1.0, neighbours), d, 0.9, rng=0) for neighbours in (None, 5)
    )
    np.testing.assert_array_equal(one.i, other.i)
    np.testing.assert_array_equal(one.conductance, other.conductance)
