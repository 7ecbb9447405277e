"""Nulls in lumps: clusters, hubs and outliers."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import hypergeom

import crossedge as ce
from crossedge.distances import matrix_distances, point_distances
from crossedge.null.kinds import MOST_COUNTS, counts_of, kinds_of, ways
from crossedge.null.laws import exact_law
from crossedge.null.mixtures import _fit, is_listed, log_mixture_tail
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute
from crossedge.null.pvalues import log_form_tail
from crossedge.null.strata import Strata, strata_of, stratified
from crossedge.null.structure import Structure
from crossedge.numerics.tails import log_four_moment_tail
from crossedge.statistics import STATISTICS
from crossedge.statistics.edge_counts import zscore
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


def all_within(W, n_x):
    """R_x and R_y of every labelling, that of the first n_x points first."""
    chosen = np.array(list(itertools.combinations(range(len(W)), n_x)))
    in_x = np.zeros((len(chosen), len(W)))
    np.put_along_axis(in_x, chosen, 1.0, 1)
    return [torch.from_numpy(((part @ W) * part).sum(1) / 2) for part in (in_x, 1 - in_x)]


APART = np.random.default_rng(3).normal(size=(12, 2)) + 1.5 * (np.arange(12) > 5)[:, None]
IN_A_CORNER = np.array([[0.0, 3], [0, 1], [0, 2], [0, 0], [1, 0]])
THREE = np.random.default_rng(3).normal(size=(3, 2))
FEW = [
    *((APART, 6, weights) for weights in (ce.SpanningTree(0.5), ce.NearestNeighbours(2))),
    (APART, 6, ce.GaussianKernel(1.0)),
    *((IN_A_CORNER, n_x, ce.SpanningTree(0.5)) for n_x in (1, 2, 4)),
    *((IN_A_CORNER, n_x, ce.GaussianKernel(0.7)) for n_x in (2, 4)),
    *((THREE, n_x, ce.SpanningTree(0.5)) for n_x in (1, 2)),
    *((THREE, n_x, ce.NearestNeighbours(1, 0.5)) for n_x in (1, 2)),
    *((np.eye(n, 2, -(n - 2)), n - 1, ce.SpanningTree(0.5)) for n in (3, 6)),
]


@pytest.mark.parametrize(("points", "n_x", "weights"), FEW)
def test_few_points_are_kinds_of_their_own(points, n_x, weights):
    """The mixture is then a list of all labellings, also without a fourth moment."""
    statistic = STATISTICS[weights.default_statistic]
    W = weights.pairs(point_distances(points, 2.0))
    moments, strata = label_moments(W, n_x, W.n - n_x), strata_of(W, n_x)
    x, y = all_within(W.dense().numpy(), n_x)
    form, sign = statistic.form(moments), statistic.sign
    assert is_listed(strata, moments, form)
    evidence = sign * statistic.value(x, y, moments)
    for place in (0, len(x) - 1):
        z = sign * zscore(x[place], y[place], moments, form)
        found = float(log_mixture_tail(z, strata, moments, form, sign))
        share = float((evidence >= evidence[place] - 1e-9).double().mean())
        assert math.exp(found) == pytest.approx(share)
    given = "pearson3", z, moments, form, sign, Structure(strata=strata)
    assert float(log_form_tail(*given)) == pytest.approx(found)


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


def test_what_is_left_of_the_cumulants_is_shared_by_all_counts():
    """A variable d + s X, where counts decide on d, s and the skewness g of X."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(9))
    mean, variance = rng.normal(size=9), rng.uniform(0.5, 2, 9)
    std = math.sqrt(p @ (variance + (mean - p @ mean) ** 2))
    third = 0.3 * variance**1.5 * rng.normal(size=9)
    found = _fit(Strata(np.log(p), mean, variance, third), -std, 0.2, 0.3, 0.4)
    d, s, g = found.mean, found.std, found.skewness
    np.testing.assert_allclose(d, (p @ mean - mean) / std)
    np.testing.assert_allclose(s, np.sqrt(variance) / std)
    np.testing.assert_allclose(g, -third / variance**1.5)
    fourth = 3 + 1.5 * g**2 + found.more_excess
    fifth = 3 * g**3 + found.more_fifth + 10 * g
    moments = [1.0, 0.0, 1.0, g, fourth, fifth]
    for order, expected in ((4, 3 + 0.3), (5, 0.4 + 10 * 0.2)):
        terms = [
            math.comb(order, k) * d ** (order - k) * s**k * moments[k] for k in range(order + 1)
        ]
        assert p @ sum(terms) == pytest.approx(expected)


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
    [("clusters", 0.3, 20), ("clusters", 1.0, 50), ("outlier", 100.0, 20)],
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
        by_strata = float(torch.exp(log_mixture_tail(z, strata, moments, form, -1))) / level
        without = float(torch.exp(log_form_tail("pearson3", z, moments, form, -1))) / level
        # the permutations have an error of 5% at 0.001 themselves
        assert by_strata == pytest.approx(1, abs=0.02 + 0.1 * np.sqrt(1e-3 / level))
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
    n, few = 60, 12
    W = ce.SpanningTree().pairs(matrix_distances(star(n)))
    moments, strata = label_moments(W, few, n - few), strata_of(W, few)
    law, form = exact_law(CROSS, moments), CROSS.form(moments)
    count = n - few if hub_in_small else few
    z = (law.mean - count) / law.std
    found = float(torch.exp(log_mixture_tail(z, strata, moments, form, -1)))
    assert is_listed(strata, moments, form)
    assert found == pytest.approx(1.0 if hub_in_small else 1 - few / n, rel=1e-9)


