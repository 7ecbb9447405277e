"""A bound on what the smoothed tree of the complete graph has on pairs that were left out.

A pair that was left out has w_ij R_ij at most, with R_ij in the graph that was kept, since more
edges lower every resistance (Rayleigh). It is at least r_i and r_j long, where r_i is the reach of
the candidates of i, so w_ij <= min(e_i, e_j) with e_i = e^(-r_i / t). And R_ij is at most the
resistance of the path in the minimum spanning tree, hence at most the diameter of any part that
holds both points. Kruskal's algorithm joins parts A and B one by one. The sum of mu_ij over all
pairs between them is at most |A| |B|, and at most the diameter of both joined, times the least of

    |B| (sum of e over A),   |A| (sum of e over B),   (sum of root e over A) (sum of root e over B).
"""

from __future__ import annotations

import math

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


def left_out_of_tree(i: Ints, j: Ints, length: Floats, reach: Floats, temperature: float) -> float:
    """Return the bound over n - 1, at most 1, for a connected graph of n points."""
    shift = float(reach.min())  # lengths relative to it, so that exponentials stay in range
    by_length = np.argsort(length, kind="stable")
    log_e, log_r = -(reach - shift) / temperature, (length - shift) / temperature
    return min(_bound(i, j, by_length, log_r, log_e) / (len(reach) - 1), 1.0)


@compiled
def _log_sum(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@compiled
def _bound(i: Ints, j: Ints, by_length: Ints, log_r: Floats, log_e: Floats) -> float:
    n = len(log_e)
    parent, size = np.arange(n), np.ones(n)
    of_e, of_roots = log_e.copy(), log_e / 2  # logarithms of sums over parts
    log_diameter = np.full(n, -np.inf)
    total = 0.0
    for edge in by_length:
        a, b = i[edge], j[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a == b:
            continue
        joined = _log_sum(_log_sum(log_diameter[a], log_diameter[b]), log_r[edge])
        one_sided = min(math.log(size[b]) + of_e[a], math.log(size[a]) + of_e[b])
        bound = joined + min(one_sided, of_roots[a] + of_roots[b])
        pairs = size[a] * size[b]
        total += pairs if bound > math.log(pairs) else math.exp(bound)
        if size[a] > size[b]:
            a, b = b, a
        parent[a] = b
        size[b] += size[a]
        of_e[b] = _log_sum(of_e[a], of_e[b])
        of_roots[b] = _log_sum(of_roots[a], of_roots[b])
        log_diameter[b] = joined
    return total
