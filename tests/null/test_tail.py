"""The ladder of laws, against permutations, enumeration and laws that are known."""

import math

import numpy as np
import pytest
from scipy.stats import hypergeom

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.null import NULLS, Problem
from crossedge.null.cumulants import Cumulants
from crossedge.null.labellings import permute
from crossedge.weights import DenseWeights, EdgeList
from null_cases import CROSS, family_of, lumps, median_distance, problem_of, tail_at


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


CASES = [
    ("tree", 0.0, 12),
    ("1-NN", 20.0, 12),
    ("5-NN", 0.5, 30),
    *(slow(family, 0.5, 30) for family in ("tree", "1-NN")),
    *(slow(family, 20.0, 12) for family in ("tree", "5-NN")),
    *(slow(family, 0.0, 12) for family in ("1-NN", "5-NN")),
]


@pytest.mark.parametrize(("family", "temperature", "n_x"), CASES)
def test_tails_are_those_of_permutations(family, temperature, n_x):
    """Within 6%, and what 100,000 permutations leave to chance, from 0.2 down to 0.001."""
    problem = problem_of(
        family_of(family, temperature), np.random.default_rng(11).normal(size=(60, 3)), n_x
    )
    values = np.sort(permute(problem.weights, CROSS, problem.moments, 100_000, 0).values)
    for level in (0.2, 0.05, 0.01, 0.001):
        value = values[int(level * len(values))]
        share = (values <= value + 1e-9).mean()
        chance = 3.5 / math.sqrt(share * len(values))
        assert tail_at(problem, value) == pytest.approx(share, rel=0.06 + chance), level


# points (number, dimension, seed), graph, temperature over the median distance, n_x, and the shares
# of 10 million permutations that reach z; right to 0.3% at 0.01, 1% at 0.001, 3% at 0.0001
SHARP = [
    slow(
        (60, 3, 11),
        "tree",
        0.5,
        12,
        {1.3326: 9.957e-02, 2.7142: 9.968e-03, 3.8592: 9.978e-04, 4.9212: 9.980e-05},
    ),
    (
        (60, 3, 11),
        "5-NN",
        0.5,
        30,
        {1.3216: 9.957e-02, 3.1387: 9.968e-03, 4.8660: 9.978e-04, 6.5265: 9.980e-05},
    ),
    slow(
        (100, 2, 0),
        "5-NN",
        0.1,
        20,
        {1.3194: 9.957e-02, 2.7151: 9.968e-03, 3.9136: 9.978e-04, 5.0424: 9.980e-05},
    ),
    (
        (100, 2, 0),
        "1-NN",
        0.0,
        20,
        {1.4156: 9.630e-02, 2.5349: 7.622e-03, 3.2065: 9.285e-04, 3.8781: 6.700e-05},
    ),
    slow(
        (100, 2, 0),
        "5-NN",
        0.0,
        50,
        {1.2991: 1.076e-01, 2.5613: 1.113e-02, 3.6131: 1.006e-03, 4.4546: 1.075e-04},
    ),
]


@pytest.mark.parametrize(("points", "family", "relative", "n_x", "shares"), SHARP)
def test_tails_are_right_to_a_tenth_down_to_1e_4(points, family, relative, n_x, shares):
    n, d, seed = points
    points = np.random.default_rng(seed).normal(size=(n, d))
    problem = problem_of(family_of(family, relative * median_distance(points)), points, n_x)
    for z, share in shares.items():
        found = math.exp(ce.Tail().log_pvalue(problem.part(CROSS, z - 1e-4)).log_p)  # rounded
        assert found == pytest.approx(share, rel=0.1)


LUMPS = ["clusters", slow("outlier"), slow("hub")]


@pytest.mark.parametrize("name", LUMPS)
@pytest.mark.parametrize(("temperature", "n_x"), [(0.3, 20), slow(1.0, 50), (100.0, 20)])
def test_tails_in_lumps_are_those_of_permutations(name, temperature, n_x):
    points = lumps(name)
    weights = ce.NearestNeighbours(5, temperature * median_distance(points))
    problem = problem_of(weights, points, n_x)
    values = np.sort(permute(problem.weights, CROSS, problem.moments, 200_000, 0).values)
    for level in (0.2, 0.03, 0.003):
        value = values[int(level * len(values)) - 1]
        share = (values <= value + 1e-9).mean()
        chance = 3.5 / math.sqrt(share * len(values))
        assert tail_at(problem, value) == pytest.approx(share, rel=0.05 + chance), level


def test_two_clusters_are_a_hypergeometric_law():
    """All points of a cluster are joined: T depends on how many of them are in x, and no more."""
    W = DenseWeights(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40))
    problem = Problem(W, CROSS, np.arange(40) < 20)
    inside = np.arange(21)
    probability, count = hypergeom(40, 20, 20).pmf(inside), 2.0 * inside * (20 - inside)
    for value in (200, 198, 192, 150, 72):
        expected = probability[count <= value].sum()
        assert tail_at(problem, value) == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("statistic", ["cross", "mmd"])
@pytest.mark.parametrize("bandwidth", [1.0, 1e3, 1e5])
def test_weights_that_are_nearly_equal(statistic, bandwidth):
    """Two places only: the null has an atom for each number of ones in x, here 2 of 15."""
    points = np.concatenate([np.zeros((15, 1)), np.ones((15, 1))])
    order = np.r_[0:8, 15:17, 8:15, 17:30]
    given = points[order[:10]], points[order[10:]], ce.GaussianKernel(bandwidth)
    found = ce.two_sample(*given, statistic=statistic, null="tail")
    assert found.law == "tilted labellings"
    drawn = ce.two_sample(*given, statistic=statistic, n_resamples=200_000, rng=0)
    assert found.pvalue == pytest.approx(drawn.pvalue, rel=0.03 + 3 / (2e5 * drawn.pvalue) ** 0.5)


