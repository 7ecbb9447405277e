"""Random spanning trees from the Gibbs measure at any temperature, by star-mesh elimination.

Wilson's algorithm walks on the graph, and at low temperature is trapped in clusters. Here vertices
come back one by one, and a tree of the network without k becomes a tree of the network with k. An
edge i, j of the reduced network is direct with odds w_ij, or stands for the path over an eliminated
vertex l with odds w_li w_lj / s_l. When k comes back, the edges that stood for a path over k are
dropped, and k is joined to every part that is left, at vertex i with probability proportional to
w_ki. The new edge then draws an origin of its own. (The weights of all ways in which edges over k
can join m parts add up to that of m edges at k, by Cayley's formula with vertex weights.)
"""

from __future__ import annotations

import numpy as np

from crossedge.numerics.labellings.packed import next_random, random_state
from crossedge.numerics.trees.banded_star_mesh import BandedMesh, Bands
from crossedge.numerics.trees.boruvka import root_of
from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints, Words


@compiled
def _uniform(state: Words) -> float:
    """Return a uniform number in [0, 1)."""
    return np.float64(next_random(state) >> np.uint64(11)) * 2.0**-53


@compiled
def _choose(odds: Floats, count: int, state: Words) -> int:
    """Draw an index below `count` with probability proportional to its odds."""
    total = 0.0
    for i in range(count):
        total += odds[i]
    rest = _uniform(state) * total
    last = 0
    for i in range(count):
        if odds[i] > 0.0:
            last = i
            if rest < odds[i]:
                return i
            rest -= odds[i]
    return last


@compiled
def draw_tree(conductance: Floats, mesh: BandedMesh, bands: Bands, key: np.uint64) -> Ints:
    """Draw a tree with probability proportional to its weight; return its (n - 1, 2) edges."""
    weight, total, nearest, _ = mesh
    band, decay = bands.of_pair, bands.decay
    n = len(weight)
    state = random_state(key, 0)
    edges = np.zeros((n, 2), np.int64)
    origin = np.zeros(n, np.int64)  # the vertex over which an edge leads, or -1 if it is direct
    count = 0
    odds = np.empty(n + 1)
    part = np.empty(n, np.int64)
    for k in range(1, n):
        # drop the edges over k, and find the parts that are left among earlier vertices
        kept = 0
        for vertex in range(k):
            part[vertex] = vertex
        for edge in range(count):
            if origin[edge] != k:
                edges[kept] = edges[edge]
                origin[kept] = origin[edge]
                kept += 1
                one, other = root_of(part, edges[edge, 0]), root_of(part, edges[edge, 1])
                part[max(one, other)] = min(one, other)
        count = kept
        for vertex in range(k):
            part[vertex] = root_of(part, vertex)
        for root in range(k):
            if part[root] != root:
                continue
            lowest = -1
            for i in range(root, k):
                if part[i] == root and (lowest < 0 or band[k, i] < lowest):
                    lowest = band[k, i]
            for i in range(k):
                inside = part[i] == root
                odds[i] = weight[k, i] * decay[lowest, band[k, i]] if inside else 0.0
            i = _choose(odds, k, state)
            # draw the origin of this edge of the network up to k
            scale = band[k, i]
            odds[0] = conductance[k, i]
            for over in range(k + 1, n):
                near = decay[nearest[over]]
                to_k, to_i = band[over, k], band[over, i]
                share_k = weight[over, k] * near[to_k] / total[over]
                share_i = weight[over, i] * near[to_i] / total[over]
                if to_i >= scale:
                    odds[over - k] = share_k * weight[over, i] * decay[scale, to_i]
                else:
                    odds[over - k] = share_i * weight[over, k]
            source = _choose(odds, n - k, state)
            edges[count, 0], edges[count, 1] = k, i
            origin[count] = -1 if source == 0 else k + source
            count += 1
    return edges[: n - 1].copy()
