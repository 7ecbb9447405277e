"""Marginals of smoothed nearest neighbours, and their gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossedge.numerics.extent import largest_of
from crossedge.numerics.mirror import SIDE, add_mirror, team_for
from crossedge.numerics.neighbours.cardinality import (
    TILTED,
    choose_marginals,
    choose_tangent,
    decays,
)
from crossedge.numerics.neighbours.cardinality_few import choose_few, choose_few_tangent
from crossedge.runtime.compiled import compiled
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Floats, Ints

ROWS = 16  # in a part, the unit of work of a thread


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
        out, n = np.empty(self.decay.shape), len(self.decay)
        _choose(team_for(n), self.distances, self.decay, self.kth, self.nearest, self.k, out)
        return out

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, given that in W; log-odds are -d / temperature."""
        odds = self.distances, self.decay, self.kth, self.nearest, self.k
        _pull_back(team_for(len(out)), *odds, gradient, self.temperature, out)


def neighbour_marginals(
    distances: Floats, out: Floats, room: Floats, temperature: float, *, k: int
) -> NeighbourMarginals:
    """Write W_ij = P(j chosen by i) + P(i chosen by j) for (n, n) contiguous distances."""
    largest_of(distances)
    found = neighbour_model(distances, k, temperature, room)
    _add_mirror(team_for(len(out)), found.chosen(), out)
    return found


def neighbour_model(
    distances: Floats, k: int, temperature: float, room: Floats
) -> NeighbourMarginals:
    """Return the model without computing its W; `room`, (n, n), takes the exponentials."""
    n = len(distances)
    kth, nearest = np.empty(n), np.zeros((n, k if k < TILTED else 0), np.int64)
    _decay(team_for(n), distances, k, temperature, kth, nearest, room)
    return NeighbourMarginals(distances, k, temperature, kth, nearest, room)


@compiled
def _decay(
    threads: int,
    distances: Floats,
    k: int,
    temperature: float,
    kth: Floats,
    nearest: Ints,
    out: Floats,
) -> None:
    in_team(threads, decays, len(out), ROWS, (distances, k, temperature, kth, nearest, out))


@compiled
def _choose(
    threads: int, distances: Floats, decay: Floats, kth: Floats, nearest: Ints, k: int, out: Floats
) -> None:
    if k < TILTED:
        in_team(threads, choose_few, len(out), ROWS, (distances, decay, kth, nearest, out))
    else:
        in_team(threads, choose_marginals, len(out), ROWS, (distances, decay, kth, k, out))


@compiled
def _add_mirror(threads: int, matrix: Floats, out: Floats) -> None:
    in_team(threads, _rows_of_mirror, len(out), SIDE, (matrix, out))


@compiled
def _rows_of_mirror(first: int, last: int, matrix: Floats, out: Floats) -> None:
    add_mirror(matrix, first, last, out[first:last])


@compiled
def _pull_back(
    threads: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    nearest: Ints,
    k: int,
    gradient: Floats,
    temperature: float,
    out: Floats,
) -> None:
    given = distances, decay, kth, nearest, k, gradient, temperature, out
    in_team(threads, _rows_of_pull_back, len(out), ROWS, given)


@compiled
def _rows_of_pull_back(
    first: int,
    last: int,
    distances: Floats,
    decay: Floats,
    kth: Floats,
    nearest: Ints,
    k: int,
    gradient: Floats,
    temperature: float,
    out: Floats,
) -> None:
    direction = np.empty((last - first, len(out)))
    add_mirror(gradient, first, last, direction)
    for i in range(first, last):
        direction[i - first, i] = 0.0
    if k < TILTED:
        choose_few_tangent(first, last, distances, decay, kth, nearest, direction, temperature, out)
    else:
        choose_tangent(first, last, distances, decay, kth, k, direction, out)
        out[first:last] /= -temperature
