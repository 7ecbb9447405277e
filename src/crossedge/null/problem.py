"""The problem that a law solves, and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from scipy.special import gammaln

from crossedge.moments import Form, LabelMoments
from crossedge.null.labellings import observe
from crossedge.runtime.types import Bools, Floats
from crossedge.statistics import Linear, Statistic, WithinSums
from crossedge.weights import PairWeights

LATTICE_ROUNDING = 1e-6  # as a fraction of a step: scores this close to the lattice are on it


class Answer(NamedTuple):
    """A p-value, and how it was found."""

    log_p: float
    method: str  # in words
    exact: bool = False  # whether p is over all labellings, without an approximation
    values: Floats | None = None  # the statistic on relabelled samples, if any were visited
    stopped: bool = False  # whether early stopping cut the labellings short
    p: float | None = None  # the p-value itself, if it is a ratio of counts
    level: float | None = None  # at which a bet answered, instead of all labellings


@dataclass(frozen=True, eq=False)
class Problem:
    """The probability, over all labellings, of a statistic at least as extreme as the observed one.

    For a linear statistic, `score` may replace the observed z-score by another one.
    """

    weights: PairWeights
    statistic: Statistic
    in_x: Bools  # (n,): whether each pooled point is in x
    score: float | None = None
    moments: LabelMoments = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.moments is None:
            n_x = int(self.in_x.sum())
            moments = LabelMoments(self.weights, n_x, len(self.in_x) - n_x)
            object.__setattr__(self, "moments", moments)

    def part(self, statistic: Statistic, score: float) -> Problem:
        """Return the problem of another linear statistic and z-score, with the same moments."""
        return replace(self, statistic=statistic, score=score)

    @property
    def n(self) -> int:
        """The number of pooled points."""
        return self.weights.n

    @property
    def n_x(self) -> int:
        """The number of points in x."""
        return self.moments.n_x

    @cached_property
    def within(self) -> WithinSums:
        """The within-sums of the samples as given."""
        return observe(self.weights, self.in_x, self.statistic.studentized, self.moments.design)

    @cached_property
    def observed(self) -> float:
        """The statistic of the samples as given."""
        return float(self.statistic.of(self.within, self.moments))

    @property
    def tolerance(self) -> float:
        """The tolerance within which two values count as equal, because of rounding."""
        return self.statistic.rounding(self.moments, self.observed)

    @property
    def is_linear(self) -> bool:
        """Whether the statistic is linear in the within-sums."""
        return isinstance(self.statistic.law, Linear)

    @cached_property
    def form(self) -> Form:
        """The form a R + b L of a linear statistic."""
        assert isinstance(self.statistic.law, Linear)
        return self.statistic.law.form(self.moments)

    @cached_property
    def varies(self) -> bool:
        """Whether a linear statistic varies over labellings by more than rounding."""
        return bool(self.moments.varies(self.form))

    @property
    def std(self) -> float:
        """The standard deviation of a linear statistic over all labellings."""
        return float(self.moments.std(self.form))

    @property
    def skewness(self) -> float:
        """The skewness of the z-score, with the sign that makes large values extreme."""
        return self.statistic.sign * float(self.moments.skewness(self.form))

    @property
    def step(self) -> float:
        """The step of the lattice on which the z-score lies; 0 if there is none."""
        return self.moments.step(self.form) / self.std

    @cached_property
    def z(self) -> float:
        """The least z-score that counts as extreme, on the lattice if there is one."""
        own = self.statistic.sign * float(
            self.moments.zscore(self.within.x, self.within.y, self.form)
        )
        if self.score is None:
            return own
        if not self.step:
            return self.score
        return own + self.step * math.ceil((self.score - own) / self.step - LATTICE_ROUNDING)

    @property
    def threshold(self) -> float:
        """A value below z by a rounding error: every z-score above it is extreme."""
        return self.z - self.moments.rounding(self.form) / self.std

    @property
    def is_cross_count(self) -> bool:
        """Whether the statistic is a decreasing function of the cross-edge count alone."""
        return self.form.b == 0 and self.statistic.sign * self.form.a > 0

    def cross_count(self, z: float) -> float:
        """Return the cross-edge count (m - R) / 2 at a z-score, if `is_cross_count`."""
        value = float(self.moments.mean(self.form)) + self.statistic.sign * z * self.std
        return float(self.moments.total - value / self.form.a) / 2

    @property
    def log_least(self) -> float:
        """The logarithm of the least p-value, of one labelling, or of two if its mirror ties."""
        n_x, n_y = self.moments.n_x, self.moments.n_y
        mirrored = n_x == n_y and (not self.is_linear or self.form.b == 0)
        return math.log(2 if mirrored else 1) - log_choose(n_x + n_y, n_x)


class Law(Protocol):
    """A method that finds a p-value."""

    @property
    def name(self) -> str:
        """The name of the law, for the argument `null` or for a summary."""

    def applies(self, problem: Problem) -> bool:
        """Return whether the law can solve this problem at an affordable cost."""

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return the logarithm of the p-value, and how it was found."""


def first_answer(ladder: tuple[Law, ...], problem: Problem) -> Answer:
    """Return the answer of the first law of the ladder that applies."""
    return next(law for law in ladder if law.applies(problem)).log_pvalue(problem)


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of n choose k, the number of labellings with k of n points in x."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
