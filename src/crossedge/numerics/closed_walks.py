"""The sum over closed walks of three steps on a sparse graph."""

from __future__ import annotations

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.types import Floats, Ints


@compiled
def closed_walks(start: Ints, neighbour: Ints, weight: Floats, sizes: Ints) -> float:
    """Return the sum of w_ab w_bc w_ca over all triples of atoms, times their numbers of points.

    The graph is in compressed rows: the edges of atom a are start[a] ... start[a + 1] - 1.
    """
    to_first = np.zeros(len(sizes))
    total = 0.0
    for a in range(len(sizes)):
        for edge in range(start[a], start[a + 1]):
            to_first[neighbour[edge]] = weight[edge] * sizes[a]
        for edge in range(start[a], start[a + 1]):
            b = neighbour[edge]
            walks = 0.0
            for onward in range(start[b], start[b + 1]):
                c = neighbour[onward]
                walks += weight[onward] * sizes[c] * to_first[c]
            total += walks * weight[edge] * sizes[b]
        for edge in range(start[a], start[a + 1]):
            to_first[neighbour[edge]] = 0.0
    return total
