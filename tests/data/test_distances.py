import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import crossedge as ce
from brute_force import lp_distances
from crossedge.data.distances import point_distances
from crossedge.numerics.leaves import reduced_distance

NORMS = [1.0, 1.5, 2.0, 3.0, 100.0, np.inf]


def all_reduced(points, p):
    out = np.empty((len(points), len(points)))
    across = np.ascontiguousarray(points.T)
    for i, j in np.ndindex(out.shape):
        out[i, j] = reduced_distance(across, i, across, j, p)
    return np.sqrt(out) if p == 2 else out


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 9])
def test_norms(p, d):
    points = np.random.default_rng(0).normal(size=(20, d))
    np.testing.assert_allclose(all_reduced(points, p), lp_distances(points, p), rtol=1e-13)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_no_scale_overflows_or_underflows(p, scale):
    points = np.random.default_rng(0).normal(size=(10, 3))
    scaled = point_distances(points * scale, p).points
    ratio = all_reduced(scaled, p) / np.where(np.eye(10), 1, lp_distances(points, p))
    off_diagonal = ratio[~np.eye(10, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, off_diagonal[0], rtol=1e-12)


@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(3)])
@pytest.mark.parametrize("p", NORMS)
def test_points_a_callable_and_a_matrix_agree(weights, p):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(20, 4))
    pooled = np.vstack([x, y])

    def blockwise(a, b):
        return torch.linalg.vector_norm(a[:, None] - b[None], ord=p, dim=-1)

    results = [
        ce.two_sample(x, y, weights, distance=p, rng=0),
        ce.two_sample(x, y, weights, distance=blockwise, rng=0),
        ce.two_sample(lp_distances(pooled, p), 20, weights, distance="precomputed", rng=0),
    ]
    assert len({result.statistic for result in results}) == 1
    assert len({result.pvalue for result in results}) == 1


def test_a_mask_picks_out_the_second_sample():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(9, 2))
    pooled, in_y = np.vstack([x, y]), np.arange(21) >= 12
    shuffled = rng.permutation(21)
    direct = ce.two_sample(x, y, ce.SpanningTree(), rng=0)
    masked = ce.two_sample(
        lp_distances(pooled[shuffled]),
        in_y[shuffled],
        ce.SpanningTree(),
        distance="precomputed",
        rng=0,
    )
    assert (masked.n_x, masked.n_y) == (12, 9)
    assert masked.statistic == direct.statistic


def cosine(a, b):
    a, b = (points / points.norm(dim=1, keepdim=True) for points in (a, b))
    return 1 - a @ b.T


CALLABLES = {
    "torch": torch.cdist,
    "scipy": lambda a, b: cdist(a, b, "cityblock"),
    "numpy": lambda a, b: np.abs(a.numpy()[:, None] - b.numpy()[None]).max(-1),
    "cosine": cosine,
    "single precision": lambda a, b: torch.cdist(a.float(), b.float()),
    "with gradient": lambda a, b: torch.cdist(a, b) * torch.ones(1, requires_grad=True),
}


@pytest.mark.parametrize("distance", CALLABLES.values(), ids=CALLABLES.keys())
@pytest.mark.parametrize("d", [2, 10])
def test_common_callables(distance, d):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(40, d)), rng.normal(size=(30, d)) + 5
        assert ce.two_sample(x, y, ce.NearestNeighbours(3), distance=distance, rng=0).pvalue < 0.01


BAD_DISTANCES = {
    "a similarity": (lambda a, b: torch.exp(-torch.cdist(a, b)), "for a point and itself"),
    "text back": (lambda a, b: "far", "distance returned str of no real numbers"),
    "complex back": (lambda a, b: torch.cdist(a, b) * 1j, "of no real numbers"),
    "nothing back": (lambda a, b: None, "distance returned NoneType of no real numbers"),
    "complex": (2j, "distance is of type complex"),
    "too small": (0.5, "distance=0.5 is not a norm"),
    "NaN": (float("nan"), "distance=nan is not a norm"),
    "a name": ("cosine", "distance='cosine' is unknown"),
    "a list": ([2], "distance is of type list"),
    "nothing": (None, "distance is of type NoneType"),
    "a truth": (True, "distance is of type bool"),
    "wrong shape": (lambda a, b: 1.0, "distance returned shape ()"),
    "negative": (lambda a, b: -torch.cdist(a, b), "distance returned -"),
    "NaN back": (lambda a, b: torch.cdist(a, b) * np.nan, "distance returned nan"),
    "asymmetric": (lambda a, b: torch.relu(a[:, None, 0] - b[None, :, 0]), "is not symmetric"),
}


@pytest.mark.parametrize(("distance", "message"), BAD_DISTANCES.values(), ids=BAD_DISTANCES.keys())
def test_a_bad_distance_gets_one_clear_line(distance, message):
    with pytest.raises((ValueError, TypeError)) as error:
        ce.two_sample([[0.0, 1], [2, 3]], [[1.0, 1]], ce.SpanningTree(), distance=distance)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def zero_at_first(a, b):
    """A similarity whose first points would pass for a distance."""
    return a @ b.T


@pytest.mark.parametrize(
    "weights", [ce.SpanningTree(), ce.NearestNeighbours(2), ce.SpanningTree(1.0)]
)
def test_a_similarity_is_seen_wherever_it_shows(weights):
    x = np.zeros((100, 2))
    x[50] = [3.0, 4.0]
    with pytest.raises(ValueError, match="for a point and itself"):
        ce.two_sample(x, x[:2], weights, distance=zero_at_first)


def test_asymmetry_is_seen_wherever_it_shows():
    def one_pair_differs(a, b):
        distances = torch.cdist(a, b)
        distances[(a[:, None, 0] == 7) & (b[None, :, 0] == 2)] += 1
        return distances

    x = np.arange(100.0)[:, None]
    with pytest.raises(ValueError, match="distance is not symmetric"):
        ce.two_sample(x[:50], x[50:], ce.SpanningTree(1.0), distance=one_pair_differs)


@pytest.mark.parametrize(
    "distance", [lambda u, v: np.linalg.norm(u - v), lambda u: u, lambda u, v: u.missing]
)
def test_a_distance_of_two_points_gets_a_hint(distance):
    """The commonest mistake: the function is given blocks of points, not two points."""
    x, y = np.zeros((20, 3)), np.ones((20, 3))
    with pytest.raises((TypeError, ValueError, AttributeError), match=r"two blocks .*cdist"):
        ce.two_sample(x, y, ce.SpanningTree(), distance=distance)
