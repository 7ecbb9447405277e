"""Marginals of smoothed nearest neighbours, and their gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import in_threads
from crossedge.numerics.cardinality import TILTED, choose_marginals, choose_tangent, decays
from crossedge.numerics.cardinality_few import choose_few, choose_few_tangent
from crossedge.numerics.mirror import add_mirror, parts_of_rows
from crossedge.numerics.row_softmax import row_sums, softmax_pull_back, softmax_weights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NeighbourMarginals:
    """The model of each row i: choose k of the others. (n, n), float64."""

    distances: Floats
    k: int
    temperature: float
    kth: Floats  # (n,): the k-th smallest distance in each row
    nearest: npt.NDArray[np.int64]  # (n, k): where the k smallest stand, for k < TILTED
    decay: Floats  # exp(-|d - kth| / temperature)
    total: Floats  # (n,): sums of rows of `decay`, for k = 1

    def chosen(self) -> Floats:
        """P(j among the k neighbours of i)."""
        out = np.empty_like(self.decay)
        if self.k == 1:
            return np.divide(self.decay, self.total[:, None], out=out)
        odds = self.distances, self.decay, self.kth

        def of_rows(rows: tuple[int, int]) -> None:
            if self.k < TILTED:
                return choose_few(*rows, *odds, self.nearest, out)
            return choose_marginals(*rows, *odds, self.k, out)

        in_threads(of_rows, parts_of_rows(len(out)))
        return out

    def weights(self) -> torch.Tensor:
        """W_ij = P(j among the neighbours of i) + P(i among the neighbours of j)."""
        out = np.empty_like(self.decay)
        parts = parts_of_rows(len(out))
        if self.k == 1:
            in_threads(lambda rows: softmax_weights(*rows, self.decay, self.total, out), parts)
        else:
            chosen = self.chosen()
            in_threads(lambda rows: add_mirror(chosen, *rows, out[slice(*rows)]), parts)
        return torch.from_numpy(out)

    def pull_back(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient in the distances, from that in the weights: log w = -d / temperature."""
        g, out, t = gradient.numpy(), np.empty_like(self.decay), self.temperature

        def of_rows(rows: tuple[int, int]) -> None:
            if self.k == 1:
                return softmax_pull_back(*rows, self.decay, self.total, self.nearest, g, t, out)
            direction = np.empty((rows[1] - rows[0], len(g)))
            add_mirror(g, *rows, direction)
            np.fill_diagonal(direction[:, rows[0] :], 0.0)
            odds = self.distances, self.decay, self.kth
            if self.k < TILTED:
                return choose_few_tangent(*rows, *odds, self.nearest, direction, t, out)
            choose_tangent(*rows, *odds, self.k, direction, out)
            out[slice(*rows)] /= -t
            return None

        in_threads(of_rows, parts_of_rows(len(g)))
        return torch.from_numpy(out)


def neighbour_marginals(distances: torch.Tensor, k: int, temperature: float) -> NeighbourMarginals:
    """For (n, n) distances, float64 and contiguous."""
    n = len(distances)
    kth, nearest, total = np.empty(n), np.zeros((n, k if k < TILTED else 0), np.int64), np.empty(n)
    d, decay = distances.numpy(), np.empty((n, n))

    def of_rows(rows: tuple[int, int]) -> None:
        decays(*rows, d, k, temperature, kth, nearest, decay)
        if k == 1:
            row_sums(*rows, decay, total)

    in_threads(of_rows, parts_of_rows(n))
    return NeighbourMarginals(d, k, temperature, kth, nearest, decay, total)
