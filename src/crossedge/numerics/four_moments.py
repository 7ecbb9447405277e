"""The tail of a law whose first four moments are known."""

from __future__ import annotations

import numpy as np

from crossedge.numerics.tails import (
    REACH,
    bend,
    log_area,
    log_gamma_tail_by_integration,
    log_normal_tail,
)
from crossedge.runtime.arrays import without_warnings
from crossedge.runtime.types import Bools, Floats

BLEND_START, BLEND_END = 0.3, 0.8  # standard deviations: from three moments to four
LARGEST_NORMAL_SHARE = 0.7  # of the variance, in the sum of a normal and a gamma variable


@without_warnings
def log_four_moment_tail(z: Floats, skewness: Floats, excess: Floats) -> Floats:
    """Return log P(X >= z), for a law of mean 0, variance 1 and this skewness and excess kurtosis.

    The excess decides how far the tail reaches. A gamma law has an excess of 1.5 skewness^2. With
    more, the law is that of a gamma variable plus a normal one: its tail is that of the gamma law,
    corrected by a difference of saddlepoint formulas. With less, it is a beta law (Pearson's type
    I). Near the centre, where all three agree, it is the gamma law.
    """
    z, skewness, excess = z + 0 * skewness, skewness + 0 * z, excess + 0 * z
    three = log_gamma_tail_by_integration(z, skewness)
    more = excess - 1.5 * skewness**2
    heavy = (z > BLEND_START) & (more > 1e-9) & (np.abs(skewness) > 1e-6)
    light = (z > BLEND_START) & (more < -1e-9)
    four = np.where(heavy, _log_heavy_tail(z, skewness, excess, three, heavy), 0.0)
    beta, found = _log_beta_tail(z, skewness, excess, light)
    four = np.where(found, beta, four)
    step = np.clip((z - BLEND_START) / (BLEND_END - BLEND_START), 0, 1)
    share = np.where(heavy | found, step * step * (3 - 2 * step), 0.0)
    tail: Floats = np.where(share > 0, (1 - share) * three + share * four, three)
    return tail


def _log_heavy_tail(
    z: Floats,
    skewness: Floats,
    excess: Floats,
    three: Floats,
    used: Bools,
) -> Floats:
    """Return the log tail of a gamma variable plus a normal one, where `used`.

    The normal variable has at most LARGEST_NORMAL_SHARE of the variance. If the skewness is
    negative, it has at least half: a gamma law ends where, by its excess, the true law does not.
    The saddlepoint formula errs as it does for the gamma law, whose tail `three` is known: that
    error is taken off, except towards the end of the gamma law.
    """
    z, g = np.where(used, z, 1.0), np.where(used, skewness, 1.0)
    x = np.where(used, excess, 2.0)
    ratio = np.clip(x / (1.5 * g**2), 1.0, 1 / (1 - LARGEST_NORMAL_SHARE))
    least = 1 + np.minimum((ratio - 1) / 0.02, 1.0)
    ratio = np.where(g < 0, np.maximum(ratio, least), ratio)
    left = np.clip((1 + g * z / 2 - 0.3) / 0.4, 0, 1)
    inside = left > 0
    gamma = log_sum_tail(np.where(inside, z, 1.0), np.where(inside, g, 1.0), 1 + 0 * ratio)
    share = left * left * (3 - 2 * left)
    error = np.where(inside, share * (three - gamma), 0.0)
    return log_sum_tail(z, g, ratio) + error


def log_sum_tail(z: Floats, g: Floats, ratio: Floats) -> Floats:
    """Return the log tail of a normal plus a gamma variable, by a saddlepoint formula.

    The formula is Barndorff-Nielsen's. With a normal variance v and a gamma scale a,
    K(s) = v s^2/2 - k (log(1 - a s) + a s), with k a^2 = 1 - v, 2 k a^3 = g the skewness, and
    6 k a^4 the excess, `ratio` times that of a gamma law. K'(s) = z is a quadratic equation.
    """
    a, gamma = g / 2 * ratio, 1 / ratio  # the scale, and the gamma share of the variance
    v = 1 - gamma
    s = 2 * z / ((1 + a * z) + np.sqrt((1 + a * z) ** 2 - 4 * v * a * z))
    rest = 1 - a * s
    cumulant = v * s**2 / 2 - gamma * s**2 * bend(-a * s)
    spread = np.sqrt(v + gamma / rest**2)
    w = np.sqrt(2 * (s * z - cumulant))
    tail: Floats = log_normal_tail(w + np.log(s * spread / w) / w)
    return tail


def _log_beta_tail(
    z: Floats, skewness: Floats, excess: Floats, used: Bools
) -> tuple[Floats, Bools]:
    """Return the log tail of a beta law (Pearson's type I), and where such a law exists.

    Its density f has f'/f = -(u + c1) / (c0 + c1 u + c2 u^2), between the zeros of the denominator.
    """
    kurtosis = 3 + excess
    used = used & (10 * kurtosis - 12 * skewness**2 - 18 > 1e-3)
    for _ in range(2):  # first to find where the density is 0 at both ends, then for those
        g, k = np.where(used, skewness, 0.0), np.where(used, kurtosis, 2.5)
        scale = 10 * k - 12 * g**2 - 18
        c0, c1 = (4 * k - 3 * g**2) / scale, g * (k + 3) / scale
        c2 = (2 * k - 3 * g**2 - 6) / scale
        root = np.sqrt(c1**2 - 4 * c0 * c2)
        # each end by the formula in which nothing cancels
        sum_of = np.where(c1 > 0, c1 + root, root - c1)
        low = np.where(c1 > 0, -2 * c0 / sum_of, sum_of / (2 * c2))
        high = np.where(c1 > 0, -sum_of / (2 * c2), 2 * c0 / sum_of)
        width = c2 * (high - low)
        rise, fall = (c1 + low) / width, -(c1 + high) / width  # exponents of f at both ends
        used = used & (rise > 0) & (fall > 0)
    mode = -c1
    up, over = mode - low, high - mode

    def log_density(u: Floats) -> Floats:
        """Return the log density relative to the mode, at (..., nodes) points u."""
        x = u - mode[..., None]
        inside = (x > -up[..., None]) & (x < over[..., None])
        x = np.where(inside, x, 0.0)
        height = rise[..., None] * np.log1p(x / up[..., None])
        height = height + fall[..., None] * np.log1p(-x / over[..., None])
        return np.where(inside, height, -np.inf)

    last = mode + REACH * over
    near = np.minimum(np.where(used, z, mode), last)
    area = log_area(log_density, near, high)
    above = log_area(log_density, mode, high)
    below = log_area(lambda u: log_density(-u), -mode, -low)
    tail = log_density(near[..., None])[..., 0] + area - np.logaddexp(above, below)
    beyond = np.where(used, z - near, 0.0)
    return tail - beyond * np.exp(-area), used
