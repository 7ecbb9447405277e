"""A tail as a mixture over strata: of how many points of each kind are in x."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from scipy.special import log_ndtr, ndtri_exp

from crossedge.null.kinds import Floats
from crossedge.null.strata import Strata, Stratifications
from crossedge.numerics.saddlepoint import log_five_cumulant_tail
from crossedge.numerics.tails import log_four_moment_tail
from crossedge.statistics.label_moments import Form, LabelMoments

EXPLAINED, IN_STEPS = 0.2, 0.3  # of the variance, from where on counts matter
MOSTLY = 0.65  # from where on too little is left to tell its fifth cumulant
EXACT, LITTLE = 1e-9, 1e-6  # standard deviations, of which the first is rounding
STEEP = 2.0  # skewness: that of an exponential law
MORE = 0.5  # excess than that of a gamma law, or less, that is believed
APART = 1.0  # from the fifth cumulant of a gamma law, up to which it is believed
SURE, NEAR, FAR, BEYOND = -40.0, 8.0, 40.0, 1e9  # standard deviations
FINE, COARSE, SKEWS = 0.25, 1.0, 9  # mesh of a table of tails


def log_mixture_tail(
    z: torch.Tensor, strata: Stratifications | None, moments: LabelMoments, form: Form, sign: int
) -> torch.Tensor | None:
    """The logarithm of P(sign Z >= z), for a form Z of mean 0 and variance 1.

    A mixture over the counts of laws with the mean, variance and skewness that they imply. What is
    left of the fourth and fifth cumulants of Z is the same for all: both, where the fifth comes out
    near that of a gamma law; else the fourth alone. None where counts explain little.
    """
    found = _strata_for(strata, moments, form)
    if found is None:
        return None
    law, excess, fifth = moments.law(form), moments.excess(form), moments.fifth_cumulant(form)
    std = float(law.std)
    scale, step = sign * std / moments.unit, moments.step(form) / std
    if is_listed(strata, moments, form):
        mixture = _fit(found, scale, 0.0, 0.0, 0.0)
    elif excess is None or fifth is None:
        return None
    else:
        cumulants = sign * float(law.skewness), float(excess), sign * float(fifth)
        mixture = _fit(found, scale, *cumulants)
    # values that are equal but for rounding count
    rounding = max(1e-6, 2 * moments.rounding(form) / std)
    gaps = float(z) - step / 2 - rounding - mixture.mean
    gaps = np.minimum(gaps / np.maximum(mixture.std, 0.01 * rounding), BEYOND)
    tails = mixture.log_tails(gaps) + mixture.log_probability
    return torch.logsumexp(torch.from_numpy(tails), 0).clamp(max=0.0)


def is_listed(strata: Stratifications | None, moments: LabelMoments, form: Form) -> bool:
    """Whether the counts decide: the mixture is then a list of all labellings."""
    if strata is None or not strata.has_few_kinds:
        return False
    found = _strata_for(strata, moments, form)
    scale = float(moments.law(form).std) / moments.unit
    return found is not None and bool(found.variance.max() <= (EXACT * scale) ** 2)


def _strata_for(strata: Stratifications | None, moments: LabelMoments, form: Form) -> Strata | None:
    """None where counts explain little."""
    scale = float(moments.law(form).std) / moments.unit
    if strata is None or not scale > 0:
        return None
    least = (IN_STEPS if moments.step(form) else EXPLAINED) * scale**2
    return strata.of(moments.in_t_and_l(form), least)


@dataclass(frozen=True)
class _Mixture:
    """Laws given the counts; means and standard deviations in those of the whole."""

    log_probability: Floats
    mean: Floats
    std: Floats
    skewness: Floats
    more_excess: float  # than gamma laws have
    more_fifth: float
    explained: float  # of the variance

    def log_tails(self, z: Floats) -> Floats:
        """From a table; nothing is left from FAR beyond the least z on.

        Its entries are those points of a normal law that have the same tails: these bend slowly.
        """
        mesh = _mesh(float(z.min()))
        g = np.linspace(self.skewness.min() - 1e-3, self.skewness.max() + 1e-3, SKEWS)
        points, skewness = (torch.from_numpy(part) for part in np.meshgrid(mesh, g, indexing="ij"))
        excess, fifth = 1.5 * skewness**2 + self.more_excess, 3 * skewness**3 + self.more_fifth
        if abs(self.more_fifth) < APART and self.explained < MOSTLY:
            tails = log_five_cumulant_tail(points, skewness, excess, fifth)
        else:
            tails = log_four_moment_tail(points, skewness, excess)
        scores = CubicSpline(mesh, -ndtri_exp(np.minimum(tails.numpy(), -1e-300)))
        at_z = scores(np.clip(z, mesh[0], mesh[-1]))
        between = _between((self.skewness - g[0]) / (g[1] - g[0]), at_z)
        return np.where(z > mesh[-1], -np.inf, log_ndtr(-between))


def _between(place: Floats, rows: Floats) -> Floats:
    """The cubic through four entries of each row, inside of what the nearest two allow."""
    cell = np.clip(place.astype(int), 0, rows.shape[1] - 2)
    first = np.clip(cell - 1, 0, rows.shape[1] - 4)
    row, u = np.arange(len(rows)), place - first
    found = np.zeros(len(rows))
    for k in range(4):
        others = [other for other in range(4) if other != k]
        share = np.prod([(u - other) / (k - other) for other in others], 0)
        found += share * rows[row, first + k]
    nearest = rows[row, cell], rows[row, cell + 1]
    return np.clip(found, np.minimum(*nearest), np.maximum(*nearest))


def _mesh(least: float) -> Floats:
    """For values from the least on: fine where tails bend."""
    low, centre = max(least, SURE), max(least, 0.0)
    ends = low, max(low, -NEAR), centre + NEAR, centre + FAR
    parts = zip(ends, ends[1:], (COARSE, FINE, COARSE), strict=False)
    inner = [
        np.linspace(start, stop, math.ceil((stop - start) / step), endpoint=False)
        for start, stop, step in parts
    ]
    return np.array([*np.concatenate(inner), ends[-1]])


def _fit(strata: Strata, scale: float, skewness: float, excess: float, fifth: float) -> _Mixture:
    """From the moments of d + s X to those of X, where counts decide on d, s and its skewness."""
    p = np.exp(strata.log_probability)
    d, s = strata.mean / scale, np.sqrt(strata.variance) / abs(scale)
    d, s = d - p @ d, np.maximum(s, EXACT)
    g = np.where(s > LITTLE, np.clip(strata.third / (scale * s) ** 3, -STEEP, STEEP), 0.0)
    gamma = p @ (d**4 + 6 * d**2 * s**2 + 4 * g * d * s**3 + (3 + 1.5 * g**2) * s**4)
    x = float(np.clip((excess + 3 - gamma) / (p @ s**4), -MORE, MORE))
    rest = d**5 + 10 * d**3 * s**2 + 10 * g * d**2 * s**3 + (10 * g + 3 * g**3) * s**5
    rest += 5 * (3 + 1.5 * g**2 + x) * d * s**4
    y = float((fifth + 10 * skewness - p @ rest) / (p @ s**5))
    return _Mixture(strata.log_probability, d, s, g, x, y, float(p @ d**2))
