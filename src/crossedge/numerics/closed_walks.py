"""Closed walks of three steps on a sparse graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crossedge.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@compiled
def closed_walks(start: Ints, neighbour: Ints, weight: Floats, sizes: Ints) -> float:
    """Sum of w_ab w_bc w_ca over all triples of atoms, times the number of points in each."""
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
