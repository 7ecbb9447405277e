"""How surprising is a statistic that is small where the samples differ?"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from crossedge.null.permutations import PermutationNull


def permutation_pvalue(observed: float, null: PermutationNull, tolerance: float) -> float:
    """(1 + b) / (1 + B), or b / B over all labellings, the sample's own among them.

    b counts the values no larger than the observed one; those that differ by rounding are equal.
    """
    as_small = int((null.values <= observed + tolerance).sum())
    if null.exact:
        return as_small / len(null.values)
    return (1 + as_small) / (1 + len(null.values))


def normal_pvalue(zscore: float) -> float:
    """The lower tail of the standard normal, never 0."""
    return max(float(ndtr(zscore)), float(np.finfo(np.float64).tiny))
