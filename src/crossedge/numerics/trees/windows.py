"""Windows of scale: a smoothed spanning tree on a sparse graph, a few dozen temperatures at a time.

Let b_e be the longest edge on the path between the ends of e in the minimum spanning tree, and m
the number of edges. Every edge between the two sides of that longest edge is at least as long, so
R_e >= e^(b_e/t) / m; and along the path R_e <= n e^(b_e/t). Take all e with c <= b_e <= c + C.

- Without the edges f longer than c + C + M, the resistance rises from R_e to R'_e. A unit voltage
  drops by at most 1 across f, so 1/R_e <= 1/R'_e + sum_f w_f, and R'_e / R_e <= 1 + n m e^(-M/t).
- Let every part that edges shorter than c - M join become one vertex. A unit current that flows in
  this graph can cross every part along its tree, with at most 1 in each edge. That adds at most
  n e^((c - M)/t) to the resistance, so that R_e falls by a fraction of at most n m e^(-M/t).

So the edges with b_e in the core [c, c + C] need only the edges of lengths c - M to c + C + M, on
a contracted graph that may fall into several parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from crossedge.numerics.tolerances import COLD, TIE
from crossedge.runtime.compiled import compiled
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Window:
    """The contracted graph of one window."""

    n: int  # vertices
    i: Ints  # (edges,): the ends of the edges; parallel edges may occur
    j: Ints
    exponent: Floats  # (edges,): (d - c) / t
    edges: Ints  # (edges,): their numbers in the whole graph
    in_core: Bools  # (edges,): whether the window is right for this edge

    @property
    def conductance(self) -> Floats:
        """Return the conductances, in units of e^(-c/t)."""
        with np.errstate(under="ignore"):
            return np.exp(-self.exponent)


def margin_for(n: int, edges: int, precision: float) -> float:
    """Return the margin, in temperatures, that keeps resistances to this relative precision."""
    return log(max(n, 2)) + log(max(edges, 2)) - log(precision)


def windows(
    n: int, i: Ints, j: Ints, length: Floats, temperature: float, core: float, margin: float
) -> Iterator[Window]:
    """Yield windows whose cores hold every edge of a connected graph once.

    The core and the margin are in temperatures. Where one window can hold everything, it does.
    """
    if not len(i):
        return
    by_length = np.argsort(length, kind="stable")
    parent, height, size = np.arange(n), np.full(n, np.inf), np.ones(n, np.int64)
    bottleneck = _bottlenecks(i, j, length, by_length, parent, height, size)
    by_bottleneck = np.argsort(bottleneck, kind="stable")
    ascending, first = bottleneck[by_bottleneck], 0
    if ascending[-1] - ascending[0] <= (core + 2 * margin) * temperature:
        core += 2 * margin
    while first < len(i):
        checkpoint()
        c = float(ascending[first])
        with np.errstate(over="ignore"):
            # too cold to tell rounding from a difference: near-ties count as ties
            tie = c * TIE if temperature <= COLD * c else c
            low, high = c - margin * temperature, max(tie, c + core * temperature)
            far = max(tie, high + margin * temperature)
        begin, last, end = (
            int(np.searchsorted(ascending, low)),
            int(np.searchsorted(ascending, high, side="right")),
            int(np.searchsorted(ascending, far, side="right")),
        )
        place = np.arange(begin, end)
        in_core = (place >= first) & (place < last)
        kept = in_core | (length[by_bottleneck[begin:end]] <= far)
        edges, in_core = by_bottleneck[begin:end][kept], in_core[kept]
        ends = _contract(np.concatenate([i[edges], j[edges]]), parent, height, low)
        vertices, ends = np.unique(ends, return_inverse=True)
        above = length[edges] - c
        above[np.abs(above) <= tie - c] = 0.0
        with np.errstate(over="ignore"):
            exponent = above / temperature
        yield Window(
            len(vertices), ends[: len(edges)], ends[len(edges) :], exponent, edges, in_core
        )
        first = last


@compiled
def _bottlenecks(
    i: Ints, j: Ints, length: Floats, by_length: Ints, parent: Ints, height: Floats, size: Ints
) -> Floats:
    """Return the longest edge on the tree path between the ends of every edge.

    Kruskal's algorithm joins the smaller part to the larger one and never shortens paths, so the
    forest of parents has a depth of at most log2 n. The height of a link is the length of the edge
    that made it. Heights rise towards the root, and the way up from both ends meets at the answer.
    """
    for edge in by_length:
        a, b = i[edge], j[edge]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a != b:
            if size[a] > size[b]:
                a, b = b, a
            parent[a], height[a] = b, length[edge]
            size[b] += size[a]
    bottleneck = np.empty(len(i))
    for edge in range(len(i)):
        a, b, highest = i[edge], j[edge], 0.0
        while a != b:
            if height[a] > height[b]:
                a, b = b, a
            highest, a = height[a], parent[a]
        bottleneck[edge] = highest
    return bottleneck


@compiled
def _contract(vertices: Ints, parent: Ints, height: Floats, low: float) -> Ints:
    """Return one vertex for each part that edges shorter than `low` join."""
    parts = np.empty_like(vertices)
    for place in range(len(vertices)):
        vertex = vertices[place]
        while height[vertex] < low:
            vertex = parent[vertex]
        parts[place] = vertex
    return parts
