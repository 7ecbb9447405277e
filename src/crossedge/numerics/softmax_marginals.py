"""The smoothed nearest neighbour: a softmax in each row, and its gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.mirror import parts_of_rows
from crossedge.numerics.row_softmax import (
    Floats,
    Ints,
    softmax_pull_back,
    softmax_rows,
    softmax_weights,
)
from crossedge.threads import in_threads


@dataclass(frozen=True)
class SoftmaxMarginals:
    """The model of each row i: choose one of the others. (n, n), float64."""

    distances: Floats
    temperature: float
    nearest: Ints  # (n,): where the smallest distance of each row stands
    total: Floats  # (n,): the sums of e^-(d - nearest)/temperature

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, from that in the weights.

        To take the exponentials again is faster than to keep them.
        """
        d, t, nearest, total = self.distances, self.temperature, self.nearest, self.total
        in_threads(
            lambda rows: softmax_pull_back(*rows, d, t, nearest, total, gradient, out),
            parts_of_rows(len(out)),
        )


def softmax_marginals(distances: Floats, temperature: float, out: Floats) -> SoftmaxMarginals:
    """For (n, n) distances, contiguous; W is written."""
    n = len(distances)
    nearest, total, parts = np.empty(n, np.int64), np.empty(n), parts_of_rows(n)
    in_threads(lambda rows: softmax_rows(*rows, distances, temperature, nearest, total, out), parts)
    in_threads(lambda rows: softmax_weights(*rows, total, out), parts)
    return SoftmaxMarginals(distances, temperature, nearest, total)
