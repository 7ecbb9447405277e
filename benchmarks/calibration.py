"""P-values by laws against millions of permutations, for the cross count, as tables in markdown."""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import cdist

import crossedge as ce
from crossedge.data.distances import matrix_distances
from crossedge.moments import LabelMoments
from crossedge.null import Normal, Pearson3, Problem
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]
LEVELS = (0.2, 0.1, 0.01, 0.001, 0.0001)
NULLS = ("normal", "pearson3", "tail")
DRAWS, PARTS = 1_000_000, 5
OFF = 0.1
FAMILIES = {
    "tree": ce.SpanningTree,
    "1-NN": lambda t: ce.NearestNeighbours(1, t),
    "5-NN": lambda t: ce.NearestNeighbours(5, t),
}


def compare(W, n_x, nulls=NULLS, parts=PARTS):
    """Return p by each law over p by permutations, at values exceeded as often as LEVELS say.

    Where "tail" is off by a tenth, it is compared again, with five times as many other
    permutations: among hundreds of rows, some are off by what the first ones err.
    """
    moments = LabelMoments(W, n_x, W.n - n_x)

    def against(values):
        return {null: ratios(null, values, W, moments) for null in nulls}

    found = against(smallest_values(W, moments, range(parts)))
    if max(abs(ratio - 1) for ratio in found["tail"]) > OFF:
        first = ", ".join(f"{ratio:.2f}" for ratio in found["tail"])
        found = against(smallest_values(W, moments, range(parts, 6 * parts)))
        print(f"compared again, first {first}", file=sys.stderr, flush=True)
    return found


def smallest_values(W, moments, parts):
    """Return the lowest quarter of the values on relabelled samples, a million for each part."""
    lowest = []
    for part in parts:
        values = permute(W, CROSS, moments, DRAWS, 1000 + part).values
        lowest.append(np.sort(values)[: DRAWS // 4])
    return np.sort(np.concatenate(lowest))


def ratios(null, values, W, moments):
    form, drawn = CROSS.form(moments), 4 * len(values)
    mean, std = CROSS.law.mean_and_std(CROSS, moments)[:2]
    problem = Problem(W, CROSS, np.arange(W.n) < moments.n_x, moments=moments)
    found = []
    for level in LEVELS:
        value = values[int(level * drawn) - 1]
        equal = value + CROSS.rounding(moments, value)
        share = np.searchsorted(values, equal, side="right") / drawn
        z = (mean - value) / std
        if null == "tail":
            log_p = ce.Tail().log_pvalue(problem.part(CROSS, z)).log_p
        else:
            law = {"normal": Normal, "pearson3": Pearson3}[null]
            log_p = float(law.log_tail(np.float64(z), moments, form, CROSS.sign))
        found.append(np.exp(log_p) / share)
    return found


def head(*columns):
    names = [*columns, "law", *(f"p = {level}" for level in LEVELS)]
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|", flush=True)


def samples(n=100):
    """Points in two dimensions."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(n, 2))
    sizes = [6 * n // 10, 3 * n // 10, n // 10]
    centres = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 9.0]], sizes, 0)
    outlier = rng.normal(size=(n, 2))
    outlier[0] += 60.0
    return {
        "normal": normal,
        "three clusters": centres + 0.3 * rng.normal(size=(n, 2)),
        "heavy tails": rng.standard_t(1.5, size=(n, 2)),
        "an outlier": outlier,
    }


def study(n, parts):
    every = {}
    head("points", "graph", "t / median", "sizes")
    for title, points in samples(n).items():
        distances = cdist(points, points)
        median = float(np.median(distances[distances > 0]))
        for name, family in FAMILIES.items():
            for relative in (0.0, 0.03, 0.1, 0.3, 1.0, 100.0):
                W = family(relative * median).pairs(matrix_distances(distances))
                for n_x in (n // 2, n // 5):
                    sizes = f"{n_x} + {n - n_x}"
                    for null, found in compare(W, n_x, parts=parts).items():
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


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    study(n, PARTS if n <= 100 else 2)


if __name__ == "__main__":
    main()
