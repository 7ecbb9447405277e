import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

import crossedge as ce
from crossedge.null import labellings
from crossedge.null.labellings import relabel

FAMILIES = [ce.SpanningTree(), ce.NearestNeighbours(1), ce.NearestNeighbours(5)]


def null_samples(seed, n_x=30, n_y=20, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_x, d)), rng.normal(size=(n_y, d))


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
@pytest.mark.parametrize("rounded", [False, True])
def test_pvalues_are_uniform_under_the_null(weights, rounded):
    """The p-value itself is discrete; splitting its ties at random makes it exactly uniform."""
    rng = np.random.default_rng(0)
    pvalues, split = [], []
    for seed in range(200):
        x, y = null_samples(seed)
        if rounded:
            x, y = np.round(x), np.round(y)
        result = ce.two_sample(x, y, weights, n_resamples=199, rng=seed)
        below = (result.null_distribution < result.statistic - 1e-9).sum()
        upto = (result.null_distribution <= result.statistic + 1e-9).sum()
        assert result.pvalue == pytest.approx((1 + upto) / 200, rel=1e-12)
        pvalues.append(result.pvalue)
        split.append((below + rng.random() * (1 + upto - below)) / 200)
    assert stats.kstest(split, "uniform").pvalue > 1e-3
    for level in (0.01, 0.05, 0.1, 0.5):  # never rejects more often than it says
        assert (
            stats.binomtest(sum(p <= level for p in pvalues), 200, level, "greater").pvalue > 1e-3
        )


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
def test_normal_pvalues_are_nearly_uniform(weights):
    pvalues = [
        ce.two_sample(*null_samples(seed, 200, 100), weights, null="normal").pvalue
        for seed in range(150)
    ]
    assert stats.kstest(pvalues, "uniform").statistic < 0.13


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
def test_samples_far_apart_get_the_smallest_pvalue(weights):
    x, y = null_samples(0, 60, 45)
    result = ce.two_sample(x, y + 100, weights, n_resamples=1999, rng=0)
    assert result.pvalue == 1 / 2000
    assert result.statistic == (1 if weights == ce.SpanningTree() else 0)
    assert result.zscore < -5
    assert ce.two_sample(x, y + 100, weights, null="normal").pvalue < 1e-7


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
def test_power_grows_with_the_shift(weights):
    def power(shift):
        pvalues = []
        for seed in range(60):
            x, y = null_samples(seed, 60, 60)
            pvalues.append(ce.two_sample(x, y + shift, weights, n_resamples=199, rng=0).pvalue)
        return np.mean(np.array(pvalues) <= 0.05)

    weak, strong = power(0.4), power(1.0)
    assert weak < strong
    assert strong > 0.8


def expectation(integrand, alpha):
    """For N(0, 1) and N(1, 1), other coordinates being equal: the integral over the first one."""

    def at(z):
        p, q = stats.norm.pdf(z), stats.norm.pdf(z, 1)
        return integrand(p, q) / (alpha * p + (1 - alpha) * q)

    return quad(at, -10, 11)[0]


@pytest.mark.parametrize("alpha", [0.5, 0.25])
def test_the_limit_of_the_tree_is_that_of_henze_and_penrose(alpha):
    n = 16_000
    rng = np.random.default_rng(0)
    pooled = rng.normal(size=(n, 2))
    n_x = int(alpha * n)
    pooled[n_x:, 0] += 1
    result = ce.two_sample(pooled[:n_x], pooled[n_x:], ce.SpanningTree(), null="normal")
    limit = 2 * alpha * (1 - alpha) * expectation(lambda p, q: p * q, alpha)  # theorem 1
    assert result.statistic / n == pytest.approx(limit, abs=0.012)
    assert limit < 0.9 * result.null_mean / n  # the null's own limit is elsewhere


@pytest.mark.parametrize("alpha", [0.5, 0.25])
@pytest.mark.parametrize("k", [1, 4])
def test_the_limit_of_neighbours_is_that_of_henze(alpha, k):
    n = 16_000
    rng = np.random.default_rng(1)
    pooled = rng.normal(size=(n, 2))
    n_x = int(alpha * n)
    pooled[n_x:, 0] += 1
    result = ce.two_sample(pooled[:n_x], pooled[n_x:], ce.NearestNeighbours(k), null="normal")
    limit = expectation(  # theorem 2
        lambda p, q: alpha**2 * p**2 + (1 - alpha) ** 2 * q**2, alpha
    )
    assert 1 - result.statistic / (n * k) == pytest.approx(limit, abs=0.012)


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
@pytest.mark.parametrize("null", ["permutation", "normal"])
@pytest.mark.parametrize(("n_x", "n_y"), [(1, 5), (4, 4), (300, 200), (20_000, 20_000)])
def test_constant_data_give_one(weights, null, n_x, n_y):
    value = np.full((n_x + n_y, 3), 0.1)
    result = ce.two_sample(value[:n_x], value[n_x:], weights, null=null, n_resamples=99)
    assert result.pvalue == 1
    assert result.zscore == result.null_std == result.null_skewness == 0


@pytest.mark.parametrize("null", ["permutation", "normal"])
def test_a_statistic_that_cannot_vary_gives_one(null):
    """Every point of a regular polygon has the same degree, so one point of x always counts 4."""
    angle = np.arange(7) * 2 * np.pi / 7
    polygon = np.stack([np.cos(angle), np.sin(angle)], 1)
    result = ce.two_sample(polygon[:1], polygon[1:], ce.NearestNeighbours(2), null=null)
    assert result.statistic == pytest.approx(4)
    assert (result.pvalue, result.null_std, result.null_skewness) == (1, 0, 0)


