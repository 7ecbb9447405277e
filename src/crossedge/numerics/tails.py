"""Logarithms of tail probabilities, accurate far out and differentiable.

A density is integrated from the point outwards by a fixed rule, relative to its value there, so
that nothing underflows and autograd has the derivatives, also in the moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

LogDensity = Callable[[torch.Tensor], torch.Tensor]

NODES, NODE_WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(40))
PANELS = (0.0, 0.02, 0.08, 0.25, 0.6, 1.0)  # the range of integration, finer near its start
DROP = 46.0  # where the density is e^-46 of what it was, the rest does not count
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
NARROW, WIDE = 0.3, 0.8  # between these z, four moments take over from three
LARGEST_SHARE = 0.7  # of a normal part in the variance
MESH = 1 / 16  # between the entries of tables
NONE, LITTLE = (
    1e-9,
    0.01,
)  # skewness as good as none, and below which incomplete gamma functions lose digits
LOG_RANGE = -600.0
STEEP = -1.5  # skewness, below which a gamma law turned round may rise up to its end
REACH = 0.9  # of the way to the end of a beta law; from there on the tail falls as it does there


def log_normal_tail(z: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(Z >= z)."""
    tail: torch.Tensor = torch.special.log_ndtr(-z)
    return tail


def log_pearson3_tails(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """`log_pearson3_tail` for many z and one skewness, faster where no gradients are asked for.

    A value depends on its z alone, but for the last bit, so equal ones stay equal.
    """
    if z.requires_grad or skewness.requires_grad:
        return log_pearson3_tail(z, skewness)
    g = float(skewness)
    if abs(g) < NONE:
        return log_normal_tail(z)
    return _by_table(z, skewness) if abs(g) < LITTLE else _by_gamma_functions(z, skewness)


def _by_gamma_functions(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """Where these do not underflow, and a law turned round is not near its end."""
    g = float(skewness)
    k = torch.full_like(z, 4 / g**2)
    y = (k * (1 + z * g / 2)).clamp(min=0.0)
    above, below = torch.special.gammaincc(k, y), torch.special.gammainc(k, y)
    upper, lower = (above, below) if g > 0 else (below, above)
    tails = torch.where(lower < 0.5, torch.log1p(-lower), torch.log(upper))
    rest = (tails < LOG_RANGE) | ((1 + z * g / 2 <= 1 - REACH) & (g < 0))
    if rest.any():
        tails[rest] = log_pearson3_tail(z[rest], skewness)
    return tails


def _by_table(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """Entries are MESH apart; cubic in between, where the slope is minus the hazard."""
    cell = torch.floor(z / MESH)
    nodes = torch.unique(torch.cat([cell.reshape(-1), cell.reshape(-1) + 1]))
    tails = log_pearson3_tail(MESH * nodes, skewness)
    slopes = -MESH * torch.exp(_log_gamma_density(MESH * nodes, skewness) - tails)
    left = torch.searchsorted(nodes, cell)
    u = z / MESH - cell
    v = 1 - u
    found: torch.Tensor = (
        v * v * (1 + 2 * u) * tails[left]
        + u * u * (1 + 2 * v) * tails[left + 1]
        + u * v * (v * slopes[left] - u * slopes[left + 1])
    )
    return found.clamp(max=0.0)


def log_pearson3_tail(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(X >= z), for a gamma law of mean 0, variance 1 and this skewness.

    A negative skewness means a gamma law turned round; from REACH of the way to its end, the tail
    falls on as it does there. Where z lies on the other side of the mode, the integral is that of
    the smaller tail, and so it is where the density does not fall towards its end.
    """
    z, skewness = z.double() + 0 * skewness, skewness.double() + 0 * z
    negative = skewness.detach() < 0
    end = torch.where(negative, -2 / torch.where(negative, skewness, -1.0), torch.inf)
    near = torch.where(negative, torch.minimum(z, REACH * end), z)
    outward = (near.detach() >= -skewness.detach() / 2) & (skewness.detach() > STEEP)
    flip = torch.where(outward, 1.0, -1.0)
    upper, turned = flip * near, flip * skewness
    last = torch.where(turned.detach() < 0, -2 / torch.where(turned < 0, turned, -1.0), torch.inf)
    inner = torch.where(turned < 0, torch.minimum(upper, REACH * last), upper)
    below = inner * turned / 2 <= -1  # all of the law is above
    inner = torch.where(below, torch.ones_like(inner), inner)
    area = _log_area(lambda u: _log_gamma_density(u, turned[..., None]), inner, last)
    tail = _log_gamma_density(inner, turned) + area - (upper - inner) * torch.exp(-area)
    tail = torch.where(below, torch.zeros_like(tail), tail).clamp(max=-1e-300)
    tail = torch.where(outward, tail, torch.log(-torch.expm1(tail)))
    fall = torch.exp(_log_gamma_density(near, skewness) - tail)
    return torch.where(near < z, tail - (z - near) * fall, tail)


def log_four_moment_tail(
    z: torch.Tensor, skewness: torch.Tensor, excess: torch.Tensor
) -> torch.Tensor:
    """The same with an excess kurtosis as well, which decides how far the tail reaches.

    A gamma law has 1.5 skewness^2. With more, the law is that of a gamma variable plus a normal
    one, as far as saddlepoints tell it from the gamma law; with less, a beta law (Pearson's type
    I). Near the centre, where all agree, it is the gamma law.
    """
    z, skewness, excess = (value.double() for value in (z, skewness, excess))
    z, skewness, excess = z + 0 * skewness, skewness + 0 * z, excess + 0 * z
    three = log_pearson3_tail(z, skewness)
    more = (excess - 1.5 * skewness**2).detach()
    heavy = (z > NARROW) & (more > 1e-9) & (skewness.abs() > 1e-6)
    light = (z > NARROW) & (more < -1e-9)
    four = torch.where(heavy, _log_heavy_tail(z, skewness, excess, three, heavy), 0.0)
    beta, found = _log_beta_tail(z, skewness, excess, light)
    four = torch.where(found, beta, four)
    step = ((z - NARROW) / (WIDE - NARROW)).clamp(0, 1)
    share = torch.where(heavy | found, step * step * (3 - 2 * step), 0.0)
    return torch.where(share > 0, (1 - share) * three + share * four, three)


def _log_heavy_tail(
    z: torch.Tensor,
    skewness: torch.Tensor,
    excess: torch.Tensor,
    three: torch.Tensor,
    used: torch.Tensor,
) -> torch.Tensor:
    """With a normal part, of at most LARGEST_SHARE of the variance.

    If the skewness is negative, the part is half of the variance at least: the gamma law would end
    where, as the excess says, the true one does not. What the formula errs for a gamma law, it will
    err here: taken off, but not towards the end of the gamma law.
    """
    z, g = torch.where(used, z, 1.0), torch.where(used, skewness, 1.0)
    x = torch.where(used, excess, 2.0)
    ratio = (x / (1.5 * g**2)).clamp(1.0, 1 / (1 - LARGEST_SHARE))
    least = 1 + ((ratio - 1) / 0.02).clamp(max=1.0)
    ratio = torch.where(g < 0, torch.maximum(ratio, least), ratio)
    left = ((1 + g * z / 2 - 0.3) / 0.4).clamp(0, 1)
    inside = left > 0
    gamma = log_sum_tail(torch.where(inside, z, 1.0), torch.where(inside, g, 1.0), 1 + 0 * ratio)
    share = left * left * (3 - 2 * left)
    error = torch.where(inside, share * (three - gamma), 0.0)
    return log_sum_tail(z, g, ratio) + error


def log_sum_tail(z: torch.Tensor, g: torch.Tensor, ratio: torch.Tensor) -> torch.Tensor:
    """Normal of variance v plus gamma of scale a, by the saddlepoint formula of Barndorff-Nielsen.

    K(s) = v s^2/2 - k (log(1 - a s) + a s), with k a^2 = 1 - v, 2 k a^3 = g the skewness, and
    6 k a^4 the excess, `ratio` times that of a gamma law. K'(s) = z is a quadratic equation.
    """
    a, gamma = g / 2 * ratio, 1 / ratio  # the scale, and the gamma share of the variance
    v = 1 - gamma
    s = 2 * z / ((1 + a * z) + torch.sqrt((1 + a * z) ** 2 - 4 * v * a * z))
    rest = 1 - a * s
    cumulant = v * s**2 / 2 - gamma * s**2 * _bend(-a * s)
    spread = torch.sqrt(v + gamma / rest**2)
    w = torch.sqrt(2 * (s * z - cumulant))
    return log_normal_tail(w + torch.log(s * spread / w) / w)


def _log_beta_tail(
    z: torch.Tensor, skewness: torch.Tensor, excess: torch.Tensor, used: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pearson's type I: f'/f = -(u + c1) / (c0 + c1 u + c2 u^2), between the zeros of the last.

    Also says where there is such a law.
    """
    kurtosis = 3 + excess
    used = used & (10 * kurtosis - 12 * skewness**2 - 18 > 1e-3)
    for _ in range(2):  # once to see where both ends are zeros of the density, once for there
        g, k = torch.where(used, skewness, 0.0), torch.where(used, kurtosis, 2.5)
        scale = 10 * k - 12 * g**2 - 18
        c0, c1 = (4 * k - 3 * g**2) / scale, g * (k + 3) / scale
        c2 = (2 * k - 3 * g**2 - 6) / scale
        root = torch.sqrt(c1**2 - 4 * c0 * c2)
        # each end in the way of writing it that does not cancel
        sum_of = torch.where(c1 > 0, c1 + root, root - c1)
        low = torch.where(c1 > 0, -2 * c0 / sum_of, sum_of / (2 * c2))
        high = torch.where(c1 > 0, -sum_of / (2 * c2), 2 * c0 / sum_of)
        width = c2 * (high - low)
        rise, fall = (c1 + low) / width, -(c1 + high) / width  # the powers at both ends
        used = used & (rise > 0) & (fall > 0)
    mode = -c1
    up, over = mode - low, high - mode

    def log_density(u: torch.Tensor) -> torch.Tensor:
        """Relative to the mode, for (..., nodes)."""
        x = u - mode[..., None]
        inside = (x > -up[..., None]) & (x < over[..., None])
        x = torch.where(inside, x, 0.0)
        height = rise[..., None] * torch.log1p(x / up[..., None])
        height = height + fall[..., None] * torch.log1p(-x / over[..., None])
        return torch.where(inside, height, -torch.inf)

    last = mode + REACH * over
    near = torch.minimum(torch.where(used, z, mode), last)
    area = _log_area(log_density, near, high)
    above = _log_area(log_density, mode, high)
    below = _log_area(lambda u: log_density(-u), -mode, -low)
    tail = log_density(near[..., None])[..., 0] + area - torch.logaddexp(above, below)
    beyond = torch.where(used, z - near, 0.0)
    return tail - beyond * torch.exp(-area), used


def _log_area(log_density: LogDensity, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """The logarithm of the area from the start outwards, over the density there."""
    base = log_density(start[..., None])
    inside = torch.isfinite(base.detach()) & (start < end)[..., None]
    base = torch.where(inside, base, 0.0)
    length = _length(log_density, start.detach(), end.detach())
    # up to the end of a law, the rule moves with it: at a place that stands, the density might have
    # no derivative that a fixed rule can integrate
    to_end = (end.detach() - start.detach()) * (1 - 1e-9) <= length
    finite = torch.isfinite(end.detach())
    length = torch.where(to_end & finite, torch.where(finite, end, 0.0) - start, length)
    total = torch.zeros_like(start)
    for low, high in pairwise(PANELS):
        step = (low + (high - low) * (NODES.to(start.device) + 1) / 2) * length[..., None]
        heights = log_density(start[..., None] + step) - base
        heights = torch.where(inside, heights, 0.0)
        area = (torch.exp(heights) * NODE_WEIGHTS.to(start.device)).sum(-1)
        total = total + area * length * (high - low) / 2
    return torch.log(torch.where(total > 0, total, 1.0))


def _length(log_density: LogDensity, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """How far from the start the density has fallen by e^-DROP, or ends; by bisection."""
    with torch.no_grad():
        base = log_density(start[..., None])[..., 0]
        longest = torch.minimum(torch.full_like(start, 400.0), (end - start).clamp(min=0.0))
        low, high = torch.zeros_like(start), longest
        for _ in range(40):
            middle = (low + high) / 2
            far = log_density((start + middle)[..., None])[..., 0] < base - DROP
            high, low = torch.where(far, middle, high), torch.where(far, low, middle)
        return high


def _log_gamma_density(u: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
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
