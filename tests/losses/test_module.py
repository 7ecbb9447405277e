"""Tests as losses, the divergence that they estimate, and how normal they are."""

import math
import pickle

import numpy as np
import pytest
import torch
from scipy import integrate, stats

import crossedge as ce

WEIGHTS = [ce.SpanningTree(0.5), ce.NearestNeighbours(1, 0.5), ce.NearestNeighbours(3, (0.1, 2.0))]
KINDS = [
    ("cross", True),
    ("cross", False),
    ("cross", "normal"),
    ("cross", "pearson3"),
    ("weighted", True),
    ("weighted", False),
    ("weighted", "pearson3"),
    ("generalized", True),
    ("generalized", "normal"),
    ("fisher", True),
    ("fisher", "pearson3"),
    ("max", True),
    ("max", "pearson3"),
]


def samples(n_x=12, n_y=9, shift=0.5, dtype=torch.float64):
    rng = np.random.default_rng(n_x)
    x, y = rng.normal(size=(n_x, 2)), rng.normal(size=(n_y, 2)) + shift
    return torch.as_tensor(x, dtype=dtype), torch.as_tensor(y, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
@pytest.mark.parametrize(("statistic", "standardize"), KINDS)
class TestLoss:
    def test_gradient(self, weights, statistic, standardize):
        loss = ce.TwoSampleLoss(weights, statistic, standardize)
        x, y = samples(5, 4)
        assert torch.autograd.gradcheck(lambda y: loss(x, y), (y,))

    def test_it_falls_as_samples_approach(self, weights, statistic, standardize):
        loss = ce.TwoSampleLoss(weights, statistic, standardize)
        near, far = (loss(*samples(40, 30, shift)) for shift in (0.0, 3.0))
        assert far > near

    def test_float32(self, weights, statistic, standardize):
        loss = ce.TwoSampleLoss(weights, statistic, standardize)
        exact = loss(*samples())
        x, y = samples(dtype=torch.float32)
        found = loss(x, y)
        found.backward()
        assert found.dtype == torch.float32
        assert y.grad.dtype == torch.float32
        assert found.item() == pytest.approx(exact.item(), rel=1e-3)

    def test_collapsed_samples_have_a_finite_loss_and_a_useful_gradient(
        self, weights, statistic, standardize
    ):
        loss = ce.TwoSampleLoss(weights, statistic, standardize)
        x, _ = samples(30, 20)
        y = torch.full((20, 2), 3.0, dtype=torch.float64, requires_grad=True)
        before = loss(x, y)
        before.backward()
        assert torch.isfinite(before)
        assert torch.isfinite(y.grad).all()
        assert y.grad.abs().max() > 1e-6
        step = 0.05 * y.grad / y.grad.norm()
        assert loss(x, y.detach() - step) < before

    def test_everything_equal_is_finite(self, weights, statistic, standardize):
        loss = ce.TwoSampleLoss(weights, statistic, standardize)
        y = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
        value = loss(torch.zeros(6, 2, dtype=torch.float64), y)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(y.grad).all()

    def test_small_samples(self, weights, statistic, standardize):
        sizes = {1: (4, 1), 3: (2, 3)}.get(getattr(weights, "k", 0), (1, 4))
        x, y = samples(*sizes)
        value = ce.TwoSampleLoss(weights, statistic, standardize)(x, y)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(y.grad).all()


def test_losses_are_the_statistics_of_the_test():
    x, y = samples(30, 20)
    weights = ce.SpanningTree(0.3)
    for statistic in ("cross", "weighted", "generalized", "max"):
        found = ce.two_sample(x, y.detach(), weights, statistic=statistic, null="normal")
        sign = -1 if statistic == "cross" else 1
        raw = ce.TwoSampleLoss(weights, statistic, standardize=False)(x, y)
        assert raw.item() == pytest.approx(sign * found.statistic)
        log_p = ce.TwoSampleLoss(weights, statistic, standardize="normal")(x, y)
        assert log_p.item() == pytest.approx(-found.log_pvalue)
        if statistic in ("cross", "weighted"):
            z = ce.TwoSampleLoss(weights, statistic)(x, y)
            assert z.item() == pytest.approx(sign * found.zscore)


@pytest.mark.parametrize("weights", [ce.SpanningTree("median"), ce.NearestNeighbours(2, "median")])
def test_a_collapsed_sample_has_a_gradient_at_the_median_temperature(weights):
    """More than half of all distances are 0 then, and so is their median."""
    x = torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    y = torch.full((40, 2), 3.0, requires_grad=True)
    ce.TwoSampleLoss(weights)(x, y).backward()
    assert y.grad.abs().max() > 1e-3
    same = torch.ones(30, 2, requires_grad=True)
    ce.TwoSampleLoss(weights)(same[:10], same[10:]).backward()
    assert (same.grad == 0).all()


def test_float32_points_are_standardized_in_double():
    x, y = samples(dtype=torch.float32)
    loss = ce.TwoSampleLoss(ce.SpanningTree(1e7))
    exact = loss(x.double(), y.double())
    assert loss(x, y).item() == pytest.approx(exact.item(), rel=1e-3)


def test_a_few_steps_bring_samples_together():
    x, y = samples(40, 40, 2.0)
    y = y.detach().requires_grad_()
    for standardize in (True, "pearson3"):
        loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.5), standardize=standardize)
        optimizer = torch.optim.Adam([y], lr=0.1)
        for _ in range(60):
            optimizer.zero_grad()
            loss(x, y).backward()
            optimizer.step()
    assert ce.two_sample(x, y.detach(), ce.NearestNeighbours(3), rng=0).pvalue > 0.05


