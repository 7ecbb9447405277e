import numpy as np
import pytest

from crossedge.numerics.trees.plain import edge_resistances
from crossedge.numerics.trees.sparse_star_mesh import eliminate
from crossedge.numerics.trees.star_mesh import PANEL, padded, solve, tangent_of


def left_of_the_diagonal(matrix):
    """Nothing else is to be read, so that nothing else needs to be written."""
    half = np.full_like(padded(matrix), np.nan)
    below = np.tril_indices(len(matrix), -1)
    half[below] = matrix[below]
    return half


def effective_resistances(conductance):
    return solve(left_of_the_diagonal(conductance)).resistance


def complete_graph(n):
    return np.ones((n, n)) - np.eye(n)


def test_complete_graph():
    np.testing.assert_allclose(effective_resistances(complete_graph(9)), complete_graph(9) * 2 / 9)


def test_a_chain_adds_up():
    resistors = np.array([1.0, 5.0, 0.1, 7.0])
    conductance = np.diag(1 / resistors, 1)
    place = np.append(0, np.cumsum(resistors))
    np.testing.assert_allclose(
        effective_resistances(conductance + conductance.T), np.abs(place[:, None] - place)
    )


def test_a_cycle_is_two_chains_in_parallel():
    n = 12
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    conductance = ((steps == 1) | (steps == n - 1)).astype(float)
    np.testing.assert_allclose(effective_resistances(conductance), steps * (n - steps) / n)


def random_conductances(n, seed):
    w = np.random.default_rng(seed).exponential(size=(n, n)) ** 3
    return np.triu(w, 1) + np.triu(w, 1).T


def by_pseudo_inverse(w, dw=None):
    """R from the Laplacian L(w), or its derivative along dw."""
    inverse = np.linalg.pinv(np.diag(w.sum(0)) - w)
    if dw is not None:
        inverse = -inverse @ (np.diag(dw.sum(0)) - dw) @ inverse
    diagonal = np.diag(inverse)
    return diagonal[:, None] + diagonal - 2 * inverse


@pytest.mark.parametrize("n", [1, 2, 3, PANEL - 1, PANEL, PANEL + 1, 150, 2 * 256 + 70])
def test_the_inverse_of_the_laplacian_agrees(n):
    w = random_conductances(n, n)
    np.testing.assert_allclose(effective_resistances(w), by_pseudo_inverse(w), atol=1e-10)


@pytest.mark.parametrize("n", [2, 3, PANEL, PANEL + 1, 150, 2 * 256 + 70])
def test_the_tangent_is_the_derivative(n):
    w, change = random_conductances(n, n), random_conductances(n, n + 1)
    dw = w * (change - 1)
    found = tangent_of(solve(left_of_the_diagonal(w)), left_of_the_diagonal(dw))[:, :n]
    expected = by_pseudo_inverse(w, dw)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("density", [0.02, 0.1, 0.9])
def test_sparse_elimination_agrees_with_dense(density):
    """At 0.9 the core is everything, at 0.02 the graph has loose ends and several parts."""
    rng = np.random.default_rng(7)
    n = 120
    i, j = np.nonzero(np.triu(rng.random((n, n)) < density, 1))
    i, j = np.append(i, i[:5]), np.append(j, j[:5])  # some edges twice
    conductance = rng.exponential(size=len(i))
    dense = np.zeros((n, n))
    np.add.at(dense, (i, j), conductance)
    expected = by_pseudo_inverse(dense + dense.T)[i, j]
    found = eliminate(n, i, j, conductance).edge_resistance
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(edge_resistances(n, i, j, conductance), expected, rtol=1e-10)
