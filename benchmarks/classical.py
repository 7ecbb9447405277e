"""The classical tests against plain ways of doing the same, side by side in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.spatial import KDTree

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.moments import LabelMoments
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS

K, D, RESAMPLES = 5, 10, 9999


def plain_permutations(i, j, in_x, rng):
    """What most people write: shuffle the labels, compare the ends of every edge."""
    counts = np.empty(RESAMPLES)
    for b in range(RESAMPLES):
        labels = rng.permutation(in_x)
        counts[b] = (labels[i] != labels[j]).sum()
    observed = (in_x[i] != in_x[j]).sum()
    return (1 + (counts <= observed).sum()) / (1 + RESAMPLES)


def plain_tree(points):
    """Prim's algorithm by numpy rows; a distance matrix would not fit at 40,000 points."""
    n = len(points)
    outside = np.arange(1, n)
    best, nearest = np.full(n, np.inf), np.zeros(n, int)
    current, edges = 0, []
    while len(outside):
        distance = np.sqrt(((points[outside] - points[current]) ** 2).sum(1))
        closer = distance < best[outside]
        best[outside[closer]] = distance[closer]
        nearest[outside[closer]] = current
        place = best[outside].argmin()
        current = outside[place]
        edges.append((current, nearest[current]))
        outside = np.delete(outside, place)
    return np.array(edges).T


def plain_neighbours(points):
    near = KDTree(points).query(points, K + 1)[1][:, 1:]
    return np.repeat(np.arange(len(points)), K), near.ravel()


def plain_test(points, in_x, edges, rng):
    return plain_permutations(*edges(points), in_x, rng)


def seconds(work: Callable[[], object], repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def report(what: str, ours: float, plain: float) -> None:
    print(f"{what:<58} {ours:9.3f} s {plain:9.3f} s {plain / ours:7.0f}x", flush=True)


def main() -> None:
    rng = np.random.default_rng(0)
    families = {"tree": ce.SpanningTree(), f"{K}-NN": ce.NearestNeighbours(K)}
    for weights in families.values():  # compile first
        ce.two_sample(rng.normal(size=(40, D)), rng.normal(size=(40, D)), weights, rng=0)
    print(f"{'':58} {'crossedge':>11} {'plain':>11}   ratio")

    points = rng.normal(size=(10_000, D))
    in_x = np.arange(10_000) < 5_000
    graph = families[f"{K}-NN"].pairs(point_distances(points, 2.0))
    moments = LabelMoments(graph, 5_000, 5_000)
    i, j = plain_neighbours(points)
    report(
        f"{RESAMPLES:,} permutations of the {K}-NN graph, n = 10,000",
        seconds(lambda: permute(graph, STATISTICS["cross"], moments, RESAMPLES, 0), 5),
        seconds(lambda: plain_permutations(i, j, in_x, rng), 1),
    )
    plain = {"tree": plain_tree, f"{K}-NN": plain_neighbours}
    for n in (1_000, 10_000, 40_000):
        points = rng.normal(size=(n, D))
        in_x = np.arange(n) < n // 2
        for name, weights in families.items():
            ours = partial(ce.two_sample, points[in_x], points[~in_x], weights, rng=0)
            report(
                f"whole test, {name}, n = {n:,}, d = {D}, {RESAMPLES:,} permutations",
                seconds(ours, 5 if n < 40_000 else 1),
                seconds(partial(plain_test, points, in_x, plain[name], rng), 1),
            )


if __name__ == "__main__":
    main()
