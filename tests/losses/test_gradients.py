"""Losses and gradients of compiled loops, against a tape of the same definitions."""

import numpy as np
import pytest
import torch

import crossedge as ce
from crossedge.losses.in_torch import loss_in_torch
from crossedge.losses.points import MANY_COLUMNS, DirectPoints, ProductPoints, scaled_points
from crossedge.moments import LabelMoments
from crossedge.statistics import STATISTICS, WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights

FAMILIES = [
    ce.NearestNeighbours(1, 1.5),
    ce.NearestNeighbours(1, 0.02),  # colder than the fused loops serve
    ce.NearestNeighbours(1, (0.5, 2.0)),
    ce.NearestNeighbours(3, 1.0),
    ce.SpanningTree("median"),
    ce.GaussianKernel((1.0, 2.0)),
    ce.LaplaceKernel(2.0),
    ce.InverseMultiquadricKernel(),
    ce.EnergyKernel(),
]
KINDS = [
    ("cross", True),
    ("cross", False),
    ("cross", "normal"),
    ("cross", "pearson3"),
    ("weighted", False),
    ("generalized", True),
    ("generalized", "normal"),
    ("max", "pearson3"),
    ("fisher", True),
    ("mmd", "pearson3"),
    ("mmd_ratio", True),
    ("energy", False),
]


def by_tape(loss, x, y):
    """The loss as a composition of public parts, left to autograd."""
    pooled, n_x = torch.cat([x, y]), len(x)
    exact = "donot_use_mm_for_euclid_dist"
    W = loss.weights(torch.cdist(pooled, pooled, compute_mode=exact))
    within = WithinSums(W[:n_x, :n_x].sum() / 2, W[n_x:, n_x:].sum() / 2)
    if loss.statistic.studentized:
        in_x = (torch.arange(len(W)) < n_x).to(W)[:, None]
        within = within._replace(deviation=mmd_deviation(W, in_x)[0])
    return loss.settings.of_sums(within, LabelMoments(DenseWeights(W), n_x, len(y)))


def points(d, n_x=20, n_y=31, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n_x, d)), 1.3 * rng.normal(size=(n_y, d)) + 0.2
    return torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
@pytest.mark.parametrize("d", [3, MANY_COLUMNS])
def test_values_and_gradients_are_those_of_a_tape(weights, d):
    for statistic, standardize in KINDS:
        if statistic == "energy" and not isinstance(weights, ce.EnergyKernel):
            continue
        loss, (x, y) = ce.TwoSampleLoss(weights, statistic, standardize), points(d)
        expected, found = by_tape(loss, x, y), loss(x, y)
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-9)
        gradients = torch.autograd.grad(expected, (x, y))
        scale = max(float(one.abs().max()) for one in gradients)
        for ours, theirs in zip(torch.autograd.grad(found, (x, y)), gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7 * scale)
        # a gradient in one sample alone is the same
        alone = loss(x.detach(), y)
        (in_y,) = torch.autograd.grad(alone, y)
        torch.testing.assert_close(in_y, gradients[1], rtol=0, atol=1e-7 * scale)
        assert torch.equal(alone, found)
        with torch.no_grad():
            assert torch.equal(loss(x, y), found)


@pytest.mark.parametrize("weights", FAMILIES, ids=repr)
def test_torch_alone_agrees_with_compiled_loops(weights):
    for standardize in (True, False, "pearson3"):
        loss, (x, y) = ce.TwoSampleLoss(weights, standardize=standardize), points(3)
        scales = loss.settings.scales
        scale = torch.tensor(scales, dtype=torch.float64) if scales else None
        found, expected = loss_in_torch(loss.settings, x, y, scale), loss(x, y)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
        ours, theirs = (torch.autograd.grad(one, (x, y)) for one in (found, expected))
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_single_precision_stays_single_in_torch_alone():
    for weights in (ce.NearestNeighbours(3, 1.0), ce.GaussianKernel(), ce.EnergyKernel()):
        loss, (x, y) = ce.TwoSampleLoss(weights), points(3)
        scale = torch.tensor(loss.settings.scales) if loss.settings.scales else None
        found = loss_in_torch(loss.settings, x.float(), y.float(), scale)
        assert found.dtype == torch.float32
        assert found.item() == pytest.approx(loss(x, y).item(), rel=1e-4)


