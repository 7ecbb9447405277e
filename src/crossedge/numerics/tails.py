"""Logarithms of tail probabilities, accurate far out and differentiable.

A density is integrated from z outwards by a fixed rule, relative to its value at z. So nothing
underflows, and autograd has the derivatives in z and in the moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from crossedge.runtime.arrays import (
    constants,
    fixed,
    is_tensor,
    namespace,
    special,
    without_warnings,
)
from crossedge.runtime.types import Array, Floats

LogDensity = Callable[[Array], Array]

PANELS = (0.0, 0.02, 0.08, 0.25, 0.6, 1.0)  # of the range of integration, finer near its start
PANEL_NODES, PANEL_WEIGHTS = (values / 2 for values in np.polynomial.legendre.leggauss(40))
NODES = np.concatenate([a + (b - a) * (PANEL_NODES + 0.5) for a, b in pairwise(PANELS)])
NODE_WEIGHTS = np.concatenate([(b - a) * PANEL_WEIGHTS for a, b in pairwise(PANELS)])
LOG_DROP = 46.0  # integration stops where the density has fallen to e^-46: below rounding
LONGEST_RANGE = 400.0  # of integration, in standard deviations: more than any tail needs
RANGES = 2.0 ** (-np.arange(64) / 4)  # fractions of the longest range that are tried
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # coefficients of 1/k, 1/k^3, ...
TABLE_STEP = 1 / 16  # standard deviations between entries of a table
NEGLIGIBLE_SKEWNESS = 1e-9  # below it the law counts as normal
SMALL_SKEWNESS = 0.01  # below it incomplete gamma functions lose digits
LOWEST_LOG_TAIL = -600.0  # below it incomplete gamma functions are close to underflow
STEEP_SKEWNESS = -1.5  # below it the density of a reflected gamma law may rise up to its end
DIFFERENCE_STEP = 1e-3  # its fourth power, and rounding errors over it, are both about 1e-12
OFFSETS = DIFFERENCE_STEP * np.array([0.0, -2.0, -1.0, 1.0, 2.0])
STENCIL = np.array([0.0, 1.0, -8.0, 8.0, -1.0]) / (12 * DIFFERENCE_STEP)  # of a first derivative
REACH = 0.9  # of the way to the end of a law; beyond, the log tail goes on along its tangent


def log_normal_tail(z: Array) -> Array:
    """Return the logarithm of P(Z >= z)."""
    return special(z).log_ndtr(-z)


@without_warnings
def log_gamma_tail(z: Array, skewness: Array) -> Array:
    """Return the logarithm of P(X >= z), for a gamma law of mean 0, variance 1 and this skewness.

    This is Pearson's type III. For arrays, each value depends on its own z alone, up to the last
    bit, so equal z have equal tails.
    """
    if is_tensor(z):
        return log_gamma_tail_by_integration(z, skewness)
    z, g = np.asarray(z), float(skewness)
    if abs(g) < NEGLIGIBLE_SKEWNESS:
        return log_normal_tail(z)
    return _by_table(z, g) if abs(g) < SMALL_SKEWNESS else _by_gamma_functions(z, g)


def log_gamma_tail_with_slopes(z: float, skewness: float) -> tuple[float, float, float]:
    """Return the log tail at one number, and its derivatives in z and in the skewness.

    They are five-point differences, which are right to ten digits.
    """
    still = np.zeros(5)
    tails = log_gamma_tail_by_integration(
        z + np.concatenate([OFFSETS, still]), skewness + np.concatenate([still, OFFSETS])
    )
    return float(tails[0]), float(STENCIL @ tails[:5]), float(STENCIL @ tails[5:])


def _by_gamma_functions(z: Floats, g: float) -> Floats:
    """Return the log tail by incomplete gamma functions, and by integration where these fail.

    They fail where they underflow, and near the end of a reflected law (g < 0).
    """
    k = 4 / g**2
    y = np.maximum(k * (1 + z * g / 2), 0.0)
    above, below = special(z).gammaincc(k, y), special(z).gammainc(k, y)
    upper, lower = (above, below) if g > 0 else (below, above)
    tails: Floats = np.where(lower < 0.5, np.log1p(-lower), np.log(upper))
    rest = (tails < LOWEST_LOG_TAIL) | ((1 + z * g / 2 <= 1 - REACH) & (g < 0))
    if rest.any():
        tails[rest] = log_gamma_tail_by_integration(z[rest], np.float64(g))
    return tails


def _by_table(z: Floats, g: float) -> Floats:
    """Interpolate the log tail by cubics between table entries; its slope is minus the hazard."""
    cell = np.floor(z / TABLE_STEP)
    nodes = np.unique(np.concatenate([cell.ravel(), cell.ravel() + 1]))
    tails = log_gamma_tail_by_integration(TABLE_STEP * nodes, np.float64(g))
    slopes = -TABLE_STEP * np.exp(_log_gamma_density(TABLE_STEP * nodes, np.float64(g)) - tails)
    left = np.searchsorted(nodes, cell)
    u = z / TABLE_STEP - cell
    v = 1 - u
    found: Floats = (
        v * v * (1 + 2 * u) * tails[left]
        + u * u * (1 + 2 * v) * tails[left + 1]
        + u * v * (v * slopes[left] - u * slopes[left + 1])
    )
    return np.minimum(found, 0.0)


@without_warnings
def log_gamma_tail_by_integration(z: Array, skewness: Array) -> Array:
    """Return the same as `log_gamma_tail`, differentiable in both arguments.

    A negative skewness means a reflected gamma law, which has an end; from REACH of the way to it,
    the log tail goes on along its tangent. Where z lies below the mode, or the density does not
    fall towards its end, the other tail is integrated and taken from 1.
    """
    xp = namespace(z)
    z, skewness = z + 0 * skewness, skewness + 0 * z
    negative = fixed(skewness) < 0
    end = xp.where(negative, -2 / xp.where(negative, skewness, -1.0), xp.inf)
    near = xp.where(negative, xp.minimum(z, REACH * end), z)
    outward = (fixed(near) >= -fixed(skewness) / 2) & (fixed(skewness) > STEEP_SKEWNESS)
    flip = 1.0 - 2.0 * ~outward
    upper, turned = flip * near, flip * skewness
    last = xp.where(fixed(turned) < 0, -2 / xp.where(turned < 0, turned, -1.0), xp.inf)
    inner = xp.where(turned < 0, xp.minimum(upper, REACH * last), upper)
    below = inner * turned / 2 <= -1  # the whole law lies above
    inner = xp.where(below, 1.0, inner)
    area = log_area(lambda u: _log_gamma_density(u, turned[..., None]), inner, last)
    tail = _log_gamma_density(inner, turned) + area - (upper - inner) * xp.exp(-area)
    tail = xp.clip(xp.where(below, 0.0, tail), max=-1e-300)
    tail = xp.where(outward, tail, xp.log(-xp.expm1(tail)))
    fall = xp.exp(_log_gamma_density(near, skewness) - tail)
    return xp.where(near < z, tail - (z - near) * fall, tail)


def log_area(log_density: LogDensity, start: Array, end: Array) -> Array:
    """Return the logarithm of the integral from `start` to `end`, over the density at `start`."""
    xp = namespace(start)
    base = log_density(start[..., None])
    inside = xp.isfinite(fixed(base)) & (start < end)[..., None]
    base = xp.where(inside, base, 0.0)
    length = _length(log_density, fixed(start), fixed(end))
    # a range up to the end of a law moves with that end: at a point that stays in place, the
    # derivative of the density may be singular, which a fixed rule cannot integrate
    to_end = (fixed(end) - fixed(start)) * (1 - 1e-9) <= length
    finite = xp.isfinite(fixed(end))
    length = xp.where(to_end & finite, xp.where(finite, end, 0.0) - start, length)
    nodes, node_weights = constants(NODES, start), constants(NODE_WEIGHTS, start)
    heights = log_density(start[..., None] + nodes * length[..., None]) - base
    heights = xp.where(inside, heights, 0.0)
    total = xp.sum(xp.exp(heights) * node_weights, axis=-1) * length
    return xp.log(xp.where(total > 0, total, 1.0))


def _length(log_density: LogDensity, start: Array, end: Array) -> Array:
    """Return a distance from `start` at which the density has fallen to e^-LOG_DROP, or ends.

    It is the smallest of a geometric sequence, so it is too long by less than a fifth.
    """
    xp, ratios = namespace(start), constants(RANGES, start)
    longest = xp.clip(end - start, min=0.0, max=LONGEST_RANGE)
    ranges = longest[..., None] * ratios
    heights = fixed(log_density(start[..., None] + ranges))
    limit = fixed(log_density(start[..., None])) - LOG_DROP
    return xp.min(xp.where(heights < limit, ranges, longest[..., None]), axis=-1)


def _log_gamma_density(u: Array, skewness: Array) -> Array:
    """Return the logarithm of the density at u.

    With shape k = 4 / skewness^2 and w = u skewness / 2, so that y = k (1 + w) is gamma:
    log f = k (log(1 + w) - w) - log(1 + w) - log(2 pi) / 2 - c(k), c from `_stirling_rest`.
    """
    xp = namespace(u)
    w = u * skewness / 2
    inside = w > -1
    w = xp.where(inside, w, 0.0)
    peak = u * u * bend(w)  # k (log(1 + w) - w)
    density = peak - xp.log1p(w) - math.log(2 * math.pi) / 2 - _stirling_rest(skewness)
    return xp.where(inside, density, -xp.inf)


def bend(w: Array) -> Array:
    """Return (log(1 + w) - w) / w^2, which is -1/2 at 0."""
    xp = namespace(w)
    small = xp.abs(w) < 0.1
    near = xp.where(small, w, 0.0)
    series = 0 * w
    for power in range(17, 1, -1):
        series = series * near + (-1) ** (power + 1) / power
    far = xp.where(small, 1.0, w)
    return xp.where(small, series, (xp.log1p(far) - far) / (far * far))


def _stirling_rest(skewness: Array) -> Array:
    """Return log Gamma(k) - (k - 1/2) log k + k - log(2 pi) / 2, for k = 4 / skewness^2."""
    xp = namespace(skewness)
    inverse = skewness * skewness / 4
    large = inverse < 1 / 16
    small_inverse = xp.where(large, inverse, 0.0)
    series = 0 * inverse
    for coefficient in reversed(STIRLING):
        series = series * small_inverse * small_inverse + coefficient
    k = 1 / xp.where(large, 1.0, inverse)
    exact = special(k).gammaln(k) - (k - 0.5) * xp.log(k) + k - math.log(2 * math.pi) / 2
    return xp.where(large, series * small_inverse, exact)
