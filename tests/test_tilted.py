"""Tails from tilted labellings, against laws that are known."""

import itertools
import math

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null import tilted
from crossedge.null.canonical import canonical_order
from crossedge.null.moments import label_moments
from crossedge.null.pvalues import log_form_tail
from crossedge.null.structure import structure_of
from crossedge.null.tilted import TiltedLabellings
from crossedge.numerics.exchanges import run_chains
from crossedge.statistics import STATISTICS

CROSS = STATISTICS["cross"]


@pytest.fixture
def _few_chains(monkeypatch):
    """For what holds whatever the number of labellings."""
    monkeypatch.setattr(tilted, "CHAINS", tilted.CHAINS // 4)
    monkeypatch.setattr(tilted, "BLOCKS", tilted.BLOCKS // 4)


def all_labellings(n, n_x):
    chosen = np.array(list(itertools.combinations(range(n), n_x)))
    s = -np.ones((len(chosen), n))
    np.put_along_axis(s, chosen, 1.0, 1)
    return s


def random_form(n, seed, linear):
    rng = np.random.default_rng(seed)
    A = rng.exponential(size=(n, n)) * rng.exponential(size=n)
    return np.triu(A, 1) + np.triu(A, 1).T, linear * n * rng.exponential(size=n)


def values_of(A, c, s):
    return ((s @ A) * s).sum(1) / 2 + s @ c


def known(values, many=5):
    return np.array([(values**k).mean() for k in range(many)])


@pytest.mark.parametrize(
    ("n", "n_x", "linear", "many"),
    [(20, 7, 0.0, 4), (20, 7, 1.0, 5), (19, 13, 0.0, 5), (19, 13, 1.0, 4), (26, 5, 1.0, 5)],
)
def test_tails_are_those_of_all_labellings(n, n_x, linear, many):
    A, c = random_form(n, n_x, linear)
    values = values_of(A, c, all_labellings(n, n_x))
    # of mean 0 and variance 1; a constant goes to labels, whose sum is fixed
    mean, std = values.mean(), values.std()
    A, c, values = A / std, (c - mean / (2 * n_x - n)) / std, (values - mean) / std
    drawn = TiltedLabellings(A, c, n_x, known(values, many))
    for level in (0.9, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        z = np.sort(values)[-math.ceil(level * len(values))]
        log_p, reached = drawn.log_tail(z - 1e-9)
        assert reached == z - 1e-9
        assert math.exp(log_p) == pytest.approx((values >= z - 1e-9).mean(), rel=0.06)


def test_rank_sums():
    """Those of Wilcoxon, 12 of 40 ranks, by counting subsets with a given sum."""
    n, n_x = 40, 12
    ways = np.zeros((n_x + 1, n * n_x + 1))
    ways[0, 0] = 1
    for rank in range(1, n + 1):
        ways[1:, rank:] = ways[1:, rank:] + ways[:-1, :-rank]
    law = ways[n_x] / ways[n_x].sum()
    sums = np.arange(len(law))
    mean, std = law @ sums, math.sqrt(law @ (sums - law @ sums) ** 2)
    moments = np.array([law @ ((sums - mean) / std) ** k for k in range(5)])
    c = (np.arange(1, n + 1) - (n + 1) / 2) / (2 * std)
    drawn = TiltedLabellings(np.zeros((n, n)), c, n_x, moments)
    for level in (0.1, 0.01, 1e-4, 1e-6, 1e-8):
        least = np.flatnonzero(np.cumsum(law[::-1])[::-1] <= level)[0]
        log_p, _ = drawn.log_tail((least - 0.5 - mean) / std)
        assert log_p == pytest.approx(math.log(law[least:].sum()), abs=0.08)


@pytest.mark.parametrize("tilt", [0.0, 1.3])
def test_chains_have_the_tilted_law(tilt):
    n, n_x, chains = 8, 3, 4096
    A, c = random_form(n, 1, 0.3)
    s = all_labellings(n, n_x)
    A, c = A / values_of(A, c, s).std(), c / values_of(A, c, s).std()
    values = values_of(A, c, s)
    probability = np.exp(tilt * (values - values.max()))
    probability /= probability.sum()
    order = np.tile(np.argsort(-s[0], kind="stable"), (chains, 1))
    field, value = np.tile(A @ s[0] + c, (chains, 1)), np.full(chains, values[0])
    seen = np.empty((2, chains))
    run_chains(A, tilt, n_x, order, field, value, seen, 60, np.uint64(0), 0)
    at_end = -np.ones((chains, n))
    np.put_along_axis(at_end, order[:, :n_x], 1.0, 1)
    np.testing.assert_allclose(value, values_of(A, c, at_end), atol=1e-9)
    np.testing.assert_allclose(field, at_end @ A + c, atol=1e-9)
    np.testing.assert_array_equal(value, seen[-1])
    count = np.array([(np.abs(value - one) < 1e-9).sum() for one in values])
    expected = chains * probability
    often = expected > 5
    chi_square = ((count - expected) ** 2 / expected)[often].sum()
    assert chi_square < often.sum() + 4 * math.sqrt(2 * often.sum())


@pytest.mark.parametrize("n_x", [50, 20])
def test_far_tails_are_those_of_forests(n_x):
    """A classical tree has an exact law of its own."""
    points = torch.from_numpy(np.random.default_rng(3).normal(size=(100, 2)))
    W = ce.SpanningTree().pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(W, n_x, 100 - n_x, fourth=True)
    form, structure = CROSS.form(moments), structure_of(W, n_x)
    law, step = moments.law(form), moments.step(form)
    drawn, deepest = structure.tilted_labellings(moments, form, -1), 0.0
    for count in range(8 if n_x == 20 else 20, 40, 5):
        z = (law.mean - form.a * (moments.total - 2 * count)) / law.std
        exact = float(log_form_tail("pearson3", z, moments, form, -1, structure))
        least = float(z - step / law.std / 2)
        log_p, reached = drawn.log_tail(least)
        if reached == least:
            assert log_p == pytest.approx(exact, abs=0.03 - 0.005 * exact)
            deepest = min(deepest, exact)
    assert deepest < -15


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("weights", [ce.NearestNeighbours(3), ce.NearestNeighbours(1, 1e-3)])
def test_neither_the_order_of_points_nor_of_samples_decides(weights):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(40, 2))
    in_x = np.zeros(40, bool)
    in_x[np.argsort(points[:, 0] + 0.5 * rng.normal(size=40))[:10]] = True
    found = [ce.two_sample(points[~in_x], points[in_x], weights, null="pearson3")]
    order = rng.permutation(40)
    x, y = points[order][in_x[order]], points[order][~in_x[order]]
    found.append(ce.two_sample(x, y, weights, null="pearson3"))
    assert all(one.method.endswith("tilted labellings") for one in found)
    np.testing.assert_allclose([one.log_pvalue for one in found], found[0].log_pvalue, rtol=1e-6)


@pytest.mark.parametrize(
    ("weights", "statistic"),
    [
        (ce.NearestNeighbours(5), "cross"),
        (ce.NearestNeighbours(3, 0.2), "weighted"),
        (ce.NearestNeighbours(5), "max"),
    ],
)
def test_small_pvalues_are_those_of_permutations(weights, statistic):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(24, 2)), rng.normal(size=(72, 2))
    y[:, 0] += 0.7
    found = ce.two_sample(x, y, weights, statistic=statistic, null="pearson3")
    drawn = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=400_000, rng=0)
    assert 1e-4 < drawn.pvalue < 0.05
    error = math.sqrt(1 / (400_000 * drawn.pvalue))
    assert found.pvalue == pytest.approx(drawn.pvalue, rel=0.06 + 3 * error)


