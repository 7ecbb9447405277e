"""The family of edge counts: functions of the within-sums R_x and R_y."""

from __future__ import annotations

import torch

from crossedge.numerics.tails import log_pearson3_tails
from crossedge.statistics.label_moments import Form, LabelMoments


def cross(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """T = m - R_x - R_y: the weight of the edges that cross between the samples (section 2)."""
    return moments.total - x - y


def cross_form(_: LabelMoments) -> Form:
    return Form(-0.5, 0.0)


def weighted(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """The sum q R_x + p R_y, p = (n_x - 1) / (n - 2), q = 1 - p (Chen, Chen and Su, 2018).

    Unlike R_x + R_y it does not prefer the larger sample.
    """
    form = moments.weighted
    return 2 * (form.a + form.b) * x + 2 * (form.a - form.b) * y


def weighted_form(moments: LabelMoments) -> Form:
    return moments.weighted


def generalized(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """S = (R - E R)' Cov^-1 (R - E R) for R = (R_x, R_y) (Chen and Friedman, 2017).

    It is the sum of two squares, since the weighted count and R_x - R_y are not correlated
    (Chu and Chen, 2019); one that cannot vary is left out.
    """
    together, apart = zscores(x, y, moments)
    return together**2 + apart**2


def largest(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """The larger of the two z-scores, that of R_x - R_y without sign (Chu and Chen, 2019).

    One that cannot vary is left out.
    """
    together, apart = zscores(x, y, moments)
    forms = moments.weighted, moments.difference
    varies = [moments.law(form).std > 0 for form in forms]
    either = torch.where(varies[0], together, apart.abs())
    return torch.where(varies[0] & varies[1], torch.maximum(together, apart.abs()), either)


def fisher(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """Twice the evidence of both z-scores, -2 (log p + log q), as Fisher adds up independent tests.

    With p the upper tail of the weighted count and q both tails of R_x - R_y, each by the gamma law
    with the exact skewness. Unlike the generalized count, it does not reject where the samples
    mingle more than they should, and where weights are smooth it is closer to its chi-square law.
    """
    together, apart = zscores(x, y, moments)
    value = 0 * together
    first, second = moments.law(moments.weighted), moments.law(moments.difference)
    if bool(first.std > 0):
        value = value - 2 * log_pearson3_tails(together, first.skewness)
    if bool(second.std > 0):
        value = value - 2 * log_both_tails(apart.abs(), second.skewness)
    return value


def log_both_tails(z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(Z >= z) + P(Z <= -z), for a gamma law."""
    above, below = log_pearson3_tails(z, skewness), log_pearson3_tails(z, -skewness)
    return torch.logaddexp(above, below).clamp(max=0.0)


def zscores(
    x: torch.Tensor, y: torch.Tensor, moments: LabelMoments
) -> tuple[torch.Tensor, torch.Tensor]:
    """The z-scores of the weighted count and of R_x - R_y, which are not correlated."""
    return zscore(x, y, moments, moments.weighted), zscore(x, y, moments, moments.difference)


def zscore(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments, form: Form) -> torch.Tensor:
    """The z-score (a R + b L - mean) / std of a form; 0 where the form cannot vary."""
    law = moments.law(form)
    varies = law.std > 0
    scale = torch.where(varies, law.std, 1.0)
    value = form.a * (2 * (x + y) - moments.total) + form.b * 2 * (x - y)
    score = (value - law.mean) / scale
    return torch.where(varies, score, torch.zeros_like(score))
