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
            inverse[np.ix_(used, used)] = np.linalg.pinv(
                laplacian[np.ix_(used, used)], rcond=1e-9, hermitian=True
            )
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


def forest_counts(n, i, j, weight, n_x, most):
    """How many labellings have 0 ... most crossing edges: polynomials, positive terms only.

    For a forest; [a, b] counts labellings of a branch with a points in x and b crossing edges.
    """
    near = [[] for _ in range(n)]
    for a, b, w in zip(i, j, weight, strict=True):
        near[a].append((b, w))
        near[b].append((a, w))

    def product(one, other):
        out = np.zeros((n_x + 1, most + 1))
        for a, b in zip(*np.nonzero(other), strict=True):
            out[a:, b:] += other[a, b] * one[: n_x + 1 - a, : most + 1 - b]
        return out

    def crossing(one, w):
        out = np.zeros_like(one)
        out[:, w:] = one[:, : max(most + 1 - w, 0)]
        return out

    def branch(v, above):
        in_x, in_y = np.zeros((2, n_x + 1, most + 1))
        in_x[1, 0] = in_y[0, 0] = 1.0
        for u, w in near[v]:
            if u != above:
                x, y = branch(u, v)
                in_x = product(in_x, x + crossing(y, w))
                in_y = product(in_y, crossing(x, w) + y)
        seen.add(v)
        return in_x, in_y

    seen, total = set(), np.zeros((n_x + 1, most + 1))
    total[0, 0] = 1.0
    for v in range(n):
        if v not in seen:
            total = product(total, sum(branch(v, None)))
    return total[n_x]