def test_two_points():
    result = ce.two_sample([1.0], [2.0], ce.SpanningTree())
    assert (result.statistic, result.pvalue, result.null_std) == (1, 1, 0)


def test_few_points_are_enumerated():
    """The two samples of four are apart: 2 of the 70 labellings are as extreme."""
    result = ce.two_sample([1, 2, 3, 4], [11, 12, 13, 14], ce.SpanningTree())
    assert result.pvalue == 2 / 70
    assert len(result.null_distribution) == 70
    assert "all 70 labellings" in result.method
    assert ce.two_sample([1, 2, 3, 4], [11, 12, 13, 14], ce.SpanningTree(), rng=5).pvalue == 2 / 70


def test_moments_describe_the_null_distribution():
    x, y = null_samples(3, 40, 25)
    result = ce.two_sample(x, y, ce.NearestNeighbours(3), n_resamples=100_000, rng=0)
    null = result.null_distribution
    assert result.null_mean == pytest.approx(null.mean(), abs=0.02 * null.std())
    assert result.null_std == pytest.approx(null.std(), rel=0.02)
    assert result.null_skewness == pytest.approx(stats.skew(null), abs=0.03)
    assert result.zscore == (result.statistic - result.null_mean) / result.null_std


def test_the_same_rng_gives_the_same_answer():
    x, y = null_samples(0)
    for rng in (5, np.random.default_rng(5)), (torch.Generator().manual_seed(1),) * 2:
        first, second = (ce.two_sample(x, y, ce.SpanningTree(), rng=r) for r in rng)
        same = np.array_equal(first.null_distribution, second.null_distribution)
        assert same != isinstance(rng[0], torch.Generator)  # a generator moves on


def test_float32_and_float64_agree():
    x, y = (sample.astype(np.float32) for sample in null_samples(0))
    single = ce.two_sample(x, torch.as_tensor(y), ce.SpanningTree(), rng=0)
    double = ce.two_sample(x.astype(float), y.astype(float), ce.SpanningTree(), rng=0)
    assert (single.statistic, single.pvalue) == (double.statistic, double.pvalue)


def test_the_answer_is_frozen_and_readable():
    result = ce.two_sample(*null_samples(0), ce.NearestNeighbours(2), rng=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.pvalue = 0
    with pytest.raises(ValueError, match="read-only"):
        result.null_distribution[0] = 0
    text = repr(result)
    assert "2-nearest neighbours" in text
    assert f"{result.pvalue:.4g}" in text
    assert "30 and 20 points" in text
    assert "array" not in text


GOOD = dict(zip("xy", null_samples(0), strict=True)) | {"weights": ce.SpanningTree()}
BAD_OPTIONS = {
    "weights by name": ({"weights": "mst"}, "weights is of type str"),
    "a class": (
        {"weights": ce.SpanningTree},
        "weights is a class: give an instance",
    ),
    "statistic": ({"statistic": "crosss"}, "statistic='crosss' is unknown: choose from 'cross'"),
    "energy of graphs": ({"statistic": "energy"}, "statistic='energy' does not go with Spanning"),
    "energy by default": (
        {"statistic": "energy", "weights": None},
        "statistic='energy' does not go with the default weights",
    ),
    "null": ({"null": "gamma"}, "null='gamma' is unknown"),
    "no resamples": ({"n_resamples": 0}, "n_resamples=0 is too small"),
    "half a resample": ({"n_resamples": 9.5}, "n_resamples=9.5 is not an integer"),
    "a truth for a number": ({"n_resamples": True}, "n_resamples=True is not an integer"),
    "null as an array": ({"null": np.array([1, 2])}, "is not a law"),
    "rng, though unused": ({"rng": "seed", "null": "normal"}, "rng is of type str"),
    "rng": ({"rng": "seed"}, "rng is of type str"),
    "k": ({"weights": ce.NearestNeighbours(50)}, "k=50 is too large for 50 pooled points"),
}


@pytest.mark.parametrize(("option", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_a_bad_option_gets_one_clear_line(option, message):
    with pytest.raises((ValueError, TypeError)) as error:
        ce.two_sample(**GOOD | option)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_stopping_early_saves_labellings(monkeypatch):
    """Samples that are equal need one look, after the first block."""
    seen = []

    def counted(weights, labellings, blocks, studentized):
        seen.extend(blocks)
        return relabel(weights, labellings, blocks, studentized)

    monkeypatch.setattr(labellings, "relabel", counted)
    x = np.random.default_rng(0).normal(size=(50, 2))
    ce.two_sample(x, x, ce.EnergyKernel(), early_stopping=1, rng=0)
    assert seen == [0]
    seen.clear()
    ce.two_sample(x, x + 9, ce.EnergyKernel(), early_stopping=1, rng=0)
    assert seen == list(range(10))  # all 9,999, none twice


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["SpanningTree()", "NearestNeighbours(5)"])
def test_forty_thousand_points_fit_in_two_gibibytes(weights):
    """The whole process, torch and compiler included, stays below the limit."""
    program = f"""
import resource, numpy as np, crossedge as ce
x = np.random.default_rng(0).normal(size=(40_000, 10))
ce.two_sample(x[:20_000], x[20_000:], ce.{weights}, n_resamples=999)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) * 1024 < 2 * 2**30
