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
    rng = np.random.default_rng(20261116)
    scale = np.repeat([1.0, 3.0, 9.0, 27.0, 81.0], 18)[:, None]
    turn = np.linspace(0.5, 4 * np.pi, 110)
    spiral = turn[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    spiral[:5] += 100 * rng.normal(size=(5, 2))
    return {
        "Weibull 0.5, 4-d, n = 100": rng.weibull(0.5, size=(100, 4)),
        "five scales, 2-d, n = 90": scale * rng.normal(size=(90, 2)),
        "coins, 12-d, n = 100": rng.integers(0, 2, size=(100, 12)).astype(float),
        "normal, 50-d, n = 80": rng.normal(size=(80, 50)),
        "a spiral and outliers, 2-d, n = 110": spiral + rng.normal(size=(110, 2)),
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
