"""P-values of a batch that are exactly uniform if nothing changes, in two stages of labellings.

The evidence of the batch has a random rank among that of B random labellings, if the stream is
exchangeable: all B + 1 values are equally likely to be the one that was observed. Ties are broken
at random, so the rank K (how many are larger) is uniform on 0, ..., B.

Few labellings suffice where the rank is large. A first stage of B_1 labellings ends with the rank
K_1; if K_1 >= C, then p = (K_1 + U) / (B_1 + 1) with U uniform on (0, 1), which is uniform above
c = C / (B_1 + 1). Otherwise B_2 more are drawn and K is the rank among all. Its law given K_1 < C
does not depend on the data: with F its distribution function,
p = c (F(K - 1) + U (F(K) - F(K - 1))) is uniform below c.
So p is uniform, and the second stage is needed with probability c only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from crossedge.adaptive import Evidence, Scorer
from crossedge.null.labellings import Labellings, labellings_up_to
from crossedge.runtime.types import Bools, Floats

FIRST, SECOND = 499, 9_500  # labellings in each stage
CONTINUED = 10  # the second stage is needed if fewer are larger in the first


def batch_pvalue(scorer: Scorer, n: int, n_past: int, source: np.random.Generator) -> float:
    """Return the p-value of a batch against the past, uniform on (0, 1) if nothing changes."""
    coin, place = 1.0 - source.random(), source.random()
    if labellings_up_to(n, min(n_past, n - n_past), FIRST + SECOND):
        every = Labellings(n, n_past, FIRST + SECOND, source)  # the observed one is among these
        larger, ties = _compare(scorer.evidence(every))
        return (int(larger.sum()) + coin * max(int(ties.sum()), 1)) / every.count

    def rank(count: int) -> int:
        """Return how many of so many fresh labellings have more evidence, ties broken at random."""
        labellings = Labellings(n, n_past, count, source)
        larger, ties = _compare(scorer.evidence(labellings))
        return int((larger | (ties & (source.random(count) > place))).sum())

    found = rank(FIRST)
    if found >= CONTINUED:
        return (found + coin) / (FIRST + 1)
    found += rank(SECOND)
    law = second_stage_law()
    below = float(law[found - 1]) if found else 0.0
    return CONTINUED / (FIRST + 1) * (below + coin * (float(law[found]) - below))


def _compare(evidence: Evidence) -> tuple[Bools, Bools]:
    """Return which labellings have more evidence than the batch, and which tie with it."""
    difference = evidence.whole[1:] - evidence.whole[0]
    larger = difference > evidence.tolerance
    return larger, ~larger & (difference >= -evidence.tolerance)


@lru_cache(maxsize=1)
def second_stage_law() -> Floats:
    """Return the distribution function of the final rank, given that the second stage was needed.

    Given the rank K among all, the rank in the first stage is hypergeometric: FIRST draws from
    FIRST + SECOND values of which K are larger.
    """
    from scipy.special import gammaln

    total = FIRST + SECOND
    ranks = np.arange(total + 1.0)

    def log_choose(n: Any, k: Any) -> Any:
        with np.errstate(invalid="ignore"):
            found = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return np.where((k >= 0) & (k <= n), found, -np.inf)

    mass = np.zeros(total + 1)
    for k in range(CONTINUED):
        ways = log_choose(ranks, np.full_like(ranks, k))
        ways += log_choose(total - ranks, np.full_like(ranks, FIRST - k))
        mass += np.exp(ways - float(log_choose(np.array(total), np.array(FIRST))))
    law: Floats = np.cumsum(mass) / mass.sum()
    law.setflags(write=False)
    return law
