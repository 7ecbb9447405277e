"""Smooth p-values of the cross count against a million permutations, as a table in markdown."""

from __future__ import annotations

import numpy as np
import torch

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null.laws import exact_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_tail
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]
LEVELS = (0.2, 0.05, 0.01, 0.001, 0.0001)
FAMILIES = {
    "tree": ce.SpanningTree,
    "1-NN": lambda t: ce.NearestNeighbours(1, t),
    "5-NN": lambda t: ce.NearestNeighbours(5, t),
}


def ratios(null, values, moments, step):
    """Smooth p over permutation p, at the values that permutations exceed as often as LEVELS."""
    law = exact_law(CROSS, moments)
    ordered = np.sort(values)
    found = []
    for level in LEVELS:
        value = ordered[int(level * len(values)) - 1]
        share = (values <= value + 1e-9).mean()
        z = -(value - law.mean) / law.std
        z = z - (step / 2 / law.std if null == "pearson3" else 0.0)
        excess = moments.excess(CROSS.form(moments))
        found.append(float(torch.exp(log_tail(null, z, -law.skewness, excess))) / share)
    return found


def main() -> None:
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.normal(size=(100, 2)))
    distances = torch.cdist(points, points)
    median = float(distances[distances > 0].median())
    head = " | ".join(f"p = {level}" for level in LEVELS)
    print(f"| graph | t / median | sizes | law | {head} |")
    print("|---" * (4 + len(LEVELS)) + "|")
    for name, family in FAMILIES.items():
        for relative in (0.0, 0.03, 0.1, 0.3, 1.0, 100.0):
            W = family(relative * median).pairs(matrix_distances(distances.numpy()))
            for n_x in (50, 20):
                moments = label_moments(W, n_x, 100 - n_x, fourth=True)
                values = permute(W, CROSS, moments, 1_000_000, 0).values
                for null in ("normal", "pearson3"):
                    found = ratios(null, values, moments, W.step)
                    cells = " | ".join(f"{ratio:.2f}" for ratio in found)
                    print(
                        f"| {name} | {relative:g} | {n_x} + {100 - n_x} | {null} | {cells} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
