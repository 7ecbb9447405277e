"""The family of edge counts and their nulls, against enumeration and independent formulas."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import crossedge as ce
from brute_force import all_labellings
from crossedge.distances import matrix_distances, point_distances
from crossedge.null.laws import exact_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import permute, within_sums
from crossedge.null.pvalues import log_form_tail, smooth_pvalue
from crossedge.numerics.saddlepoint import log_five_cumulant_tail
from crossedge.numerics.tails import log_four_moment_tail, log_pearson3_tail, log_pearson3_tails
from crossedge.statistics import STATISTICS
from crossedge.weights import DenseWeights
from test_null import bits, random_graph

SIZES = st.integers(1, 5)


SMOOTH = ["normal", "pearson3"]
REFUSED = [("generalized", "pearson3"), ("fisher", "normal")]
PLAIN = [name for name in STATISTICS if name not in ("mmd_ratio", "energy")]


def random_matrix(n, seed, density=1.0):
    rng = np.random.default_rng(seed)
    W = rng.exponential(size=(n, n)) * (rng.random((n, n)) < density)
    return torch.as_tensor(np.triu(W, 1) + np.triu(W, 1).T)


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


def test_the_dense_engine_counts_what_the_definition_says():
    n = 50
    W = random_matrix(n, 1)
    labels = np.random.default_rng(0).integers(2**64, size=(n, 8), dtype=np.uint64)
    x, y, _ = within_sums(DenseWeights(W), labels)
    z = bits(labels).astype(float)
    for found, part in ((x, z), (y, 1 - z)):
        np.testing.assert_allclose(found, ((part @ W.numpy()) * part).sum(1) / 2, rtol=1e-11)


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


@pytest.mark.parametrize("statistic", PLAIN)
@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(3, 0.3)], ids=repr)
def test_smooth_pvalues_are_near_those_of_permutations(statistic, weights):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(90, 2)) * [1.15, 1.1]
    options = {"statistic": statistic, "rng": 0}
    exact = ce.two_sample(x, y, weights, n_resamples=99_999, **options)
    nulls = {"generalized": ["normal"], "fisher": ["pearson3"]}.get(statistic, SMOOTH)
    found = [ce.two_sample(x, y, weights, null=null, **options) for null in nulls]
    for one in found:
        assert one.statistic == pytest.approx(exact.statistic)
        assert one.pvalue == pytest.approx(math.exp(one.log_pvalue))
        assert one.pvalue == pytest.approx(exact.pvalue, rel=0.4, abs=0.01)
    assert found[-1].pvalue == pytest.approx(exact.pvalue, rel=0.25, abs=0.005)


@pytest.mark.parametrize("statistic", PLAIN)
def test_levels_hold(statistic):
    rng = np.random.default_rng(7)
    pvalues = []
    for _ in range(200):
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
        assert share < level + 3.5 * math.sqrt(level * (1 - level) / 200)


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


def reference_tail(z, skewness):
    """By integration in high precision."""
    with mpmath.workdps(30):
        z, g = mpmath.mpf(z), mpmath.mpf(skewness)
        end = -2 / g if g < 0 else mpmath.inf
        if g > 0 and z <= -2 / g:
            return 0.0
        if z >= end:
            return -math.inf

        def density(u):
            if g == 0:
                return mpmath.npdf(u)
            k = 4 / g**2
            w = u * g / 2
            if w <= -1:
                return mpmath.mpf(0)
            constant = mpmath.loggamma(k) - (k - mpmath.mpf(1) / 2) * mpmath.log(k) + k
            return mpmath.exp(k * (mpmath.log1p(w) - w) - mpmath.log1p(w) - constant)

        steps = [z + step for step in (0, 0.01, 0.03, 0.1, 0.3, 0.6, 1, 2, 4, 8, 16, 32, 64, 200)]
        area = mpmath.quad(density, [step for step in steps if step < end] + [end])
        return float(mpmath.log(area))


@pytest.mark.parametrize("skewness", [0, 1e-8, 1e-3, 0.3, 0.51, 1, 2.8, -0.3, -1])
def test_log_tails_far_out(skewness):
    for z in (-3, -0.3, 0.2, 2, 8, 31):
        found = log_pearson3_tail(
            torch.tensor(z, dtype=torch.float64), torch.tensor(skewness, dtype=torch.float64)
        )
        if skewness < 0 and z > -1.8 / skewness:  # close to the end of the law, or beyond
            assert -math.inf < float(found) < -2
            continue
        expected = reference_tail(z, skewness)
        close = 1e-7 if skewness > 0 and z < -1.8 / skewness else 1e-12  # as good as certain
        assert float(found) == pytest.approx(expected, rel=1e-11, abs=close), z


def as_double(*values):
    return (torch.tensor(value, dtype=torch.float64) for value in values)


@pytest.mark.parametrize("skewness", [-1.4, -1.6, -2.0, -3.0, -5.0])
def test_log_tails_fall_all_the_way_past_the_end_of_a_law(skewness):
    z = torch.linspace(-3, 5, 4001, dtype=torch.float64, requires_grad=True)
    found = log_pearson3_tail(z, torch.tensor(skewness, dtype=torch.float64))
    assert (found.diff() < 0).all()
    assert (found.diff() > -0.06).all()  # and nowhere all at once
    (slope,) = torch.autograd.grad(found.sum(), z)
    assert (slope < 0).all()
    inside = -1.7 / skewness
    found = log_pearson3_tail(*as_double(inside, skewness))
    assert float(found) == pytest.approx(reference_tail(inside, skewness), rel=1e-3)


@pytest.mark.parametrize(("skewness", "excess"), [(-0.3, 0.235), (-0.5, 0.5), (-1.0, 2.5)])
def test_four_moment_tails_do_not_end_where_the_law_does_not(skewness, excess):
    z = torch.linspace(-1, 8, 4001, dtype=torch.float64)
    found = log_four_moment_tail(z, *as_double(skewness, excess))
    assert (found.diff() < 0).all()
    assert (found.diff() > -0.08).all()


def hub(n=60):
    """One point that is everybody's neighbour: where it is, decides."""
    points = np.random.default_rng(0).normal(size=(n, 10))
    points /= np.linalg.norm(points, axis=1, keepdims=True) ** 0.7
    points[0] *= 0.21
    return points


