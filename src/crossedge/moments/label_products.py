"""Means of products of labels +-1 over all labellings."""

from __future__ import annotations

from fractions import Fraction
from math import comb, perm


def mean_label_product(k: int, n_x: int, n_y: int) -> float:
    """Return E[s_1 ... s_k] for k distinct labels +-1, in exact arithmetic; 0 for k > n."""
    n = n_x + n_y
    if k > n:
        return 0.0
    signed = sum((-1) ** j * comb(k, j) * perm(n_y, j) * perm(n_x, k - j) for j in range(k + 1))
    return float(Fraction(signed, perm(n, k)))
