"""Random pair weights, as a list of edges or as a matrix."""

import numpy as np

from crossedge.weights import EdgeList


def random_graph(n, atoms, density, seed, whole=False):
    rng = np.random.default_rng(seed)
    atom = np.append(np.arange(atoms), rng.integers(0, atoms, n - atoms))
    i, j = np.nonzero(np.triu(rng.random((atoms, atoms)) < density))
    if atoms == n:
        i, j = i[i != j], j[i != j]
    weight = rng.integers(1, 12, len(i)) * 1.0 if whole else rng.exponential(size=len(i))
    return EdgeList.from_pairs(atom, j, i, weight)


def random_matrix(n, seed, density=1.0):
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(n, n)) * (rng.random((n, n)) < density)
    return np.triu(W, 1) + np.triu(W, 1).T