@pytest.mark.parametrize("chosen", [[4, 11, 36, 52], [27, 30, 36, 41]])
def test_pearson3_does_not_err_by_orders_of_magnitude_on_hubs(chosen):
    x, y = hub()[chosen], np.delete(hub(), chosen, 0)
    weights = ce.NearestNeighbours(1, 0.2)
    drawn = ce.two_sample(x, y, weights, n_resamples=200_000, rng=0)
    smooth = ce.two_sample(x, y, weights, null="pearson3")
    assert abs(smooth.log_pvalue - drawn.log_pvalue) < 1


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


@pytest.mark.parametrize("skewness", [0.0, 1e-4, 0.003, 0.011, 0.3, 1.2, -0.002, -0.02, -0.4, -2.5])
def test_many_log_tails(skewness):
    z = torch.randn(5000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 4
    g = torch.tensor(skewness, dtype=torch.float64)
    found, exact = log_pearson3_tails(z, g), log_pearson3_tail(z, g)
    inside = (1 + g * z / 2 > 0.15) if skewness > 0 else z < 1e9  # the exact one errs at its start
    np.testing.assert_allclose(found[inside], exact[inside], rtol=2e-6, atol=1e-8)
    assert torch.equal(log_pearson3_tails(z[7:8], g), found[7:8])
    with torch.inference_mode():
        assert torch.equal(log_pearson3_tails(z, g), found)


@pytest.mark.parametrize("skewness", [2.0, 5.0, 30.0, 1e5, -10.0])
def test_log_tails_of_extreme_skewness(skewness):
    z = torch.linspace(-1, 3, 2001, dtype=torch.float64)
    found = log_pearson3_tails(z, torch.tensor(skewness, dtype=torch.float64))
    assert (found <= 0).all()
    assert (found.diff() <= 1e-12).all()
    if skewness > 0:
        expected = stats.pearson3.logsf(z.numpy(), skewness)
        seen = (expected > -300) & (abs(1 + skewness * z.numpy() / 2) > 1e-9)  # where it starts
        np.testing.assert_allclose(found.numpy()[seen], expected[seen], rtol=1e-6, atol=1e-9)


def test_log_tails_have_gradients():
    z = torch.tensor([0.3, 2.0, 5.0, 30.0, -1.0], dtype=torch.float64, requires_grad=True)
    for skewness in (0.4, -0.05, 0.0, 1e-4, 1.3):
        gamma = torch.full((5,), skewness, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(log_pearson3_tail, (z, gamma))


@pytest.mark.parametrize(
    ("skewness", "excess"), [(1.48, 2.96), (0.9, 0.8), (0.2, -0.4), (-0.3, -0.2), (0.5, 0.6)]
)
def test_four_moment_tails_have_gradients(skewness, excess):
    """Also where the density rises steeply from its end."""
    point = [
        torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for value in (1.63, skewness, excess)
    ]
    assert torch.autograd.gradcheck(log_four_moment_tail, point, rtol=1e-4)


def test_smooth_pvalues_have_gradients():
    for statistic in STATISTICS.values():
        for null in ("normal", "pearson3"):
            if statistic.studentized or (statistic.name, null) in REFUSED:
                continue

            def log_p(upper, statistic=statistic, null=null):
                i, j = torch.triu_indices(6, 6, 1)
                W = torch.zeros(6, 6, dtype=torch.float64).index_put((i, j), upper)
                W = W + W.T
                moments = label_moments(DenseWeights(W), 2, 4)
                within = W[:2, :2].sum() / 2, W[2:, 2:].sum() / 2
                return smooth_pvalue(statistic, null, *within, moments)

            upper = torch.rand(
                15, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
            ).requires_grad_()
            assert torch.autograd.gradcheck(log_p, (upper,))


def test_log_pvalues_far_below_the_range_of_floats():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2)) + 4
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
    smooth = ce.two_sample(x, y, ce.SpanningTree(1.0), statistic="max", null="pearson3")
    assert smooth.null_mean == pytest.approx(drawn.null_mean, abs=0.05)
    assert smooth.null_std == pytest.approx(drawn.null_std, rel=0.1)
    stopped = ce.two_sample(x, y, ce.SpanningTree(1.0), statistic="max", early_stopping=1, rng=0)
    assert stopped.null_std > 0
    assert "stopped early" in stopped.method


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


