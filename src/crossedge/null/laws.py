"""Mean, standard deviation and skewness of a statistic under the null."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from crossedge.null.pvalues import log_tail
from crossedge.statistics import ChiSquare, LabelMoments, LargerOfTwo, Linear, Statistic
from crossedge.statistics.label_moments import Law


def exact_law(statistic: Statistic, moments: LabelMoments) -> Law | None:
    """The moments over all labellings; None if the statistic is not linear in the within-sums."""
    if not isinstance(statistic.law, Linear):
        return None
    form = statistic.law.form(moments)
    x = (moments.total + moments.mean_r + moments.mean_l) / 4
    y = (moments.total + moments.mean_r - moments.mean_l) / 4
    law, mean = moments.law(form), statistic.value(x, y, moments)
    return law._replace(mean=torch.where(mean.abs() > 1e-12 * law.std, mean, 0.0))


def sample_law(values: npt.NDArray[np.float64]) -> Law:
    """The moments of drawn values."""
    mean, std = values.mean(), values.std()
    varies = std > 1e-9 * (1 + abs(mean))
    skewness = (((values - mean) / std) ** 3).mean() if varies else 0.0
    return _law(mean, std if varies else 0.0, skewness)


def asymptotic_law(statistic: Statistic, null: str, moments: LabelMoments) -> Law:
    """The moments of the smooth law of a statistic that is not linear but has a law."""
    laws = moments.law(moments.weighted), moments.law(moments.difference)
    together, apart = (bool(law.std > 0) for law in laws)
    if not (together or apart):
        return _law(0.0, 0.0, 0.0)
    if isinstance(statistic.law, ChiSquare):
        degrees = (together + apart) * statistic.law.degrees
        return _law(degrees, math.sqrt(2 * degrees), math.sqrt(8 / degrees))
    assert isinstance(statistic.law, LargerOfTwo), statistic
    edges = torch.linspace(-12.0, 40.0, 5201, dtype=torch.float64)
    below = torch.ones_like(edges)
    if together:
        below = -torch.expm1(log_tail(null, edges, laws[0].skewness))
    if apart:
        inside = [-torch.expm1(log_tail(null, edges, s * laws[1].skewness)) for s in (1, -1)]
        below = below * (inside[0] + inside[1] - 1).clamp(min=0.0) * (edges > 0)
    middle, mass = ((edges[1:] + edges[:-1]) / 2).numpy(), below.diff().numpy()
    mean = float(mass @ middle)
    std = math.sqrt(mass @ (middle - mean) ** 2)
    return _law(mean, std, float(mass @ (middle - mean) ** 3) / std**3)


def rounding(statistic: Statistic, moments: LabelMoments, observed: float) -> float:
    """The largest difference of two values of the statistic that are equal but for rounding."""
    if statistic.law is None:
        return 1e-8 * (1 + abs(observed))
    if isinstance(statistic.law, Linear):
        return moments.rounding(statistic.law.form(moments))
    return score_rounding(moments) * (1 + 2 * math.sqrt(abs(observed)))


def score_rounding(moments: LabelMoments) -> float:
    """The largest difference of two z-scores that are equal but for rounding."""
    stds = [float(moments.law(form).std) for form in (moments.weighted, moments.difference)]
    smallest = min([std for std in stds if std > 0], default=1.0)
    return max(1e-8, 1e-14 * abs(float(moments.total)) / smallest)


def _law(mean: float, std: float, skewness: float) -> Law:
    return Law(
        *(torch.tensor(float(value), dtype=torch.float64) for value in (mean, std, skewness))
    )