@pytest.mark.parametrize(
    ("weights", "statistic"),
    [
        (ce.NearestNeighbours(5), "cross"),
        (ce.NearestNeighbours(3, 0.2), "weighted"),
        slow(ce.NearestNeighbours(5), "max"),
    ],
)
def test_small_pvalues_are_those_of_permutations(weights, statistic):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(24, 2)), rng.normal(size=(72, 2))
    y[:, 0] += 0.7
    found = ce.two_sample(x, y, weights, statistic=statistic, null="tail")
    drawn = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=400_000, rng=0)
    assert 1e-4 < drawn.pvalue < 0.05
    error = math.sqrt(1 / (400_000 * drawn.pvalue))
    assert found.pvalue == pytest.approx(drawn.pvalue, rel=0.06 + 3 * error)


@pytest.mark.parametrize(("n", "null"), [(12, "permutation"), *((24, null) for null in NULLS)])
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
        found = ce.two_sample(*given, null="tail").pvalue
        drawn = ce.two_sample(*given, n_resamples=100_000, rng=0).pvalue
        assert found == pytest.approx(drawn, rel=0.03 + 3 / math.sqrt(100_000 * drawn))


@pytest.mark.parametrize("statistic", ["cross", "weighted", "max"])
@pytest.mark.parametrize(("n_x", "n_y"), [(3, 30), (30, 3), (1, 40), (8, 9)])
def test_few_labellings_are_all_visited(n_x, n_y, statistic):
    rng = np.random.default_rng(0)
    given = rng.normal(size=(n_x, 2)) + 3, rng.normal(size=(n_y, 2)), ce.SpanningTree(0.5)
    found = ce.two_sample(*given, statistic=statistic, null="tail")
    drawn = ce.two_sample(*given, statistic=statistic, n_resamples=100_000)
    assert (found.pvalue, found.method) == (drawn.pvalue, drawn.method)
    assert found.exact
    assert f"all {math.comb(n_x + n_y, n_x):,} labellings" in found.method


def test_equal_tests_have_equal_tails():
    """Of samples of equal size, the weighted count is the cross count, also in its steps."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 0.45
    for weights in (ce.SpanningTree(), ce.NearestNeighbours()):
        one, other = (
            ce.two_sample(x, y, weights, statistic=statistic, null="tail").pvalue
            for statistic in ("cross", "weighted")
        )
        assert one == pytest.approx(other, rel=1e-9)


def test_many_points_have_four_moments():
    """And above them three; both near what labellings say."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1200, 2)), rng.normal(size=(1000, 2)) * 1.02 + 0.03
    given = x, y, ce.NearestNeighbours(3)
    found = ce.two_sample(*given, null="tail")
    assert found.law == "law with four exact moments"
    drawn = ce.two_sample(*given, rng=0)
    assert found.pvalue == pytest.approx(drawn.pvalue, rel=0.02 + 4 / (9999 * drawn.pvalue) ** 0.5)


@pytest.mark.parametrize("family", ["tree", "1-NN", "5-NN"])
@pytest.mark.parametrize("relative", [1e-12, 1e-300])
def test_the_cold_limit_is_a_list_of_edges(family, relative):
    """And so has the p-value of temperature 0."""
    points = np.random.default_rng(1).normal(size=(80, 2))
    cold, classical = (
        family_of(family, temperature).pairs(point_distances(points, 2.0))
        for temperature in (relative * median_distance(points), 0.0)
    )
    assert isinstance(cold, EdgeList)
    np.testing.assert_array_equal(cold.dense(), classical.dense())


@pytest.mark.parametrize("n_x", [10, 20, 57])
def test_the_tail_of_a_star_is_that_of_its_hub(n_x):
    """T is the number of points that are not of the hub's sample."""
    i, j = np.zeros(59, np.int64), np.arange(1, 60)
    star = EdgeList(np.arange(60), i, j, np.ones(59))
    problem = Problem(star, CROSS, np.arange(60) < n_x)
    few, many = sorted((n_x, 60 - n_x))
    assert tail_at(problem, many) == pytest.approx(1)
    assert tail_at(problem, few) == pytest.approx(many / 60 if few < many else 1)


@pytest.mark.parametrize("n_x", [60, 40])
def test_a_count_in_steps_is_taken_half_a_step_nearer_to_its_mean(n_x):
    """Without, the law of four moments is off by a tenth and more where a tail is a few steps."""
    points = np.random.default_rng(3).normal(size=(120, 2))
    problem = problem_of(ce.NearestNeighbours(2), points, n_x)
    values = permute(problem.weights, CROSS, problem.moments, 100_000, 0).values
    mean, std, _ = CROSS.law.mean_and_std(CROSS, problem.moments)
    for level in (0.2, 0.05, 0.01):
        value = np.quantile(values, level, method="lower")
        found = Cumulants().log_pvalue(problem.part(CROSS, (mean - value) / std)).log_p
        assert math.exp(found) == pytest.approx((values <= value).mean(), rel=0.05)


def test_a_few_points_among_thousands_are_left_to_labellings():
    """The statistic takes a few values only: the law of four moments was off by a factor of 50."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 2)) * 0.02 + 1 / 3, rng.normal(size=(2000, 2))
    for statistic in ("weighted", "max"):
        found = ce.two_sample(x, y, ce.NearestNeighbours(1), statistic=statistic, null="tail")
        drawn = ce.two_sample(x, y, ce.NearestNeighbours(1), statistic=statistic, rng=1)
        assert found.law == "99,999 random labellings"
        assert found.pvalue == pytest.approx(drawn.pvalue, abs=4 * (0.25 / 9999) ** 0.5)
