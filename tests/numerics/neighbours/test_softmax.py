import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.data.distances import matrix_distances
from crossedge.numerics.neighbours.symmetric_softmax import probes, symmetric_weights


def symmetric(distances, temperature, threads=1):
    """Whether they are taken as such, W, and the nearest of each point with its decay."""
    n = len(distances)
    total, nearest = np.empty(n), np.empty(n, np.int64)
    decay, out = np.empty((2, n, n))
    given = np.ascontiguousarray(distances), temperature, probes(n)
    return symmetric_weights(threads, *given, total, nearest, decay, out), out, nearest, decay


def one_neighbour(distances, temperature):
    """By the definition, in torch."""
    n = len(distances)
    itself = torch.eye(n, dtype=torch.bool)
    far = torch.as_tensor(distances).masked_fill(itself, torch.inf)
    chosen = torch.softmax(-far / temperature, 1)
    return chosen + chosen.T


def points(n, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=(n, 3)))


def between(n, seed=0):
    return torch.cdist(points(n, seed), points(n, seed))


@pytest.mark.parametrize("n", [2, 3, 64, 65, 200])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("temperature", [0.3, 2.0, 1e300])
def test_symmetric_distances_need_one_exponential_for_both(n, threads, temperature):
    distances = between(n)
    taken, weights, nearest, decay = symmetric(distances.numpy(), temperature, threads)
    assert taken
    np.testing.assert_allclose(weights, one_neighbour(distances, temperature), rtol=1e-12)
    np.testing.assert_array_equal(decay[np.arange(n), nearest], decay.max(1))


def changed(distances, i, j, factor):
    other = distances.clone()
    other[i, j] *= factor
    return other


def ring(n):
    """How far to walk in one direction: all rows and all columns have the same sum."""
    return torch.as_tensor((np.arange(n) - np.arange(n)[:, None]) % n * 1.0)


NOT_SYMMETRIC = {
    "one way round a ring": ring(40),
    "one of them, a little": changed(between(40), 3, 17, 1 + 1e-8),
    "the last of many": changed(between(300), 298, 299, 1 + 1e-8),
    "from above": between(40) + torch.triu(between(40, seed=1)),
}


@pytest.mark.parametrize("distances", NOT_SYMMETRIC.values(), ids=NOT_SYMMETRIC)
def test_distances_that_are_not_symmetric_are_noticed(distances):
    temperature = float(distances.max()) / 5
    assert not symmetric(distances.numpy(), temperature)[0]
    found = ce.NearestNeighbours(1, temperature)(distances)
    np.testing.assert_allclose(found, one_neighbour(distances, temperature), rtol=1e-12)


@pytest.mark.parametrize("n", [10, 200])
@pytest.mark.parametrize("largest", [1e306, 1.7e308])
def test_large_distances_that_are_not_symmetric_are_noticed_too(n, largest):
    distances = ring(n) / (n - 1)
    found = ce.NearestNeighbours(1, largest / 5)(distances * largest)
    np.testing.assert_allclose(found, one_neighbour(distances, 0.2), rtol=1e-12)


def test_rounding_is_not_taken_for_a_difference():
    """A distance by matrix products is not symmetric to the last digit."""
    rounded = np.random.default_rng(0).normal(size=(500, 500))
    distances = between(500).numpy() * (1 + 4e-16 * rounded)
    assert symmetric(distances, 1.0)[0]


@pytest.mark.parametrize("value", [-1.0, -0.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [(0, 1), (7, 7), (30, 2)])
def test_what_is_no_distance_is_left_to_others(value, place):
    distances = between(40).numpy()
    distances[place] = distances[place[::-1]] = value
    assert not symmetric(distances, 1.0)[0]


@pytest.mark.parametrize(("temperature", "taken"), [(0.1, True), (0.05, False), (1e-300, False)])
def test_what_is_too_cold_is_left_to_others(temperature, taken):
    distances = between(40)
    distances *= 4.0 / distances.max()
    assert symmetric(distances.numpy(), temperature)[0] == taken
    tiny = 1e-250 * distances
    assert not symmetric(tiny.numpy(), temperature * 1e-250)[0]


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-18, 1e-3, 0.3, 30.0, 1e300])
@pytest.mark.parametrize("kind", ["normal", "grid", "equal"])
def test_numpy_and_compiled_loops_agree(temperature, kind):
    """Tests take the one, losses the other."""
    rng = np.random.default_rng(0)
    points = {
        "normal": rng.normal(size=(70, 2)),
        "grid": rng.integers(0, 4, (70, 2)) * 0.1,
        "equal": np.ones((70, 2)),
    }[kind]
    weights = ce.NearestNeighbours(1, temperature)
    matrix = np.linalg.norm(points[:, None] - points, axis=2)
    expected = weights(torch.from_numpy(matrix)).numpy()
    found = weights.pairs(matrix_distances(matrix)).dense()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
