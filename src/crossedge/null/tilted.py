"""P-values far into the tail, from labellings that are tilted towards the observed value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crossedge.null.cumulants import log_cumulant_tail
from crossedge.null.problem import Answer, Problem
from crossedge.numerics.labellings.tilted import TiltedLabellings

MOST_POINTS = 2000  # up to this many points tilted labellings take a few seconds
# Up to this excess kurtosis, sums of third and fourth powers over labellings can be relied on.
MOST_EXCESS = 20.0
LOG_IN_REACH = math.log(1e-6)  # tilted labellings reach at least this p, if any labelling does


@dataclass(frozen=True)
class Tilted:
    """An estimate of the tail to a few percent, with fixed random numbers."""

    name = "tilted"

    def applies(self, problem: Problem) -> bool:
        return problem.is_linear and problem.varies and problem.n <= MOST_POINTS

    def log_pvalue(self, problem: Problem) -> Answer:
        log_p, reached = tilted_labellings(problem).log_tail(problem.threshold)
        method = "tilted labellings"
        if reached < problem.threshold:  # extrapolate by the ratio of two cumulant tails
            ends = problem.threshold, reached
            beyond, here = (log_cumulant_tail(problem, end) for end in ends)
            log_p += beyond - here
            method += ", extrapolated" if log_p < LOG_IN_REACH else ""
        return Answer(log_p, method)


def tilted_labellings(problem: Problem) -> TiltedLabellings:
    """Return labellings that are tilted towards large z-scores of the problem's statistic."""
    (V, degree), moments = problem.moments.centred, problem.moments
    excess, known = moments.excess(problem.form), [1.0, 0.0, 1.0]
    if excess is not None and excess < MOST_EXCESS:
        known += [problem.skewness, 3 + excess]
    a, b = moments.in_t_and_l(problem.form)
    scale = problem.statistic.sign / problem.std
    return TiltedLabellings(scale * a * V, scale * b * degree, problem.n_x, np.array(known))
