"""P-values by null="tail" on points that are not well behaved, against five million permutations.

Constants of the method were chosen on the first kinds, and none on the others.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import chi2

import calibration
import crossedge as ce
from calibration import OFF, compare
from crossedge.data.distances import matrix_distances
from crossedge.moments import LabelMoments
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS

GRAPHS = [
    *[(ce.SpanningTree, t) for t in (0.1, 1.0)],
    *[(lambda t: ce.NearestNeighbours(3, t), t) for t in (0.0, 0.1, 1.0)],
    *[(lambda t: ce.NearestNeighbours(1, t), t) for t in (0.1, 1.0)],
]

COLD = [
    (family, t) for family in (GRAPHS[0][0], GRAPHS[2][0], GRAPHS[5][0]) for t in (1e-4, 3e-4, 1e-3)
]


def chosen_on():
    rng = np.random.default_rng(20261117)
    angle, radius = 2 * np.pi * rng.random(100), np.arange(100) % 2 + 1.0
    rings = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    uneven = np.repeat(np.arange(8), [30, 24, 18, 14, 10, 7, 5, 2])
    found = {
        "Student 1.5, 2-d, n = 100": calibration.samples()["heavy tails"],
        "two rings, 2-d, n = 100": rings + 0.1 * rng.normal(size=(100, 2)),
        "8 uneven clusters, 3-d, n = 110": (4 * rng.normal(size=(8, 3)))[uneven]
        + 0.5 * rng.normal(size=(110, 3)),
        "Laplace, 10-d, n = 90": rng.laplace(size=(90, 10)),
        "Pareto 2, 2-d, n = 80": rng.pareto(2, size=(80, 2)),
        "Poisson 2, 3-d, n = 100": rng.poisson(2, size=(100, 3)).astype(float),
    }
    rng = np.random.default_rng(77)
    found["Student 1.5, 3-d, n = 80"] = rng.standard_t(1.5, size=(80, 3))
    found["lognormal, 5-d, n = 100"] = np.exp(1.2 * rng.normal(size=(100, 5)))
    return found


def others():
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


def cold():
    """Temperatures so low that most weights are whole numbers."""
    return {
        "normal, 2-d, n = 100, cold": np.random.default_rng(1).normal(size=(100, 2)),
        "normal, 5-d, n = 80, cold": np.random.default_rng(2).normal(size=(80, 5)),
    }


def chi_squares() -> None:
    """P-values of "generalized" and "fisher" by chi-square, relative to a million permutations."""
    points = calibration.samples()["normal"]
    distances = cdist(points, points)
    median = float(np.median(distances[distances > 0]))
    levels = (0.01, 0.001)
    for name, degrees in (("generalized", 2), ("fisher", 4)):
        rows = []
        for family in (ce.SpanningTree, lambda t: ce.NearestNeighbours(3, t)):
            for relative in (0.0, 0.1, 0.3, 1.0):
                W = family(relative * median).pairs(matrix_distances(distances))
                for n_x in (50, 20):
                    moments = LabelMoments(W, n_x, 100 - n_x)
                    values = permute(W, STATISTICS[name], moments, 1_000_000, 0).values
                    found = np.quantile(values, 1 - np.array(levels))
                    rows.append(chi2(degrees).sf(found) / levels)
        print(f"{name}: {np.min(rows, 0).round(2)} to {np.max(rows, 0).round(2)} at {levels}")


def main() -> None:
    chi_squares()
    for title, points in {**cold(), **chosen_on(), **others()}.items():
        distances = cdist(points, points)
        median, n = float(np.median(distances[distances > 0])), len(points)
        rows = []
        for family, relative in COLD if "cold" in title else GRAPHS:
            W = family(relative * median).pairs(matrix_distances(distances))
            for n_x in (n // 2, n // 5):
                rows.append(compare(W, n_x, ("tail",))["tail"])
        found = np.array(rows)
        off = (np.abs(found - 1) > OFF).sum(0)
        print(
            f"{title}: {found.min(0).round(2)} to {found.max(0).round(2)}, off by a tenth: {off}",
            flush=True,
        )


if __name__ == "__main__":
    main()
