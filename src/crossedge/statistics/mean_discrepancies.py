"""Differences of means of a kernel, which are linear in (R_x, R_y) as edge counts are.

Let xx, yy and xy be the means of W over the pairs inside x, inside y and between them. All
statistics here are xx + yy - 2 xy. The unbiased one is the weighted edge count up to a constant and
a factor.
"""

from __future__ import annotations

from crossedge.moments import Form, LabelMoments
from crossedge.runtime.arrays import fixed, namespace
from crossedge.runtime.types import Array

# The least variance of `mmd_deviation`, as a fraction of the mean square of W, so that one can
# divide by its root.
VARIANCE_FLOOR = 1e-8


def mmd(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return the unbiased estimate of the squared MMD (Gretton and co-authors, 2012, lemma 6).

    A sample of one point has no pairs: its mean xx or yy is left out.
    """
    return _discrepancy(x, y, moments, *_distinct_pairs(moments))


def energy(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return the squared energy distance, if W is minus the distances (Szekely and Rizzo, 2004).

    The means are over all pairs, including those of a point and itself.
    """
    return _discrepancy(x, y, moments, *_all_pairs(moments))


def mmd_form(moments: LabelMoments) -> Form:
    """Return the form of `mmd`."""
    return _form(moments, *_distinct_pairs(moments))


def energy_form(moments: LabelMoments) -> Form:
    """Return the form of `energy`."""
    return _form(moments, *_all_pairs(moments))


def mmd_deviation(W: Array, in_x: Array) -> Array:
    """Return estimates (labellings,) of the standard deviation of `mmd` over fresh samples.

    `in_x` holds (n, labellings) labels, 1 for the points in x and 0 for the others.

    To first order, the squared MMD is a mean over x plus a mean over y of the contribution of each
    point (Sutherland and co-authors, 2017). Its variance is four times the sum of the variances of
    these two means.
    """
    xp = namespace(W)
    unit = xp.max(xp.abs(fixed(W)))  # powers of W itself may overflow or underflow
    W = W / xp.where(unit > 0, unit, 1.0)
    n_x = in_x.sum(0)
    n_y = len(in_x) - n_x
    to_x = W @ in_x
    to_y = W.sum(1)[:, None] - to_x
    of_x = to_x / xp.clip(n_x - 1, min=1) - to_y / n_y
    of_y = to_y / xp.clip(n_y - 1, min=1) - to_x / n_x
    spread = _variance(of_x, in_x) / n_x + _variance(of_y, 1 - in_x) / n_y
    least = VARIANCE_FLOOR * fixed(W**2).mean() * (1 / n_x + 1 / n_y)
    return 2 * unit * xp.sqrt(spread + xp.where(unit > 0, least, 1.0))  # 0 if all weights are


def _variance(values: Array, chosen: Array) -> Array:
    count = chosen.sum(0)
    mean = (values * chosen).sum(0) / count
    return ((values - mean) ** 2 * chosen).sum(0) / count


def _distinct_pairs(moments: LabelMoments) -> tuple[float, float]:
    """Return one over the number of ordered pairs of distinct points inside each sample."""
    n_x, n_y = moments.n_x, moments.n_y
    return 1 / max(n_x * (n_x - 1), 1), 1 / max(n_y * (n_y - 1), 1)


def _all_pairs(moments: LabelMoments) -> tuple[float, float]:
    """Return one over the number of ordered pairs, a point with itself included."""
    return moments.n_x**-2, moments.n_y**-2


def _discrepancy(x: Array, y: Array, moments: LabelMoments, per_x: float, per_y: float) -> Array:
    crossing = moments.total - x - y
    return 2 * (per_x * x + per_y * y - crossing / (moments.n_x * moments.n_y))


def _form(moments: LabelMoments, per_x: float, per_y: float) -> Form:
    """Return the form of `_discrepancy`: up to constants, R_x + R_y is R/2 and R_x - R_y is L/2."""
    between = 1 / (moments.n_x * moments.n_y)
    return Form((per_x + per_y) / 2 + between, (per_x - per_y) / 2)