class TestProductOfMatrices:
    """In many columns: near points, equal points and the gradient must not suffer from it."""

    def pooled(self, kind, d=MANY_COLUMNS):
        rng = np.random.default_rng(4)
        pooled = rng.normal(size=(40, d))
        if kind == "far from the origin":
            pooled += 1e6
        elif kind == "a few near pairs":
            pooled[20:25] = pooled[:5] + 1e-9 * rng.normal(size=(5, d))
        elif kind == "a few equal pairs":
            pooled[20:25] = pooled[:5]
        elif kind == "collapsed":
            pooled[20:] = pooled[0] + 1e-12 * rng.normal(size=(20, d))
        elif kind == "clusters far apart":
            pooled[20:] += 1e4
        return pooled

    KINDS = (
        "normal",
        "far from the origin",
        "a few near pairs",
        "a few equal pairs",
        "collapsed",
        "clusters far apart",
    )

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("first", [0, 15])
    def test_distances_and_gradients_are_those_of_differences(self, kind, first):
        pooled = self.pooled(kind)
        product, direct = scaled_points(pooled), DirectPoints(np.ascontiguousarray(pooled.T), 1.0)
        assert isinstance(product, ProductPoints)
        expected = direct.distances
        found = product.distances / product.scale
        assert np.array_equal(found, found.T)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
        push = np.random.default_rng(5).normal(size=(40, 40))
        spread = np.where(expected > 0, push / np.where(expected > 0, expected, 1.0), 0.0)[first:]
        theirs = direct.pull(spread, first)
        ours = product.pull(spread, first) / product.scale
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)

    def test_single_precision(self):
        pooled = self.pooled("a few near pairs").astype(np.float32)
        found = scaled_points(pooled)
        expected = DirectPoints(np.ascontiguousarray(pooled.T, np.float64), 1.0).distances
        np.testing.assert_allclose(found.distances / found.scale, expected, rtol=2e-5)


class TestLearnedScales:
    FAMILIES = (
        lambda t: ce.NearestNeighbours(1, t),
        lambda t: ce.NearestNeighbours(3, t),
        ce.SpanningTree,
        ce.GaussianKernel,
        ce.LaplaceKernel,
    )

    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("scale", [0.7, [0.7, 1.5]], ids=["one", "two"])
    @pytest.mark.parametrize("d", [2, MANY_COLUMNS])
    def test_gradient(self, family, scale, d):
        x, y = points(d, 6, 5)
        scale = (torch.tensor(scale) * (d / 2) ** 0.5).double().requires_grad_()
        for standardize in (True, "pearson3"):
            for distance in (2.0, 1.0):

                def loss(t, y, standardize=standardize, distance=distance):
                    made = ce.TwoSampleLoss(family(t), standardize=standardize, distance=distance)
                    return made(x.detach(), y)

                assert torch.autograd.gradcheck(loss, (scale, y), fast_mode=True)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_weights_have_it_too(self, family):
        distances = torch.cdist(*[points(2, 6, 5)[0].detach()] * 2)
        scale = torch.tensor([0.7, 1.5]).double().requires_grad_()
        assert torch.autograd.gradcheck(lambda t: family(t)(distances), (scale,))

    def test_a_parameter_is_learned_in_place(self):
        temperature = torch.nn.Parameter(torch.tensor(2.0))
        loss, (x, y) = ce.TwoSampleLoss(ce.NearestNeighbours(1, temperature)), points(2)
        assert list(loss.parameters()) == [temperature]
        assert "temperature learns" in repr(loss)
        optimizer = torch.optim.SGD(loss.parameters(), lr=0.5)
        before = loss(x, y)
        before.backward()
        optimizer.step()
        after = ce.TwoSampleLoss(ce.NearestNeighbours(1, temperature.item()))(x, y)
        assert loss(x, y).item() == pytest.approx(after.item()) != before.item()
        with torch.no_grad():
            temperature.fill_(-1.0)
        with pytest.raises(ValueError, match=r"temperature=-1.0 is not above 0"):
            loss(x, y)

    def test_a_test_takes_its_value(self):
        x, y = (one.detach() for one in points(2))
        learned = ce.NearestNeighbours(1, torch.tensor(2.0, requires_grad=True))
        found = ce.two_sample(x, y, learned, null="normal")
        assert (
            found.pvalue == ce.two_sample(x, y, ce.NearestNeighbours(1, 2.0), null="normal").pvalue
        )
        assert "temperature 2" in found.method


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("statistic", ["cross", "weighted", "generalized", "max"])
@pytest.mark.parametrize("standardize", [True, False])
def test_candidate_pairs_are_the_whole_where_all_are_candidates(k, statistic, standardize):
    x, y = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (12, 9))
    found = []
    for neighbours in (None, 20):
        weights = ce.NearestNeighbours(k, 0.5, neighbours)
        loss = ce.TwoSampleLoss(weights, statistic, standardize)(x, y)
        found.append((loss, *torch.autograd.grad(loss, (x, y))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_gradients_of_candidate_pairs():
    x, y = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (12, 9))
    scale = torch.tensor([0.5, 0.2], dtype=torch.float64, requires_grad=True)

    def loss(x, y, scale):
        return ce.TwoSampleLoss(ce.NearestNeighbours(2, scale, neighbours=5))(x, y)

    assert torch.autograd.gradcheck(loss, (x, y, scale))
    by_matrix = ce.TwoSampleLoss(ce.NearestNeighbours(2, 0.5, 5), distance=torch.cdist)
    assert torch.autograd.gradcheck(by_matrix, (x, y))


def test_candidate_pairs_need_no_matrix():
    x, y = torch.randn(10_000, 3, requires_grad=True), torch.randn(10_000, 3)
    ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.2, neighbours=4))(x, y).backward()
    assert bool(x.grad.isfinite().all())
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize(("statistic", "standardize"), [("fisher", True), ("cross", "pearson3")])
def test_skewness_does_not_go_with_candidate_pairs(statistic, standardize):
    with pytest.raises(ValueError, match="leave out neighbours"):
        ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.2, neighbours=4), statistic, standardize)


