"""Independent witnesses: the definitions, spelt out by enumeration."""

from functools import cache
from itertools import combinations

import numpy as np


def lp_distances(points, p=2.0):
    return np.linalg.norm(points[:, None] - points[None], ord=p, axis=-1)


def is_tree(edges, n):
    component = list(range(n))
    for i, j in edges:
        if component[i] == component[j]:
            return False
        component = [component[j] if c == component[i] else c for c in component]
    return True


@cache
def trees_on(n):
    """(trees, n - 1, 2): every spanning tree of n points."""
    candidates = combinations(combinations(range(n), 2), n - 1)
    return np.array([edges for edges in candidates if is_tree(edges, n)])


def average_of_best(options, cost):
    """W of the mean over all (options, edges, 2) sets of edges of the least total cost."""
    costs = cost[options[..., 0], options[..., 1]].sum(-1)
    best = options[costs <= costs.min() * (1 + 1e-9)]
    W = np.zeros_like(cost)
    np.add.at(W, (best[..., 0], best[..., 1]), 1 / len(best))
    return W + W.T


def spanning_trees(distances):
    return average_of_best(trees_on(len(distances)), distances)


def nearest_neighbours(distances, k):
    n = len(distances)
    W = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        sets = np.array([[(i, j) for j in chosen] for chosen in combinations(others, k)])
        W += average_of_best(sets, distances)
    return W


def all_labellings(n, n_x):
    """(labellings, n) of 0 and 1."""
    labels = np.zeros((0, n))
    for chosen in combinations(range(n), n_x):
        labels = np.vstack([labels, np.isin(np.arange(n), chosen)])
    return labels


def cross_counts(W, labels):
    """The definition of T for every row of labels."""
    return np.array([label @ W @ (1 - label) for label in labels])