@pytest.mark.usefixtures("_few_chains")
def test_log_pvalues_fall_on_and_on():
    """Where labellings do not reach, a law takes over."""
    points = torch.from_numpy(np.random.default_rng(5).normal(size=(60, 2)))
    W = ce.NearestNeighbours(3, 0.3).pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(W, 30, 30, fourth=True)
    form, structure = CROSS.form(moments), structure_of(W, 30)
    z = torch.linspace(1.0, 25.0, 7, dtype=torch.float64)
    found = [float(log_form_tail("pearson3", one, moments, form, -1, structure)) for one in z]
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    assert (np.diff(found) > -48).all()  # no jump


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("equal_parts", [1, 4])
def test_a_matrix_looks_the_same_in_its_canonical_order(seed, equal_parts):
    """Also where parts of a graph are alike, or points inside of one."""
    rng = np.random.default_rng(seed)
    part = (rng.random((9, 9)) < 0.3).astype(float)
    part = np.triu(part, 1) + np.triu(part, 1).T
    A = np.kron(np.eye(equal_parts), part)
    c = A.sum(1)
    shuffle = rng.permutation(len(A))
    B, d = A[np.ix_(shuffle, shuffle)], c[shuffle]
    first, second = canonical_order(A, c), canonical_order(B, d)
    assert sorted(first) == list(range(len(A)))
    np.testing.assert_array_equal(A[np.ix_(first, first)], B[np.ix_(second, second)])
    np.testing.assert_array_equal(c[first], d[second])


