"""The smoothed nearest neighbour: a softmax in each row, and its gradient, at any temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crossedge.compiled import compiled
from crossedge.distances import check_values
from crossedge.numerics.mirror import SIDE, team_for
from crossedge.numerics.row_softmax import (
    Flags,
    Floats,
    Ints,
    softmax_pull_back,
    softmax_rows,
    softmax_weights,
)
from crossedge.numerics.symmetric_softmax import probes, symmetric_weights
from crossedge.numerics.team import in_team


@dataclass(frozen=True)
class SoftmaxMarginals:
    """The model of each row i: choose one of the others. (n, n), float64."""

    temperature: float
    total: Floats  # (n,): the sums of the rows of decay
    nearest: Ints  # (n,): where the largest of each stands
    decay: Floats  # e^-d/temperature, each row in its own unit, until the gradient takes its place

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, from that in the weights."""
        model = self.temperature, self.total, self.nearest, self.decay
        _pull_back(team_for(len(out)), *model, gradient, out)


def softmax_marginals(
    distances: Floats, out: Floats, room: Floats, temperature: float
) -> SoftmaxMarginals:
    """For (n, n) distances, contiguous; W is written.

    To look at them beforehand, as others do, would take up to a tenth of the time.
    """
    n, odd = len(distances), np.zeros(1, np.bool_)
    total, nearest = np.empty(n), np.empty(n, np.int64)
    _weights(team_for(n), distances, temperature, probes(n), odd, total, nearest, room, out)
    if odd[0]:
        check_values(torch.from_numpy(distances))
    return SoftmaxMarginals(temperature, total, nearest, room)


@compiled
def _weights(
    threads: int,
    distances: Floats,
    temperature: float,
    probe: Floats,
    odd: Flags,
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
