"""Marginals of smoothed nearest neighbours, and their gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossedge.numerics.extent import largest_of
from crossedge.numerics.mirror import add_mirror, parts_of_rows
from crossedge.numerics.neighbours.cardinality import (
    TILTED,
    choose_marginals,
    choose_tangent,
    decays,
)
from crossedge.numerics.neighbours.cardinality_few import choose_few, choose_few_tangent
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats


@dataclass(frozen=True)
class NeighbourMarginals:
    """The model of (n, n) distances in float64: each row i chooses k of the other points."""

    distances: Floats
    k: int
    temperature: float
    kth: Floats  # (n,): the k-th smallest distance in each row
    nearest: npt.NDArray[np.int64]  # (n, k): the columns of the k smallest, for k < TILTED
    decay: Floats  # exp(-|d - kth| / temperature); the gradient may overwrite it

    def chosen(self) -> Floats:
        """Return P(j among the k neighbours of i), (n, n)."""
        out, odds = np.empty(self.decay.shape), (self.distances, self.decay, self.kth)

        def of_rows(rows: tuple[int, int]) -> None:
            if self.k < TILTED:
                return choose_few(*rows, *odds, self.nearest, out)
            return choose_marginals(*rows, *odds, self.k, out)

        in_threads(of_rows, parts_of_rows(len(out)))
        return out

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, given that in W; log-odds are -d / temperature."""
        t, odds = self.temperature, (self.distances, self.decay, self.kth)

        def of_rows(rows: tuple[int, int]) -> None:
            direction = np.empty((rows[1] - rows[0], len(out)))
            add_mirror(gradient, *rows, direction)
            np.fill_diagonal(direction[:, rows[0] :], 0.0)
            if self.k < TILTED:
                return choose_few_tangent(*rows, *odds, self.nearest, direction, t, out)
            choose_tangent(*rows, *odds, self.k, direction, out)
            out[slice(*rows)] /= -t
            return None

        in_threads(of_rows, parts_of_rows(len(out)))


def neighbour_marginals(
    distances: Floats, out: Floats, room: Floats, temperature: float, *, k: int
) -> NeighbourMarginals:
    """Write W_ij = P(j chosen by i) + P(i chosen by j) for (n, n) contiguous distances."""
    largest_of(distances)
    found = neighbour_model(distances, k, temperature, room)
    chosen = found.chosen()
    in_threads(lambda rows: add_mirror(chosen, *rows, out[slice(*rows)]), parts_of_rows(len(out)))
    return found


def neighbour_model(
    distances: Floats, k: int, temperature: float, room: Floats
) -> NeighbourMarginals:
    """Return the model without computing its W; `room`, (n, n), takes the exponentials."""
    d, n = distances, len(distances)
    kth, nearest = np.empty(n), np.zeros((n, k if k < TILTED else 0), np.int64)
    in_threads(lambda rows: decays(*rows, d, k, temperature, kth, nearest, room), parts_of_rows(n))
    return NeighbourMarginals(d, k, temperature, kth, nearest, room)
