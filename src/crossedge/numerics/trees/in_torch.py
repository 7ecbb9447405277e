"""Edge marginals of random spanning trees by torch alone, for devices without compiled loops.

The twin of marginals.py: elimination with a scale for every pair, as in banded_star_mesh.py, one
vertex at a time and all pairs at once. At temperature 0, marginals are averages over all minimum
spanning trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from crossedge.numerics.tolerances import COLD, TIE
from crossedge.numerics.trees.banded_star_mesh import band_starts


@dataclass(frozen=True)
class Scales:
    """The bands of banded_star_mesh.py, on the device."""

    of_pair: torch.Tensor  # (n, n): the band of each pair
    decay: torch.Tensor  # (bands, bands): e^(-|c - c'|/t)

    def fall(self, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        """Return e^(-(c_end - c_start)/t)."""
        if len(self.decay) == 1:
            return self.decay[0, 0]
        return self.decay[start, end]


@dataclass(frozen=True)
class TreeInTorch:
    """The model of a tree: what the derivative of mu needs, in the order of arrival."""

    conductance: torch.Tensor
    resistance: torch.Tensor
    scales: Scales
    order: torch.Tensor
    temperature: float

    def pull_back(self, gradient: torch.Tensor, weights: torch.Tensor, out: torch.Tensor) -> None:
        """Write the gradient in the distances as marginals.py does, with cotangents of about 1."""
        size = gradient.abs().max().clamp(min=torch.finfo(gradient.dtype).tiny)
        gradient, order = gradient / size, self.order
        direction = (gradient + gradient.T).fill_diagonal_(0.0)[order[:, None], order]
        _, d_resistance = _solve(self.conductance, self.scales, self.conductance * direction)
        resistance = self.resistance.clone().fill_diagonal_(1.0)
        change = torch.empty_like(direction)
        change[order[:, None], order] = direction + d_resistance / resistance
        torch.mul(-0.5 / self.temperature * weights * change, size, out=out)


def tree_in_torch(
    distances: torch.Tensor, out: torch.Tensor, _: torch.Tensor, temperature: float
) -> TreeInTorch:
    """Write P(edge in tree) under the Gibbs measure of (d + d') / 2, for (n, n) distances."""
    symmetric = (distances + distances.T) / 2
    order, key = _arrivals(symmetric)
    starts = torch.as_tensor(band_starts(key.cpu().numpy(), temperature)).to(distances)
    gap = (starts[:, None] - starts).abs()
    decay = torch.where(gap > 0, torch.exp(-gap / temperature), 1.0)
    rank = torch.searchsorted(starts, key, right=True) - 1
    scales = Scales(_largest_on_the_way(rank), decay)
    zero = starts[scales.of_pair]
    above = symmetric[order[:, None], order] - zero
    # too cold to tell rounding from a difference: near-ties count as ties
    above = above.masked_fill((above <= (TIE - 1) * zero) & (temperature <= COLD * zero), 0.0)
    exponent = torch.where(above > 0, above / temperature, 0.0)
    conductance = torch.exp(-exponent).fill_diagonal_(0.0)
    resistance, _ = _solve(conductance, scales)
    out[order[:, None], order] = torch.exp(torch.log(resistance) - exponent).fill_diagonal_(0.0)
    return TreeInTorch(conductance, resistance, scales, order, temperature)


def _arrivals(distances: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points in Prim's order of arrival, and the length of each one's tree edge."""
    n = len(distances)
    order = torch.zeros(n, dtype=torch.long, device=distances.device)
    key = distances.new_zeros(n)
    nearest = distances[0].clone()
    nearest[0] = torch.inf
    arrived = torch.zeros(n, dtype=torch.bool, device=distances.device)
    arrived[0] = True
    for step in range(1, n):
        length, place = nearest.min(0)
        order[step], key[step] = place, length
        arrived[place] = True
        nearest = torch.minimum(nearest, distances[place]).masked_fill(arrived, torch.inf)
    return order, key


def _largest_on_the_way(rank: torch.Tensor) -> torch.Tensor:
    """Return the (n, n) largest rank on the tree path between two arrivals."""
    n = len(rank)
    later = torch.ones(n, n, dtype=torch.bool, device=rank.device).triu(1)
    largest = torch.where(later, rank, 0).cummax(1).values * later
    return largest + largest.T


def _solve(
    conductance: torch.Tensor, scales: Scales, change: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return R, and dR along a change of the conductances."""
    n = len(conductance)
    weight = conductance.tril(-1)
    d_weight = torch.zeros_like(weight) if change is None else change.tril(-1)
    band = scales.of_pair
    total, d_total = weight.new_ones(n), weight.new_zeros(n)
    here = []  # e^(-(c_kj - c)/t) for j < k, where c is the lowest c_kj
    for k in range(n - 1, 0, -1):
        row, d_row, far, scale = weight[k, :k], d_weight[k, :k], band[k, :k], band[:k, :k]
        here.append(scales.fall(far.min(), far).expand(k))
        share, d_share = row * here[-1], d_row * here[-1]
        total[k], d_total[k] = share.sum(), d_share.sum()
        share = share / total[k]
        d_share = (d_share - share * d_total[k]) / total[k]
        upper = far >= scale  # else k, i is at the scale of i, j
        fall = scales.fall(scale, far.expand(k, k))
        gain = torch.where(upper, torch.outer(share, row) * fall, torch.outer(row, share))
        weight[:k, :k] += gain.tril(-1)
        if change is not None:
            one = torch.outer(share, d_row) + torch.outer(d_share, row)
            d_gain = torch.where(upper, one * fall, one.T)
            d_weight[:k, :k] += d_gain.tril(-1)
    resistance, d_resistance = torch.zeros_like(weight), torch.zeros_like(weight)
    for k in range(1, n):
        row, d_row, far, scale = weight[k, :k], d_weight[k, :k], band[k, :k], band[:k, :k]
        fall = here.pop()
        share = row / total[k]
        factor = torch.where(
            scale > far, fall.expand(k, k), fall[:, None] * scales.fall(scale, far.expand(k, k))
        )
        known = resistance[:k, :k] * factor
        v = share @ known
        offset = 1 / total[k] - share @ v / 2
        resistance[k, :k] = v + offset * fall
        resistance[:k, k] = resistance[k, :k]
        if change is not None:
            d_share = (d_row - share * d_total[k]) / total[k]
            dv = share @ (d_resistance[:k, :k] * factor) + d_share @ known
            d_product = share @ dv + d_share @ v
            d_offset = -d_total[k] / total[k] / total[k] - d_product / 2
            d_resistance[k, :k] = dv + d_offset * fall
            d_resistance[:k, k] = d_resistance[k, :k]
    return resistance, d_resistance
