"""The family of edge counts and their moments, against enumeration and independent formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import crossedge as ce
from brute_force import all_labellings
from crossedge.distances import matrix_distances, point_distances
from crossedge.null.moments import label_moments
from crossedge.null.permutations import Labellings, permute, relabel
from crossedge.statistics import STATISTICS, ChiSquare, Statistic
from crossedge.statistics.edge_counts import log_both_tails
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights
from random_weights import random_graph, random_matrix

SIZES = st.integers(1, 5)


PLAIN = [name for name in STATISTICS if name not in ("mmd_ratio", "energy")]


def all_within(W, n_x):
    """R_x and R_y for every labelling."""
    z = all_labellings(len(W), n_x).astype(float)
    W = np.asarray(W)
    return [torch.as_tensor(((part @ W) * part).sum(1) / 2) for part in (z, 1 - z)]


@given(n_x=SIZES, n_y=SIZES, seed=st.integers(0, 999), density=st.sampled_from([0.0, 0.3, 1.0]))
def test_all_joint_moments_are_those_of_enumeration(n_x, n_y, seed, density):
    W = random_matrix(n_x + n_y, seed, density)
    x, y = all_within(W, n_x)
    r, l = 2 * (x + y) - W.sum() / 2, 2 * (x - y)  # noqa: E741
    found = label_moments(DenseWeights(W), n_x, n_y)
    second = label_moments(DenseWeights(W), n_x, n_y, third=False)
    for name in ("total", "tt", "ll"):
        torch.testing.assert_close(getattr(second, name), getattr(found, name))
    close = {"rel": 1e-9, "abs": 1e-11 * (1 + float(W.sum())) ** 3}
    assert float(found.mean_r) == pytest.approx(float(r.mean()), **close)
    assert float(found.mean_l) == pytest.approx(float(l.mean()), **close)
    r, l = r - r.mean(), l - l.mean()  # noqa: E741
    t = r - found.slope * l
    assert float((t * l).mean()) == pytest.approx(0, abs=close["abs"])
    for name in ("tt", "ll", "ttt", "ttl", "tll", "lll"):
        product = torch.ones_like(r)
        for letter in name:
            product = product * (t if letter == "t" else l)
        assert float(getattr(found, name)) == pytest.approx(float(product.mean()), **close), name


@pytest.mark.parametrize("atoms", [40, 15])
def test_edge_lists_and_matrices_have_the_same_moments(atoms):
    graph = random_graph(40, atoms, 0.3, 3)
    sparse = label_moments(graph, 15, 25)
    dense = label_moments(DenseWeights(graph.dense()), 15, 25)
    for name in ("total", "tt", "ll", "ttt", "ttl", "tll", "lll"):
        assert float(getattr(sparse, name)) == pytest.approx(float(getattr(dense, name)), rel=1e-9)


@pytest.mark.parametrize("third", [True, False])
def test_moments_are_differentiable(third):
    def laws(upper):
        W = torch.zeros(6, 6, dtype=torch.float64)
        i, j = torch.triu_indices(6, 6, 1)
        W = W.index_put((i, j), upper)
        m = label_moments(DenseWeights(W + W.T), 2, 4, third=third)
        found = [m.law(form)[: 3 if third else 2] for form in (m.weighted, m.difference)]
        return torch.stack([value for law in found for value in law])

    upper = torch.rand(15, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(laws, (upper,))


@pytest.mark.parametrize("n_x", [1, 3, 4])
def test_statistics_are_what_their_papers_say(n_x):
    n = 8
    n_y, W = n - n_x, random_matrix(n, 5)
    moments = label_moments(DenseWeights(W), n_x, n_y)
    x, y = all_within(W, n_x)
    value = {name: one.value(x, y, moments).numpy() for name, one in STATISTICS.items()}
    x, y = x.numpy(), y.numpy()
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


@pytest.mark.parametrize("n_x", [20, 35])
def test_the_dense_engine_counts_what_the_definition_says(n_x):
    W = random_matrix(50, 1)
    labellings = Labellings(50, n_x, 1500, 0)
    x, y, deviation = relabel(DenseWeights(W), labellings, range(labellings.blocks), True)
    z = np.concatenate([labellings.labels(block).T for block in range(labellings.blocks)])
    z = z.astype(float)
    for found, part in ((x, z), (y, 1 - z)):
        np.testing.assert_allclose(found, ((part @ W.numpy()) * part).sum(1) / 2, rtol=1e-11)
    np.testing.assert_allclose(deviation, mmd_deviation(W, torch.from_numpy(z.T)), rtol=1e-11)


@pytest.mark.parametrize("statistic", PLAIN)
@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_permutation_pvalues_of_few_points_are_those_of_all_labellings(statistic, temperature):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)) + 1
    found = ce.two_sample(a, b, ce.NearestNeighbours(2, temperature), statistic=statistic, rng=0)
    distances = torch.cdist(*2 * (torch.as_tensor(np.concatenate([a, b])),))
    W = ce.NearestNeighbours(2, temperature)(distances)
    moments = label_moments(DenseWeights(W), 4, 5)
    values = STATISTICS[statistic].value(*all_within(W, 4), moments)
    observed = STATISTICS[statistic].value(W[:4, :4].sum() / 2, W[4:, 4:].sum() / 2, moments)
    sign = STATISTICS[statistic].sign
    expected = (sign * values >= sign * observed - 1e-7).double().mean()
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


def test_early_stopping_is_besag_and_clifford():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    weights = ce.SpanningTree(0.3)
    whole = ce.two_sample(x, y, weights, n_resamples=30_000, rng=0)
    stopped = ce.two_sample(x, y, weights, n_resamples=30_000, rng=0, early_stopping=50)
    extreme = np.flatnonzero(whole.null_distribution <= whole.statistic + 1e-9)
    assert len(stopped.null_distribution) == extreme[49] + 1
    assert stopped.pvalue == pytest.approx(50 / (extreme[49] + 1))
    np.testing.assert_array_equal(
        stopped.null_distribution, whole.null_distribution[: extreme[49] + 1]
    )
    far = ce.two_sample(x, y + 3, weights, n_resamples=30_000, rng=0, early_stopping=50)
    assert far.pvalue == 1 / 30_001
    assert len(far.null_distribution) == 30_000


def test_labellings_beyond_counting_are_drawn():
    rng = np.random.default_rng(0)
    found = ce.two_sample(
        rng.normal(size=20),
        rng.normal(size=15),
        ce.SpanningTree(),
        n_resamples=10**9,
        early_stopping=5,
        rng=0,
    )
    assert "random labellings, stopped early" in found.method


def test_stopping_early_with_all_labellings_changes_nothing():
    graph = random_graph(8, 8, 0.6, 1)
    moments = label_moments(graph, 4, 4)
    cross = STATISTICS["cross"]
    everything = permute(graph, cross, moments, 1000, 0)
    stopped = permute(graph, cross, moments, 1000, 0, (1, -1e9))
    assert everything.exact
    assert stopped.exact
    np.testing.assert_array_equal(stopped.values, everything.values)


@given(n_x=SIZES, n_y=SIZES, seed=st.integers(0, 999), density=st.sampled_from([0.3, 1.0]))
def test_the_fourth_moment_is_that_of_enumeration(n_x, n_y, seed, density):
    W = random_matrix(n_x + n_y, seed, density)
    x, y = all_within(W, n_x)
    r = 2 * (x + y)
    moments = label_moments(DenseWeights(W), n_x, n_y, fourth=True)
    expected = ((r - r.mean()) ** 4).mean()
    assert float(moments.rrrr) == pytest.approx(float(expected), rel=1e-8, abs=1e-10)
    t = 2 * (x + y) - moments.slope * 2 * (x - y)
    expected = ((t - t.mean()) ** 4).mean()
    assert float(moments.tttt) == pytest.approx(float(expected), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("far", [1e5, 1e7, 3e7, 1e9])
@pytest.mark.parametrize("weights", ["energy", "neighbours"])
def test_a_far_point_does_not_spoil_the_moments(far, weights):
    """A row effect, as large as it may be, is nothing to the weighted count."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(80, 2))
    points[0] = [far, 0]
    family = ce.EnergyKernel() if weights == "energy" else ce.NearestNeighbours(1, far)
    laws = []
    for order in (np.arange(80), rng.permutation(80)):
        pairs = family.pairs(point_distances(points[order], 2.0))
        moments = label_moments(pairs, 30, 50)
        laws.append([float(value) for value in moments.law(moments.weighted)])
    assert laws[0][1:] == pytest.approx(laws[1][1:], rel=1e-4)
    assert 0.5 < laws[0][2] < 3


