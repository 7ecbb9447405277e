"""The kernels of moments."""

import numpy as np
import pytest

import crossedge as ce
from crossedge.data.distances import matrix_distances, point_distances
from crossedge.data.representations import principal
from crossedge.weights import DenseWeights, LowRankWeights


def test_it_estimates_the_distance_of_covariance_matrices():
    """The mean over fresh samples is the squared Frobenius distance, here 2 (4 - 1)^2 + 2 1.5^2."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky([[4.0, 1.5, 0.0], [1.5, 4.0, 0.0], [0.0, 0.0, 1.0]])
    found = []
    for _ in range(300):
        x, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 3)) @ root.T
        found.append(ce.two_sample(x, y, ce.QuadraticKernel(), null="normal").statistic)
    # the centre is that of the pooled points, which adds a little
    assert np.mean(found) == pytest.approx(22.5, abs=4 * np.std(found) / 300**0.5 + 0.5)


def test_points_far_from_the_origin_are_centred():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 3)), 2 * rng.normal(size=(25, 3))
    near, far = (
        ce.two_sample(x + at, y + at, ce.QuadraticKernel(), null="pearson3") for at in (0.0, 1e6)
    )
    assert far.statistic == pytest.approx(near.statistic, rel=1e-6)
    assert far.pvalue == pytest.approx(near.pvalue, rel=1e-6)


def test_many_points_in_few_columns_need_no_matrix():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1200, 3)) + 5
    W = ce.QuadraticKernel().pairs(point_distances(points, 2.0))
    assert isinstance(W, LowRankWeights)
    assert W.features.shape == (1200, 6)
    centred = points - points.mean(0)
    expected = (centred @ centred.T) ** 2
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(W.dense() * W.unit, expected, rtol=1e-9, atol=1e-9)
    matrix = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    by_matrix = ce.QuadraticKernel().pairs(matrix_distances(matrix))
    assert isinstance(by_matrix, DenseWeights)
    np.testing.assert_allclose(by_matrix.matrix * by_matrix.unit, expected, rtol=1e-6, atol=1e-6)


def test_the_linear_kernel_estimates_the_distance_of_means():
    rng = np.random.default_rng(5)
    found = [
        ce.two_sample(
            rng.normal(size=(40, 4)),
            rng.normal([2.0, 0, 0, 1], size=(60, 4)),
            ce.LinearKernel(),
            null="normal",
        ).statistic
        for _ in range(200)
    ]
    assert np.mean(found) == pytest.approx(5.0, abs=4 * np.std(found) / 200**0.5)


def test_principal_components_keep_what_varies_most():
    rng = np.random.default_rng(6)
    points = rng.normal(size=(300, 60)) * np.where(np.arange(60) < 3, 10.0, 1.0) + 7
    kept = principal(points, 3)
    exact = np.linalg.svd(points - points.mean(0), full_matrices=False)[1][:3]
    scale = np.abs(points - points.mean(0)).max()
    np.testing.assert_allclose(np.linalg.norm(kept) * scale, np.linalg.norm(exact), rtol=1e-3)


def test_features_are_products():
    points = np.random.default_rng(3).normal(size=(9, 4))
    features = ce.QuadraticKernel.features(points)
    np.testing.assert_allclose(features @ features.T, (points @ points.T) ** 2)


@pytest.mark.parametrize("scale", [1e-90, 1e90, 1e160])
def test_any_unit(scale):
    """Fourth powers of distances leave the range of doubles; the p-value does not mind."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) * 1.5
    found = [
        ce.two_sample(c * x, c * y, ce.QuadraticKernel(), n_resamples=199, rng=0)
        for c in (1.0, scale)
    ]
    assert found[0].pvalue == found[1].pvalue
    assert found[0].zscore == pytest.approx(found[1].zscore)
    assert 0 < abs(found[1].statistic) < np.inf  # in another unit, as the docstring says
    assert "nearest unit" in " ".join(ce.QuadraticKernel.__doc__.split())
