"""How far p-values by tilted labellings scatter, and how long one takes.

Classical trees have an exact law, from which the mean of all runs differs by what is also printed.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.spatial.distance import cdist

import crossedge as ce
from crossedge.data.distances import matrix_distances
from crossedge.null import Problem
from crossedge.null.forest import ForestLaw
from crossedge.null.labellings import permute
from crossedge.null.tilted import tilted_labellings
from crossedge.numerics.labellings import tilted
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]
LEVELS = (0.1, 0.01, 0.001, 0.0001, 0.000001)
TIMED = 3  # the level at which one p-value is timed
RUNS, DRAWS = 16, 100_000
GRAPHS = {
    "tree": ce.SpanningTree(),
    "tree, t = 0.3": ce.SpanningTree(0.3),
    "5-NN": ce.NearestNeighbours(5),
}


def scores_at(problem):
    """Z-scores with about these tails, of whole numbers of crossing edges."""
    first = tilted_labellings(problem)
    mean = CROSS.law.mean_and_std(CROSS, problem.moments).mean
    z = [
        next(z for z in np.arange(0.5, 20, 0.05) if first.log_tail(z)[0] < np.log(level))
        for level in LEVELS
    ]
    return (mean - np.floor(mean - np.array(z) * problem.std)) / problem.std


def main() -> None:
    titles = [f"p = {level:g}" for level in LEVELS]
    print("| " + " | ".join(["graph", "sizes", "relative", *titles, "s", "permutations, s"]) + " |")
    print("|---" * (5 + len(LEVELS)) + "|", flush=True)
    for name, weights in GRAPHS.items():
        for n_x, n_y in ((50, 50), (20, 80), (250, 250), (1000, 1000)):
            points = np.random.default_rng(0).normal(size=(n_x + n_y, 2))
            W = weights.pairs(matrix_distances(cdist(points, points)))
            problem = Problem(W, CROSS, np.arange(W.n) < n_x)
            parts = [problem.part(CROSS, z) for z in scores_at(problem)]
            seconds, logs = [], []
            for run in range(RUNS if W.n < 1000 else 4):
                tilted.KEY = np.uint64(run)
                start = time.perf_counter()
                found = tilted_labellings(problem)
                found.log_tail(parts[TIMED].threshold)
                seconds.append(time.perf_counter() - start)
                logs.append([found.log_tail(part.threshold)[0] for part in parts])
            start = time.perf_counter()
            permute(W, CROSS, problem.moments, DRAWS, 0)
            each = (time.perf_counter() - start) / DRAWS
            p, scatter = np.exp(np.mean(logs, 0)), np.std(logs, 0)
            rows = {"scatter": scatter}
            if weights == ce.SpanningTree():
                exact = [ForestLaw().log_pvalue(part).log_p for part in parts]
                rows["mean"] = np.mean(logs, 0) - exact
            needed = each / (p[TIMED] * scatter[TIMED] ** 2)  # for as little scatter
            for error, values in rows.items():
                cells = [name, f"{n_x} + {n_y}", error, *(f"{value:.3f}" for value in values)]
                print(
                    " | ".join(["", *cells, f"{np.median(seconds):.2f}", f"{needed:.0f} |"]).strip()
                )


if __name__ == "__main__":
    main()
