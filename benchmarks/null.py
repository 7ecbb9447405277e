"""Permutations of dense weights, against a bare product of matrices and a loop over pairs."""

from __future__ import annotations

import numba
import numpy as np
import torch

import crossedge as ce
from crossedge.moments import LabelMoments
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights
from smoothed import milliseconds

N, RESAMPLES = 512, 9_999


@numba.njit(nogil=True)
def visit_every_pair(W, n_x, resamples, seed):
    """What a compiled loop does: shuffle the points, add the weights of pairs that cross."""
    np.random.seed(seed)
    n = len(W)
    order = np.arange(n)
    counts = np.empty(resamples)
    for b in range(resamples):
        np.random.shuffle(order)
        count = 0.0
        for i in range(n):
            for j in range(i):
                if (i < n_x) != (j < n_x):
                    count += W[order[i], order[j]]
        counts[b] = count
    return counts


def main() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(N, 5)))
    W = ce.SpanningTree(1.0)(torch.cdist(points, points))
    weights = DenseWeights(W.numpy())
    moments = LabelMoments(weights, N // 2, N // 2)
    Z = torch.from_numpy((np.random.default_rng(1).random((RESAMPLES, N)) < 0.5) * 1.0)
    print(f"{RESAMPLES:,} labellings of {N} points{'':15} {'crossedge':>12} {'other':>12}    ratio")
    for name, statistic in STATISTICS.items():
        if statistic.studentized:
            continue
        ours, product = milliseconds(
            lambda statistic=statistic: permute(weights, statistic, moments, RESAMPLES, 0),
            lambda: torch.mm(Z, W),
            repeat=5,
        )
        print(
            f"{name:<44} {ours:9.1f} ms {product:9.1f} ms {ours / product:8.2f}x  "
            "a product of the same shape; at most 1.5"
        )
    small = 200
    matrix = W.numpy()
    ours, loop = milliseconds(
        lambda: permute(weights, STATISTICS["cross"], moments, RESAMPLES, 0),
        lambda: visit_every_pair(matrix, N // 2, small, 0),
        repeat=3,
    )
    loop *= RESAMPLES / small
    print(
        f"{'cross':<44} {ours:9.1f} ms {loop:9.1f} ms {ours / loop:8.3f}x  "
        "a loop over pairs; at most 0.05"
    )


if __name__ == "__main__":
    main()
