"""A gamma law (Pearson's type III) with the exact mean, variance and skewness."""

from __future__ import annotations

from dataclasses import dataclass

from crossedge.moments import Form, LabelMoments
from crossedge.null.problem import Answer, Problem
from crossedge.null.smooth import smooth_answer
from crossedge.numerics.tails import log_gamma_tail
from crossedge.runtime.types import Array


@dataclass(frozen=True)
class Pearson3:
    """A gamma law with the exact mean, variance and skewness: null="pearson3".

    "fisher" is compared with chi-square, and "max" with the larger of two independent variables
    that follow such laws. The p-value is an approximation; docs/method.md shows how accurate it is.

    See Also
    --------
    Normal : A law without the skewness.
    Tail : More accurate p-values.

    Examples
    --------
    >>> import crossedge as ce
    >>> x, y = [0.0, 1.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
    >>> f"{ce.two_sample(x, y, ce.SpanningTree(), null=ce.Pearson3()).pvalue:.4f}"
    '0.0269'
    """

    name = "pearson3"

    def applies(self, problem: Problem) -> bool:
        """Return whether the statistic has this law."""
        return self.name in problem.statistic.nulls

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return the logarithm of the approximate p-value."""
        return smooth_answer(problem, self.log_tail, "pearson3 approximation")

    @staticmethod
    def log_tail(z: Array, moments: LabelMoments, form: Form, sign: int) -> Array:
        """Return the logarithm of P(Z >= z), where Z is `sign` times the z-score of the form."""
        return log_gamma_tail(z, sign * moments.skewness(form))
