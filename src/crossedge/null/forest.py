"""The exact law of the cross-edge count of a forest, as of trees and 1-nearest neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crossedge.null.problem import Answer, Problem
from crossedge.numerics.trees.forest_tails import Forest
from crossedge.weights import EdgeList, PairWeights

MOST_POINTS, MOST_EDGES = 2000, 10_000  # up to these sizes the law takes less than a second


@dataclass(frozen=True)
class ForestLaw:
    """The exact p-value for a forest, by the generating function of all labellings."""

    name = "forest"

    def applies(self, problem: Problem) -> bool:
        if not (problem.is_linear and problem.varies and problem.is_cross_count):
            return False
        return forest_of(problem.weights) is not None

    def log_pvalue(self, problem: Problem) -> Answer:
        forest = forest_of(problem.weights)
        assert forest is not None
        count = math.floor(problem.cross_count(problem.threshold) / forest.step)
        log_p = forest.log_lower_tail(problem.n_x, count)
        return Answer(log_p, "exact distribution over all labellings", exact=True)


def forest_of(weights: PairWeights) -> Forest | None:
    """Return the edges as a forest; None if they have cycles, are too many, or not integers."""
    if not isinstance(weights, EdgeList) or not weights.step or weights.n > MOST_POINTS:
        return None
    if weights.total > MOST_EDGES * weights.step:
        return None
    if len(weights.i) >= weights.n:
        return None  # n edges on n points have a cycle
    from crossedge.numerics.trees.forest_counts import peel

    order, hangs_on = peel(weights.n, weights.i, weights.j)
    if order[-1] < 0:
        return None
    place = np.argsort(order)
    hangs = hangs_on >= 0
    edge = hangs_on[hangs]
    below, weight = np.full(weights.n, -1), np.zeros(weights.n, np.int64)
    below[hangs] = place[weights.i[edge] + weights.j[edge] - order[hangs]]
    weight[hangs] = np.rint(weights.weight[edge] / weights.step)
    return Forest(below, weight, weights.step)
