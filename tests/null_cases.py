"""Problems for laws: points, weights and sizes of samples."""

import math

import numpy as np
from scipy.spatial.distance import pdist

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.null import Problem
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]


def problem_of(weights, points, n_x):
    pairs = weights.pairs(point_distances(np.asarray(points, float), 2.0))
    return Problem(pairs, CROSS, np.arange(len(points)) < n_x)


def tail_at(problem, value):
    """The p-value of a cross count."""
    mean, std, _ = CROSS.law.mean_and_std(CROSS, problem.moments)
    return math.exp(ce.Tail().log_pvalue(problem.part(CROSS, (mean - value) / std)).log_p)


def family_of(name, temperature):
    return {
        "tree": ce.SpanningTree(temperature),
        "1-NN": ce.NearestNeighbours(1, temperature),
        "5-NN": ce.NearestNeighbours(5, temperature),
    }[name]


def median_distance(points):
    distances = pdist(points)
    return float(np.median(distances))


def lumps(name, n=100):
    rng = np.random.default_rng(0)
    if name == "clusters":
        sizes = [6 * n // 10, 3 * n // 10, n // 10]
        centres = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 9.0]], sizes, 0)
        return centres + 0.3 * rng.normal(size=(n, 2))
    points = rng.normal(size=(n, 2 if name == "outlier" else 30))
    if name == "outlier":
        points[0] += 60.0
    else:  # a sphere, and its centre next to all of it
        points *= (1 + 0.01 * rng.random((n, 1))) / np.linalg.norm(points, axis=1, keepdims=True)
        points[0] = 0
    return points
