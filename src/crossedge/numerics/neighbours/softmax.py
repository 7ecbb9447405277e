"""The smoothed nearest neighbour: a softmax in each row, and its gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.checks import check_values
from crossedge.numerics.mirror import SIDE, team_for
from crossedge.numerics.neighbours.row_softmax import (
    softmax_pull_back,
    softmax_rows,
    softmax_weights,
)
from crossedge.numerics.neighbours.symmetric_softmax import probes, symmetric_weights
from crossedge.runtime.compiled import compiled
from crossedge.runtime.team import in_team
from crossedge.runtime.types import Bools, Floats, Ints


@dataclass(frozen=True)
class SoftmaxMarginals:
    """The model of (n, n) distances in float64: each row i chooses one of the other points."""

    temperature: float
    total: Floats  # (n,): the sums of the rows of decay
    nearest: Ints  # (n,): the column of the largest decay in each row
    decay: Floats  # e^(-d/temperature), each row up to a factor; the gradient may overwrite it

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, given that in the weights."""
        model = self.temperature, self.total, self.nearest, self.decay
        _pull_back(team_for(len(out)), *model, gradient, out)


def softmax_marginals(
    distances: Floats, out: Floats, room: Floats, temperature: float
) -> SoftmaxMarginals:
    """Write W for (n, n) contiguous distances, and return the model for its gradient.

    Distances are checked on the way: a pass of its own would take up to a tenth of the time.
    """
    n, odd = len(distances), np.zeros(1, np.bool_)
    total, nearest = np.empty(n), np.empty(n, np.int64)
    _weights(team_for(n), distances, temperature, probes(n), odd, total, nearest, room, out)
    if odd[0]:
        check_values(distances)
    return SoftmaxMarginals(temperature, total, nearest, room)


@compiled
def _weights(
    threads: int,
    distances: Floats,
    temperature: float,
    probe: Floats,
    odd: Bools,
    total: Floats,
    nearest: Ints,
    decay: Floats,
    out: Floats,
) -> None:
    if symmetric_weights(threads, distances, temperature, probe, total, nearest, decay, out):
        return
    n, given = len(total), (distances, temperature, odd, total, nearest, decay)
    in_team(threads, softmax_rows, n, SIDE, given)
    in_team(threads, softmax_weights, n, SIDE, (total, decay, out))


@compiled
def _pull_back(
    threads: int,
    temperature: float,
    total: Floats,
    nearest: Ints,
    decay: Floats,
    gradient: Floats,
    out: Floats,
) -> None:
    given = temperature, total, nearest, decay, gradient, out
    in_team(threads, softmax_pull_back, len(total), SIDE, given)
