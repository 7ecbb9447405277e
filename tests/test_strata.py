"""Nulls in lumps: clusters, hubs and outliers."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import hypergeom

import crossedge as ce
from crossedge.distances import matrix_distances
from crossedge.null.kinds import MOST_COUNTS, counts_of, kinds_of, ways
from crossedge.null.laws import exact_law
from crossedge.null.mixtures import _fit, log_mixture_tail
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_form_tail
from crossedge.null.strata import strata_of, stratified
from crossedge.null.structure import Structure
from crossedge.numerics.tails import log_four_moment_tail
from crossedge.statistics import STATISTICS
from crossedge.statistics.label_moments import Form
from crossedge.weights import DenseWeights

CROSS = STATISTICS["cross"]


def symmetric(n, seed=0):
    W = np.random.default_rng(seed).exponential(size=(n, n))
    return np.triu(W, 1) + np.triu(W, 1).T


def points_of(name, n=100):
    rng = np.random.default_rng(5)
    if name == "clusters":
        sizes = [6 * n // 10, 3 * n // 10, n // 10]
        return np.repeat([[0.0, 0], [8, 0], [0, 9]], sizes, 0) + 0.3 * rng.normal(size=(n, 2))
    points = rng.normal(size=(n, 2))
    if name == "outlier":
        points[0] += 60
    return points


@pytest.mark.parametrize(
    "kind",
    [
        [0, 0, 0, 0, 1, 1, 2, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 1],
        [0, 1, 2, 3, 3, 3, 3],
        [0, 0, 1, 1],
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 2],
        [0, 0, 0, 0, 0, 0, 1],
    ],
)
@pytest.mark.parametrize("n_x", [1, 2, 3, 4])
@pytest.mark.parametrize("form", [Form(1.0, 0.0), Form(0.0, 1.0), Form(-0.5, 0.3)])
def test_moments_given_the_counts(kind, n_x, form):
    kind = np.array(kind)
    n = len(kind)
    n_x = min(n_x, n - 1)
    W, degree = symmetric(n), np.random.default_rng(1).normal(size=n)
    counts = counts_of(np.bincount(kind), n_x)
    found = stratified(W, degree, kind, counts, form)
    values = {}
    for chosen in itertools.combinations(range(n), n_x):
        s = -np.ones(n)
        s[list(chosen)] = 1
        key = tuple(np.bincount(kind[list(chosen)], minlength=kind.max() + 1))
        values.setdefault(key, []).append(form.a * (s @ W @ s) / 2 + form.b * (degree @ s))
    total = sum(len(some) for some in values.values())
    assert {tuple(count) for count in counts} == set(values)
    for place, count in enumerate(counts):
        some = np.array(values[tuple(count)])
        gaps = some - some.mean()
        np.testing.assert_allclose(np.exp(found.log_probability[place]), len(some) / total)
        np.testing.assert_allclose(found.mean[place], some.mean(), atol=1e-12)
        np.testing.assert_allclose(found.variance[place], (gaps**2).mean(), atol=1e-10)
        np.testing.assert_allclose(found.third[place], (gaps**3).mean(), atol=1e-10)


@pytest.mark.parametrize("n_x", [1, 5, 8])
def test_counts_are_listed_once(n_x):
    sizes = np.array([3, 2, 4])
    counts = counts_of(sizes, n_x)
    assert len(np.unique(counts, axis=0)) == len(counts) == ways(sizes, n_x)
    assert (counts.sum(1) == n_x).all()
    assert (counts <= sizes).all()


@pytest.mark.parametrize("n", [60, 400, 1500])
def test_kinds_can_be_listed(n):
    V = symmetric(n) - 1
    for n_x in (n // 2, n // 5, 1):
        found = list(kinds_of(V, V.sum(1), Form(1.0, 0.5), n_x))
        assert len(found) == 2
        for kind in found:
            sizes = np.bincount(kind)
            assert 2 <= len(sizes) <= 16
            assert sizes.min() > 0
            assert len(counts_of(sizes, n_x)) <= min(MOST_COUNTS, 4e6 / n)


def test_hubs_are_kinds_of_their_own():
    """Ten points of a hundred that have all of the weight, each in a way of its own."""
    rng = np.random.default_rng(0)
    V = 0.01 * rng.normal(size=(100, 100))
    hubs = rng.permutation(100)[:10]
    V[hubs] += rng.normal(size=(10, 100))
    V += V.T
    np.fill_diagonal(V, 0.0)
    *_, kind = kinds_of(V, V.sum(1), Form(1.0, 0.0), 20)
    alone = np.flatnonzero(np.bincount(kind)[kind] == 1)
    assert set(hubs) <= set(alone)


@pytest.mark.parametrize(
    "weights", [ce.SpanningTree(0.5), ce.NearestNeighbours(2), ce.GaussianKernel(1.0)]
)
def test_few_points_are_kinds_of_their_own(weights):
    """Then all labellings are listed, and nothing is left to a law."""
    x, y = np.random.default_rng(3).normal(size=(2, 7, 2))
    y[:, 0] += 1.5
    smooth = ce.two_sample(x, y, weights, null="pearson3")
    assert smooth.pvalue == pytest.approx(ce.two_sample(x, y, weights).pvalue)


@pytest.mark.parametrize(
    ("weights", "statistic"), [(ce.SpanningTree(0.5), "cross"), (ce.EnergyKernel(), "mmd")]
)
@pytest.mark.parametrize("n_x", [1, 2, 4])
def test_few_points_are_exact_where_moments_are_unknown(weights, statistic, n_x):
    points = np.array([[0.0, 3], [0, 1], [0, 2], [0, 0], [1, 0]])
    smooth, exact = (
        ce.two_sample(points[:n_x], points[n_x:], weights, statistic=statistic, null=null)
        for null in ("pearson3", "permutation")
    )
    assert smooth.pvalue == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("name", ["clusters", "outlier", "normal"])
def test_parts_make_up_the_whole(name):
    distances = torch.cdist(*[torch.from_numpy(points_of(name, 40))] * 2)
    W = ce.SpanningTree(1.0).pairs(matrix_distances(distances.numpy()))
    moments = label_moments(W, 8, 32)
    for form in (Form(-0.5, 0.0), Form(0.25, 0.1)):
        one = strata_of(W, 8).of(moments.in_t_and_l(form), 0.0)
        law, p = moments.law(form), np.exp(one.log_probability)
        gap = one.mean - p @ one.mean
        np.testing.assert_allclose(p.sum(), 1)
        np.testing.assert_allclose(p @ (one.variance + gap**2), float(law.std) ** 2)
        third = p @ (one.third + 3 * gap * one.variance + gap**3)
        np.testing.assert_allclose(third / float(law.std) ** 3, float(law.skewness), atol=1e-9)


def test_the_table_of_tails_is_that_of_the_laws():
    """Also next to laws that end, where tails fall steeply."""
    rng = np.random.default_rng(0)
    points = torch.from_numpy(np.exp(1.2 * rng.normal(size=(60, 5))))
    distances = torch.cdist(points, points)
    W = ce.SpanningTree(float(distances.median())).pairs(matrix_distances(distances.numpy()))
    moments = label_moments(W, 12, 48, fourth=True)
    form = CROSS.form(moments)
    found = strata_of(W, 12).of(moments.in_t_and_l(form), 0.0)
    mixture = _fit(found, -float(moments.law(form).std), 0.5, 0.5, 0.5)
    assert mixture.skewness.min() < -0.3
    assert mixture.skewness.max() > 0.3
    assert abs(mixture.more_fifth) > 1
    for z in (-1.0, 1.0, 3.0, 5.0):
        gaps = (z - mixture.mean) / mixture.std
        table = mixture.log_tails(gaps)
        near = np.flatnonzero((gaps > -8) & (gaps < 12))
        g = torch.from_numpy(mixture.skewness[near])
        excess = 1.5 * g**2 + mixture.more_excess
        direct = table.copy()
        direct[near] = log_four_moment_tail(torch.from_numpy(gaps[near]), g, excess).numpy()
        p = [np.logaddexp.reduce(tails + mixture.log_probability) for tails in (table, direct)]
        assert p[0] == pytest.approx(p[1], abs=0.01)
        assert (table[gaps > 12] < -8).all()


@pytest.mark.parametrize(
    ("name", "temperature", "n_x"),
    [
        ("clusters", 0.3, 20),
        pytest.param("clusters", 1.0, 20, marks=pytest.mark.slow),
        ("clusters", 1.0, 50),
        ("outlier", 100.0, 20),
    ],
)
def test_tails_in_lumps_are_those_of_permutations(name, temperature, n_x):
    points = torch.from_numpy(points_of(name))
    distances = torch.cdist(points, points)
    median = float(distances[distances > 0].median())
    W = ce.NearestNeighbours(5, temperature * median).pairs(matrix_distances(distances.numpy()))
    moments = label_moments(W, n_x, 100 - n_x, fourth=True)
    law, form = exact_law(CROSS, moments), CROSS.form(moments)
    strata = strata_of(W, n_x)
    values = np.sort(permute(W, CROSS, moments, 400_000, 0).values)
    off = []
    for level in (0.2, 0.1, 0.03, 0.01, 0.003, 0.001):
        value = values[int(level * len(values)) - 1]
        z = (law.mean - value) / law.std
        with_strata, without = (
            float(torch.exp(log_form_tail("pearson3", z, moments, form, -1, some))) / level
            for some in (Structure(strata=strata), None)
        )
        # the permutations have an error of 5% at 0.001 themselves
        assert with_strata == pytest.approx(1, abs=0.03 + 0.1 * np.sqrt(1e-3 / level))
        off.append(abs(without - 1))
    assert max(off) > 0.05  # five cumulants do not see the lumps


def star(n):
    distances = np.ones((n, n))
    distances[0] = distances[:, 0] = 0.5
    np.fill_diagonal(distances, 0.0)
    return distances


@pytest.mark.parametrize("hub_in_small", [True, False])
def test_the_label_of_a_hub_decides(hub_in_small):
    """In a star, T is the number of points that are not of the hub's sample."""
    n, few = 30, 6
    in_y = np.zeros(n, bool)
    in_y[:few] = True
    in_y = in_y if hub_in_small else in_y[::-1]
    found = ce.two_sample(star(n), in_y, ce.SpanningTree(), distance="precomputed", null="pearson3")
    assert found.statistic == (n - few if hub_in_small else few)
    assert found.pvalue == pytest.approx(1.0 if hub_in_small else 1 - few / n, abs=1e-6)