BAD = {
    "no temperature": ((ce.SpanningTree(),), "temperature 0"),
    "no temperature among others": ((ce.NearestNeighbours(2, (1.0, 0)),), "temperature 0"),
    "no weights": ((None,), "weights is missing"),
    "unknown statistic": ((WEIGHTS[0], "crass"), "statistic='crass' is unknown"),
    "unknown law": ((WEIGHTS[0], "cross", "gamma"), "standardize='gamma' is unknown"),
    "no theory": (
        (WEIGHTS[0], "generalized", "pearson3"),
        r"standardize='pearson3' does not go with",
    ),
}


@pytest.mark.parametrize("distance", [0.5, "precomputed", None, float("nan")])
def test_wrong_distances_are_refused_at_once(distance):
    with pytest.raises((ValueError, TypeError), match="distance"):
        ce.TwoSampleLoss(WEIGHTS[0], distance=distance)


def test_losses_can_be_pickled_and_take_half_precision():
    for statistic in ("cross", "weighted", "generalized", "max"):
        loss = pickle.loads(pickle.dumps(ce.TwoSampleLoss(WEIGHTS[0], statistic)))
        x, y = samples()
        assert torch.isfinite(loss(x.half(), y.half()))


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD.keys())
def test_wrong_losses_are_refused(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ce.TwoSampleLoss(*arguments)


def test_wrong_samples_are_refused():
    loss = ce.TwoSampleLoss(WEIGHTS[0])
    with pytest.raises(ValueError, match="y has shape"):
        loss(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(TypeError, match="x is of type ndarray"):
        loss(np.zeros((3, 2)), torch.zeros(3, 2))
    with pytest.raises(TypeError, match="give floating point"):
        loss(torch.zeros(3, 2).int(), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="y has NaN"):
        loss(torch.zeros(3, 2), torch.full((3, 2), torch.nan))
    with pytest.raises(ValueError, match=r"x has shape \(3, 0\): give points"):
        loss(torch.zeros(3, 0), torch.zeros(3, 0))
    with pytest.raises(TypeError, match=r"y is a sparse tensor: pass y\.to_dense"):
        loss(torch.zeros(3, 2), torch.eye(3, 2).to_sparse())
    for dtype in (torch.float8_e4m3fn, torch.complex64):
        with pytest.raises(TypeError, match=f"x is {dtype}: give floating point numbers of 16"):
            loss(torch.zeros(3, 2).to(dtype), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="x is on cpu and y on meta: move both"):
        loss(torch.zeros(3, 2), torch.zeros(3, 2, device="meta"))


@pytest.mark.parametrize("transform", [None, torch.nn.Identity()])
def test_samples_that_do_not_go_together_are_refused_before_a_transform(transform):
    loss = ce.TwoSampleLoss(WEIGHTS[0], transform=transform)
    with pytest.raises(ValueError, match="x has 2 columns and y has 3"):
        loss(torch.zeros(3, 2), torch.zeros(3, 3))
    with pytest.raises(ValueError, match=r"x has a batch of shape \(4,\) and y of \(2, 3\): give"):
        loss(torch.zeros(4, 3, 2), torch.zeros(2, 3, 5, 2))


def one_minus_cosine(a, b):
    return 1 - torch.nn.functional.cosine_similarity(a[:, None], b[None], dim=2)


def test_a_distance_that_rounding_makes_negative_is_0():
    x, y = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    assert -1e-6 < one_minus_cosine(x, x).min() < 0
    weights = ce.NearestNeighbours(1, 0.1)
    found = ce.TwoSampleLoss(weights, distance=one_minus_cosine)(x, y.requires_grad_())
    expected = ce.two_sample(x, y, weights, distance=one_minus_cosine, null="normal")
    assert found.item() == pytest.approx(-expected.zscore, rel=1e-4)
    found.backward()
    assert torch.isfinite(y.grad).all()


def henze_penrose(shift, p):
    """1 - integral of f g / (p f + q g), for normals in one dimension."""

    def overlap(u):
        f, g = stats.norm.pdf(u), stats.norm.pdf(u, shift)
        return f * g / (p * f + (1 - p) * g)

    return 1 - integrate.quad(overlap, -12, 12 + shift, limit=200)[0]


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("weights", [ce.SpanningTree(), ce.NearestNeighbours(5)], ids=repr)
def test_the_divergence_is_that_of_gaussians(shift, share, weights):
    n = 6000
    rng = np.random.default_rng(0)
    n_x = int(share * n)
    x = rng.normal(size=(n_x, 2))
    y = rng.normal(size=(n - n_x, 2)) + np.array([shift, 0])
    found = ce.divergence(x, y, weights)
    assert 0 <= found <= 1
    assert found == pytest.approx(henze_penrose(shift, share), abs=0.035)


def test_bounds_on_the_bayes_error():
    rng = np.random.default_rng(1)
    for shift in (0.0, 1.0, 2.0, 4.0):
        x, y = rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2)) + np.array([shift, 0])
        low, high = ce.divergence(x, y, ce.SpanningTree()).bayes_error
        assert low - 0.02 < stats.norm.sf(shift / 2) < high + 0.02
    assert ce.divergence(x, y, ce.NearestNeighbours(3)).bayes_error is None
    assert ce.divergence(x[:50], y[:50], ce.SpanningTree(0.5)).bayes_error is None


