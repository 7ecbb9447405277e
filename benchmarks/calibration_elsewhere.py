"""Smooth p-values on kinds of points that no constant of the method was chosen on."""

from __future__ import annotations

import numpy as np
import torch

import calibration
import crossedge as ce
from calibration import ratios, smallest_values
from crossedge.distances import matrix_distances
from crossedge.null.moments import label_moments
from crossedge.null.strata import strata_of

FAMILIES = {"tree": ce.SpanningTree, "3-NN": lambda t: ce.NearestNeighbours(3, t)}


def samples():
    rng = np.random.default_rng(20261117)
    angle, radius = 2 * np.pi * rng.random(100), np.arange(100) % 2 + 1.0
    rings = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    uneven = np.repeat(np.arange(8), [30, 24, 18, 14, 10, 7, 5, 2])
    return {
        "two rings, 2-d, n = 100": rings + 0.1 * rng.normal(size=(100, 2)),
        "8 uneven clusters, 3-d, n = 110": (4 * rng.normal(size=(8, 3)))[uneven]
        + 0.5 * rng.normal(size=(110, 3)),
        "Laplace, 10-d, n = 90": rng.laplace(size=(90, 10)),
        "Pareto 2, 2-d, n = 80": rng.pareto(2, size=(80, 2)),
        "Poisson 2, 3-d, n = 100": rng.poisson(2, size=(100, 3)).astype(float),
    }


def main() -> None:
    calibration.PARTS = 4
    for title, points in samples().items():
        distances = torch.cdist(*[torch.from_numpy(points)] * 2)
        median, n = float(distances[distances > 0].median()), len(points)
        rows = []
        for family in FAMILIES.values():
            for relative in (0.0, 0.1, 0.3, 1.0):
                W = family(relative * median).pairs(matrix_distances(distances.numpy()))
                for n_x in (n // 2, n // 5):
                    moments = label_moments(W, n_x, n - n_x, fourth=True)
                    values, drawn = smallest_values(W, moments)
                    rows.append(ratios("pearson3", values, drawn, moments, strata_of(W, n_x)))
        found = np.array(rows)
        off = (np.abs(found - 1) > 0.1).sum(0)
        print(f"{title}: {found.min(0).round(2)} to {found.max(0).round(2)}, off by a tenth: {off}")


if __name__ == "__main__":
    main()
