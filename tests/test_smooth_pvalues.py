"""Smooth p-values, against permutations."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

import crossedge as ce
from crossedge.distances import matrix_distances, point_distances
from crossedge.null.laws import asymptotic_law, exact_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import observe, permute
from crossedge.null.pvalues import log_form_tail, smooth_pvalue
from crossedge.null.structure import structure_of
from crossedge.statistics import STATISTICS
from crossedge.statistics.edge_counts import zscore
from crossedge.weights import DenseWeights

CROSS = STATISTICS["cross"]
REFUSED = [("generalized", "pearson3"), ("fisher", "normal")]


@pytest.mark.parametrize("statistic", ["cross", "weighted", "generalized", "max", "fisher"])
@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(3, 0.3)], ids=repr)
def test_smooth_pvalues_are_near_those_of_permutations(statistic, weights):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(90, 2)) * [1.15, 1.1]
    exact = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=50_000, rng=0)
    for null in STATISTICS[statistic].nulls:
        found = ce.two_sample(x, y, weights, statistic=statistic, null=null)
        assert found.statistic == pytest.approx(exact.statistic)
        assert found.pvalue == pytest.approx(math.exp(found.log_pvalue))
        sharp = null == "pearson3" and statistic != "fisher"
        assert found.pvalue == pytest.approx(exact.pvalue, rel=0.03 if sharp else 0.1)


def hub(n=60):
    """One point that is everybody's neighbour: where it is, decides."""
    points = np.random.default_rng(0).normal(size=(n, 10))
    points /= np.linalg.norm(points, axis=1, keepdims=True) ** 0.7
    points[0] *= 0.21
    return points


@pytest.mark.parametrize("chosen", [[4, 11, 36, 52], [27, 30, 36, 41]])
def test_pearson3_does_not_err_by_orders_of_magnitude_on_hubs(chosen):
    points = np.concatenate([hub()[chosen], np.delete(hub(), chosen, 0)])
    W = ce.NearestNeighbours(1, 0.2).pairs(point_distances(points, 2.0))
    moments = label_moments(W, 4, 56, fourth=True)
    form, structure = CROSS.form(moments), structure_of(W, 4)
    within = observe(W, np.arange(60) < 4)
    everything = permute(W, CROSS, moments, 500_000, 0)
    assert everything.exact
    observed = float(CROSS.of(within, moments))
    exact = math.log(everything.pvalue(observed, -1, 1e-9))
    z = -zscore(within.x, within.y, moments, form)
    assert float(log_form_tail("pearson3", z, moments, form, -1, structure)) == (
        pytest.approx(exact, abs=0.05)
    )
    by_law = float(structure.log_tail(z, moments, form, -1))  # as of more points
    assert by_law == pytest.approx(exact, abs=0.7)


