"""Permutation p-values: from all labellings of the pooled sample, or from random ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crossedge.null.labellings import permute
from crossedge.null.problem import Answer, Problem
from crossedge.null.stopping import rule_of
from crossedge.runtime.randomness import Rng


@dataclass(frozen=True)
class Permutation:
    """The permutation distribution of the statistic: null="permutation".

    If b of B random labellings are at least as extreme as the samples, the p-value is
    (1 + b) / (1 + B). It is valid at every sample size. If there are no more than `n_resamples`
    labellings, all are visited and the p-value is exact.

    Parameters
    ----------
    n_resamples : int, optional
        The number of random labellings B.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.
    early_stopping : int or float, optional
        Stop at this number of labellings that are at least as extreme as the samples. The p-value
        is then the fraction of extreme labellings [1]_. Or a level, such as 0.05: stop where a bet
        [2]_ on a p-value below it has won or lost, often after some fifty labellings. The p-value
        is then that of the bet, which is valid wherever it stops, and hardly below the level.

    See Also
    --------
    Tail : P-values far into the tail.

    Notes
    -----
    The settings of such an object replace the arguments `n_resamples` and `early_stopping` of
    `two_sample`, and `rng` too if it is not None.

    References
    ----------
    .. [1] J. Besag and P. Clifford, "Sequential Monte Carlo p-values", Biometrika, 1991.
    .. [2] L. Fischer and A. Ramdas, "Sequential permutation testing by betting", 2024.

    Examples
    --------
    >>> import crossedge as ce
    >>> null = ce.Permutation(n_resamples=99)
    >>> found = ce.two_sample([0.0, 1.0, 2.0], [5.0, 6.0, 7.0], ce.SpanningTree(), null=null)
    >>> found.pvalue, found.exact
    (0.1, True)
    """

    n_resamples: int = 9999
    rng: Rng = None
    early_stopping: float | None = None

    name = "permutation"

    def applies(self, _: Problem) -> bool:
        """Return True: every statistic has a permutation distribution."""
        return True

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return the logarithm of the permutation p-value, with the values on labellings."""
        statistic, observed, tolerance = problem.statistic, problem.observed, problem.tolerance
        limit = statistic.sign * observed - tolerance
        rule = rule_of(self.early_stopping)
        drawn = permute(
            problem.weights, statistic, problem.moments, self.n_resamples, self.rng, rule, limit
        )
        p = drawn.pvalue(observed, statistic.sign, tolerance)
        method = labellings_in_words(len(drawn.values), drawn.exact, drawn.stopped, drawn.level)
        return Answer(math.log(p), method, drawn.exact, drawn.values, drawn.stopped, p, drawn.level)


def labellings_in_words(
    count: int, exact: bool, stopped: bool = False, level: float | None = None
) -> str:
    """Return how many labellings were visited, in words."""
    words = f"all {count:,} labellings" if exact else f"{count:,} random labellings"
    if level is not None:
        return f"{words}, {'stopped' if stopped else 'undecided'} at level {level:g}"
    return words + (", stopped early" if stopped else "")
