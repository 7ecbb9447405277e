"""The fifth cumulants of T and L over all labellings, but for terms smaller by a factor of n."""

from __future__ import annotations

import math

import torch

from crossedge.statistics.label_moments import mean_label_product


def fifth_cumulants(V: torch.Tensor, degree: torch.Tensor, n_x: int, n_y: int) -> torch.Tensor:
    """(6,): of a T + b L, the coefficients of a^5, a^4 b, ..., b^5.

    V and the degrees are those of `without_row_effects`. Were labels u of mean 0 and variance 1
    independent, with cumulants c3, c4, c5, the n-th cumulant of u'Vu / 2 + d'u would be n! times
    the sum over connected graphs of n edges, an edge from i to j bringing V_ij and one with a loose
    end d_i, and a point with k ends the k-th cumulant of a label; divided by the symmetries of the
    graph. That the labels add up to a constant takes away, to first order in 1/n, M^2 / 2n from
    the cumulant generating function, where M = M2 + M3 + ... is the mean of their sum if tilted.
    V and d are scaled so that the variances are exact. Differentiable.
    """
    n = n_x + n_y
    e2, e4 = mean_label_product(2, n_x, n_y), mean_label_product(4, n_x, n_y)
    V = V * math.sqrt(max(1 - 2 * e2 + e4, 0.0))
    d = degree * math.sqrt(max(1 - e2, 0.0))
    c3 = (n_y - n_x) / math.sqrt(n_x * n_y)
    c4, c5 = c3**2 - 2, c3 * (c3**2 - 8)
    V2 = V @ V
    V3 = V2 @ V
    S = V * V
    cubes = S * V
    walks = S * V2
    # closed walks of so many steps from each point, and powers of V on d
    w2, w3, w4 = S.sum(1), (V2 * V).sum(1), (V2 * V2).sum(1)
    Vd = V @ d
    VVd = V @ Vd
    d2, row3, row4 = d * d, cubes.sum(1), (S * S).sum(1)
    tripods = S @ V if c3 else torch.zeros_like(V)
    of = [
        (V2 * V3).sum() / 10
        + c4 / 4 * (w2 @ w3)
        + c3**2 / 8 * (w2 @ (V @ w2))
        + c3**2 / 4 * ((S * V3).sum() + (V * V2 * V2).sum())
        + c4**2 / 12 * (walks * V).sum()
        + c3 * c5 / 12 * (row3 @ w2)
        + c5**2 / 240 * (S * cubes).sum()
        + c3**2 * c4 / 8 * (S * tripods).sum(),
        c3 / 2 * (d @ w4 + Vd @ w3 + VVd @ w2)
        + c5 / 8 * (d @ (w2 * w2))
        + c3 * c4 * ((d @ (S @ w2)) / 4 + (walks.sum(1) @ d) / 2 + (row3 @ Vd) / 6)
        + c4 * c5 / 24 * (row4 @ d)
        + c3**3 / 4 * (d @ (V * tripods).sum(0)),
        (VVd @ Vd) / 2
        + c4 * ((d2 @ w3) / 4 + ((d * Vd) @ w2) / 2)
        + c3**2 * ((d2 @ (V @ w2)) / 4 + (d @ ((V * V2) @ d)) / 2 + (Vd @ (S @ d)) / 2)
        + c4**2 / 12 * (d @ (cubes @ d))
        + c3 * c5 / 12 * (row3 @ d2),
        c3 / 2 * (d2 @ VVd + d @ Vd**2) + c5 / 12 * ((d2 * d) @ w2) + c3 * c4 / 4 * (d @ (S @ d2)),
        c4 / 6 * ((d2 * d) @ Vd) + c3**2 / 8 * (d2 @ (V @ d2)),
        c5 / 120 * (d2 * d2 * d).sum(),
    ]
    M2 = {0: c3 / 2 * w2.sum(), 2: c3 / 2 * d2.sum()}
    M3 = {
        0: c3 / 2 * w3.sum() + c3 * c4 / 6 * row3.sum(),
        1: (c4 + c3**2) / 2 * (d @ w2),
        2: c3 * (d @ Vd),
        3: c4 / 6 * (d2 @ d),
    }
    for i, second in M2.items():
        for j, third in M3.items():
            of[i + j] = of[i + j] - second * third / n
    return 120 * torch.stack(of)
