"""Weights of smoothed graphs, differentiable where the distances are tensors."""

from __future__ import annotations

from crossedge.numerics.smoothed import Recipe, solve
from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.types import Array


def smoothed(distances: Array, recipe: Recipe) -> Array:
    """Return W, differentiable if the distances are a tensor."""
    if is_tensor(distances):
        from crossedge.autograd.smoothed import smoothed_with_gradient

        return smoothed_with_gradient(distances, recipe)
    return solve(distances, recipe)[0]