def test_equal_tests_have_equal_smooth_pvalues():
    """Of samples of equal size, the weighted count is the cross count, also in its steps."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 0.45
    for weights in (ce.SpanningTree(), ce.NearestNeighbours()):
        one, other = (
            ce.two_sample(x, y, weights, statistic=statistic, null="pearson3").pvalue
            for statistic in ("cross", "weighted")
        )
        assert one == pytest.approx(other, rel=1e-9)


def test_the_largest_score_leaves_out_what_cannot_vary():
    angle = np.linspace(0, 2 * np.pi, 41)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    for null in ("permutation", "normal", "pearson3"):
        found = ce.two_sample(
            ring[::2], ring[1::2], ce.NearestNeighbours(2), statistic="max", null=null
        )
        assert found.statistic < -6
        assert found.pvalue > 0.999


LAWS = [(name, null) for name, one in STATISTICS.items() for null in one.nulls]


@pytest.mark.parametrize(("statistic", "null"), LAWS)
def test_smooth_pvalues_have_gradients(statistic, null):
    def log_p(upper):
        i, j = torch.triu_indices(6, 6, 1)
        W = torch.zeros(6, 6, dtype=torch.float64).index_put((i, j), upper)
        W = W + W.T
        moments = label_moments(DenseWeights(W), 2, 4)
        within = W[:2, :2].sum() / 2, W[2:, 2:].sum() / 2
        return smooth_pvalue(STATISTICS[statistic], null, *within, moments)

    upper = torch.rand(15, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(log_p, (upper.requires_grad_(),), fast_mode=True)


def test_every_statistic_but_the_studentized_one_has_a_law():
    """So that the list above is no shorter than it should be."""
    assert {name for name, _ in LAWS} == {*STATISTICS} - {"mmd_ratio"}
    assert len(LAWS) == 12


def test_log_pvalues_far_below_the_range_of_floats():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(750, 2)), rng.normal(size=(750, 2)) + 9
    for null in ("normal", "pearson3"):
        found = ce.two_sample(x, y, ce.NearestNeighbours(3), null=null)
        assert found.log_pvalue < -700
        assert 0 < found.pvalue < 1e-300
    assert "log" in repr(found)


def test_a_regular_graph_has_one_degree_of_freedom():
    """On a ring all degrees are equal, and R_x - R_y cannot vary where the samples are equal."""
    angle = np.linspace(0, 2 * np.pi, 13)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    found = ce.two_sample(
        ring[::2], ring[1::2], ce.NearestNeighbours(2), statistic="generalized", null="normal"
    )
    expected = stats.chi2.sf(found.statistic, 1)
    assert found.pvalue == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("statistic", "null"), REFUSED)
def test_laws_are_refused_where_there_is_no_theory(statistic, null):
    with pytest.raises(ValueError, match=f"does not go with statistic='{statistic}'"):
        ce.two_sample([1, 2, 3], [4, 5], ce.SpanningTree(), statistic=statistic, null=null)


@pytest.mark.parametrize("temperature", [0.0, 0.3, "median"])
@pytest.mark.parametrize("n_x", [50, 20])
def test_fishers_rule_is_nearer_to_its_law_than_the_sum_of_squares(n_x, temperature):
    """Smooth weights are skewed under the null, which the generalized count does not know."""
    rng = np.random.default_rng(n_x)
    x, y = rng.normal(size=(n_x, 3)), rng.normal(size=(100 - n_x, 3))
    weights = ce.NearestNeighbours(3, temperature)

    def nominal(statistic, degrees, p):
        drawn = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=50_000, rng=0)
        return stats.chi2.sf(np.quantile(drawn.null_distribution, 1 - p), degrees) / p

    assert nominal("fisher", 4, 0.05) == pytest.approx(1, abs=0.25)
    one, other = nominal("fisher", 4, 0.001), nominal("generalized", 2, 0.001)
    assert abs(math.log(one)) < min(1, abs(math.log(other)))


def test_moments_of_the_largest_are_those_of_its_law():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(40, 2))
    drawn = ce.two_sample(x, y, ce.SpanningTree(1.0), statistic="max", n_resamples=50_000, rng=0)
    W = ce.SpanningTree(1.0).pairs(point_distances(np.concatenate([x, y]), 2.0))
    law = asymptotic_law(STATISTICS["max"], "pearson3", label_moments(W, 50, 40))
    assert float(law.mean) == pytest.approx(drawn.null_mean, abs=0.05)
    assert float(law.std) == pytest.approx(drawn.null_std, rel=0.1)
    stopped = ce.two_sample(x, y, ce.SpanningTree(1.0), statistic="max", early_stopping=1, rng=0)
    assert stopped.null_std == pytest.approx(drawn.null_std, rel=0.2)
    assert "stopped early" in stopped.method


CASES = [
    *product(("tree", "1-NN", "5-NN"), (0.0, 0.05, 0.5, 20.0), (12,)),
    *product(("tree", "1-NN", "5-NN"), (0.0, 0.5), (30,)),
]


@pytest.mark.parametrize(("family", "temperature", "n_x"), CASES)
def test_pearson3_is_near_the_permutations(family, temperature, n_x):
    """Within 6%, and what 100,000 permutations leave to chance, from 0.2 down to 0.001."""
    weights = {
        "tree": ce.SpanningTree(temperature),
        "1-NN": ce.NearestNeighbours(1, temperature),
        "5-NN": ce.NearestNeighbours(5, temperature),
    }[family]
    points = torch.as_tensor(np.random.default_rng(11).normal(size=(60, 3)))
    pairs = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(pairs, n_x, 60 - n_x, fourth=True)
    values = np.sort(permute(pairs, CROSS, moments, 100_000, 0).values)
    law = exact_law(CROSS, moments)
    for level in (0.2, 0.05, 0.01, 0.001):
        value = values[int(level * len(values))]
        share = (values <= value + 1e-9).mean()
        z = (law.mean - value) / law.std
        found = float(torch.exp(log_form_tail("pearson3", z, moments, CROSS.form(moments), -1)))
        chance = 3.5 * math.sqrt(share * len(values)) / (share * len(values))
        assert found == pytest.approx(share, rel=0.06 + chance), level


def test_log_pvalues_of_five_cumulants_have_gradients():
    def log_p(upper):
        i, j = torch.triu_indices(12, 12, 1)
        W = torch.zeros(12, 12, dtype=torch.float64).index_put((i, j), upper)
        W = W + W.T
        moments = label_moments(DenseWeights(W), 5, 7, fourth=True)
        within = W[:5, :5].sum() / 2, W[5:, 5:].sum() / 2
        return smooth_pvalue(CROSS, "pearson3", *within, moments)

    points = torch.as_tensor(np.random.default_rng(0).normal(size=(12, 2)))
    points[5:] += 2.0
    i, j = torch.triu_indices(12, 12, 1)
    upper = torch.exp(-torch.cdist(points, points))[i, j].requires_grad_()
    assert float(log_p(upper).detach()) < -2
    assert torch.autograd.gradcheck(log_p, (upper,), rtol=1e-4, fast_mode=True)


# points (number, dimension, seed), graph, temperature over the median distance, n_x, and the shares
# of 10 million permutations that reach z; right to 0.3% at 0.01, 1% at 0.001, 3% at 0.0001
SHARP = [
    (
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
    (
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
    (
        (100, 2, 0),
        "5-NN",
        0.0,
        50,
        {1.2991: 1.076e-01, 2.5613: 1.113e-02, 3.6131: 1.006e-03, 4.4546: 1.075e-04},
    ),
]


@pytest.mark.parametrize(("points", "family", "relative", "n_x", "shares"), SHARP)
def test_pearson3_is_right_to_a_tenth_down_to_1e_4(points, family, relative, n_x, shares):
    n, d, seed = points
    points = torch.as_tensor(np.random.default_rng(seed).normal(size=(n, d)))
    distances = torch.cdist(points, points)
    temperature = relative * float(distances[distances > 0].median())
    weights = {
        "tree": ce.SpanningTree(temperature),
        "1-NN": ce.NearestNeighbours(1, temperature),
        "5-NN": ce.NearestNeighbours(5, temperature),
    }[family]
    pairs = weights.pairs(matrix_distances(distances.numpy()))
    moments = label_moments(pairs, n_x, n - n_x, fourth=True)
    form, structure = CROSS.form(moments), structure_of(pairs, n_x)
    for z, share in shares.items():
        z = torch.tensor(z, dtype=torch.float64)
        found = float(torch.exp(log_form_tail("pearson3", z, moments, form, -1, structure)))
        assert found == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(
    ("weights", "n", "n_x"),
    [
        (ce.SpanningTree(0.5), 22, 11),
        (ce.NearestNeighbours(3), 24, 8),
        (ce.SpanningTree(0.5), 26, 6),
        (ce.NearestNeighbours(3), 26, 6),
    ],
)
def test_pearson3_is_near_all_labellings_of_few_points(weights, n, n_x):
    points = torch.as_tensor(np.random.default_rng(5).normal(size=(n, 2)))
    pairs = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(pairs, n_x, n - n_x, fourth=True)
    drawn = permute(pairs, CROSS, moments, 1_000_000, 0)
    assert drawn.exact
    values, law = np.sort(drawn.values), exact_law(CROSS, moments)
    form, structure = CROSS.form(moments), structure_of(pairs, n_x)
    for level in (0.2, 0.05, 0.01, 0.001):
        value = values[int(level * len(values))]
        z = (law.mean - value) / law.std
        found = float(torch.exp(log_form_tail("pearson3", z, moments, form, -1, structure)))
        share = (values <= value + 1e-9).mean()
        assert found == pytest.approx(share, rel=0.05 if level > 0.001 else 0.1)


def test_max_of_a_count_in_steps_and_one_without():
    """Half a step is taken off where the observed value is one of the steps, and nowhere else."""
    rng = np.random.default_rng(1)
    for _ in range(2):
        given = rng.normal(size=(40, 3)), 1.3 * rng.normal(size=(25, 3)), ce.SpanningTree()
        drawn = ce.two_sample(*given, statistic="max", n_resamples=50_000, rng=0).pvalue
        smooth = ce.two_sample(*given, statistic="max", null="pearson3").pvalue
        assert smooth == pytest.approx(drawn, rel=0.04)


@pytest.mark.parametrize(
    ("matrix", "words"), [(ce.SpanningTree(), "SpanningTree"), (None, "shape")]
)
def test_normality_of_what_is_no_matrix(matrix, words):
    with pytest.raises((TypeError, ValueError), match=rf"{words}.*weights\(distances\)"):
        ce.normality(matrix, 2, 2)
