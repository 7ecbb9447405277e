"""Exact p-values from all labellings, if these are few enough to visit."""

from __future__ import annotations

from dataclasses import dataclass

from crossedge.null.labellings import labellings_up_to
from crossedge.null.permutation import Permutation
from crossedge.null.problem import Answer, Problem

MOST_LABELLINGS = 1_000_000  # visiting more would take too long
MOST_WORK = 4e10  # labellings times n^2, which take a few seconds


@dataclass(frozen=True)
class Enumeration:
    """The exact p-value, by a visit to every labelling."""

    name = "enumeration"

    def applies(self, problem: Problem) -> bool:
        if problem.score is not None:
            return False  # enumeration answers for the observed value only
        fewer = min(problem.n_x, problem.n - problem.n_x)
        return labellings_up_to(problem.n, fewer, _limit(problem))

    def log_pvalue(self, problem: Problem) -> Answer:
        return Permutation(_limit(problem), 0).log_pvalue(problem)


def _limit(problem: Problem) -> int:
    """Return the largest number of labellings that is affordable."""
    return int(min(MOST_LABELLINGS, MOST_WORK / problem.n**2))