def test_points_of_one_kind_leave_it_to_cumulants():
    W = ce.SpanningTree().pairs(matrix_distances(symmetric(60)))
    moments = label_moments(W, 30, 30, fourth=True)
    strata = strata_of(W, 30)
    form = CROSS.form(moments)
    assert strata
    assert log_mixture_tail(torch.tensor(2.0), strata, moments, form, -1) is None


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("same", [True, False])
def test_few_points_and_equal_points(n, same):
    x = np.zeros((n - 1, 2)) if same else np.random.default_rng(n).normal(size=(n - 1, 2))
    found = ce.two_sample(x, x[:1] + 0.5, ce.SpanningTree(0.5), null="pearson3")
    assert 0 < found.pvalue <= 1


def test_far_tails_are_finite():
    W = DenseWeights(torch.from_numpy(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40)))
    moments = label_moments(W, 20, 20, fourth=True)
    form, structure = CROSS.form(moments), Structure(strata=strata_of(W, 20))
    found = [
        float(log_form_tail("pearson3", torch.tensor(z), moments, form, -1, structure))
        for z in (-3.0, 0.0, 5.0, 19.0)
    ]
    assert np.isfinite(found).all()
    assert (np.diff(found) <= 0).all()


@pytest.mark.parametrize("statistic", ["cross", "mmd"])
@pytest.mark.parametrize("bandwidth", [1.0, 1e3, 1e4, 1e5])
def test_weights_that_are_nearly_equal(statistic, bandwidth):
    """Two values only: the null has an atom for each number of ones in x."""
    x, y = np.zeros((8, 1)), np.concatenate([np.zeros((4, 1)), np.ones((12, 1))])
    found = ce.two_sample(x, y, ce.GaussianKernel(bandwidth), statistic=statistic, null="pearson3")
    exact = hypergeom(24, 12, 8).pmf(0)  # none of the ones, or with fewer zeros all ones
    both = exact + hypergeom(24, 12, 8).pmf(8)
    assert min(abs(found.pvalue / exact - 1), abs(found.pvalue / both - 1)) < 1e-3


