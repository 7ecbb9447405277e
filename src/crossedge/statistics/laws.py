"""The laws that a statistic may have over all labellings.

A statistic is linear in the within-sums, a sum of two independent parts, or the larger of two
z-scores. Each law here turns the tails of z-scores into a p-value. The null (see `crossedge.null`)
decides whether these tails are normal or those of a gamma law. It passes a `LogTail`: a function of
a z-score, the moments, the linear form of the z-score, and its sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from crossedge.moments import Form, LabelMoments
from crossedge.numerics.tails import log_normal_tail
from crossedge.runtime.arrays import namespace
from crossedge.runtime.types import Array, Floats

if TYPE_CHECKING:
    from crossedge.statistics import Statistic

LogTail = Callable[[Array, LabelMoments, Form, int], Array]  # log P(Z >= z)


class NullMoments(NamedTuple):
    """The mean, standard deviation and skewness of a statistic over all labellings."""

    mean: float
    std: float
    skewness: float


def sample_moments(values: Floats) -> NullMoments:
    """Return the moments of drawn values; only rounding between these counts as no variation."""
    mean, std = float(values.mean()), float(values.std())
    if not std > 1e-9 * (1 + abs(mean)):
        return NullMoments(mean, 0.0, 0.0)
    return NullMoments(mean, std, float((((values - mean) / std) ** 3).mean()))


CONSTANT_MOMENTS = NullMoments(0.0, 0.0, 0.0)  # of a statistic that cannot vary


class Law(Protocol):
    """The distribution of a statistic over all labellings, given the tails of its z-scores."""

    @property
    def nulls(self) -> tuple[str, ...]:
        """The names of the nulls that the law serves, other than "permutation"."""

    def log_pvalue(
        self, statistic: Statistic, x: Array, y: Array, moments: LabelMoments, log_tail: LogTail
    ) -> Array:
        """Return log p for within-sums R_x and R_y; 0 if the statistic cannot vary."""

    def null_moments(
        self, statistic: Statistic, moments: LabelMoments, log_tail: LogTail
    ) -> NullMoments:
        """Return the mean, standard deviation and skewness of the law."""

    def rounding(self, moments: LabelMoments, observed: float) -> float:
        """Return the tolerance within which two values count as equal, because of rounding."""


@dataclass(frozen=True)
class Linear:
    """The law of a statistic that is a R + b L plus a constant. Its moments are exact."""

    form: Callable[[LabelMoments], Form]

    nulls: ClassVar = ("normal", "pearson3", "tail")

    def log_pvalue(
        self, statistic: Statistic, x: Array, y: Array, moments: LabelMoments, log_tail: LogTail
    ) -> Array:
        form, sign = self.form(moments), statistic.sign
        z = sign * moments.zscore(x, y, form)
        return namespace(z).where(moments.varies(form), log_tail(z, moments, form, sign), 0 * z)

    def null_moments(
        self, statistic: Statistic, moments: LabelMoments, _: LogTail | None = None
    ) -> NullMoments:
        skewness = float(moments.skewness(self.form(moments)))
        return self.mean_and_std(statistic, moments)._replace(skewness=skewness)

    def mean_and_std(self, statistic: Statistic, moments: LabelMoments) -> NullMoments:
        """Return the moments with NaN for the skewness, which would cost a product of matrices."""
        mean_r, mean_l = moments.mean(Form(1, 0)), moments.mean(Form(0, 1))
        x, y = (moments.total + mean_r + mean_l) / 4, (moments.total + mean_r - mean_l) / 4
        std = float(moments.std(self.form(moments)))
        mean = float(statistic.value(x, y, moments))
        return NullMoments(mean if abs(mean) > 1e-12 * std else 0.0, std, math.nan)

    def rounding(self, moments: LabelMoments, _: float) -> float:
        return moments.rounding(self.form(moments))


class _OfTwoScores:
    """Base class of laws that follow from the two z-scores of `edge_counts.zscores`."""

    def rounding(self, moments: LabelMoments, observed: float) -> float:
        return moments.score_rounding() * (1 + 2 * math.sqrt(abs(observed)))

    def varying(self, moments: LabelMoments) -> list[Form]:
        """Return the forms of the z-scores that vary."""
        forms = moments.weighted, moments.difference
        return [form for form in forms if moments.varies(form)]


@dataclass(frozen=True)
class ChiSquare(_OfTwoScores):
    """A chi-square law for a sum of two parts, one for each z-score.

    A part whose z-score cannot vary is 0. Every other part has one degree of freedom if it is the
    square of a z-score with a normal law, and two if it is minus twice the logarithm of a p-value.
    """

    degrees: Literal[1, 2]  # of freedom, of each part
    null: Literal["normal", "pearson3"]

    def __post_init__(self) -> None:
        if self.degrees not in (1, 2):
            raise ValueError(f"degrees={self.degrees} is not supported: give 1 or 2")

    @property
    def nulls(self) -> tuple[str, ...]:
        return (self.null,)

    def log_pvalue(
        self, statistic: Statistic, x: Array, y: Array, moments: LabelMoments, _: LogTail
    ) -> Array:
        value = statistic.value(x, y, moments)
        return log_chi_square_tail(value, self.degrees * len(self.varying(moments)))

    def null_moments(self, _: Statistic, moments: LabelMoments, __: LogTail) -> NullMoments:
        degrees = self.degrees * len(self.varying(moments))
        if not degrees:
            return CONSTANT_MOMENTS
        return NullMoments(degrees, math.sqrt(2 * degrees), math.sqrt(8 / degrees))


@dataclass(frozen=True)
class LargerOfTwo(_OfTwoScores):
    """The law of the larger of the first z-score and the absolute value of the second.

    The two are uncorrelated, and are treated as independent.
    """

    nulls: ClassVar = ("normal", "pearson3", "tail")

    def log_pvalue(
        self, statistic: Statistic, x: Array, y: Array, moments: LabelMoments, log_tail: LogTail
    ) -> Array:
        value = statistic.value(x, y, moments)
        return self._log_tail(value, moments, log_tail)

    def _log_tail(self, value: Array, moments: LabelMoments, log_tail: LogTail) -> Array:
        xp, together, apart = namespace(value), moments.weighted, moments.difference
        logs = []
        if moments.varies(together):
            logs.append(log_tail(value, moments, together, 1))
        if moments.varies(apart):
            above, below = (log_tail(value, moments, apart, side) for side in (1, -1))
            logs.append(xp.clip(xp.logaddexp(above, below), max=0.0))
        if not logs:
            return 0 * value
        if len(logs) == 1:
            return logs[0]
        rest = xp.log1p(-xp.clip(xp.exp(logs[0]), max=1 - 1e-16))
        return xp.clip(xp.logaddexp(logs[0], logs[1] + rest), max=0.0)

    def null_moments(self, _: Statistic, moments: LabelMoments, log_tail: LogTail) -> NullMoments:
        if not self.varying(moments):
            return CONSTANT_MOMENTS
        edges = np.linspace(-12.0, 40.0, 5201)
        with np.errstate(all="ignore"):
            below = -np.expm1(self._log_tail(edges, moments, log_tail))
        if moments.varies(moments.difference):  # an absolute value is never negative
            below = below * (edges > 0)
        middle, mass = (edges[1:] + edges[:-1]) / 2, np.diff(below)
        mean = float(mass @ middle)
        std = math.sqrt(mass @ (middle - mean) ** 2)
        return NullMoments(mean, std, float(mass @ (middle - mean) ** 3) / std**3)


def log_chi_square_tail(value: Array, degrees: int) -> Array:
    """Return log P(X >= value) for a chi-square variable X with 0, 1, 2 or 4 degrees of freedom."""
    xp = namespace(value)
    if degrees == 0:
        return 0 * value
    if degrees == 2:
        return -value / 2
    if degrees == 4:
        return xp.log1p(value / 2) - value / 2
    positive = value > 0
    root = xp.sqrt(xp.where(positive, value, 1.0))
    return xp.where(positive, math.log(2) + log_normal_tail(root), 0 * value)
