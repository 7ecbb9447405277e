"""Logarithms of tails, against high precision and known laws."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from crossedge.numerics.four_moments import log_four_moment_tail
from crossedge.numerics.tails import log_gamma_tail, log_gamma_tail_by_integration


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
        found = log_gamma_tail_by_integration(
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
    found = log_gamma_tail_by_integration(z, torch.tensor(skewness, dtype=torch.float64))
    assert (found.diff() < 0).all()
    assert (found.diff() > -0.24).all()  # and nowhere all at once
    (slope,) = torch.autograd.grad(found.sum(), z)
    assert (slope < 0).all()
    inside = -1.7 / skewness
    found = log_gamma_tail_by_integration(*as_double(inside, skewness))
    assert float(found) == pytest.approx(reference_tail(inside, skewness), rel=1e-3)


@pytest.mark.parametrize(("skewness", "excess"), [(-0.3, 0.235), (-0.5, 0.5), (-1.0, 2.5)])
def test_four_moment_tails_do_not_end_where_the_law_does_not(skewness, excess):
    found = log_four_moment_tail(np.linspace(-1, 8, 4001), np.float64(skewness), excess)
    assert (np.diff(found) < 0).all()
    assert (np.diff(found) > -0.08).all()


@pytest.mark.parametrize("skewness", [0.0, 1e-4, 0.003, 0.011, 0.3, 1.2, -0.002, -0.02, -0.4, -2.5])
def test_many_log_tails(skewness):
    z, g = np.random.default_rng(0).normal(size=1500) * 4, np.float64(skewness)
    found, exact = log_gamma_tail(z, g), log_gamma_tail_by_integration(z, g)
    inside = (1 + g * z / 2 > 0.15) if skewness > 0 else z < 1e9  # the exact one errs at its start
    np.testing.assert_allclose(found[inside], exact[inside], rtol=2e-6, atol=1e-8)
    # a value depends on its z alone
    np.testing.assert_allclose(log_gamma_tail(z[7:8], g), found[7:8], rtol=1e-13)
    assert log_gamma_tail(z[7], g) == pytest.approx(found[7], rel=1e-13)
    tensors = log_gamma_tail(torch.from_numpy(z), torch.tensor(g))
    np.testing.assert_allclose(tensors, exact, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("skewness", [2.0, 5.0, 30.0, 1e5, -10.0])
def test_log_tails_of_extreme_skewness(skewness):
    z = np.linspace(-1, 3, 2001)
    found = log_gamma_tail(z, skewness)
    assert (found <= 0).all()
    assert (np.diff(found) <= 1e-12).all()
    if skewness > 0:
        expected = stats.pearson3.logsf(z, skewness)
        seen = (expected > -300) & (abs(1 + skewness * z / 2) > 1e-9)  # where it starts
        np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-6, atol=1e-9)


def test_log_tails_have_gradients():
    z = torch.tensor([0.3, 2.0, 5.0, 30.0, -1.0], dtype=torch.float64, requires_grad=True)
    for skewness in (0.4, -0.05, 0.0, 1e-4, 1.3):
        gamma = torch.full((5,), skewness, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(log_gamma_tail_by_integration, (z, gamma))


@pytest.mark.parametrize(("a", "b"), [(3, 8), (8, 3), (20, 21), (5, 60), (2.5, 2.5)])
def test_light_tails_are_beta(a, b):
    mean, variance, skewness, excess = (float(m) for m in stats.beta.stats(a, b, moments="mvsk"))
    for z in (0.9, 1.2, 1.5):
        moments = np.array([[z], [skewness], [excess]])
        expected = stats.beta.logsf(mean + z * math.sqrt(variance), a, b)
        assert log_four_moment_tail(*moments)[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("skewness", "excess"), [(0.5, 0.6), (1.5, 3.7), (2.4, 9.3), (0.3, 0.3)])
def test_heavy_tails_are_gamma_and_normal(skewness, excess):
    a = excess / (3 * skewness)
    k = skewness / (2 * a**3)
    normal = np.linspace(-9, 9, 20001)
    share = stats.norm.pdf(normal) / stats.norm.pdf(normal).sum()
    for z in (1.0, 3.0, 6.0):
        part = (z - math.sqrt(1 - k * a**2) * normal) / a + k
        expected = math.log((share * stats.gamma.sf(part, k)).sum())
        moments = np.array([[z], [skewness], [excess]])
        assert log_four_moment_tail(*moments)[0] == pytest.approx(expected, abs=0.015)


def test_four_moment_tails_are_finite_and_monotone():
    for skewness, excess in [(0.5, 0.6), (0.5, 0.2), (-0.1, -0.1), (1.5, 3.7), (0.0, 0.05)]:
        tail = log_four_moment_tail(np.linspace(-3, 12, 200), np.float64(skewness), excess)
        assert np.isfinite(tail).all()
        assert (np.diff(tail) <= 0).all()
