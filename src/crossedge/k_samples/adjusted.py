"""P-values of pairs of samples, adjusted for the family-wise error rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np


def adjusted_pairs(pvalues: Sequence[float], samples: int, whole: float) -> list[float]:
    """Return p-values of all pairs of so many samples, adjusted for the family-wise error rate.

    This is the step-down procedure of Shaffer (1986) after a test of the whole: with so many pairs
    known to differ, the number of equal pairs is one that groups of equal samples can have.
    """
    total, adjusted, running = math.comb(samples, 2), [0.0] * len(pvalues), whole
    for step, place in enumerate(np.argsort(pvalues, kind="stable").tolist()):
        most = max(each for each in _equal_pairs(samples) if each <= total - max(step, 1))
        running = max(running, min(most * pvalues[place], 1.0), pvalues[place])
        adjusted[place] = running
    return adjusted


@lru_cache(maxsize=32)
def _equal_pairs(samples: int) -> frozenset[int]:
    """Return the possible numbers of equal pairs among samples that fall into groups of equals."""
    if samples < 2:
        return frozenset([0])
    return frozenset(
        math.comb(group, 2) + rest
        for group in range(1, samples + 1)
        for rest in _equal_pairs(samples - group)
    )
