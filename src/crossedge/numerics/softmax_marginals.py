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
    softmax_pull_back,
    softmax_rows,
    softmax_weights,
)
from crossedge.numerics.team import in_team


@dataclass(frozen=True)
class SoftmaxMarginals:
    """The model of each row i: choose one of the others. (n, n), float64."""

    temperature: float
    total: Floats  # (n,): the sums of the rows of decay
    decay: Floats  # e^-(d - least of its row)/temperature, until the gradient takes its place

    def pull_back(self, gradient: Floats, _: Floats, out: Floats) -> None:
        """Write the gradient in the distances, from that in the weights."""
        model = self.temperature, self.total, self.decay
        _pull_back(team_for(len(out)), *model, gradient, out)


def softmax_marginals(
    distances: Floats, out: Floats, room: Floats, temperature: float
) -> SoftmaxMarginals:
    """For (n, n) distances, contiguous; W is written.

    To look at them beforehand, as others do, would take up to a tenth of the time.
    """
    total, odd = np.empty(len(distances)), np.zeros(1, np.bool_)
    _weights(team_for(len(out)), distances, temperature, odd, total, room, out)
    if odd[0]:
        check_values(torch.from_numpy(distances))
    return SoftmaxMarginals(temperature, total, room)


@compiled
def _weights(
    threads: int,
    distances: Floats,
    temperature: float,
    odd: Flags,
    total: Floats,
    decay: Floats,
    out: Floats,
) -> None:
    n = len(total)
    in_team(threads, softmax_rows, n, SIDE, (distances, temperature, odd, total, decay))
    in_team(threads, softmax_weights, n, SIDE, (total, decay, out))


@compiled
def _pull_back(
    threads: int,
    temperature: float,
    total: Floats,
    decay: Floats,
    gradient: Floats,
    out: Floats,
) -> None:
    in_team(
        threads, softmax_pull_back, len(total), SIDE, (temperature, total, decay, gradient, out)
    )
