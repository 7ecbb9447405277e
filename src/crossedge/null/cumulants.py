"""A smooth law with four exact moments, or with three for very large samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.null.problem import Answer, Problem
from crossedge.numerics.four_moments import log_four_moment_tail
from crossedge.numerics.tails import log_gamma_tail


@dataclass(frozen=True)
class Cumulants:
    """The tail of a smooth law with four exact moments, or three for very large samples.

    A statistic that moves in steps is shifted half a step towards its mean, which is the usual
    continuity correction.
    """

    name = "cumulants"

    def applies(self, problem: Problem) -> bool:
        return problem.is_linear

    def log_pvalue(self, problem: Problem) -> Answer:
        if not problem.varies:
            return Answer(0.0, "the statistic cannot vary", exact=True)
        known = "three" if problem.moments.excess(problem.form) is None else "four"
        log_p = log_cumulant_tail(problem, problem.z - problem.step / 2)
        return Answer(log_p, f"law with {known} exact moments")


def log_cumulant_tail(problem: Problem, z: float) -> float:
    """Return the logarithm of P(Z >= z) by a smooth law with the moments of the z-score Z."""
    excess = problem.moments.excess(problem.form)
    if excess is None:
        return float(log_gamma_tail(np.float64(z), problem.skewness))
    at, *shape = (np.array([value]) for value in (z, problem.skewness, excess))
    return float(log_four_moment_tail(at, *shape)[0])
