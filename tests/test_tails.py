"""Logarithms of tails, against high precision and known laws."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from crossedge.numerics.saddlepoint import log_five_cumulant_tail
from crossedge.numerics.tails import log_four_moment_tail, log_pearson3_tail, log_pearson3_tails


def reference_tail(z, skewness):
    """By integration in high precision."""
    with mpmath.workdps(30 if 0 < abs(skewness) < 0.01 else 20):
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
    z = torch.linspace(-3, 5, 1001, dtype=torch.float64, requires_grad=True)
    found = log_pearson3_tail(z, torch.tensor(skewness, dtype=torch.float64))
    assert (found.diff() < 0).all()
    assert (found.diff() > -0.24).all()  # and nowhere all at once
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


@pytest.mark.parametrize("skewness", [0.0, 1e-4, 0.003, 0.011, 0.3, 1.2, -0.002, -0.02, -0.4, -2.5])
def test_many_log_tails(skewness):
    z = torch.randn(1500, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 4
    g = torch.tensor(skewness, dtype=torch.float64)
    found, exact = log_pearson3_tails(z, g), log_pearson3_tail(z, g)
    inside = (1 + g * z / 2 > 0.15) if skewness > 0 else z < 1e9  # the exact one errs at its start
    np.testing.assert_allclose(found[inside], exact[inside], rtol=2e-6, atol=1e-8)
    # a value depends on its z alone, but for how torch rounds one number and many
    alone = log_pearson3_tails(z[7:8], g)
    torch.testing.assert_close(alone, found[7:8], rtol=1e-13, atol=0)
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
        assert torch.autograd.gradcheck(log_four_moment_tail, few, fast_mode=True)


FIVE = [
    (0.4, 0.2, 0.1),
    (-0.1, 0.02, 0.03),
    (1.5, 3.7, 12.3),
]


@pytest.mark.parametrize(("skewness", "excess", "fifth"), FIVE)
def test_five_cumulant_tails_fall_and_have_gradients(skewness, excess, fifth):
    shape = skewness, excess, fifth, 0.2
    z = torch.linspace(-3, 40, 2000, dtype=torch.float64)
    tail = log_five_cumulant_tail(z, *as_double(*shape))
    assert torch.isfinite(tail).all()
    assert (tail.diff() < 1e-12).all()
    few = torch.tensor([-1.0, 0.5, 3.2, 30.0], dtype=torch.float64, requires_grad=True)
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
