"""How far p-values by tilted labellings scatter, and how long one takes.

Classical trees have an exact law, from which the mean of all runs differs by what is also printed.
"""

from __future__ import annotations

import time

import numpy as np
import torch

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null import tilted
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_form_tail
from crossedge.null.structure import structure_of
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


def counts_at(found, moments, law):
    """Numbers of crossing edges with about these tails: whole ones, as of classical graphs."""
    mean = float(moments.total - moments.mean_r) / 2
    z = [
        next(z for z in np.arange(0.5, 20, 0.05) if found.log_tail(z)[0] < np.log(level))
        for level in LEVELS
    ]
    return mean, np.floor(mean - np.array(z) * float(law.std))


def main() -> None:
    titles = [f"p = {level:g}" for level in LEVELS]
    print("| " + " | ".join(["graph", "sizes", "relative", *titles, "s", "permutations, s"]) + " |")
    print("|---" * (5 + len(LEVELS)) + "|", flush=True)
    for name, weights in GRAPHS.items():
        for n_x, n_y in ((50, 50), (20, 80), (250, 250)):
            points = torch.from_numpy(np.random.default_rng(0).normal(size=(n_x + n_y, 2)))
            W = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
            moments = label_moments(W, n_x, n_y, fourth=True)
            form = CROSS.form(moments)
            law = moments.law(form)
            first = structure_of(W, n_x).tilted_labellings(moments, form, CROSS.sign)
            mean, counts = counts_at(first, moments, law)
            z = (mean - counts) / float(law.std)
            least = z - max(moments.step(form) / 2, moments.rounding(form)) / float(law.std)
            seconds, logs = [], []
            for run in range(RUNS):
                tilted.KEY = np.uint64(run)
                start = time.perf_counter()
                found = structure_of(W, n_x).tilted_labellings(moments, form, CROSS.sign)
                found.log_tail(least[TIMED])
                seconds.append(time.perf_counter() - start)
                logs.append([found.log_tail(one)[0] for one in least])
            start = time.perf_counter()
            permute(W, CROSS, moments, DRAWS, 0)
            each = (time.perf_counter() - start) / DRAWS
            p, scatter = np.exp(np.mean(logs, 0)), np.std(logs, 0)
            rows = {"scatter": scatter}
            if weights == ce.SpanningTree():
                given = moments, form, CROSS.sign, structure_of(W, n_x)
                exact = [float(log_form_tail("pearson3", torch.tensor(one), *given)) for one in z]
                rows["mean"] = np.mean(logs, 0) - exact
            needed = each / (p[TIMED] * scatter[TIMED] ** 2)  # for as little scatter
            for error, values in rows.items():
                cells = [name, f"{n_x} + {n_y}", error, *(f"{value:.3f}" for value in values)]
                print(
                    " | ".join(["", *cells, f"{np.median(seconds):.2f}", f"{needed:.0f} |"]).strip()
                )


if __name__ == "__main__":
    main()