def test_a_tree_by_hand():
    """x = {0, 1}, y = {5}: one of two edges crosses."""
    found = ce.divergence([0.0, 1.0], [5.0], ce.SpanningTree())
    assert found == pytest.approx(1 - 1 * 3 / (2 * 2 * 1))


@pytest.mark.parametrize("family", [ce.SpanningTree, lambda t: ce.NearestNeighbours(3, t)])
def test_the_bound_falls_with_the_temperature(family):
    points = torch.as_tensor(np.random.default_rng(0).normal(size=(100, 2)))
    distances = torch.cdist(points, points)
    bounds = [
        ce.normality(family(t)(distances), 50, 50).bound for t in (10.0, 3.0, 1.0, 0.3, 0.1, 0.01)
    ]
    assert sorted(bounds, reverse=True) == bounds


def test_normality_by_definition():
    rng = np.random.default_rng(0)
    W = rng.exponential(size=(7, 7))
    W = np.triu(W, 1) + np.triu(W, 1).T
    found, half = ce.normality(W, 3, 4), W / 2
    assert pytest.approx(np.einsum("ij,ik->", half, half)) == found.S2
    assert pytest.approx(np.einsum("ij,ik,im->", half, half, half)) == found.S3
    assert pytest.approx(np.einsum("ij,jk,km->", half, half, half)) == found.L4
    n, k = 7, W.sum() / 14
    size = n * k**3 + k * found.S2 + found.S3 + found.L4
    assert found.bound == pytest.approx(size / found.sigma**3)
    with pytest.raises(ValueError, match="do not make 7 points"):
        ce.normality(W, 3, 3)
    with pytest.raises(TypeError, match=r"n_x=3\.0 is not an integer"):
        ce.normality(W, 3.0, 4)
    with pytest.raises(ValueError, match="symmetric with a zero diagonal"):
        ce.normality(np.triu(W), 3, 4)
    assert math.isinf(ce.normality(np.ones((4, 4)) - np.eye(4), 2, 2).bound)


