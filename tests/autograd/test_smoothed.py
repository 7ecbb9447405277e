"""Gradients of smoothed weights, and what autograd may and may not do with them."""

import weakref

import numpy as np
import pytest
import torch

import crossedge as ce
import high_precision
from crossedge.autograd.distances import lp_distances
from crossedge.numerics.trees import marginals as tree_marginals
from smoothed_cases import (
    KINDS,
    data,
    distances_of,
    each_family,
    gradient_along,
    median,
    symmetric_direction,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.05, 1e-2, 1e-3])
def test_gradients_of_trees_to_full_precision(kind, relative):
    distances = distances_of(kind, 9)
    temperature = relative * median(distances)
    direction = symmetric_direction(9)
    expected = high_precision.tree_marginals(distances.numpy(), temperature, 2 * direction)
    found = -2 * temperature * gradient_along(ce.SpanningTree(temperature), distances, direction)
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [1e3, 1.0, 0.1, 1e-3])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_gradients_of_neighbours_to_full_precision(kind, relative, k):
    distances = distances_of(kind, 30)
    temperature = relative * median(distances)
    direction = symmetric_direction(30)
    weights = ce.NearestNeighbours(k, temperature)
    found = -temperature * gradient_along(weights, distances, direction)
    others = np.delete(np.arange(30), 17)
    row, c = distances.numpy()[17, others], 2 * direction.numpy()[17, others]
    expected = high_precision.row_marginals(row, k, temperature, c)
    np.testing.assert_allclose(found[17, others], expected, atol=1e-11)


@each_family
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.3, 2.0, (0.2, 1.0)])
def test_gradients_by_points(family, p, temperature):
    points = torch.as_tensor(data("normal", 8)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: family(temperature)(lp_distances(x, p)), points)


@each_family
def test_gradients_are_finite_at_duplicates(family):
    points = torch.as_tensor(data("duplicates", 20)).requires_grad_()
    W = family(0.5)(lp_distances(points, 2.0))
    (W * symmetric_direction(20)).sum().backward()
    assert torch.isfinite(points.grad).all()
    assert points.grad.abs().max() > 0


@each_family
def test_gradients_by_a_matrix_that_need_not_be_symmetric(family):
    distances = distances_of("normal", 7) + torch.rand(7, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(family(0.7), distances.requires_grad_())


@each_family
@pytest.mark.parametrize("scale", [1e-290, 1e-110, 1e100])
def test_the_gradient_is_linear_in_the_cotangent(family, scale):
    points = torch.tensor([0.0, 1.0, 1.7, 3.0, 500.0, 502.0], dtype=torch.float64)
    distances, direction = (points[:, None] - points).abs(), symmetric_direction(6)
    for temperature in (1.0, 0.01):
        weights = family(temperature)
        found = gradient_along(weights, distances, scale * direction)
        expected = gradient_along(weights, distances, direction)
        np.testing.assert_allclose(found / scale, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-309, 3e307])
def test_cotangents_at_the_ends_of_the_range(scale):
    distances, direction = distances_of("normal", 6), symmetric_direction(6)
    found = gradient_along(ce.SpanningTree(1.0), distances, scale * direction)
    expected = gradient_along(ce.SpanningTree(1.0), distances, direction)
    np.testing.assert_allclose(found / scale, expected, rtol=1e-9, atol=1e-12)


@each_family
def test_the_diagonal_of_a_cotangent_does_not_matter(family):
    leaf = distances_of("normal", 8).requires_grad_()
    W = family(0.5)(leaf)
    W.sqrt().sum().backward()
    assert torch.isfinite(leaf.grad).all()


@pytest.mark.parametrize("temperature", [5e-324, 1e-300])
@pytest.mark.parametrize("family", [ce.SpanningTree, lambda t: ce.NearestNeighbours(2, t)])
def test_gradients_at_the_least_temperature_are_no_nan(family, temperature):
    """Where 1 / temperature is beyond the largest number."""
    points = torch.as_tensor(np.random.default_rng(0).normal(size=(9, 2)))
    distances = torch.cdist(points, points).requires_grad_()
    family(temperature)(distances).square().sum().backward()
    assert not distances.grad.isnan().any()


@each_family
def test_no_second_derivatives(family):
    distances = distances_of("normal", 6).requires_grad_()
    (first,) = torch.autograd.grad(
        family(1.0)(distances).pow(2).sum(), distances, create_graph=True
    )
    with pytest.raises(RuntimeError, match="no second derivatives"):
        first.sum().backward()


@each_family
def test_no_second_derivatives_of_linear_losses_either(family):
    distances = distances_of("normal", 6).requires_grad_()
    direction = symmetric_direction(6)
    loss = (family(1.0)(distances) * direction).sum()
    (first,) = torch.autograd.grad(loss, distances, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        (loss + first.pow(2).sum()).backward()


@each_family
@pytest.mark.parametrize("temperature", [1.0, 1e-3])
def test_changes_of_the_result_before_the_gradient_are_refused(family, temperature):
    """As torch does for exp: the gradient needs W as it was."""
    leaf = distances_of("normal", 9).requires_grad_()
    W = family(temperature)(leaf)
    loss = W.sum()
    W.detach().clamp_(max=0.01)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@each_family
def test_changes_of_the_distances_before_the_gradient_are_refused(family):
    leaf = distances_of("normal", 9).requires_grad_()
    distances = leaf * 1
    loss = family(0.5)(distances).pow(2).sum()
    distances.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@each_family
def test_two_backward_passes(family):
    distances, direction = distances_of("normal", 9), symmetric_direction(9)
    expected = gradient_along(family(0.5), distances, direction)
    leaf = distances.clone().requires_grad_()
    loss = (family(0.5)(leaf) * direction).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    np.testing.assert_allclose(leaf.grad, 2 * expected, rtol=1e-12)


def test_a_kept_loss_keeps_no_models(monkeypatch):
    """The way back lets go of all that it needed, though the loss still refers to it."""
    made, plain = [], tree_marginals.tree_marginals

    def watched(*given, **options):
        model = plain(*given, **options)
        made.append(weakref.ref(model))
        return model

    monkeypatch.setattr(tree_marginals, "tree_marginals", watched)
    distances = distances_of("normal", 8).requires_grad_()
    loss = ce.SpanningTree(0.5)(distances).pow(2).sum()
    (model,) = made
    kept_before = model() is not None
    loss.backward()
    kept_after = model() is not None
    assert (kept_before, kept_after) == (True, False)
