"""Logarithms of tail probabilities, accurate far out and differentiable."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch

NODES, NODE_WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(40))
PANELS = (0.0, 0.02, 0.08, 0.25, 0.6, 1.0)  # the range of integration, finer near its start
DROP = 46.0  # where the density is e^-46 of what it was, the rest does not count
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_normal_tail(z: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(Z >= z)."""
    tail: torch.Tensor = torch.special.log_ndtr(-z)
    return tail


def log_pearson3_tail(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(X >= z), for a gamma law of mean 0, variance 1 and this skewness.

    The density is integrated from z outwards by a fixed rule, relative to its value at z, so that
    nothing underflows and autograd has the derivatives, also in the skewness. A negative skewness
    means a gamma law turned round. Where z lies on the other side of the mode, the integral is that
    of the smaller tail.
    """
    z, skewness = z.double() + 0 * skewness, skewness.double() + 0 * z
    mode = -skewness / 2
    outward = z.detach() >= mode.detach()
    flip = torch.where(outward, 1.0, -1.0)
    tail = _log_smaller_tail(flip * z, flip * skewness)
    tail = tail.clamp(max=-1e-300)
    return torch.where(outward, tail, torch.log(-torch.expm1(tail)))


def _log_smaller_tail(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """For z above the mode."""
    length = _length(z.detach(), skewness.detach())
    total = torch.zeros_like(z)
    start = _log_density(z, skewness)
    inside = torch.isfinite(start.detach()) & (length > 0)
    start = torch.where(inside, start, torch.zeros_like(start))
    for low, high in pairwise(PANELS):
        step = (low + (high - low) * (NODES.to(z.device) + 1) / 2) * length[..., None]
        heights = _log_density(z[..., None] + step, skewness[..., None]) - start[..., None]
        area = (torch.exp(heights) * NODE_WEIGHTS.to(z.device)).sum(-1)
        total = total + area * length * (high - low) / 2
    total = torch.where(inside, total, 1.0)
    beyond = torch.where(skewness > 0, 0.0, -torch.inf)  # below the support, or above it
    return torch.where(inside, start + torch.log(total), beyond)


def _length(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """How far above z the density has fallen by e^-DROP, or ends; by bisection."""
    start = _log_density(z, skewness)
    end = torch.where(skewness < 0, -2 / skewness - z, torch.inf)  # of the support
    high = torch.minimum(10 + DROP * (skewness.abs() + 1), end).clamp(min=0.0)
    low = torch.zeros_like(high)
    fallen = _log_density(z + high, skewness) < start - DROP
    for _ in range(30):
        middle = (low + high) / 2
        far = _log_density(z + middle, skewness) < start - DROP
        high, low = torch.where(far, middle, high), torch.where(far, low, middle)
    return torch.where(fallen, high, torch.minimum(10 + DROP * (skewness.abs() + 1), end))


def _log_density(u: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """With shape k = 4 / skewness^2 and w = u skewness / 2, so that y = k (1 + w) is gamma:

    log f = k (log(1 + w) - w) - log(1 + w) - log(2 pi) / 2 - c(k), c the rest after Stirling.
    """
    w = u * skewness / 2
    inside = w > -1
    w = torch.where(inside, w, 0.0)
    bend = u * u * _bend(w)  # k (log(1 + w) - w)
    density = bend - torch.log1p(w) - math.log(2 * math.pi) / 2 - _stirling_rest(skewness)
    return torch.where(inside, density, -torch.inf)


def _bend(w: torch.Tensor) -> torch.Tensor:
    """(log(1 + w) - w) / w^2, which is -1/2 at 0."""
    small = w.abs() < 0.1
    near = torch.where(small, w, 0.0)
    series = torch.zeros_like(w)
    for power in range(17, 1, -1):
        series = series * near + (-1) ** (power + 1) / power
    far = torch.where(small, 1.0, w)
    return torch.where(small, series, (torch.log1p(far) - far) / (far * far))


def _stirling_rest(skewness: torch.Tensor) -> torch.Tensor:
    """That is, log Gamma(k) - (k - 1/2) log k + k - log(2 pi) / 2, for k = 4 / skewness^2."""
    inverse = skewness * skewness / 4
    large = inverse < 1 / 16
    small_inverse = torch.where(large, inverse, 0.0)
    series = torch.zeros_like(inverse)
    for coefficient in reversed(STIRLING):
        series = series * small_inverse * small_inverse + coefficient
    k = 1 / torch.where(large, 1.0, inverse)
    exact = torch.lgamma(k) - (k - 0.5) * torch.log(k) + k - math.log(2 * math.pi) / 2
    return torch.where(large, series * small_inverse, exact)