def test_probabilities_below_the_range_of_floats():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(650, 2)), rng.normal(size=(650, 2)) + 60
    found = ce.two_sample(x, y, ce.GaussianKernel(5.0), null="pearson3")
    # no other division is as extreme, but for the one with x and y exchanged
    ways = math.lgamma(1301) - 2 * math.lgamma(651)
    assert found.log_pvalue == pytest.approx(math.log(2) - ways, abs=1.0)


@pytest.mark.parametrize("seed", [2, 7])
@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(1)])
def test_neither_the_order_of_points_nor_of_samples_decides(seed, weights):
    """With ties between points: classical graphs have many leaves."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 2))
    in_x = np.zeros(40, bool)
    in_x[np.argsort(points[:, 0] + 0.7 * rng.normal(size=40))[:10]] = True
    found = [ce.two_sample(points[~in_x], points[in_x], weights, null="pearson3").log_pvalue]
    for _ in range(4):
        order = rng.permutation(40)
        x, y = points[order][in_x[order]], points[order][~in_x[order]]
        found.append(ce.two_sample(x, y, weights, null="pearson3").log_pvalue)
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


def test_a_value_far_beyond_all_labellings():
    W = DenseWeights(torch.from_numpy(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40)))
    moments = label_moments(W, 8, 32, fourth=True)
    z = torch.tensor(1e12, dtype=torch.float64)
    form, structure = CROSS.form(moments), Structure(strata=strata_of(W, 8))
    assert float(log_form_tail("pearson3", z, moments, form, -1, structure)) < -500
