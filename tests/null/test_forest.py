"""Edges of a forest that cross: the exact law, against enumeration and known answers."""

import math

import numpy as np
import pytest
from scipy.stats import hypergeom

import crossedge as ce
from brute_force import all_labellings, cross_counts, forest_counts
from crossedge.data.distances import point_distances
from crossedge.moments import LabelMoments
from crossedge.null.forest import forest_of
from crossedge.null.labellings import permute
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights, EdgeList


def edge_list(n, edges, weight=None):
    i, j = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    weight = np.ones(len(i)) if weight is None else np.asarray(weight, float)
    return EdgeList.from_pairs(np.arange(n), i, j, weight)


def random_forest(n, trees, heaviest, seed):
    """Points in any order; each of them hangs on one that comes later."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(n)
    edges = [(name[v], name[rng.integers(v + 1, n)]) for v in range(n - trees)]
    return edge_list(n, edges, rng.integers(1, heaviest + 1, len(edges)))


@pytest.mark.parametrize("n_x", [1, 2, 4, -1])
@pytest.mark.parametrize(
    ("n", "trees", "heaviest"), [(2, 1, 1), (3, 1, 1), (6, 2, 1), (9, 1, 2), (11, 3, 2), (12, 1, 5)]
)
def test_all_labellings(n, trees, heaviest, n_x):
    n_x = min(n_x, n - 1) % n
    W = random_forest(n, trees, heaviest, seed=n)
    counts = cross_counts(W.dense(), all_labellings(n, n_x)) / W.step
    forest = forest_of(W)
    for count in range(round(counts.min()), round(counts.max()) + 1):
        found = math.exp(forest.log_lower_tail(n_x, count))
        assert found == pytest.approx((counts < count + 0.5).mean(), rel=1e-9)


def log_choose(n, k):
    if k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_few_runs(n_x, n_y, most):
    """Wald and Wolfowitz: the logarithm of P(at most so many runs)."""
    terms = []
    for runs in range(2, most + 1):
        k = runs // 2
        if runs % 2:
            ways = np.logaddexp(
                log_choose(n_x - 1, k) + log_choose(n_y - 1, k - 1),
                log_choose(n_x - 1, k - 1) + log_choose(n_y - 1, k),
            )
        else:
            ways = math.log(2) + log_choose(n_x - 1, k - 1) + log_choose(n_y - 1, k - 1)
        terms.append(ways)
    return np.logaddexp.reduce(terms) - log_choose(n_x + n_y, n_x)


@pytest.mark.parametrize(
    ("n", "n_x"), [(40, 20), (300, 60), pytest.param(1000, 500, marks=pytest.mark.slow)]
)
def test_on_a_line_it_is_the_runs_test(n, n_x):
    """From the fewest runs, where log p is below -600, to twice the mean."""
    forest = forest_of(edge_list(n, [(v, v + 1) for v in range(n - 1)]))
    mean = 2 * n_x * (n - n_x) / n
    for count in np.unique(np.linspace(1, min(1.5 * mean, n - 1), 7).astype(int)):
        expected = log_few_runs(n_x, n - n_x, count + 1)
        assert forest.log_lower_tail(n_x, count) == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize("n_x", [3, 30, 57])
def test_pairs_and_stars(n_x):
    star = forest_of(edge_list(60, [(0, v) for v in range(1, 60)]))
    few, many = min(n_x, 60 - n_x), max(n_x, 60 - n_x)
    # the hub belongs to the larger sample, unless they are equal
    share = many / 60 if few < many else 1.0
    assert math.exp(star.log_lower_tail(n_x, few)) == pytest.approx(share, rel=1e-9)
    assert math.exp(star.log_lower_tail(n_x, many)) == pytest.approx(1.0, rel=1e-9)
    none = star.log_lower_tail(n_x, few - 1)
    assert none <= max(-log_choose(60, n_x), -30.0)
    # one edge on 60 points crosses with probability 2 n_x n_y / (n (n - 1))
    alone = forest_of(edge_list(60, [(7, 31)]))
    crosses = hypergeom(60, n_x, 2).pmf(1)
    assert math.exp(alone.log_lower_tail(n_x, 0)) == pytest.approx(1 - crosses, rel=1e-9)


def star(first, leaves):
    return [(first, first + v) for v in range(1, leaves + 1)]


def path(first, edges):
    return [(first + v, first + v + 1) for v in range(edges)]


def hanging(n, share, seed):
    """A tree of which a share of the points hang on the first."""
    rng = np.random.default_rng(seed)
    return [(0 if rng.random() < share else rng.integers(v), v) for v in range(1, n)]


HUBS = {
    "a hub and points alone": (180, star(0, 119), 1, 60, [0, 2, 10]),
    "a hub and a path": (150, star(0, 109) + path(109, 40), 1, 75, [34, 40]),
    "a heavy hub": (120, star(0, 119), [1, 2, 5], 60, [86, 100]),
    "two hubs": (200, star(0, 99) + star(100, 99) + [(0, 100)], 1, 100, [2, 40]),
    "three hubs": (180, star(0, 59) + star(60, 59) + star(120, 59), 1, 90, [30, 40]),
    "most on one": (160, hanging(160, 0.6, seed=1), 1, 80, [34, 40, 50]),
    "a hub and pairs": (160, star(0, 99) + star(100, 1) + path(110, 1), 1, 60, [0, 5]),
}


@pytest.mark.parametrize(("n", "edges", "heavy", "n_x", "counts"), HUBS.values(), ids=HUBS)
def test_observed_in_the_valley_between_two_modes(n, edges, heavy, n_x, counts):
    """The tilted law has a mode for each label of a hub, and next to nothing in between."""
    W = edge_list(n, edges, np.resize(heavy, len(edges)))
    for count in counts:
        given = n, W.i, W.j, W.weight.astype(int), n_x, count
        ways = forest_counts(*given).sum()
        for one in (n_x, n - n_x):
            found = forest_of(W).log_lower_tail(one, count)
            expected = math.log(ways) - log_choose(n, n_x) if ways else -log_choose(n, n_x)
            assert found == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(1)], ids=repr)
@pytest.mark.parametrize("n_x", [50, 20])
def test_tails_are_those_of_permutations(weights, n_x):
    """With hubs, which no smooth law has ever got right."""
    points = np.random.default_rng(3).normal(size=(100, 40))
    pairs = weights.pairs(point_distances(points, 2.0))
    moments = LabelMoments(pairs, n_x, 100 - n_x)
    values = permute(pairs, STATISTICS["cross"], moments, 400_000, 0).values
    forest = forest_of(pairs)
    for level in (0.2, 0.03, 0.001):
        value = np.quantile(values, level, method="lower")
        share = (values <= value).mean()
        found = math.exp(forest.log_lower_tail(n_x, round(value / pairs.step)))
        assert found == pytest.approx(share, rel=5 / math.sqrt(share * len(values)))


def test_what_is_no_forest():
    circle = edge_list(5, [(0, 1), (1, 2), (2, 0), (3, 4)])
    halves = edge_list(3, [(0, 1), (1, 2)], [0.5, 1.0])
    two_in_one_place = np.array([0, 0, 1])
    copies = EdgeList.from_pairs(two_in_one_place, np.array([0]), np.array([1]), np.ones(1))
    for weights in (circle, halves, copies, DenseWeights(circle.dense())):
        assert forest_of(weights) is None


def test_the_test_says_that_it_is_exact():
    x, y = np.arange(30.0)[:, None], np.arange(30.0)[:, None] + 100.5
    x[::3] += 0.25  # no ties
    y[::4] += 0.1
    found = ce.two_sample(x, y, ce.SpanningTree(), null="tail")
    assert found.exact
    assert found.log_pvalue == pytest.approx(math.log(2) - log_choose(60, 30), rel=1e-9)
    assert not ce.two_sample(x, y, ce.SpanningTree(1.0), null="tail").exact
    weighted = ce.two_sample(x, y, ce.SpanningTree(), statistic="weighted", null="tail")
    assert weighted.log_pvalue == pytest.approx(found.log_pvalue)  # samples of equal size
    unequal = ce.two_sample(x, y[:20], ce.SpanningTree(), statistic="weighted", null="tail")
    assert not unequal.exact


def test_no_labelling_has_so_few():
    forest = forest_of(edge_list(20, [(v, v + 1) for v in range(19)]))
    assert forest.log_lower_tail(10, 0) <= math.log(2) - log_choose(20, 10)
    assert forest.log_lower_tail(10, -3) <= math.log(2) - log_choose(20, 10)
    assert forest.log_lower_tail(10, 19) == 0.0
