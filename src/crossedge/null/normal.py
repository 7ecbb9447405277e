"""The paper's t: a normal law with the exact mean and variance over all labellings."""

from __future__ import annotations

from dataclasses import dataclass

from crossedge.moments import Form, LabelMoments
from crossedge.null.problem import Answer, Problem
from crossedge.null.smooth import smooth_answer
from crossedge.numerics.tails import log_normal_tail
from crossedge.runtime.types import Array


@dataclass(frozen=True)
class Normal:
    """A normal law with the exact mean and variance over all labellings: null="normal".

    For "cross" this is the paper's t. "generalized" is compared with chi-square, and "max" with the
    larger of two independent normal variables. The p-value is an approximation that can be wrong by
    orders of magnitude in the tail, above all at high temperature (docs/method.md).

    See Also
    --------
    normality : Terms of the paper's bound on the distance from a normal law.
    Pearson3 : A law with the exact skewness as well.

    Examples
    --------
    >>> import crossedge as ce
    >>> x, y = [0.0, 1.0, 2.0, 3.0], [7.0, 8.0, 9.0, 10.0]
    >>> f"{ce.two_sample(x, y, ce.SpanningTree(), null=ce.Normal()).pvalue:.4f}"
    '0.0110'
    """

    name = "normal"

    def applies(self, problem: Problem) -> bool:
        """Return whether the statistic has this law."""
        return self.name in problem.statistic.nulls

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return the logarithm of the approximate p-value."""
        return smooth_answer(problem, self.log_tail, "normal approximation")

    @staticmethod
    def log_tail(z: Array, _: LabelMoments, __: Form, ___: int) -> Array:
        """Return the logarithm of P(Z >= z) for a standard normal Z."""
        return log_normal_tail(z)