@pytest.mark.parametrize(("a", "b"), [(3, 8), (8, 3), (20, 21), (5, 60), (2.5, 2.5)])
def test_light_tails_are_beta(a, b):
    mean, variance, skewness, excess = (float(m) for m in stats.beta.stats(a, b, moments="mvsk"))
    for z in (0.9, 1.2, 1.5):
        moments = (torch.tensor(value, dtype=torch.float64) for value in (z, skewness, excess))
        expected = stats.beta.logsf(mean + z * math.sqrt(variance), a, b)
        assert float(log_four_moment_tail(*moments)) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("skewness", "excess"), [(0.5, 0.6), (1.5, 3.7), (2.4, 9.3), (0.3, 0.3)])
def test_heavy_tails_are_gamma_and_normal(skewness, excess):
    a = excess / (3 * skewness)
    k = skewness / (2 * a**3)
    normal = np.linspace(-9, 9, 20001)
    share = stats.norm.pdf(normal) / stats.norm.pdf(normal).sum()
    for z in (1.0, 3.0, 6.0):
        part = (z - math.sqrt(1 - k * a**2) * normal) / a + k
        expected = math.log((share * stats.gamma.sf(part, k)).sum())
        moments = (torch.tensor(value, dtype=torch.float64) for value in (z, skewness, excess))
        assert float(log_four_moment_tail(*moments)) == pytest.approx(expected, abs=0.015)