def test_points_of_one_kind_leave_it_to_cumulants():
    W = ce.SpanningTree().pairs(matrix_distances(symmetric(60)))
    moments = label_moments(W, 30, 30, fourth=True)
    strata = strata_of(W, 30)
    form = CROSS.form(moments)
    assert strata
    assert log_mixture_tail(torch.tensor(2.0), strata, moments, form, -1) is None


def test_two_clusters_are_a_hypergeometric_law():
    """All points of a cluster are joined: T depends on how many of them are in x, and no more."""
    W = DenseWeights(torch.from_numpy(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40)))
    moments, strata = label_moments(W, 20, 20, fourth=True), strata_of(W, 20)
    inside = np.arange(21)
    probability, count = hypergeom(40, 20, 20).pmf(inside), 2 * inside * (20 - inside)
    mean = probability @ count
    scores = (mean - count) / np.sqrt(probability @ (count - mean) ** 2)
    for z in (-0.5, 0.0, 5.0, 19.0, scores.max()):
        given = torch.tensor(z, dtype=torch.float64), strata, moments, CROSS.form(moments), -1
        expected = np.log(probability[scores >= z - 1e-9].sum())
        assert float(log_mixture_tail(*given)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("statistic", ["cross", "mmd"])
@pytest.mark.parametrize("bandwidth", [1.0, 1e3, 1e4, 1e5])
def test_weights_that_are_nearly_equal(statistic, bandwidth):
    """Two places only: the null has an atom for each number of ones in x, here none of 15."""
    points = np.concatenate([np.zeros((15, 1)), np.ones((15, 1))])
    found = ce.two_sample(
        points[:10],
        points[10:],
        ce.GaussianKernel(bandwidth),
        statistic=statistic,
        null="pearson3",
    )
    assert found.null_distribution is None  # no labellings were visited
    ones = np.arange(11)
    joined = math.comb(10, 2) - ones * (10 - ones)  # equal pairs inside x, and inside y
    others = math.comb(20, 2) - (15 - ones) * (5 + ones)
    form = (1, 1) if statistic == "cross" else (1 / math.comb(10, 2), 1 / math.comb(20, 2))
    between = 0 if statistic == "cross" else -1 / 100
    equal = form[0] * joined + form[1] * others
    equal = equal + between * (2 * math.comb(15, 2) - joined - others)
    probability = hypergeom(30, 15, 10).pmf(ones)
    expected = probability[equal >= equal[0] - 1e-9].sum()
    assert found.pvalue == pytest.approx(expected, rel=1e-3)


def test_probabilities_below_the_range_of_floats():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(650, 2)), rng.normal(size=(650, 2)) + 60])
    W = ce.GaussianKernel(5.0).pairs(point_distances(points, 2.0))
    moments, mmd = label_moments(W, 650, 650, fourth=True), STATISTICS["mmd"]
    form, matrix = mmd.form(moments), W.dense()
    within = matrix[:650, :650].sum() / 2, matrix[650:, 650:].sum() / 2
    z = zscore(*within, moments, form)
    # no other division is as extreme, but for the one with x and y exchanged
    ways = math.lgamma(1301) - 2 * math.lgamma(651)
    found = log_mixture_tail(z, strata_of(W, 650), moments, form, 1)
    assert float(found) == pytest.approx(math.log(2) - ways, abs=0.01)


@pytest.mark.parametrize("seed", [2, 7])
def test_the_order_of_points_does_not_decide(seed):
    """A classical tree has many leaves, which tie."""
    rng = np.random.default_rng(seed)
    points, found = rng.normal(size=(40, 2)), []
    for order in (np.arange(40), *(rng.permutation(40) for _ in range(4))):
        W = ce.SpanningTree().pairs(point_distances(points[order], 2.0))
        one = strata_of(W, 10).of(Form(1.0, 0.4), 0.0)
        p = np.exp(one.log_probability)
        found.append([p @ (one.mean - p @ one.mean) ** 2, p @ one.variance**2, p @ one.third])
    np.testing.assert_allclose(found, [found[0]] * 5, rtol=1e-6)


def test_a_value_far_beyond_all_labellings():
    W = DenseWeights(torch.from_numpy(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40)))
    moments = label_moments(W, 8, 32, fourth=True)
    z = torch.tensor(1e12, dtype=torch.float64)
    assert float(log_mixture_tail(z, strata_of(W, 8), moments, CROSS.form(moments), -1)) < -500
