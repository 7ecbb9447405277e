"""The family of edge counts, against enumeration and independent formulas."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import crossedge as ce
from brute_force import all_labellings
from crossedge.moments import LabelMoments
from crossedge.statistics import STATISTICS, ChiSquare, Statistic, WithinSums
from crossedge.statistics.edge_counts import log_both_tails
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights
from random_weights import random_matrix

PLAIN = [name for name in STATISTICS if name not in ("mmd_ratio", "energy")]


def all_within(W, n_x):
    """R_x and R_y for every labelling."""
    z = all_labellings(len(W), n_x).astype(float)
    W = np.asarray(W)
    return [((part @ W) * part).sum(1) / 2 for part in (z, 1 - z)]


@pytest.mark.parametrize("n_x", [1, 3, 4])
def test_statistics_are_what_their_papers_say(n_x):
    n = 8
    n_y, W = n - n_x, random_matrix(n, 5)
    moments = LabelMoments(DenseWeights(W), n_x, n_y)
    x, y = all_within(W, n_x)
    value = {name: one.value(x, y, moments) for name, one in STATISTICS.items()}
    p = (n_x - 1) / (n - 2)
    np.testing.assert_allclose(value["cross"], float(W.sum()) / 2 - x - y, atol=1e-12)
    np.testing.assert_allclose(value["weighted"], (1 - p) * x + p * y, atol=1e-12)
    both = np.stack([x, y])
    centred = both - both.mean(1, keepdims=True)
    inverse = np.linalg.pinv(centred @ centred.T / len(x), rcond=1e-10)
    np.testing.assert_allclose(
        value["generalized"], np.einsum("ib,ij,jb->b", centred, inverse, centred), atol=1e-8
    )
    z = [
        (form - form.mean()) / form.std()
        for form in ((1 - p) * x + p * y, x - y)
        if form.std() > 1e-9
    ]
    z[-1] = np.abs(z[-1])  # that of the difference
    np.testing.assert_allclose(value["max"], np.max(z, axis=0), atol=1e-8)


@pytest.mark.parametrize("statistic", PLAIN)
@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_permutation_pvalues_of_few_points_are_those_of_all_labellings(statistic, temperature):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)) + 1
    found = ce.two_sample(a, b, ce.NearestNeighbours(2, temperature), statistic=statistic, rng=0)
    distances = torch.cdist(*2 * (torch.as_tensor(np.concatenate([a, b])),))
    W = ce.NearestNeighbours(2, temperature)(distances).numpy()
    moments = LabelMoments(DenseWeights(W), 4, 5)
    values = STATISTICS[statistic].value(*all_within(W, 4), moments)
    observed = STATISTICS[statistic].value(W[:4, :4].sum() / 2, W[4:, 4:].sum() / 2, moments)
    sign = STATISTICS[statistic].sign
    expected = (sign * values >= sign * observed - 1e-7).mean()
    assert found.statistic == pytest.approx(float(observed), abs=1e-9)
    assert found.pvalue == pytest.approx(float(expected))
    assert found.log_pvalue == pytest.approx(math.log(expected))


@pytest.mark.parametrize("statistic", ["cross", "generalized", "max", "fisher"])
def test_levels_hold(statistic):
    rng = np.random.default_rng(7)
    pvalues = []
    for _ in range(120):
        sample = rng.normal(size=(40, 2))
        result = ce.two_sample(
            sample[:12],
            sample[12:],
            ce.NearestNeighbours(2, 0.2),
            statistic=statistic,
            n_resamples=99,
            rng=rng,
        )
        pvalues.append(result.pvalue)
    for level in (0.05, 0.2):
        share = np.mean(np.array(pvalues) <= level)
        assert abs(share - level) < 3.5 * math.sqrt(level * (1 - level) / 120)


def test_the_generalized_count_sees_a_change_of_scale_that_the_cross_count_misses():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(80, 20)), 1.2 * rng.normal(size=(80, 20))
    pvalue = {
        statistic: ce.two_sample(x, y, ce.NearestNeighbours(5), statistic=statistic, rng=0).pvalue
        for statistic in PLAIN
    }
    assert pvalue["generalized"] < 0.001
    assert pvalue["max"] < 0.001
    assert pvalue["cross"] > 0.05


@pytest.fixture
def product(monkeypatch):
    """A statistic that is not linear, and that nobody knows a law of."""

    def value(x, y, moments):
        return x * y / moments.total**2

    one = Statistic("product", "product of the within-sums", value)
    monkeypatch.setitem(STATISTICS, one.name, one)
    return one.name


def test_a_statistic_without_a_law_has_permutations(product):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)) + 1
    found = ce.two_sample(x, y, ce.NearestNeighbours(2, 0.5), statistic=product)
    distances = torch.cdist(*2 * (torch.as_tensor(np.concatenate([x, y])),))
    W = ce.NearestNeighbours(2, 0.5)(distances).numpy()
    inside_x, inside_y = all_within(W, 4)
    values = inside_x * inside_y / (W.sum() / 2) ** 2
    observed = W[:4, :4].sum() * W[4:, 4:].sum() / W.sum() ** 2
    assert found.statistic == pytest.approx(float(observed))
    assert found.pvalue == pytest.approx(float((values >= observed - 1e-12).mean()))
    assert found.null_std == pytest.approx(float(values.std()))
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    stopped = ce.two_sample(x, y, ce.SpanningTree(), statistic=product, early_stopping=9, rng=0)
    assert "stopped early" in stopped.method
    assert stopped.null_std == pytest.approx(stopped.null_distribution.std())


@pytest.mark.parametrize("law", ["normal", "pearson3"])
def test_a_statistic_without_a_law_refuses_all_of_them(product, law):
    weights = ce.SpanningTree(0.5)
    for argument, call in (
        ("null", lambda: ce.two_sample([1, 2], [3, 4], weights, statistic=product, null=law)),
        ("standardize", lambda: ce.TwoSampleLoss(weights, product, law)),
    ):
        message = f"^{argument}='{law}' does not go with statistic='product', .*: leave {argument}"
        with pytest.raises(ValueError, match=message) as error:
            call()
        assert "\n" not in str(error.value)


def test_a_statistic_without_a_law_is_no_part_of_an_adaptive_test(product):
    with pytest.raises(ValueError, match="statistic='product'"):
        ce.two_sample([1, 2, 3], [4, 5, 6], statistic=product)


def test_a_statistic_without_a_law_is_a_loss_as_it_is(product):
    x, y = (torch.randn(9, 2, generator=torch.Generator().manual_seed(k)).double() for k in (0, 1))
    weights = ce.SpanningTree(0.5)
    expected = ce.two_sample(x, y, weights, statistic=product, n_resamples=9, rng=0).statistic
    for standardize in (True, False):
        assert float(ce.TwoSampleLoss(weights, product, standardize)(x, y)) == (
            pytest.approx(expected)
        )


def test_degrees_of_freedom_that_no_tail_knows():
    with pytest.raises(ValueError, match="degrees=3 is not supported: give 1 or 2"):
        ChiSquare(3, "normal")


@pytest.mark.parametrize("skewness", [-0.4, -0.2, 0.1, 0.4])
def test_both_tails_of_a_gamma_law(skewness):
    z = np.linspace(0.1, 4, 9)
    law = stats.pearson3(skewness)
    found = log_both_tails(z, skewness)
    np.testing.assert_allclose(np.exp(found), law.sf(z) + law.cdf(-z), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("n_x", [1, 3, 4])
def test_arrays_and_tensors_have_the_same_values(name, n_x):
    W, statistic = random_matrix(8, 5), STATISTICS[name]
    z = all_labellings(8, n_x).astype(float)
    found = []
    for convert in (np.asarray, torch.as_tensor):
        matrix, labels = convert(W), convert(z)
        x, y = (((part @ matrix) * part).sum(1) / 2 for part in (labels, 1 - labels))
        deviation = mmd_deviation(matrix, labels.T) if statistic.studentized else None
        moments = LabelMoments(DenseWeights(matrix), n_x, 8 - n_x)
        found.append(statistic.of(WithinSums(x, y, deviation), moments))
    assert isinstance(found[0], np.ndarray)
    assert isinstance(found[1], torch.Tensor)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)
