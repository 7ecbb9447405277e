"""P-values by a smooth law, which `Normal` and `Pearson3` share."""

from __future__ import annotations

from crossedge.null.problem import Answer, Problem
from crossedge.statistics import ChiSquare
from crossedge.statistics.laws import LogTail


def smooth_answer(problem: Problem, log_tail: LogTail, method: str) -> Answer:
    """Return the p-value by the law of the statistic, given the tail of its z-scores."""
    statistic, (x, y, *_) = problem.statistic, problem.within
    assert statistic.law is not None
    log_p = statistic.law.log_pvalue(statistic, x, y, problem.moments, log_tail)
    if isinstance(statistic.law, ChiSquare):
        method = "chi-square approximation"
    return Answer(float(log_p), method)
