"""The pairs of points that a sparse smoothed graph may join, and their distances."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossedge.data.distances import Distances, PointDistances, lp_norms
from crossedge.runtime.headroom import check_bytes
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints
from crossedge.weights.edge_list import EdgeList

BLOCK_NUMBERS = 1 << 20  # coordinates in a block of pairs, the unit of work of a thread
BYTES_PER_PAIR = 200  # at the peak, with the table of both directions and the weights


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of the n pooled points, each once, in ascending order of i and then j."""

    n: int
    i: Ints  # (pairs,): i < j
    j: Ints
    length: Floats  # (pairs,): their distances
    atom: Ints  # (n,): equal points have equal atoms
    rank: Ints  # (n,): an order of the points that does not depend on that of the rows

    @cached_property
    def table(self) -> tuple[Ints, Ints]:
        """Where the row of each point starts, (n + 1,), and the pair of each entry, (2 pairs,).

        The row of a point has its pairs in both directions.
        """
        ends = np.concatenate([self.i, self.j])
        pair = np.argsort(ends, kind="stable")
        start = np.searchsorted(ends[pair], np.arange(self.n + 1))
        return start, pair % len(self.i)


def candidates_of(graph: EdgeList, distances: Distances) -> Candidates:
    """Return all pairs of points that a graph joins, with their distances."""
    i, j = _expanded(graph)
    length = lengths_of(distances, i, j)
    return Candidates(graph.n, i, j, length, graph.atom, _ranks(distances, length))


def _ranks(distances: Distances, length: Floats) -> Ints:
    """Return a rank for each point by its coordinates; by chance where only distances are known.

    Equal points are ranked by their rows. Chance is seeded by the data.
    """
    n = distances.n
    if isinstance(distances, PointDistances):
        order = np.lexsort(distances.points.T)
    else:
        seed = zlib.crc32(np.sort(length).tobytes())
        order = np.random.default_rng(seed).permutation(n)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    return rank


def lengths_of(distances: Distances, i: Ints, j: Ints) -> Floats:
    """Return the distances of pairs of points; i is ascending."""
    out = np.empty(len(i))
    if isinstance(distances, PointDistances):
        points, size = distances.points, max(BLOCK_NUMBERS // distances.points.shape[1], 1)

        def of_pairs(first: int) -> None:
            some = slice(first, first + size)
            norms = lp_norms(points[i[some]] - points[j[some]], distances.p)
            out[some] = np.ldexp(norms, -distances.exponent)

        in_threads(of_pairs, range(0, len(i), size))
        return out
    rows, first = np.unique(i, return_index=True)
    for row, start, stop in zip(rows, first, [*first[1:], len(i)], strict=True):
        out[start:stop] = distances.row(int(row))[j[start:stop]]
    return out


def _expanded(graph: EdgeList) -> tuple[Ints, Ints]:
    """Return the pairs of points, i < j, where the edges of the graph join atoms."""
    if len(graph.sizes) == graph.n:
        point = np.argsort(graph.atom)
        i, j = point[graph.i], point[graph.j]
    else:
        sizes = graph.sizes
        pairs = sizes[graph.i] * sizes[graph.j]
        check_bytes(
            float(pairs.sum()) * BYTES_PER_PAIR,
            f"{graph.n:,} points of which many are equal",
            "take temperature 0, which keeps equal points together, or fewer points",
        )
        points, begin = np.argsort(graph.atom, kind="stable"), np.cumsum(sizes) - sizes
        edge = np.repeat(np.arange(len(pairs)), pairs)
        place = np.arange(len(edge)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        a, b = graph.i[edge], graph.j[edge]
        i, j = points[begin[a] + place // sizes[b]], points[begin[b] + place % sizes[b]]
        once = (a != b) | (i < j)
        i, j = i[once], j[once]
    low, high = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((high, low))
    return low[order], high[order]
