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


def kruskal_average(distances, rtol=1e-9):
    """The average over minimum spanning trees by the inverse of a Laplacian for every length."""
    n = len(distances)
    i, j = np.triu_indices(n, 1)
    order = np.argsort(distances[i, j])
    i, j, length = i[order], j[order], distances[i, j][order]
    component = np.arange(n)
    W = np.zeros((n, n))
    first = 0
    while component.any():
        last = np.searchsorted(length, length[first] * (1 + rtol), side="right")
        a, b = component[i[first:last]], component[j[first:last]]
        joins = a != b
        if joins.sum() == 1:
            W[i[first:last][joins], j[first:last][joins]] = 1
            low, high = sorted((a[joins][0], b[joins][0]))
            component[component == high] = low
        elif joins.any():
            laplacian = np.zeros((n, n))
            for u, v in zip(a[joins], b[joins], strict=True):
                laplacian[[u, v], [u, v]] += 1
                laplacian[[u, v], [v, u]] -= 1
            used = np.flatnonzero(np.diag(laplacian))
            inverse = np.zeros((n, n))
            inverse[np.ix_(used, used)] = np.linalg.pinv(laplacian[np.ix_(used, used)])
            share = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
            W[i[first:last][joins], j[first:last][joins]] = share[joins]
            for u, v in zip(a[joins], b[joins], strict=True):
                low, high = sorted((component[u], component[v]))
                component[component == high] = low
        first = last
    return W + W.T


def neighbours_by_counting(distances, k, rtol=1e-9):
    n = len(distances)
    W = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        d = distances[i, others]
        furthest = np.sort(d)[k - 1]
        nearer, tied = d < furthest * (1 - rtol), np.abs(d - furthest) <= rtol * furthest
        W[i, others[nearer]] = 1
        W[i, others[tied]] = (k - nearer.sum()) / tied.sum()
    return W + W.T


def all_labellings(n, n_x):
    """(labellings, n) of 0 and 1."""
    labels = np.zeros((0, n))
    for chosen in combinations(range(n), n_x):
        labels = np.vstack([labels, np.isin(np.arange(n), chosen)])
    return labels


def cross_counts(W, labels):
    """The definition of T for every row of labels."""
    return np.array([label @ W @ (1 - label) for label in labels])
