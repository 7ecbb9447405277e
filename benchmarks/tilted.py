"""How far p-values by tilted labellings scatter, and what they save against permutations.

Classical trees have an exact law to compare with; other graphs are compared with their own mean.
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
RUNS = 16
GRAPHS = {
    "tree": ce.SpanningTree(),
    "tree, t = 0.3": ce.SpanningTree(0.3),
    "1-NN, t = 0.1": ce.NearestNeighbours(1, 0.1),
    "5-NN": ce.NearestNeighbours(5),
}


def values_at(tail, moments, form):
    """Values of sign Z, half a step lower if in steps, with about these tails."""
    step = moments.step(form) / float(moments.law(form).std)
    offset = float((moments.mean_r - moments.total) * form.a / moments.law(form).std)
    found = []
    for level in LEVELS:
        z = next(z for z in np.arange(0.5, 20, 0.05) if tail(z)[0] < np.log(level))
        # values in steps are a whole number of them away from that of no crossing edge
        found.append(z if not step else -offset - step * np.round((-offset - z) / step) - step / 2)
    return found


def main() -> None:
    print(
        "| graph | sizes | error | " + " | ".join(f"p = {level:g}" for level in LEVELS) + " | s |"
    )
    print("|---" * (4 + len(LEVELS)) + "|", flush=True)
    for name, weights in GRAPHS.items():
        for n_x, n_y in ((50, 50), (20, 80), (250, 250)):
            points = np.random.default_rng(0).normal(size=(n_x + n_y, 2))
            distances = torch.cdist(*[torch.from_numpy(points)] * 2)
            W = weights.pairs(matrix_distances(distances.numpy()))
            moments = label_moments(W, n_x, n_y, fourth=True)
            form, runs, z = CROSS.form(moments), [], []
            start = 0.0
            for run in range(1 + RUNS):  # the first finds where to look
                tilted.KEY = np.uint64(run)
                start = start or (time.perf_counter() if run else 0.0)
                found = structure_of(W, n_x).tilted_labellings(moments, form, CROSS.sign)
                if not run:
                    z = values_at(found.log_tail, moments, form)
                else:
                    runs.append([found.log_tail(one)[0] for one in z])
            seconds = (time.perf_counter() - start) / RUNS
            rows = {"scatter": np.std(runs, 0)}
            if name == "tree":
                half = moments.step(form) / float(moments.law(form).std) / 2
                given = moments, form, CROSS.sign, structure_of(W, n_x)
                exact = [
                    float(log_form_tail("pearson3", torch.tensor(one + half), *given)) for one in z
                ]
                rows["of the mean"] = np.mean(runs, 0) - exact
            for error, values in rows.items():
                cells = " | ".join(f"{value:.3f}" for value in values)
                print(f"| {name} | {n_x} + {n_y} | {error} | {cells} | {seconds:.2f} |", flush=True)
            draws = 100_000
            start = time.perf_counter()
            permute(W, CROSS, moments, draws, 0)
            each = (time.perf_counter() - start) / draws
            needed = each / (LEVELS[3] * np.std(runs, 0)[3] ** 2)
            print(f"permutations for as little scatter at p = {LEVELS[3]:g}: {needed:.0f} s")


if __name__ == "__main__":
    main()
