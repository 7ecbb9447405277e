"""Edge counts: statistics that are functions of the within-sums R_x and R_y."""

from __future__ import annotations

from crossedge.moments import Form, LabelMoments
from crossedge.numerics.tails import log_gamma_tail
from crossedge.runtime.arrays import namespace
from crossedge.runtime.types import Array


def cross(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return T = m - R_x - R_y, the weight of the edges between the samples (paper, sec. 2)."""
    return moments.total - x - y


def cross_form(_: LabelMoments) -> Form:
    """Return the form of T, which is -R / 2 up to a constant."""
    return Form(-0.5, 0.0)


def weighted(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return q R_x + p R_y, p = (n_x - 1) / (n - 2), q = 1 - p (Chen, Chen and Su, 2018).

    Unlike R_x + R_y, it is not dominated by the larger sample.
    """
    form = moments.weighted
    return 2 * (form.a + form.b) * x + 2 * (form.a - form.b) * y


def weighted_form(moments: LabelMoments) -> Form:
    """Return the form of the weighted count."""
    return moments.weighted


def generalized(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return S = (R - E R)' Cov^-1 (R - E R) for R = (R_x, R_y) (Chen and Friedman, 2017).

    It is the sum of the squares of two z-scores, since the weighted count and R_x - R_y are
    uncorrelated (Chu and Chen, 2019). A z-score that cannot vary is left out.
    """
    together, apart = zscores(x, y, moments)
    return together**2 + apart**2


def largest(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return the larger of one z-score and the absolute value of the other (Chu and Chen, 2019).

    The first is that of the weighted count, the second that of R_x - R_y. A z-score that cannot
    vary is left out.
    """
    together, apart = zscores(x, y, moments)
    xp, size = namespace(together), namespace(apart).abs(apart)
    both = xp.where(
        moments.varies(moments.difference), xp.maximum(together, size), together + 0 * size
    )
    return xp.where(moments.varies(moments.weighted), both, size)


def fisher(x: Array, y: Array, moments: LabelMoments) -> Array:
    """Return -2 (log p + log q), which combines the p-values of two z-scores by Fisher's rule.

    p is the upper tail of the weighted count and q both tails of R_x - R_y, each by the gamma law
    with the exact skewness. Unlike the generalized count, it does not reject if the samples mix
    more than expected. Where weights are smooth, it is closer to its chi-square law.
    """
    together, apart = zscores(x, y, moments)
    xp, size = namespace(apart), namespace(apart).abs(apart)
    of_weighted = -2 * log_gamma_tail(together, moments.skewness(moments.weighted))
    of_difference = -2 * log_both_tails(size, moments.skewness(moments.difference))
    return xp.where(moments.varies(moments.weighted), of_weighted, 0.0) + xp.where(
        moments.varies(moments.difference), of_difference, 0.0
    )


def log_both_tails(z: Array, skewness: Array) -> Array:
    """Return the logarithm of P(Z >= z) + P(Z <= -z), for a gamma law with this skewness."""
    xp = namespace(z)
    both = xp.logaddexp(log_gamma_tail(z, skewness), log_gamma_tail(z, -skewness))
    return xp.clip(both, max=0.0)


def zscores(x: Array, y: Array, moments: LabelMoments) -> tuple[Array, Array]:
    """Return the z-scores of the weighted count and of R_x - R_y, which are uncorrelated."""
    forms = moments.weighted, moments.difference
    together, apart = (moments.zscore(x, y, form) for form in forms)
    return together, apart