@pytest.mark.parametrize("weights", [ce.SpanningTree(0.3), ce.NearestNeighbours(3)], ids=repr)
@pytest.mark.parametrize("n_x", [30, 12])
def test_the_fifth_cumulant_is_near_that_of_the_permutations(weights, n_x):
    """Right but for terms smaller by 1/n, here 60, and what a million permutations leave."""
    points = torch.as_tensor(np.random.default_rng(2).normal(size=(60, 2)))
    pairs = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(pairs, n_x, 60 - n_x, fourth=True)
    for name in ("cross", "weighted") if n_x == 12 else ("cross",):  # else they are the same
        form = STATISTICS[name].form(moments)
        values = permute(pairs, STATISTICS[name], moments, 1_000_000, 0).values
        z = (values - values.mean()) / values.std()
        found = float(moments.fifth_cumulant(form))
        assert found == pytest.approx((z**5).mean() - 10 * (z**3).mean(), rel=0.2, abs=0.05), name


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
    W = ce.NearestNeighbours(2, 0.5)(distances)
    inside_x, inside_y = all_within(W, 4)
    values = inside_x * inside_y / (W.sum() / 2) ** 2
    observed = W[:4, :4].sum() * W[4:, 4:].sum() / W.sum() ** 2
    assert found.statistic == pytest.approx(float(observed))
    assert found.pvalue == pytest.approx(float((values >= observed - 1e-12).double().mean()))
    assert found.null_std == pytest.approx(float(values.std(correction=0)))
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
    found = log_both_tails(torch.from_numpy(z), torch.tensor(skewness, dtype=torch.float64))
    np.testing.assert_allclose(np.exp(found.numpy()), law.sf(z) + law.cdf(-z), rtol=1e-5, atol=1e-9)
