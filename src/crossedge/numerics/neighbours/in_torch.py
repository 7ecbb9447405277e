"""Marginals of smoothed nearest neighbours by torch alone, for devices without compiled loops.

The twin of marginals.py: the sweeps of cardinality.py, one item at a time and all rows at once. At
temperature 0, W is the average over all sets of nearest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from crossedge.numerics.neighbours.cardinality import TILTED
from crossedge.numerics.tolerances import COLD, TIE

SWEEP_NUMBERS = 1 << 21  # kept by one sweep, at most: bounds how many rows go together


@dataclass(frozen=True)
class NeighboursInTorch:
    """Row i chooses k of the others: item j is taken with weight `take`, left with `leave`."""

    k: int
    temperature: float
    take: torch.Tensor
    leave: torch.Tensor

    def chosen(self) -> torch.Tensor:
        """Return P(j among the k neighbours of i), (n, n)."""
        return torch.cat([self._chosen(rows) for rows in self._parts()])

    def pull_back(self, gradient: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> None:
        """Write the gradient in the distances, given the gradient in W."""
        direction = (gradient + gradient.T).fill_diagonal_(0.0)
        change = torch.cat([self._tangent(rows, direction[rows]) for rows in self._parts()])
        torch.div(change, -self.temperature, out=out)

    def _parts(self) -> list[slice]:
        n = len(self.take)
        size = max(1, SWEEP_NUMBERS // (n * (self.k + 1)))
        return [slice(first, first + size) for first in range(0, n, size)]

    def _chosen(self, rows: slice) -> torch.Tensor:
        take, leave = self.take[rows], self.leave[rows]
        before, after = _sweep(take, leave, self.k), _sweep(take.flip(1), leave.flip(1), self.k)
        front, back = before[:-1], after.flip(0)[1:]
        chosen = (front[..., :-1] * back[..., :-1].flip(2)).sum(2).T
        return take * chosen / before[-1, :, self.k :]

    def _tangent(self, rows: slice, direction: torch.Tensor) -> torch.Tensor:
        take, leave = self.take[rows], self.leave[rows]
        before, d_before = _dual_sweep(take, leave, direction, self.k)
        after, d_after = _dual_sweep(take.flip(1), leave.flip(1), direction.flip(1), self.k)
        front, d_front = before[:-1], d_before[:-1]
        back, d_back = after.flip(0)[1:].flip(2), d_after.flip(0)[1:].flip(2)
        x, dx = _meet(front[..., :-1], d_front[..., :-1], back[..., 1:], d_back[..., 1:])
        y, dy = _meet(front, d_front, back, d_back)
        z = before[-1, :, self.k :]
        spread = (take * x / z) * (leave * y / z)
        change = spread * (direction + dx / x - dy / y)
        return torch.where((x > 0) & (y > 0), change, 0.0)


def neighbours_in_torch(
    distances: torch.Tensor, out: torch.Tensor, _: torch.Tensor, temperature: float, *, k: int
) -> NeighboursInTorch:
    """Write W for (n, n) distances, and return the model for its gradient."""
    itself = torch.eye(len(distances), dtype=torch.bool, device=distances.device)
    others = distances.masked_fill(itself, torch.inf)
    kth = others.kthvalue(k, 1, keepdim=True).values
    gap = (distances - kth).abs()
    cold = temperature <= COLD * kth
    gap = gap.masked_fill(cold & (gap <= (TIE - 1) * kth), 0.0)
    decay = torch.where(gap > 0, torch.exp(-gap / temperature), 1.0)
    near = distances <= kth
    take = torch.where(near, 1.0, decay).masked_fill(itself, 0.0)
    leave = torch.where(near, decay, 1.0).masked_fill(itself, 1.0)
    if k >= TILTED:
        take, leave = _tilted(take, leave, k)
    found = NeighboursInTorch(k, temperature, take, leave)
    chosen = found.chosen()
    torch.add(chosen, chosen.T, out=out)
    return found


def _tilted(take: torch.Tensor, leave: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale the odds of each row so that independent choices take k items on average."""
    low, high = take.new_full((len(take), 1), -60.0), take.new_full((len(take), 1), 60.0)
    for _ in range(30):
        middle = (low + high) / 2
        tilted = torch.exp(middle) * take
        too_few = (tilted / (leave + tilted)).sum(1, keepdim=True) < k
        low, high = torch.where(too_few, middle, low), torch.where(too_few, high, middle)
    tilted = torch.exp((low + high) / 2) * take
    return tilted / (leave + tilted), leave / (leave + tilted)


def _sweep(take: torch.Tensor, leave: torch.Tensor, k: int) -> torch.Tensor:
    """Return (n + 1, rows, k + 1): the weight of choosing j among the first i items."""
    rows, n = take.shape
    sums = take.new_zeros(n + 1, rows, k + 1)
    sums[0, :, 0] = 1.0
    for i in range(n):
        sums[i + 1] = leave[:, i : i + 1] * sums[i]
        sums[i + 1, :, 1:] += take[:, i : i + 1] * sums[i, :, :-1]
    return sums


def _dual_sweep(
    take: torch.Tensor, leave: torch.Tensor, direction: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same with its tangent along a direction of the log-odds."""
    sums = _sweep(take, leave, k)
    changes = torch.zeros_like(sums)
    for i in range(take.shape[1]):
        fresh = changes[i, :, :-1] + direction[:, i : i + 1] * sums[i, :, :-1]
        changes[i + 1] = leave[:, i : i + 1] * changes[i]
        changes[i + 1, :, 1:] += take[:, i : i + 1] * fresh
    return sums, changes


def _meet(
    front: torch.Tensor, d_front: torch.Tensor, back: torch.Tensor, d_back: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum over all splits of a choice into items before and after: (rows, n), and the tangent."""
    return (front * back).sum(2).T, (d_front * back + front * d_back).sum(2).T
