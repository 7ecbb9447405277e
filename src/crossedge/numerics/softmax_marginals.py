"""The smoothed nearest neighbour: a softmax in each row, and its gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

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

    def pull_back(self, gradient: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
        """Write the gradient in the distances, from that in the weights.

        To take the exponentials again is faster than to keep them.
        """
        d, t, g, target = self.distances, self.temperature, gradient.numpy(), out.numpy()

        def of_rows(rows: tuple[int, int]) -> None:
            softmax_pull_back(*rows, d, t, self.nearest, self.total, g, target)

        in_threads(of_rows, parts_of_rows(len(g)))


def softmax_marginals(
    distances: torch.Tensor, temperature: float, out: torch.Tensor
) -> SoftmaxMarginals:
    """For (n, n) distances, float64 and contiguous; W is written."""
    d, target, n = distances.numpy(), out.numpy(), len(distances)
    nearest, total = np.empty(n, np.int64), np.empty(n)
    parts = parts_of_rows(n)
    in_threads(lambda rows: softmax_rows(*rows, d, temperature, nearest, total, target), parts)
    in_threads(lambda rows: softmax_weights(*rows, total, target), parts)
    return SoftmaxMarginals(d, temperature, nearest, total)
