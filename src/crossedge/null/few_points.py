"""Random labellings, where one sample has too few points for a smooth law."""

from __future__ import annotations

from dataclasses import dataclass

from crossedge.null.permutation import Permutation
from crossedge.null.problem import Answer, Problem
from crossedge.null.tilted import MOST_POINTS

LEAST_POINTS = 20  # in the smaller sample: below, the statistic takes few values and no law fits
LABELLINGS = 99_999  # for p-values down to 1e-5


@dataclass(frozen=True)
class FewPoints:
    """Draw labellings, always the same, where tilted ones cost too much and no smooth law fits."""

    name = "few points"

    def applies(self, problem: Problem) -> bool:
        """Return whether the pooled sample is large and one of the two samples small."""
        smaller = min(problem.n_x, problem.n - problem.n_x)
        return problem.score is None and problem.n > MOST_POINTS and smaller < LEAST_POINTS

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return the logarithm of the permutation p-value."""
        return Permutation(LABELLINGS, 0).log_pvalue(problem)