WIDTHS = [2, 40]  # columns, by differences and by a product of matrices
EVERY = [
    ce.SpanningTree(0.5),
    ce.NearestNeighbours(1, 0.5),
    ce.NearestNeighbours(3, 0.5),
    ce.GaussianKernel(),
    ce.EnergyKernel(),
]


@pytest.mark.parametrize("weights", EVERY, ids=repr)
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("standardize", [True, False, "pearson3"])
def test_gradients_by_transforms(weights, columns, standardize):
    """`torch.func.grad` is the same as backward."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(20, columns, generator=generator) for _ in range(2))
    loss = ce.TwoSampleLoss(weights, standardize=standardize)
    y.requires_grad_()
    loss(x, y).backward()
    found = torch.func.grad(lambda y: loss(x, y))(y.detach())
    torch.testing.assert_close(found, y.grad)


def one_way(a, b):
    """Asymmetric between ordinary points, beside a pair that is far apart."""
    distances = torch.cdist(a, b)
    distances[:10, 10:] *= 2
    distances[0, 1] = distances[1, 0] = 1e4
    return distances


def similarity(a, b):
    return torch.exp(-torch.cdist(a, b))


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (similarity, "for a point and itself: it must be 0 there"),
        (lambda a, b: torch.cdist(a, b)[:, :3], "returned shape"),
        (lambda a, b: torch.cdist(a, b) * torch.arange(1.0, 21.0), "not symmetric"),
        (one_way, "not symmetric"),
        (lambda a, b: torch.cdist(a, b).tolist(), "must return a tensor"),
        (lambda a, b: torch.cdist(a, b) / 0, "distance returned nan: give finite"),
        (lambda a, b: torch.cdist(a, b) + torch.inf, "distance returned inf: give finite"),
        (lambda a, b: torch.cdist(a, b) - 1e-3, r"distance returned -0\.001: give finite"),
    ],
)
def test_a_bad_distance_gets_one_clear_line(distance, message):
    x, y = torch.randn(2, 10, 2, generator=torch.Generator().manual_seed(0))
    with pytest.raises((ValueError, TypeError), match=message):
        ce.TwoSampleLoss(ce.SpanningTree(1.0), distance=distance)(x, y)


def test_normality_of_a_single_point():
    points = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
    W = ce.SpanningTree()(torch.cdist(points, points))
    found = ce.normality(W, 1, 11)
    squares = float(((W.sum(1) / 2) ** 2).sum())
    assert squares == pytest.approx(found.S2, rel=1e-6)
    assert found.bound > ce.normality(W, 6, 6).bound > 0


def test_maps_by_name_are_for_tests():
    with pytest.raises(ValueError, match="transform='whiten' has no gradient: give a torch module"):
        ce.TwoSampleLoss(ce.NearestNeighbours(1, 1.0), transform="whiten")
