import numpy as np
import pytest

from crossedge.numerics.star_mesh import edge_resistances, effective_resistances


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


def test_nothing_connects_two_parts():
    two = np.kron(np.eye(2), complete_graph(4))
    resistance = effective_resistances(two)
    assert np.isinf(resistance[:4, 4:]).all()
    np.testing.assert_allclose(resistance[:4, :4], complete_graph(4) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_inverse_of_the_laplacian_agrees(seed):
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=(30, 30)) ** 3
    w = np.triu(w, 1) + np.triu(w, 1).T
    inverse = np.linalg.pinv(np.diag(w.sum(0)) - w)
    diagonal = np.diag(inverse)
    expected = diagonal[:, None] + diagonal - 2 * inverse
    np.testing.assert_allclose(effective_resistances(w), expected, atol=1e-10)


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
    expected = effective_resistances(dense + dense.T)[i, j]
    np.testing.assert_allclose(edge_resistances(i, j, conductance), expected, rtol=1e-12)
