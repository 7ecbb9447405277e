"""Compiled loops and their twins in torch give the same numbers."""

import numpy as np
import pytest
import torch

import crossedge as ce
from conftest import use_twins
from crossedge.numerics.neighbours import in_torch as neighbours_in_torch
from smoothed_cases import distances_of

TEMPERATURES = [0.0, 1e-300, 1e-3, 0.02, 1.0, float("inf")]
FAMILIES = {
    "tree": ce.SpanningTree,
    **{f"{k}-NN": lambda t, k=k: ce.NearestNeighbours(k, t) for k in (1, 3, 35, 39)},
}


def value_and_gradient(weights, distances):
    distances = distances.clone().requires_grad_()
    direction = torch.as_tensor(np.random.default_rng(1).normal(size=distances.shape))
    W = weights(distances)
    if W.requires_grad:
        (W * direction).sum().backward()
        return W.detach(), distances.grad
    return W, torch.zeros_like(W)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize("kind", ["normal", "clusters", "grid", "duplicates"])
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_the_twin_agrees(family, kind, temperature, monkeypatch):
    distances = distances_of(kind, 40)
    W, gradient = value_and_gradient(family(temperature), distances)
    use_twins(monkeypatch)
    twin, twin_gradient = value_and_gradient(family(temperature), distances)
    np.testing.assert_allclose(twin, W, rtol=1e-11, atol=1e-13)
    scale = max(1.0, float(gradient.abs().max()))
    np.testing.assert_allclose(twin_gradient, gradient, rtol=1e-8, atol=1e-11 * scale)


def test_the_twin_takes_a_few_rows_at_a_time(monkeypatch):
    distances, weights = distances_of("normal", 40), ce.NearestNeighbours(3, 0.3)
    use_twins(monkeypatch)
    W, gradient = value_and_gradient(weights, distances)
    monkeypatch.setattr(neighbours_in_torch, "SWEEP_NUMBERS", 1000)
    part, part_gradient = value_and_gradient(weights, distances)
    torch.testing.assert_close(part, W)
    torch.testing.assert_close(part_gradient, gradient)
