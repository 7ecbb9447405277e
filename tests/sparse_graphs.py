"""Sparse graphs for tests: nearest neighbours joined with the minimum spanning tree."""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist


def neighbour_graph(points, k=10):
    """Return i, j and lengths of the k nearest neighbours of each point and of the tree."""
    n = len(points)
    near = cKDTree(points).query(points, k + 1)[1][:, 1:]
    tree = minimum_spanning_tree(cdist(points, points)).tocoo()
    i = np.concatenate([np.repeat(np.arange(n), k), tree.row])
    j = np.concatenate([near.ravel(), tree.col])
    pairs = np.unique(np.minimum(i, j) * n + np.maximum(i, j))
    i, j = pairs // n, pairs % n
    return i, j, np.linalg.norm(points[i] - points[j], axis=1)


def random_graph(n, extra, rng):
    """Return the i, j of a random tree and some more edges, each pair once."""
    child = np.arange(1, n)
    i, j = np.concatenate([child, rng.integers(n, size=extra)]), None
    j = np.concatenate([rng.integers(child), rng.integers(n, size=extra)])
    pairs = np.unique((np.minimum(i, j) * n + np.maximum(i, j))[i != j])
    return pairs // n, pairs % n