def test_four_moment_tails_are_finite_monotone_and_have_gradients():
    for skewness, excess in [(0.5, 0.6), (0.5, 0.2), (-0.1, -0.1), (1.5, 3.7), (0.0, 0.05)]:
        z = torch.linspace(-3, 12, 200, dtype=torch.float64)
        shape = torch.full_like(z, skewness), torch.full_like(z, excess)
        tail = log_four_moment_tail(z, *shape)
        assert torch.isfinite(tail).all()
        assert (tail.diff() <= 0).all()
        few = [part[::60].clone().requires_grad_() for part in (z, *shape)]
        assert torch.autograd.gradcheck(log_four_moment_tail, few)


CASES = [
    (family, temperature, n_x)
    for family in ("tree", "1-NN", "5-NN")
    for temperature in (0.0, 0.05, 0.5, 20.0)
    for n_x in (30, 12)
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
    cross = STATISTICS["cross"]
    values = np.sort(permute(pairs, cross, moments, 100_000, 0).values)
    law = exact_law(cross, moments)
    for level in (0.2, 0.05, 0.01, 0.001):
        value = values[int(level * len(values))]
        share = (values <= value + 1e-9).mean()
        z = (law.mean - value) / law.std
        found = float(torch.exp(log_form_tail("pearson3", z, moments, cross.form(moments), -1)))
        chance = 3.5 * math.sqrt(share * len(values)) / (share * len(values))
        assert found == pytest.approx(share, rel=0.06 + chance), level


@pytest.mark.parametrize("weights", [ce.SpanningTree(0.3), ce.NearestNeighbours(3)], ids=repr)
@pytest.mark.parametrize("n_x", [30, 12])
def test_the_fifth_cumulant_is_near_that_of_the_permutations(weights, n_x):
    """Right but for terms smaller by 1/n, here 60, and what a million permutations leave."""
    points = torch.as_tensor(np.random.default_rng(2).normal(size=(60, 2)))
    pairs = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(pairs, n_x, 60 - n_x, fourth=True)
    for name in ("cross", "weighted"):
        form = STATISTICS[name].form(moments)
        values = permute(pairs, STATISTICS[name], moments, 1_000_000, 0).values
        z = (values - values.mean()) / values.std()
        found = float(moments.fifth_cumulant(form))
        assert found == pytest.approx((z**5).mean() - 10 * (z**3).mean(), rel=0.2, abs=0.05), name


FIVE = [
    (0.4, 0.2, 0.1),
    (0.01, -0.05, -0.02),
    (-0.1, 0.02, 0.03),
    (1.5, 3.7, 12.3),
    (0.3, 0.2, 0.2),
]


@pytest.mark.parametrize(("skewness", "excess", "fifth"), FIVE)
def test_five_cumulant_tails_fall_and_have_gradients(skewness, excess, fifth):
    shape = skewness, excess, fifth, 0.2
    z = torch.linspace(-3, 40, 2000, dtype=torch.float64)
    tail = log_five_cumulant_tail(z, *as_double(*shape))
    assert torch.isfinite(tail).all()
    assert (tail.diff() < 1e-12).all()
    few = torch.tensor([-1.0, 0.5, 1.5, 3.2, 6.0, 30.0], dtype=torch.float64, requires_grad=True)
    point = [few, *(value.requires_grad_() for value in as_double(*shape))]
    assert torch.autograd.gradcheck(log_five_cumulant_tail, point, rtol=1e-4)


@pytest.mark.parametrize("kappa", [3.0, 9.0, 40.0])
def test_five_cumulant_tails_of_known_laws(kappa):
    """A gamma law, and a Poisson law with its steps."""
    g, x, y = 2 / kappa**0.5, 6 / kappa, 24 / kappa**1.5
    for z in (1.0, 2.5, 5.0):
        expected = stats.gamma.logsf(kappa + z * kappa**0.5, kappa)
        assert float(log_five_cumulant_tail(*as_double(z, g, x, y))) == pytest.approx(
            expected, 1e-9
        )
    spread = kappa**0.5
    for count in (int(kappa + 1.5 * spread), int(kappa + 3.5 * spread)):
        z = (count - 0.5 - kappa) / spread
        shape = 1 / spread, 1 / kappa, 1 / kappa**1.5, 1 / spread
        found = float(log_five_cumulant_tail(*as_double(z, *shape)))
        assert found == pytest.approx(stats.poisson.logsf(count - 1, kappa), abs=0.02)


def test_log_pvalues_of_five_cumulants_have_gradients():
    def log_p(upper):
        i, j = torch.triu_indices(12, 12, 1)
        W = torch.zeros(12, 12, dtype=torch.float64).index_put((i, j), upper)
        W = W + W.T
        moments = label_moments(DenseWeights(W), 5, 7, fourth=True)
        within = W[:5, :5].sum() / 2, W[5:, 5:].sum() / 2
        return smooth_pvalue(STATISTICS["cross"], "pearson3", *within, moments)

    points = torch.as_tensor(np.random.default_rng(0).normal(size=(12, 2)))
    points[5:] += 2.0
    i, j = torch.triu_indices(12, 12, 1)
    upper = torch.exp(-torch.cdist(points, points))[i, j].requires_grad_()
    assert float(log_p(upper).detach()) < -2
    assert torch.autograd.gradcheck(log_p, (upper,), rtol=1e-4)


# points (number, dimension, seed), graph, temperature over the median distance, n_x, and the shares
# of 10 million permutations that reach z; right to 0.3% at 0.01, 1% at 0.001, 3% at 0.0001
SHARP = [
    (
        (60, 3, 11),
        "1-NN",
        20.0,
        12,
        {1.3308: 9.957e-02, 2.6219: 9.968e-03, 3.6519: 9.978e-04, 4.5840: 9.980e-05},
    ),
    (
        (60, 3, 11),
        "tree",
        0.5,
        12,
        {1.3326: 9.957e-02, 2.7142: 9.968e-03, 3.8592: 9.978e-04, 4.9212: 9.980e-05},
    ),
    (
        (60, 3, 11),
        "1-NN",
        0.0,
        12,
        {1.3361: 1.196e-01, 2.5171: 1.005e-02, 3.4028: 6.484e-04, 3.9933: 6.490e-05},
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
        "tree",
        1.0,
        20,
        {1.3315: 9.957e-02, 2.6773: 9.968e-03, 3.7698: 9.978e-04, 4.7496: 9.980e-05},
    ),
    (
        (100, 2, 0),
        "tree",
        0.3,
        50,
        {1.3254: 9.957e-02, 2.9469: 9.968e-03, 4.4256: 9.978e-04, 5.8312: 9.980e-05},
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
    moments = label_moments(
        weights.pairs(matrix_distances(distances.numpy())), n_x, n - n_x, fourth=True
    )
    form = STATISTICS["cross"].form(moments)
    for z, share in shares.items():
        (z,) = as_double(z)
        found = float(torch.exp(log_form_tail("pearson3", z, moments, form, -1)))
        assert found == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(("n", "n_x"), [(22, 11), (24, 8), (26, 6)])
@pytest.mark.parametrize("weights", [ce.SpanningTree(0.5), ce.NearestNeighbours(3)], ids=repr)
def test_pearson3_is_near_all_labellings_of_few_points(weights, n, n_x):
    points = torch.as_tensor(np.random.default_rng(5).normal(size=(n, 2)))
    pairs = weights.pairs(matrix_distances(torch.cdist(points, points).numpy()))
    moments = label_moments(pairs, n_x, n - n_x, fourth=True)
    cross = STATISTICS["cross"]
    drawn = permute(pairs, cross, moments, 1_000_000, 0)
    assert drawn.exact
    values, law = np.sort(drawn.values), exact_law(cross, moments)
    for level in (0.2, 0.05, 0.01, 0.001):
        value = values[int(level * len(values))]
        z = (law.mean - value) / law.std
        found = float(torch.exp(log_form_tail("pearson3", z, moments, cross.form(moments), -1)))
        share = (values <= value + 1e-9).mean()
        assert found == pytest.approx(share, rel=0.05 if level > 0.001 else 0.1)