@pytest.mark.parametrize("statistic", ["cross", "weighted", "max", "fisher"])
@pytest.mark.parametrize(("n_x", "n_y"), [(3, 30), (30, 3), (1, 40), (8, 9)])
def test_few_labellings_are_all_visited(n_x, n_y, statistic):
    rng = np.random.default_rng(0)
    given = rng.normal(size=(n_x, 2)) + 3, rng.normal(size=(n_y, 2)), ce.SpanningTree(0.5)
    found = ce.two_sample(*given, statistic=statistic, null="pearson3")
    drawn = ce.two_sample(*given, statistic=statistic, n_resamples=100_000)
    assert (found.pvalue, found.method) == (drawn.pvalue, drawn.method)
    assert f"all {math.comb(n_x + n_y, n_x):,} labellings" in found.method


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize("weights", [ce.NearestNeighbours(5), ce.GaussianKernel(1.0)])
@pytest.mark.parametrize(("n_x", "n_y"), [(20, 20), (12, 28)])
def test_no_pvalue_is_below_that_of_a_single_labelling(weights, n_x, n_y):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n_x, 2)) + 50, rng.normal(size=(n_y, 2))
    found = ce.two_sample(x, y, weights, null="pearson3")
    least = -math.log(math.comb(n_x + n_y, n_x)) + (math.log(2) if n_x == n_y else 0)
    assert least - 1e-9 <= found.log_pvalue < least + 5


def hub(n):
    """Points on a sphere, nearly, and its centre, next to all of them."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 30))
    points *= (1 + 0.01 * rng.random((n, 1))) / np.linalg.norm(points, axis=1, keepdims=True)
    points[0] = 0
    return points


@pytest.mark.parametrize("n_x", [25, 10])
@pytest.mark.parametrize("weights", [ce.SpanningTree(0.3), ce.NearestNeighbours(5)])
def test_max_where_one_point_decides(weights, n_x):
    """The law of R_x - R_y, whose fourth moment is not known, was off by a factor of two."""
    points, rng = hub(50), np.random.default_rng(1)
    order = rng.permutation(50)
    given = points[order[:n_x]], points[order[n_x:]], weights
    found = ce.two_sample(*given, statistic="max", null="pearson3").pvalue
    drawn = ce.two_sample(*given, statistic="max", n_resamples=100_000, rng=0).pvalue
    assert found == pytest.approx(drawn, rel=0.03 + 3 / math.sqrt(100_000 * drawn))


@pytest.mark.slow
def test_max_where_both_parts_are_large_together():
    """Taken as independent, they gave a p-value too large by 15%."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(40, 5))
    points[:8] *= 0.02
    ratios = []
    for _ in range(10):
        order = rng.permutation(40)
        given = points[order[:20]], points[order[20:]], ce.NearestNeighbours(3, 0.5)
        drawn = ce.two_sample(*given, statistic="max", n_resamples=50_000, rng=0).pvalue
        if drawn < 0.3:
            found = ce.two_sample(*given, statistic="max", null="pearson3").pvalue
            ratios.append(found / drawn)
    assert len(ratios) >= 2
    np.testing.assert_allclose(ratios, 1, atol=0.06)


@pytest.mark.parametrize(
    ("n", "null"), [(12, "permutation"), (24, "permutation"), (24, "pearson3")]
)
@pytest.mark.parametrize(
    "weights", [ce.SpanningTree(0.3), ce.NearestNeighbours(3, 0.5), ce.GaussianKernel()]
)
def test_points_at_equal_distances_say_nothing(weights, n, null):
    points = np.eye(n)
    assert ce.two_sample(points[: n // 2 - 1], points[n // 2 - 1 :], weights, null=null).pvalue == 1


def test_an_energy_distance_with_an_outlier():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(40, 2))
    points[0] = [30, 0]
    for _ in range(3):
        order = rng.permutation(40)
        given = points[order[:8]], points[order[8:]], ce.EnergyKernel()
        found = ce.two_sample(*given, null="pearson3").pvalue
        drawn = ce.two_sample(*given, n_resamples=100_000, rng=0).pvalue
        assert found == pytest.approx(drawn, rel=0.03 + 3 / math.sqrt(100_000 * drawn))


@pytest.mark.usefixtures("_few_chains")
@pytest.mark.parametrize(("bandwidth", "known"), [(0.02, 3), (2.0, 5)])
def test_sums_of_high_powers_are_used_where_tails_are_tame(bandwidth, known):
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(120, 2)))
    W = ce.GaussianKernel(bandwidth).pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(W, 12, 108, fourth=True)
    form = STATISTICS["mmd"].form(moments)
    drawn = structure_of(W, 12).tilted_labellings(moments, form, 1)
    assert len(drawn.moments) == known
