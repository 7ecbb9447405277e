"""P-values of "max", the larger of two z-scores, by inclusion and exclusion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from crossedge.moments import LabelMoments
from crossedge.null.problem import Answer, Law, Problem, first_answer
from crossedge.null.tilted import MOST_POINTS, tilted_labellings
from crossedge.statistics import LargerOfTwo, Linear, Statistic
from crossedge.statistics.edge_counts import weighted, weighted_form

SAME_SCORE = 1e-8  # z-scores that differ by less count as equal, because of rounding


def _difference(x: float, y: float, _: LabelMoments) -> float:
    return x - y


# The two z-scores as statistics of their own; the second rejects on both sides.
TOGETHER = Statistic("together", "weighted edge count", weighted, Linear(weighted_form))
APART = Linear(lambda moments: moments.difference)
UP = Statistic("up", "difference of edge counts", _difference, APART)
DOWN = Statistic("down", "difference of edge counts", _difference, APART, small_rejects=True)


@dataclass(frozen=True)
class EitherOfTwo:
    """The probability that either z-score is large: the sum of both tails less their overlap."""

    ladder: tuple[Law, ...]  # the laws to try for each tail

    name = "either of two"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.statistic.law, LargerOfTwo)

    def log_pvalue(self, problem: Problem) -> Answer:
        value = problem.observed
        parts = [problem.part(each, value) for each in (TOGETHER, UP, DOWN)]
        parts = [part for part in parts if part.varies]
        if not parts:
            return Answer(0.0, "the statistic cannot vary", exact=True)
        answers = [first_answer(self.ladder, part) for part in parts]
        either = float(logsumexp([answer.log_p for answer in answers]))
        if len(parts) == 3:
            both = _share_of_both(problem, parts[0], [answer.log_p for answer in answers])
            either += math.log1p(-both / math.exp(either)) if both else 0.0
        methods = dict.fromkeys(answer.method for answer in answers)
        return Answer(either, " and ".join(methods))


def _share_of_both(problem: Problem, together: Problem, logs: list[float]) -> float:
    """Return the probability that both z-scores are as large as the observed value.

    Tilted labellings estimate it. With too many points for these, the z-scores are treated as
    independent.
    """
    if problem.n > MOST_POINTS:
        return math.exp(logs[0]) * min(float(np.exp(logs[1:]).sum()), 1.0)
    apart = problem.part(UP, problem.observed)
    other = apart.form.b * problem.moments.centred.degree / apart.std
    share = tilted_labellings(together).share_of_both(problem.observed - SAME_SCORE, other)
    # no more than either of them alone: far out, a single random labelling would count too much
    return min(share, math.exp(logs[0]), float(np.exp(logs[1:]).sum()))
