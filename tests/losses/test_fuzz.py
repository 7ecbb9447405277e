"""No loss and no gradient is ever NaN, whatever finite points come in."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import crossedge as ce

WEIGHTS = [
    ce.NearestNeighbours(1, 1.0),
    ce.NearestNeighbours(1, "median"),
    ce.NearestNeighbours(2, (0.1, 10.0)),
    ce.SpanningTree(1.0),
    ce.SpanningTree("median"),
    ce.GaussianKernel(),
    ce.GaussianKernel(1.0),
    ce.LaplaceKernel((0.5, 5.0)),
    ce.LinearKernel(),
    ce.QuadraticKernel(),
    ce.InverseMultiquadricKernel(2.0),
    ce.EnergyKernel(),
]
CHOICES = [
    (None, True),
    (None, False),
    ("weighted", "normal"),
    ("weighted", "pearson3"),
    ("generalized", True),
    ("max", True),
    ("fisher", True),
    ("mmd_ratio", True),
]


@st.composite
def problems(draw):
    """Two samples: of any scale, collapsed, with copies, in any precision."""
    n_x, n_y = draw(st.sampled_from([(1, 4), (4, 1), (2, 2), (3, 5), (20, 12)]))
    d = draw(st.sampled_from([1, 2, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    pooled = rng.normal(size=(n_x + n_y, d))
    kind = draw(st.sampled_from(["plain", "copies", "collapsed", "y collapsed", "integers", "far"]))
    if kind == "copies":
        pooled = pooled[rng.integers(0, 3, n_x + n_y)]
    elif kind == "collapsed":
        pooled[:] = pooled[0]
    elif kind == "y collapsed":
        pooled[n_x:] = pooled[n_x]
    elif kind == "integers":
        pooled = np.round(pooled)
    elif kind == "far":
        pooled[n_x:] += 10.0 ** draw(st.integers(0, 12))
    dtypes = [draw(st.sampled_from([torch.float32, torch.float64])) for _ in range(2)]
    most = 36 if torch.float32 in dtypes else 298
    pooled *= 10.0 ** draw(st.one_of(st.integers(-3, 3), st.integers(-most, most - 14)))
    x, y = (
        torch.as_tensor(part, dtype=dtype).requires_grad_()
        for part, dtype in zip((pooled[:n_x], pooled[n_x:]), dtypes, strict=True)
    )
    return x, y


@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
@given(problem=problems(), choice=st.sampled_from(CHOICES))
@settings(max_examples=100)
def test_losses_and_gradients_are_finite(weights, problem, choice):
    check(weights, problem, choice)


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
@given(problem=problems(), choice=st.sampled_from(CHOICES))
@settings(max_examples=3000, derandomize=False)
def test_thousands_of_losses_and_gradients_are_finite(weights, problem, choice):
    check(weights, problem, choice)


def check(weights, problem, choice):
    x, y = problem
    if getattr(weights, "k", 1) >= len(x) + len(y):
        return
    value = ce.TwoSampleLoss(weights, *choice)(x, y)
    assert torch.isfinite(value), value
    value.backward()
    for points in (x, y):
        assert points.grad.shape == points.shape
        assert not torch.isnan(points.grad).any()
        # the gradient is of the order of one over the distances, which float32 may not hold
        size = max(float(x.detach().abs().max()), float(y.detach().abs().max()))
        if size == 0 or 1e-12 < size < 1e12:
            assert torch.isfinite(points.grad).all()
