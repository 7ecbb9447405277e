"""The loss as a function of the sums of W, and its derivatives in these, in closed form.

Let z = (a R + b L - mean) / std be the z-score of a linear form, with R = 2 (R_x + R_y) - m and
L = 2 (R_x - R_y). Its mean is a multiple of m, its variance a linear function of the sums of V^2
and of the squared degrees, and its third moment one of the five sums of `ThirdSums`. So all of its
derivatives are a few multiplications, and those of -log p follow from the slopes of a tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.special import log_ndtr

from crossedge.losses.settings import Settings
from crossedge.moments import Form, LabelMoments
from crossedge.moments.centred import SecondSums, ThirdSums
from crossedge.numerics.pairs.sums import Direction, PairSums
from crossedge.numerics.tails import log_gamma_tail_with_slopes
from crossedge.statistics import ChiSquare, Linear

LOG_ROOT_2PI = math.log(2 * math.pi) / 2


class Slopes(NamedTuple):
    """The derivatives of a loss in the sums of W."""

    x: float
    y: float
    total: float
    squares: float
    degree2: float
    third: ThirdSums | None = None

    def times(self, factor: float) -> Slopes:
        """Return the derivatives of a multiple of the loss."""
        x, y, total, squares, degree2 = (factor * slope for slope in self[:5])
        return Slopes(x, y, total, squares, degree2)

    def plus(self, other: Slopes) -> Slopes:
        """Return the derivatives of the sum of two losses, without those in third sums."""
        pairs = zip(self[:5], other[:5], strict=True)
        x, y, total, squares, degree2 = (one + more for one, more in pairs)
        return Slopes(x, y, total, squares, degree2)

    def direction(self, n: int, total: float) -> Direction:
        """Return the derivative in the weight of each pair, for weights with this total.

        V is W less its mean, and less deg / (n - 2) of both points, where degrees are centred.
        """
        per_point = 1 / (n - 2) if n > 2 else 0.0
        return Direction(
            a=self.total - 2 * self.squares * total / (n * (n - 1) / 2),
            b=2 * self.degree2 - 2 * self.squares * per_point,
            c=2 * self.squares,
            x=self.x,
            y=self.y,
        )


NO_SLOPES = Slopes(0.0, 0.0, 0.0, 0.0, 0.0)


def has_closed_form(settings: Settings) -> bool:
    """Return whether the derivatives need no tape.

    These are linear statistics with all of their laws, and sums of squared z-scores.
    """
    law = settings.statistic.law
    is_sum_of_squares = isinstance(law, ChiSquare) and law.degrees == 1
    return isinstance(law, Linear) or is_sum_of_squares


def needs_third(settings: Settings) -> bool:
    """Return whether a closed form needs third sums."""
    return settings.standardize == "pearson3"


def closed_form(
    settings: Settings,
    sums: PairSums,
    n_x: int,
    n_y: int,
    third: Callable[[], ThirdSums] | None = None,
) -> tuple[float, Slopes]:
    """Return the loss and its derivatives, for settings that have a closed form."""
    second = SecondSums(sums.total, sums.squares, sums.degree2)
    moments = LabelMoments.from_sums(second, n_x, n_y, third)
    statistic, sign = settings.statistic, settings.statistic.sign
    if statistic.form is None:
        return _sum_of_squares(moments, sums, log_p=settings.standardize == "normal")
    form = statistic.form(moments)
    if settings.standardize is False:
        value = float(statistic.value(sums.x, sums.y, moments))
        alone = LabelMoments.from_sums(SecondSums(1.0, 0.0, 0.0), n_x, n_y)
        in_total = float(statistic.value(0.0, 0.0, alone))
        slopes = Slopes(2 * (form.a + form.b), 2 * (form.a - form.b), in_total, 0.0, 0.0)
        return sign * value, slopes.times(sign)
    z, in_z = _score(moments, form, sums)
    if settings.standardize is True:
        return sign * z, in_z.times(sign)
    if not moments.varies(form):
        return 0.0, NO_SLOPES
    if settings.standardize == "normal":
        log_p, slope = _normal_tail(sign * z)
        return -log_p, in_z.times(-sign * slope)
    skewness, in_skewness = _skewness(moments, form, sums)
    log_p, by_z, by_skewness = log_gamma_tail_with_slopes(sign * z, sign * skewness)
    slopes = in_z.times(-sign * by_z).plus(in_skewness.times(-sign * by_skewness))
    assert in_skewness.third is not None
    of_third = ThirdSums(*(-sign * by_skewness * slope for slope in in_skewness.third))
    return -log_p, slopes._replace(third=of_third)


def _sum_of_squares(moments: LabelMoments, sums: PairSums, *, log_p: bool) -> tuple[float, Slopes]:
    """Return the sum of the squares of both z-scores, or its -log p by chi-square."""
    value, slopes, degrees = 0.0, NO_SLOPES, 0
    for form in (moments.weighted, moments.difference):
        z, in_z = _score(moments, form, sums)
        value, slopes = value + z * z, slopes.plus(in_z.times(2 * z))
        degrees += bool(moments.varies(form))
    if not log_p:
        return value, slopes
    if degrees == 2:
        return value / 2, slopes.times(0.5)
    if degrees == 0 or not value > 0:
        return 0.0, NO_SLOPES
    log_tail, slope = _normal_tail(math.sqrt(value))
    return -math.log(2) - log_tail, slopes.times(-slope / (2 * math.sqrt(value)))


def _normal_tail(z: float) -> tuple[float, float]:
    """Return log P(Z >= z) and its derivative, minus the hazard."""
    tail = float(log_ndtr(-z))
    return tail, -math.exp(-z * z / 2 - LOG_ROOT_2PI - tail)


def _score(moments: LabelMoments, form: Form, sums: PairSums) -> tuple[float, Slopes]:
    """Return a z-score and its derivatives; 0 if the form cannot vary."""
    if not moments.varies(form):
        return 0.0, NO_SLOPES
    per, (a, b) = moments.second_factors(form), form
    variance = per.squares * sums.squares + per.degree2 * sums.degree2
    per_std = 1 / math.sqrt(variance)
    of_total = -(a + per.total) * per_std
    of_x, of_y = 2 * (a + b) * per_std, 2 * (a - b) * per_std
    z = of_x * sums.x + of_y * sums.y + of_total * sums.total
    of_variance = -z / (2 * variance)
    return z, Slopes(of_x, of_y, of_total, of_variance * per.squares, of_variance * per.degree2)


def _skewness(moments: LabelMoments, form: Form, sums: PairSums) -> tuple[float, Slopes]:
    """Return the skewness of a form that varies, and its derivatives."""
    per, factors = moments.second_factors(form), moments.third_factors(form)
    variance = per.squares * sums.squares + per.degree2 * sums.degree2
    skewness, of_variance = float(moments.skewness(form)), -1.5 / variance
    of_third = ThirdSums(*(factor * variance**-1.5 for factor in factors))
    in_squares, in_degree2 = (of_variance * skewness * one for one in (per.squares, per.degree2))
    return skewness, Slopes(0.0, 0.0, 0.0, in_squares, in_degree2, of_third)
