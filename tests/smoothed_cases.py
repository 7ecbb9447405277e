"""Distances of many kinds, and families of smoothed weights to try on them."""

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.autograd.distances import lp_distances

FAMILIES = {
    "tree": ce.SpanningTree,
    "1-NN": lambda t: ce.NearestNeighbours(1, t),
    "4-NN": lambda t: ce.NearestNeighbours(4, t),
}
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def data(kind, n):
    rng = np.random.default_rng(n)
    return {
        "normal": rng.normal(size=(n, 2)),
        "clusters": rng.normal(size=(n, 2)) + 10 * (np.arange(n) % 3 == 0)[:, None],
        "line": np.linspace(0, 1, n)[:, None] ** 3,
        "near-duplicates": rng.normal(size=(4, 2))[np.arange(n) % 4]
        + 1e-9 * rng.normal(size=(n, 2)),
        "grid": np.indices((n, n)).reshape(2, -1).T[:n] % [n, 4] * 1.0,
        "duplicates": rng.integers(0, 3, (n, 2)) * 1.0,
    }[kind]


KINDS = ["normal", "clusters", "line", "near-duplicates", "grid", "duplicates"]


def distances_of(kind, n):
    return lp_distances(torch.as_tensor(data(kind, n)), 2.0)


def median(distances):
    return float(np.median(distances.numpy()[np.triu_indices(len(distances), 1)]))


def symmetric_direction(n, seed=0):
    c = np.random.default_rng(seed).normal(size=(n, n))
    return torch.as_tensor(c + c.T)


def assert_relatively_close(found, expected, rtol):
    """Entry by entry; what is below the range of doubles may be 0."""
    found, expected = np.asarray(found), np.asarray(expected)
    tiny = np.abs(expected) < 1e-290
    assert np.abs(found[tiny]).max(initial=0) < 1e-280
    np.testing.assert_allclose(found[~tiny], expected[~tiny], rtol=rtol)


def gradient_along(weights, distances, direction):
    """The gradient by distances of the sum of W times a direction."""
    distances = distances.clone().requires_grad_()
    (weights(distances) * direction).sum().backward()
    return distances.grad
