"""The normal law and the gamma law."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import crossedge as ce
from crossedge.data.distances import point_distances
from crossedge.moments import LabelMoments
from crossedge.null import NULLS, Normal, Pearson3
from crossedge.numerics.labellings.draws import draw_labels
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights
from random_weights import random_matrix

TAILS = {law.name: law.log_tail for law in (Normal, Pearson3)}


def log_pvalue(statistic, null, x, y, moments):
    one = STATISTICS[statistic]
    return one.law.log_pvalue(one, x, y, moments, TAILS[null])


LAWS = [(name, null) for name, one in STATISTICS.items() for null in one.nulls if null in TAILS]


@pytest.mark.parametrize(
    "statistic",
    ["cross", "weighted", "generalized", "fisher", pytest.param("max", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(3, 0.3)], ids=repr)
def test_pvalues_by_laws_are_near_those_of_permutations(statistic, weights):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(90, 2)) * [1.15, 1.1]
    exact = ce.two_sample(x, y, weights, statistic=statistic, n_resamples=50_000, rng=0)
    for null in STATISTICS[statistic].nulls:
        found = ce.two_sample(x, y, weights, statistic=statistic, null=null)
        assert found.statistic == pytest.approx(exact.statistic)
        assert found.pvalue == pytest.approx(math.exp(found.log_pvalue))
        assert found.pvalue == pytest.approx(exact.pvalue, rel=0.03 if null == "tail" else 0.1)


@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.GaussianKernel()], ids=repr)
def test_pearson3_is_the_gamma_law_with_exact_moments(weights):
    rng = np.random.default_rng(4)
    given = rng.normal(size=(20, 2)), rng.normal(size=(30, 2)) + 0.4, weights
    found = ce.two_sample(*given, statistic="weighted", null="pearson3")
    law = stats.pearson3(found.null_skewness, found.null_mean, found.null_std)
    assert found.pvalue == pytest.approx(law.sf(found.statistic), rel=1e-9)
    normal = ce.two_sample(*given, statistic="weighted", null="normal")
    assert normal.pvalue == pytest.approx(stats.norm.sf(normal.zscore), rel=1e-9)


def test_the_largest_score_leaves_out_what_cannot_vary():
    angle = np.linspace(0, 2 * np.pi, 41)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    for null in ("permutation", "normal", "pearson3", "tail"):
        found = ce.two_sample(
            ring[::2], ring[1::2], ce.NearestNeighbours(2), statistic="max", null=null
        )
        assert found.statistic < -6
        assert found.pvalue > 0.999


@pytest.mark.parametrize(("statistic", "null"), LAWS)
def test_pvalues_by_laws_have_gradients(statistic, null):
    def log_p(upper):
        i, j = torch.triu_indices(6, 6, 1)
        W = torch.zeros(6, 6, dtype=torch.float64).index_put((i, j), upper)
        W = W + W.T
        within = W[:2, :2].sum() / 2, W[2:, 2:].sum() / 2
        return log_pvalue(statistic, null, *within, LabelMoments(DenseWeights(W), 2, 4))

    upper = torch.rand(15, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(log_p, (upper.requires_grad_(),), fast_mode=True)


@pytest.mark.parametrize(("statistic", "null"), LAWS)
def test_arrays_and_tensors_have_the_same_pvalues(statistic, null):
    W = random_matrix(12, 3)
    labels = draw_labels(0, 0, 12, 5, 64).T
    within = [((z @ W) * z).sum(1) / 2 for z in (labels, 1 - labels)]
    arrays = log_pvalue(statistic, null, *within, LabelMoments(DenseWeights(W), 5, 7))
    moments = LabelMoments(DenseWeights(torch.from_numpy(W)), 5, 7)
    tensors = log_pvalue(statistic, null, *map(torch.from_numpy, within), moments)
    np.testing.assert_allclose(arrays, tensors, rtol=1e-6, atol=1e-8)


def test_every_statistic_but_the_studentized_one_has_a_law():
    """So that the list above is no shorter than it should be."""
    assert {name for name, _ in LAWS} == {*STATISTICS} - {"mmd_ratio"}
    assert len(LAWS) == 12


@pytest.mark.parametrize("null", ["normal", pytest.param("tail", marks=pytest.mark.slow)])
def test_log_pvalues_far_below_the_range_of_floats(null):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(750, 2)), rng.normal(size=(750, 2)) + 9
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


@pytest.mark.parametrize(
    ("statistic", "null"),
    [
        ("generalized", "pearson3"),
        ("generalized", "tail"),
        ("fisher", "normal"),
        ("fisher", "tail"),
    ],
)
def test_laws_are_refused_where_there_is_no_theory(statistic, null):
    for given in (null, NULLS[null]):
        with pytest.raises(ValueError, match=f"'{null}' does not go with statistic='{statistic}'"):
            ce.two_sample([1, 2, 3], [4, 5], ce.SpanningTree(), statistic=statistic, null=given)


@pytest.mark.parametrize("null", ["permutations", "gamma", None, 3, ce.Tail])
def test_what_is_no_null(null):
    with pytest.raises((TypeError, ValueError), match=r"^null") as error:
        ce.two_sample([1, 2, 3], [4, 5], ce.SpanningTree(), null=null)
    assert "tail" in str(error.value).lower()


def test_names_and_objects_are_the_same():
    rng = np.random.default_rng(0)
    given = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)), ce.SpanningTree(0.3)
    for law in (ce.Normal(), ce.Pearson3(), ce.Tail()):
        one, other = (ce.two_sample(*given, null=null) for null in (law, law.name))
        assert (one.pvalue, one.null, one.law) == (other.pvalue, other.null, other.law)
    for weights in (given[2], None):
        for null, rng in ((ce.Permutation(999, 5), 1), (ce.Permutation(999), 5)):
            drawn = ce.two_sample(*given[:2], weights, null=null, rng=rng)
            alike = ce.two_sample(*given[:2], weights, n_resamples=999, rng=5)
            assert (drawn.pvalue, drawn.n_resamples) == (alike.pvalue, 999)
    with pytest.raises(ValueError, match="n_resamples=0 is too small"):
        ce.two_sample(*given, null=ce.Permutation(0))


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
    largest = STATISTICS["max"]
    law = largest.law.null_moments(largest, LabelMoments(W, 50, 40), TAILS["pearson3"])
    assert float(law.mean) == pytest.approx(drawn.null_mean, abs=0.05)
    assert float(law.std) == pytest.approx(drawn.null_std, rel=0.1)
    stopped = ce.two_sample(x, y, ce.SpanningTree(1.0), statistic="max", early_stopping=1, rng=0)
    assert stopped.null_std == pytest.approx(drawn.null_std, rel=0.2)
    assert "stopped early" in stopped.method


@pytest.mark.parametrize(
    ("matrix", "words"), [(ce.SpanningTree(), "SpanningTree"), (None, "shape")]
)
def test_normality_of_what_is_no_matrix(matrix, words):
    with pytest.raises((TypeError, ValueError), match=rf"{words}.*weights\(distances\)"):
        ce.normality(matrix, 2, 2)


@pytest.mark.parametrize("statistic", ["weighted", "mmd", "max"])
@pytest.mark.parametrize("k", [3, 5])
def test_all_points_but_one_in_one_place(k, statistic):
    """The weights have nothing but row effects, so these statistics cannot vary, or hardly."""
    x, y = np.ones((12, 2)), np.concatenate([np.ones((14, 2)), [[2.0, 2.0]]])
    for given in ((x, y), (y, x)):
        for null in ("normal", "pearson3", "tail"):
            found = ce.two_sample(*given, ce.NearestNeighbours(k), statistic=statistic, null=null)
            assert found.pvalue > 0.3
