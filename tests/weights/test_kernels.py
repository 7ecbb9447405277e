"""Kernel weights, and the statistics that belong to them."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import stats

import crossedge as ce
from contract import KINDS, WeightsContract
from crossedge.moments import Form, LabelMoments
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights

KERNELS = [
    ce.GaussianKernel(),
    ce.GaussianKernel(0.7),
    ce.GaussianKernel((0.5, 2.0)),
    ce.LaplaceKernel(1.5),
    ce.InverseMultiquadricKernel("median"),
    ce.EnergyKernel(),
    ce.LinearKernel(),
    ce.QuadraticKernel(),
]


@pytest.mark.parametrize("weights", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
class TestContract(WeightsContract):
    """All that every family has in common."""


def samples(n_x=14, n_y=9, d=2, shift=0.6):
    rng = np.random.default_rng(n_x)
    return rng.normal(size=(n_x, d)), rng.normal(size=(n_y, d)) + shift


def pooled(x, y):
    points = np.concatenate([x, y])
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def kernel_of(weights, distances):
    """The definition, entry by entry."""
    median = np.median(distances[np.triu_indices(len(distances), 1)])
    if isinstance(weights, ce.EnergyKernel):
        return -distances
    if isinstance(weights, ce.LinearKernel | ce.QuadraticKernel):  # by classical scaling
        n = len(distances)
        centre = np.eye(n) - 1 / n
        return (centre @ distances**2 @ centre / -2) ** weights.order
    h = weights.bandwidth
    values = [median] if h == "median" else np.atleast_1d(h)
    profile = {
        ce.GaussianKernel: lambda r: np.exp(-(r**2) / 2),
        ce.LaplaceKernel: lambda r: np.exp(-r),
        ce.InverseMultiquadricKernel: lambda r: 1 / np.sqrt(1 + r**2),
    }[type(weights)]
    return np.mean([profile(distances / value) for value in values], axis=0)


def in_unit(weights, scale):
    """The same kernel where all distances are multiplied by the scale."""
    if isinstance(getattr(weights, "bandwidth", "median"), str):
        return weights
    return dataclasses.replace(weights, bandwidth=scale * np.asarray(weights.bandwidth))


@pytest.mark.parametrize("weights", KERNELS, ids=repr)
class TestKernel:
    def test_weights_are_the_kernel_off_the_diagonal(self, weights):
        distances = pooled(*samples())
        W = weights(torch.as_tensor(distances))
        expected = kernel_of(weights, distances)
        np.fill_diagonal(expected, 0.0)
        np.testing.assert_allclose(W, expected, rtol=1e-12)

    def test_mmd_is_a_double_sum_over_distinct_pairs(self, weights):
        x, y = samples()
        K = kernel_of(weights, pooled(x, y))
        n_x, n_y = len(x), len(y)
        xx, yy, xy = K[:n_x, :n_x], K[n_x:, n_x:], K[:n_x, n_x:]
        off = ~np.eye(n_x, dtype=bool), ~np.eye(n_y, dtype=bool)
        expected = xx[off[0]].mean() + yy[off[1]].mean() - 2 * xy.mean()
        found = ce.two_sample(x, y, weights, statistic="mmd", n_resamples=99, rng=0)
        assert found.statistic == pytest.approx(expected, rel=1e-10)
        assert found.null_mean == pytest.approx(0.0, abs=1e-12)  # unbiased
        assert found.null_std == pytest.approx(
            ce.two_sample(x, y, weights, statistic="mmd", rng=0).null_distribution.std(), rel=0.03
        )

    def test_the_weighted_count_is_the_same_test(self, weights):
        x, y = samples()
        one, other = (
            ce.two_sample(x, y, weights, statistic=statistic, n_resamples=999, rng=0)
            for statistic in ("mmd", "weighted")
        )
        assert one.pvalue == other.pvalue
        assert one.zscore == pytest.approx(other.zscore, rel=1e-9)

    @pytest.mark.parametrize("standardize", [True, False, "pearson3"])
    def test_loss(self, weights, standardize):
        loss = ce.TwoSampleLoss(weights, standardize=standardize)
        x, y = (torch.as_tensor(part) for part in samples(7, 5))
        if "median" not in repr(weights):  # which derivatives take as given
            leaf = y.clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda y: loss(x, y), (leaf,), fast_mode=True)
        far, near = loss(x, y + 2), loss(x, y - 0.6)
        if isinstance(weights, ce.QuadraticKernel):  # sees spread
            far, near = loss(x, 3 * y), loss(x, y - 0.6)
        assert far > near

    @pytest.mark.parametrize("statistic", [None, "mmd_ratio", "fisher"])
    def test_the_unit_of_points_does_not_matter(self, weights, statistic):
        """If the bandwidth is in the same unit."""
        found = []
        for scale in (1.0, 1e-200, 1e150):
            points = torch.as_tensor(np.concatenate(samples()) * scale).requires_grad_()
            loss = ce.TwoSampleLoss(in_unit(weights, scale), statistic)(points[:14], points[14:])
            loss.backward()
            found.append((float(loss.detach()), scale * points.grad.numpy()))
        for value, gradient in found[1:]:
            assert value == pytest.approx(found[0][0], rel=1e-6)
            np.testing.assert_allclose(gradient, found[0][1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("weights", [ce.GaussianKernel(), ce.LaplaceKernel(1.5), ce.EnergyKernel()])
def test_smooth_pvalues_are_near_those_of_permutations(weights):
    x, y = samples(40, 30, shift=0.35)
    drawn = ce.two_sample(x, y, weights, n_resamples=50_000, rng=0).pvalue
    smooth = ce.two_sample(x, y, weights, null="tail").pvalue
    assert smooth == pytest.approx(drawn, rel=0.03 + 3 / np.sqrt(50_000 * drawn))


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e280])
def test_the_unit_of_weights_does_not_matter(scale):
    """Kernels much narrower than any distance, and distances far from 1, have such weights."""
    W = ce.GaussianKernel(1.0)(torch.as_tensor(pooled(*samples(12, 8))))
    pairs = [DenseWeights.in_range(factor * W.numpy()) for factor in (1.0, scale)]
    one, other = (LabelMoments(each, 12, 8) for each in pairs)
    for form in (one.weighted, one.difference, Form(0.5, 0.0)):
        unit = pairs[1].unit
        assert unit * other.std(form) == pytest.approx(scale * one.std(form), rel=1e-9)
        assert unit * other.mean(form) == pytest.approx(scale * one.mean(form), rel=1e-9)
        assert other.skewness(form) == pytest.approx(one.skewness(form), rel=1e-9)
    assert other.excess(form) == pytest.approx(one.excess(form), rel=1e-9)


def test_energy_is_the_square_of_scipys():
    rng = np.random.default_rng(0)
    for n_x, n_y in ((5, 5), (1, 7), (20, 11)):
        x, y = rng.normal(size=n_x), rng.normal(size=n_y) + 1
        found = ce.two_sample(x, y, ce.EnergyKernel(), n_resamples=9, rng=0)
        assert found.statistic == pytest.approx(stats.energy_distance(x, y) ** 2, rel=1e-10)


def test_the_variance_of_mmd_is_that_of_fresh_samples():
    """By simulation, under the alternative, where the first order decides."""
    rng = np.random.default_rng(0)
    kernel, n_x, n_y = ce.GaussianKernel(1.0), 60, 40
    values, variances = [], []
    for _ in range(600):
        x, y = rng.normal(size=(n_x, 1)), rng.normal(size=(n_y, 1)) * 1.5 + 1.5
        W = kernel(torch.as_tensor(pooled(x, y)))
        in_x = (torch.arange(n_x + n_y) < n_x).double()[:, None]
        variances.append(float(mmd_deviation(W, in_x)) ** 2)
        K = W.numpy()
        values.append(
            K[:n_x, :n_x].sum() / (n_x * (n_x - 1))
            + K[n_x:, n_x:].sum() / (n_y * (n_y - 1))
            - 2 * K[:n_x, n_x:].mean()
        )
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.15)


def test_the_ratio_is_mmd_over_its_deviation_and_has_a_permutation_null():
    x, y = samples(30, 20, shift=1.2)
    found = ce.two_sample(x, y, ce.GaussianKernel(), statistic="mmd_ratio", n_resamples=999, rng=0)
    plain = ce.two_sample(x, y, ce.GaussianKernel(), n_resamples=9, rng=0)
    W = ce.GaussianKernel()(torch.as_tensor(pooled(x, y)))
    in_x = (torch.arange(50) < 30).double()[:, None]
    expected = plain.statistic / float(mmd_deviation(W, in_x))
    assert found.statistic == pytest.approx(expected, rel=1e-9)
    assert found.pvalue < 0.05
    loss = ce.TwoSampleLoss(ce.GaussianKernel(1.0), "mmd_ratio")
    a, b = (torch.as_tensor(part) for part in (x, y))
    assert torch.autograd.gradcheck(lambda b: loss(a, b), (b.requires_grad_(),), fast_mode=True)
    for null in ("normal", "pearson3"):
        with pytest.raises(ValueError, match="not known"):
            ce.two_sample(x, y, ce.GaussianKernel(), statistic="mmd_ratio", null=null)


@pytest.mark.parametrize("weights", [ce.GaussianKernel(1e-3), ce.LaplaceKernel(1e-4)], ids=repr)
@pytest.mark.parametrize("statistic", ["mmd", "mmd_ratio", "fisher", "generalized"])
def test_weights_that_vanish_are_no_evidence(weights, statistic):
    x, y = samples(8, 7)
    found = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=99, rng=0)
    assert (found.statistic, found.pvalue) == (0, 1)
    x, y = (torch.as_tensor(part).requires_grad_() for part in (x, y))
    loss = ce.TwoSampleLoss(weights, statistic)(x, y)
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.isfinite(y.grad).all()


@pytest.mark.parametrize("weights", [ce.GaussianKernel(), ce.SpanningTree(1.0)], ids=repr)
def test_energy_is_for_its_own_kernel(weights):
    with pytest.raises(ValueError, match="statistic='energy' does not go with"):
        ce.two_sample(*samples(), weights, statistic="energy")
    with pytest.raises(ValueError, match="statistic='energy' does not go with"):
        ce.TwoSampleLoss(weights, "energy")


@pytest.mark.parametrize("bandwidth", [0, -1.0, "mean", None, []])
def test_bandwidths_must_be_positive(bandwidth):
    with pytest.raises((TypeError, ValueError), match="bandwidth"):
        ce.GaussianKernel(bandwidth)


def test_kernels_are_no_graphs():
    x, y = samples()
    with pytest.raises(TypeError, match="no graph"):
        ce.divergence(x, y, ce.GaussianKernel())


def test_a_median_of_zero_is_that_of_points_that_differ():
    x, y = np.zeros((20, 1)), np.concatenate([np.zeros(9), [1.0]])[:, None]
    distances = torch.as_tensor(pooled(x, y))
    assert float(ce.GaussianKernel()(distances)[0, -1]) == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize(("n_x", "n_y"), [(5, 9), (9, 5), (2, 7)])
def test_the_deviation_is_that_of_its_definition(n_x, n_y):
    """Four times the variances of what each point contributes, over the sizes."""
    W = np.random.default_rng(n_x).exponential(size=(n_x + n_y, n_x + n_y))
    W = W + W.T
    np.fill_diagonal(W, 0.0)
    xx, xy, yy = W[:n_x, :n_x], W[:n_x, n_x:], W[n_x:, n_x:]
    of_x = xx.sum(1) / (n_x - 1) - xy.mean(1)
    of_y = yy.sum(1) / (n_y - 1) - xy.mean(0)
    expected = 2 * np.sqrt(of_x.var() / n_x + of_y.var() / n_y)
    in_x = (torch.arange(n_x + n_y) < n_x).double()[:, None]
    assert float(mmd_deviation(torch.from_numpy(W), in_x)) == pytest.approx(expected, rel=1e-6)