def test_gradients_of_sparse_trees():
    x, y = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (12, 9))
    scale = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)

    def loss(x, y, scale):
        return ce.TwoSampleLoss(ce.SpanningTree(scale, neighbours=4))(x, y)

    assert torch.autograd.gradcheck(loss, (x, y, scale))
    one, other = (
        torch.autograd.grad(ce.TwoSampleLoss(ce.SpanningTree(0.4, neighbours=k))(x, y), x)[0]
        for k in (None, 20)
    )
    torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


class TestExtremes:
    @pytest.mark.parametrize("temperature", [1e4, 1e7, 1e9, 1e11])
    @pytest.mark.parametrize("learns", [False, True])
    def test_high_temperatures_lose_few_digits(self, temperature, learns):
        """W is nearly constant: it is compared with W less that constant, of the same z-score."""
        x, y = (one.detach() for one in points(3, 5, 4))
        D = torch.cdist(torch.cat([x, y]), torch.cat([x, y])).numpy()
        n = len(D)
        less = np.expm1(-D / temperature)  # 0 on the diagonal
        own = less.sum(1, keepdims=True)
        chosen = (less - own / (n - 1)) / (n - 1 + own)
        np.fill_diagonal(chosen, 0.0)
        W = chosen + chosen.T
        moments = LabelMoments(DenseWeights(W), 5, 4)
        form = STATISTICS["cross"].form(moments)
        expected = -moments.zscore(W[:5, :5].sum() / 2, W[5:, 5:].sum() / 2, form)
        scale = torch.tensor(temperature, dtype=torch.float64, requires_grad=learns)
        found = ce.TwoSampleLoss(ce.NearestNeighbours(1, scale))(x, y)
        # sums of W are as large as n, and they are rounded before they are divided by std
        rounding = 16 * np.finfo(float).eps * n / float(moments.std(form))
        assert found.item() == pytest.approx(expected, rel=0, abs=rounding)

    @pytest.mark.parametrize("d", [2, MANY_COLUMNS])
    @pytest.mark.parametrize("scale", [1e-150, 1e-10, 1.0])
    @pytest.mark.parametrize(
        "family",
        [
            ce.GaussianKernel,
            ce.LaplaceKernel,
            ce.InverseMultiquadricKernel,
            lambda t: ce.NearestNeighbours(3, t),
            ce.SpanningTree,
        ],
    )
    def test_scales_that_vanish_beside_the_distances(self, family, scale, d):
        x, y = ((1e300 * one).detach().requires_grad_() for one in points(d, 5, 4))
        y.data[0] = x.data[0]
        leaf = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
        for given in (scale, leaf):
            loss = ce.TwoSampleLoss(family(given))(x, y)
            leaves = (x, y, leaf) if given is leaf else (x, y)
            assert loss.isfinite()
            assert all(one.isfinite().all() for one in torch.autograd.grad(loss, leaves))

    @pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 1e25), (torch.float64, 1e200)])
    @pytest.mark.parametrize("weights", [ce.NearestNeighbours(1, 7.0), ce.GaussianKernel(7.0)])
    def test_outliers_on_both_sides_leave_the_others_alone(self, weights, dtype, far):
        """Their products with each other vanish in the unit of the outliers."""
        loss, found = ce.TwoSampleLoss(weights, "cross"), []
        for d in (MANY_COLUMNS, MANY_COLUMNS - 1):  # a product of matrices, and differences
            pooled = torch.randn(9, MANY_COLUMNS, generator=torch.Generator().manual_seed(0))
            pooled = pooled.to(dtype)
            pooled[0], pooled[1], pooled[:, -1] = far, -far, 0.0
            pooled = pooled[:, :d].contiguous().requires_grad_()
            value = loss(pooled[:5], pooled[5:])
            value.backward()
            found.append((value.detach(), pooled.grad[:, : MANY_COLUMNS - 1]))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_what_candidate_pairs_cannot_do():
    x, y = torch.randn(12, 3, requires_grad=True), torch.randn(9, 3)
    loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.5, neighbours=4))
    (slope,) = torch.autograd.grad(loss(x, y), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        slope.sum().backward()
    with pytest.raises(ValueError, match="accuracy without neighbours"):
        ce.TwoSampleLoss(ce.SpanningTree(0.5, accuracy=0.1))
    with pytest.raises(ValueError, match="works on the CPU only"):
        loss(x.detach().to("meta"), y.to("meta"))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("family", [lambda t: ce.NearestNeighbours(1, t, 4)])
def test_gradients_of_candidate_pairs_in_any_unit(unit, family):
    x, y = (one.detach() for one in points(3, 12, 9))
    slopes = []
    for scale in (1.0, unit):
        leaf = (x * scale).requires_grad_()
        ce.TwoSampleLoss(family(0.5 * scale))(leaf, y * scale).backward()
        slopes.append(leaf.grad * scale)
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-9, atol=1e-12)
