"""Smooth p-values of the cross count against millions of permutations, as tables in markdown."""

from __future__ import annotations

import numpy as np
import torch

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null.laws import exact_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_form_tail
from crossedge.null.structure import structure_of
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]
LEVELS = (0.1, 0.01, 0.001, 0.0001)
NULLS = ("normal", "pearson3")
DRAWS, PARTS = 1_000_000, 5
FAMILIES = {
    "tree": ce.SpanningTree,
    "1-NN": lambda t: ce.NearestNeighbours(1, t),
    "5-NN": lambda t: ce.NearestNeighbours(5, t),
}


def smallest_values(W, moments):
    """The lowest quarter of the values on relabelled samples, in order, and how many were drawn."""
    lowest = []
    for part in range(PARTS):
        values = permute(W, CROSS, moments, DRAWS, 1000 + part).values
        lowest.append(np.sort(values)[: len(values) // 4])
    return np.sort(np.concatenate(lowest)), PARTS * DRAWS


def ratios(null, values, drawn, moments, structure):
    """Smooth p over permutation p, at the values that permutations exceed as often as LEVELS."""
    law, form = exact_law(CROSS, moments), CROSS.form(moments)
    found = []
    for level in LEVELS:
        value = values[int(level * drawn) - 1]
        share = np.searchsorted(values, value + 1e-9, side="right") / drawn
        z = (law.mean - value) / law.std
        tail = log_form_tail(null, z, moments, form, CROSS.sign, structure)
        found.append(float(torch.exp(tail)) / share)
    return found


def head(*columns):
    names = [*columns, "law", *(f"p = {level}" for level in LEVELS)]
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|", flush=True)


def samples():
    """100 points in two dimensions each."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(100, 2))
    centres = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 9.0]], [60, 30, 10], 0)
    outlier = rng.normal(size=(100, 2))
    outlier[0] += 60.0
    return {
        "normal": normal,
        "three clusters": centres + 0.3 * rng.normal(size=(100, 2)),
        "heavy tails": rng.standard_t(1.5, size=(100, 2)),
        "an outlier": outlier,
    }


def main() -> None:
    every = {}
    head("points", "graph", "t / median", "sizes")
    for title, points in samples().items():
        points = torch.from_numpy(points)
        distances = torch.cdist(points, points)
        median = float(distances[distances > 0].median())
        for name, family in FAMILIES.items():
            for relative in (0.0, 0.03, 0.1, 0.3, 1.0, 100.0):
                W = family(relative * median).pairs(matrix_distances(distances.numpy()))
                for n_x in (50, 20):
                    moments = label_moments(W, n_x, 100 - n_x, fourth=True)
                    structure = structure_of(W, n_x)
                    values, drawn = smallest_values(W, moments)
                    sizes = f"{n_x} + {100 - n_x}"
                    for null in NULLS:
                        found = ratios(null, values, drawn, moments, structure)
                        every.setdefault((title, name, sizes, null), []).append(found)
                        cells = " | ".join(f"{ratio:.2f}" for ratio in found)
                        row = f"| {title} | {name} | {relative:g} | {sizes} | {null} | {cells} |"
                        print(row, flush=True)
    print("\nThe worst over all temperatures:\n")
    head("points", "graph", "sizes")
    for key, found in every.items():
        rows = np.array(found)
        worst = rows[np.abs(np.log(np.maximum(rows, 1e-99))).argmax(0), range(len(LEVELS))]
        print("| " + " | ".join([*key, *(f"{ratio:.2f}" for ratio in worst)]) + " |")


if __name__ == "__main__":
    main()
