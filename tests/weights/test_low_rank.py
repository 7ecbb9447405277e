"""The energy kernel by landmarks, against the kernel itself and its matrix."""

from itertools import pairwise

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import matrix_distances, point_distances
from crossedge.moments import LabelMoments
from crossedge.null.labellings import Labellings, observe, relabel
from crossedge.weights import DenseWeights
from crossedge.weights.low_rank import _to_landmarks, energy_features


def points(n, d=3, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


def distances_of(values, p=2.0):
    return np.linalg.norm(values[:, None] - values, ord=p, axis=-1)


@pytest.mark.parametrize("distance", [2.0, 1.0, "precomputed"])
def test_with_all_landmarks_it_is_the_energy_kernel(distance):
    x, y = points(40), points(30, seed=1, shift=0.4)
    if distance == "precomputed":
        x, y = distances_of(np.concatenate([x, y])), 30
    for null in ("permutation", "pearson3", "tail"):
        given = {"statistic": "mmd", "distance": distance, "null": null, "rng": 0}
        whole = ce.two_sample(x, y, ce.EnergyKernel(), **given)
        found = ce.two_sample(x, y, ce.EnergyKernel(rank=70), **given)
        assert found.statistic == pytest.approx(whole.statistic)
        assert found.zscore == pytest.approx(whole.zscore)
        assert found.pvalue == pytest.approx(whole.pvalue, rel=0.01)  # cubes are left out


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_products_are_the_kernel_wherever_a_landmark_takes_part(p):
    given = point_distances(points(50), p)
    found, (places, D) = energy_features(given, 12), _to_landmarks(given, 12)
    np.testing.assert_allclose(D, distances_of(points(50), p)[:, places])
    products = found.unit * found.features @ found.features[places].T
    np.testing.assert_allclose(without_effects(products), without_effects(-D), atol=1e-9)


def without_effects(A):
    return A - A.mean(0) - A.mean(1, keepdims=True) + A.mean()


def test_other_norms_and_functions():
    """Not all are of negative type, but the features are always those of some kernel."""
    x, y = points(60), points(60, seed=1, shift=0.8)
    for distance in (3.0, np.inf, lambda a, b: np.abs(a[:, None] - b).sum(-1) ** 2):
        found = ce.two_sample(x, y, ce.EnergyKernel(rank=20), distance=distance, rng=0)
        assert found.pvalue < 0.01


def test_moments_are_those_of_the_matrix():
    for n_x in (20, 33):
        found = energy_features(point_distances(points(60), 2.0), 15)
        by_features = LabelMoments(found, n_x, 60 - n_x)
        by_matrix = LabelMoments(DenseWeights(found.dense()), n_x, 60 - n_x)
        assert by_features._second == pytest.approx(by_matrix._second)
        assert by_features._third[1:] == pytest.approx(by_matrix._third[1:])
        assert by_features.third == pytest.approx(by_matrix.third, rel=1e-2)


@pytest.mark.parametrize("n_x", [15, 45])
def test_within_sums_are_those_of_the_matrix(n_x):
    found = energy_features(point_distances(points(60), 2.0), 15)
    matrix, in_x = DenseWeights(found.dense()), np.arange(60) < n_x
    labellings = Labellings(60, n_x, 300, 0)
    blocks = range(labellings.blocks)
    for sums in zip(observe(found, in_x)[:2], observe(matrix, in_x)[:2], strict=True):
        assert sums[0] == pytest.approx(sums[1])
    ours, theirs = relabel(found, labellings, blocks), relabel(matrix, labellings, blocks)
    np.testing.assert_allclose(ours.x, theirs.x)
    np.testing.assert_allclose(ours.y, theirs.y)


def test_what_is_left_out_falls_with_the_rank():
    given = point_distances(points(300), 2.0)
    shares = [energy_features(given, rank).left_out for rank in (2, 8, 32, 128, 300)]
    assert all(more > less for more, less in pairwise(shares))
    assert shares[-1] == pytest.approx(0, abs=1e-9)


def test_neither_order_nor_labels_choose_landmarks():
    values, order = points(200), np.random.default_rng(5).permutation(200)
    W = energy_features(point_distances(values, 2.0), 20).dense()
    shuffled = energy_features(point_distances(values[order], 2.0), 20).dense()
    np.testing.assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-10)


def test_discrete_points_have_distinct_landmarks():
    values = np.random.default_rng(0).integers(0, 3, size=(500, 2)).astype(float)
    values[:400] = 0.0  # most points are equal
    assert energy_features(point_distances(values, 2.0), 9).left_out == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_scales(scale):
    values = points(40)
    plain = energy_features(point_distances(values, 2.0), 10).dense()
    found = energy_features(point_distances(values * scale, 2.0), 10)
    assert found.unit > 0
    assert np.isfinite(found.dense()).all()
    if scale == 1.0:
        np.testing.assert_array_equal(found.dense(), plain)


def test_equal_points_have_no_weight():
    assert not energy_features(point_distances(np.ones((9, 2)), 2.0), 4).dense().any()
    assert ce.two_sample(np.ones((5, 2)), np.ones((4, 2)), ce.EnergyKernel(rank=3)).pvalue == 1


def test_matrices_may_come_in():
    D = distances_of(points(30))
    found = ce.EnergyKernel(rank=30)(D)
    whole = LabelMoments(DenseWeights(-D), 15, 15)
    assert LabelMoments(DenseWeights(found), 15, 15).tt == pytest.approx(whole.tt)
    assert ce.EnergyKernel(rank=7)(np.stack([D, D])).shape == (2, 30, 30)
    assert energy_features(matrix_distances(D), 99).features.shape[1] <= 30


def test_bad_ranks_get_one_line():
    with pytest.raises(TypeError, match=r"rank=2\.5 is not an integer"):
        ce.EnergyKernel(rank=2.5)
    with pytest.raises(ValueError, match="rank=0 is not positive"):
        ce.EnergyKernel(rank=0)
    with pytest.raises(ValueError, match="gradient"):
        ce.TwoSampleLoss(ce.EnergyKernel(rank=8))
