"""P-values of many statistics at once, all from one set of labellings of the pooled sample.

Every function takes the values of statistics on a pool of labellings, the last axis, of which the
first entry is the observed one. If the distributions are equal, the pool is exchangeable, so ranks
within it are valid p-values, also of statistics that choose by labels.
"""

from __future__ import annotations

import numpy as np

from crossedge.runtime.types import Floats

ROUNDING = 1e-9  # values that differ by less, relatively, tie


def pool_pvalues(values: Floats) -> Floats:
    """Return for each value the share of its (..., pool) row that is at least as large."""
    lowered = values - ROUNDING * (1 + np.abs(values))
    found = np.empty(values.shape)
    size = values.shape[-1]
    for place in np.ndindex(values.shape[:-1]):
        ordered = np.sort(values[place])
        found[place] = (size - np.searchsorted(ordered, lowered[place])) / size
    return found


def combined_pvalue(parts: Floats) -> float:
    """Return one p-value of several (parts, pool) statistics: that of their smallest p-value."""
    smallest = pool_pvalues(parts).min(0)
    return float(pool_pvalues(-smallest)[0])


def step_down(values: Floats) -> Floats:
    """Return adjusted p-values of (m, pool) statistics, for the family-wise error rate.

    This is the step-down procedure by maxima of Westfall and Young (1993): the k-th largest
    statistic is compared with the maxima over itself and all smaller ones.
    """
    order = np.argsort(-values[:, 0], kind="stable")
    maxima = np.maximum.accumulate(values[order][::-1], axis=0)[::-1]
    lowered = values[order, :1] - ROUNDING * (1 + np.abs(values[order, :1]))
    found = np.maximum.accumulate((maxima >= lowered).mean(1))
    adjusted = np.empty(len(values))
    adjusted[order] = found
    return adjusted


def false_discovery(pvalues: Floats) -> Floats:
    """Return p-values adjusted for the false discovery rate, by Benjamini and Hochberg (1995)."""
    m = len(pvalues)
    order = np.argsort(pvalues)
    scaled = pvalues[order] * m / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
