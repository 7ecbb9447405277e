"""Numbers at the ends of what doubles can hold, and powers that would leave it."""

from functools import cache

import mpmath
import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.autograd import distances as euclidean
from crossedge.autograd.distances import lp_distances
from crossedge.data.distances import lp_matrix
from crossedge.statistics import STATISTICS

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 3)) + 0.3
LARGE_NORMS = [1.5, 3.0, 50.0, 300.0, 1e6, 1e40]


def norm(vector, p):
    """(sum |c|^p)^(1/p), to fifty digits."""
    with mpmath.workdps(50):
        total = mpmath.fsum(mpmath.mpf(abs(c)) ** mpmath.mpf(p) for c in vector)
        return float(total ** (1 / mpmath.mpf(p)))


@pytest.mark.parametrize("p", LARGE_NORMS)
def test_any_power_to_full_precision(p):
    points = np.random.default_rng(1).uniform(size=(12, 3)) ** 3
    points[1] = points[0]
    points[2] = points[0] + [0.25, -0.25, 0.25]
    expected = np.array([[norm(a - b, p) for b in points] for a in points])
    np.testing.assert_allclose(lp_matrix(points, p), expected, rtol=1e-13)
    by_torch = lp_distances(torch.from_numpy(points), p)
    np.testing.assert_allclose(by_torch, expected, rtol=1e-13)
    single = lp_distances(torch.from_numpy(points).float(), p)
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("p", [1.5, 3.0, 40.0])
def test_gradients_of_any_power(p):
    points = torch.from_numpy(X[:7]).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: lp_distances(x, p), points)


@pytest.mark.parametrize("p", [3.0, 1e4, 1e6, 1e12, 1e300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_where_differences_tie(p, dtype):
    """The slope along each of two equal differences is 2^-(p-1)/p."""
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=dtype, requires_grad=True)
    lp_distances(points, p)[0, 1].backward()
    expected = 2.0 ** (-(p - 1) / p)
    np.testing.assert_allclose(points.grad, [[-expected] * 2, [expected] * 2], rtol=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_blocks_of_rows_are_as_good_as_one_call(p, monkeypatch):
    points = torch.from_numpy(X).requires_grad_()
    expected = lp_distances(points, p)
    (gradient,) = torch.autograd.grad((expected * expected.detach()).sum(), points)
    monkeypatch.setattr(euclidean, "MOST_FOR_CDIST", 0)
    monkeypatch.setattr(euclidean, "BLOCK_DIFFERENCES", 1000)
    found = lp_distances(points, p)
    torch.testing.assert_close(found, expected)
    (again,) = torch.autograd.grad((found * found.detach()).sum(), points)
    torch.testing.assert_close(again, gradient)


@pytest.mark.parametrize("columns", [2, 40])
@pytest.mark.parametrize(
    "weights", [ce.SpanningTree(), ce.NearestNeighbours(3), ce.SpanningTree(1.0)]
)
def test_one_far_point_does_not_merge_the_others(columns, weights):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, columns)), rng.normal(size=(40, columns)) + 1.5
    near, far = x.copy(), x.copy()
    near[0], far[0] = 1e100, 1e200
    expected = ce.two_sample(near, y, weights, rng=1)
    assert expected.pvalue < 0.01
    assert ce.two_sample(far, y, weights, rng=1).pvalue == expected.pvalue
    if weights.is_smooth:
        loss = ce.TwoSampleLoss(weights)
        values = [float(loss(*map(torch.from_numpy, pair))) for pair in ((near, y), (far, y))]
        assert values[1] == pytest.approx(values[0])


def test_gradients_between_equal_points_are_zero():
    points = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    lp_distances(points, 3.0).sum().backward()
    assert torch.equal(points.grad, torch.zeros(4, 2))


@pytest.mark.parametrize("weights", [None, ce.SpanningTree(0.1), ce.GaussianKernel()])
def test_a_large_power_is_nearly_the_largest_difference(weights):
    x, y = np.random.default_rng(3).uniform(size=(2, 30, 2))
    expected = ce.two_sample(x, y, weights, distance=np.inf, rng=0).pvalue
    for p in (1e6, 1e300):
        assert ce.two_sample(x, y, weights, distance=p, rng=0).pvalue == expected
    near = ce.two_sample(x, y, weights, distance=300, rng=0).pvalue
    assert near == pytest.approx(expected, abs=0.02)


def test_single_precision_keeps_large_powers():
    x, y = (torch.from_numpy(part) for part in np.random.default_rng(4).uniform(size=(2, 30, 2)))
    loss = ce.TwoSampleLoss(ce.SpanningTree(0.5), distance=50.0)
    assert float(loss(x.float(), y.float())) == pytest.approx(float(loss(x, y)), rel=1e-4)


NULLS = [
    (name, null)
    for name in ("energy", "mmd", "generalized", "mmd_ratio")
    for null in ("permutation", *STATISTICS[name].nulls)
]


@cache
def answer(scale, statistic, null):
    given = {"null": null, "statistic": statistic, "n_resamples": 99, "rng": 0}
    return ce.two_sample(scale * X, scale * Y, ce.EnergyKernel(), **given)


@pytest.mark.parametrize("scale", [1e-308, 1e-160, 1e160, 1e305, 3e305])
@pytest.mark.parametrize(("statistic", "null"), NULLS)
def test_no_scale_changes_the_answer(scale, statistic, null):
    expected, found = answer(1.0, statistic, null), answer(scale, statistic, null)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.zscore == pytest.approx(expected.zscore, rel=1e-6)
    unit = scale if statistic in ("energy", "mmd") else 1.0
    assert found.statistic / unit == pytest.approx(expected.statistic, rel=1e-9)
    assert found.null_std / unit == pytest.approx(expected.null_std, rel=1e-9)
    if found.null_distribution is not None:
        drawn = found.null_distribution / unit
        np.testing.assert_allclose(drawn, expected.null_distribution, rtol=1e-6, atol=1e-9)


def test_points_farther_apart_than_a_float_are_refused():
    with pytest.raises(ValueError, match="rescale"):
        ce.two_sample(1.7e308 * np.eye(3), -1.7e308 * np.eye(3), ce.EnergyKernel())


@pytest.mark.parametrize("scale", [1e-160, 1e160])
@pytest.mark.parametrize("standardize", [True, False, "normal", "pearson3"])
@pytest.mark.parametrize(
    "weights", [ce.EnergyKernel(), ce.GaussianKernel(), ce.SpanningTree("median")]
)
def test_no_scale_loses_a_gradient(scale, standardize, weights):
    loss = ce.TwoSampleLoss(weights, standardize=standardize)

    def value_and_gradient(factor):
        x = torch.from_numpy(factor * X).requires_grad_()
        value = loss(x, torch.from_numpy(factor * Y))
        value.backward()
        return float(value.detach()), x.grad * factor

    (expected, direction), (found, gradient) = value_and_gradient(1.0), value_and_gradient(scale)
    unit = scale if not standardize and isinstance(weights, ce.EnergyKernel) else 1.0
    assert found / unit == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient / unit, direction, rtol=1e-5, atol=1e-7)
