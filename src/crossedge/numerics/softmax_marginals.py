"""The smoothed nearest neighbour: a softmax in each row, and its gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crossedge.numerics.memory import empty_array
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

    temperature: float
    nearest: Ints  # (n,): where the smallest distance of each row stands
    decay: Floats  # e^-(d - nearest)/temperature
    total: Floats  # (n,): its sums

    def pull_back(self, gradient: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
        """Write the gradient in the distances, from that in the weights."""
        g, target, t = gradient.numpy(), out.numpy(), self.temperature

        def of_rows(rows: tuple[int, int]) -> None:
            softmax_pull_back(*rows, self.decay, self.total, self.nearest, g, t, target)

        in_threads(of_rows, parts_of_rows(len(g)))


def softmax_marginals(
    distances: torch.Tensor, temperature: float, out: torch.Tensor
) -> SoftmaxMarginals:
    """For (n, n) distances, float64 and contiguous; W is written."""
    d, target, n = distances.numpy(), out.numpy(), len(distances)
    nearest, decay, total = np.empty(n, np.int64), empty_array(n, n), np.empty(n)
    parts = parts_of_rows(n)
    in_threads(lambda rows: softmax_rows(*rows, d, temperature, nearest, decay, total), parts)
    in_threads(lambda rows: softmax_weights(*rows, decay, total, target), parts)
    return SoftmaxMarginals(temperature, nearest, decay, total)
