"""The paper's smoothed neighbourhoods as differentiable functions of distances.

All take (..., n, n) distances in float64, with a temperature for each matrix. Jacobians are
symmetric, because marginals are the gradient of log Z, eq. (2): the way back is a tangent. Compiled
loops serve the CPU and take arrays, their twins in torch any other device and tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from crossedge.compiled import has_compiled_loops
from crossedge.numerics.memory import empty
from crossedge.numerics.neighbour_marginals import neighbour_marginals
from crossedge.numerics.neighbours_in_torch import neighbours_in_torch
from crossedge.numerics.softmax_marginals import softmax_marginals
from crossedge.numerics.star_mesh import PANEL
from crossedge.numerics.tree_in_torch import tree_in_torch
from crossedge.numerics.tree_marginals import tree_marginals
from crossedge.threads import in_threads
from crossedge.weights.family import flat

Temperatures = Sequence[float]

SMALL = 256  # up to here compiled loops alone are as fast, and a batch has a thread for each matrix


Matrix = Any  # an array or a tensor


class Model(Protocol):
    """A Gibbs measure on the neighbourhoods of one matrix of distances, made with its W."""

    def pull_back(self, gradient: Matrix, weights: Matrix, out: Matrix) -> None:
        """Write the gradient in the distances, from that in W."""


def smoothed_tree(distances: torch.Tensor, temperatures: Temperatures) -> torch.Tensor:
    """Edge marginals of the Gibbs measure on spanning trees."""
    n = distances.shape[-1]
    if not has_compiled_loops(distances):
        return _apply(distances, temperatures, tree_in_torch)
    panel = n if len(temperatures) > 1 and n <= SMALL else PANEL
    return _apply(distances, temperatures, partial(tree_marginals, panel=panel))


def smoothed_neighbours(
    distances: torch.Tensor, k: int, temperatures: Temperatures
) -> torch.Tensor:
    """W_ij = P(j among the k neighbours of i) + P(i among those of j)."""
    if not has_compiled_loops(distances):
        return _apply(distances, temperatures, partial(neighbours_in_torch, k=k))
    if k == 1:
        return _apply(distances, temperatures, softmax_marginals)
    return _apply(distances, temperatures, partial(neighbour_marginals, k=k))


def _apply(
    distances: torch.Tensor, temperatures: Temperatures, model: Callable[..., Model]
) -> torch.Tensor:
    weights: torch.Tensor = Smoothed.apply(distances, temperatures, model)  # type: ignore[no-untyped-call]
    return weights


class Smoothed(torch.autograd.Function):
    """Distances -> W, by a model for each matrix."""

    @staticmethod
    def forward(
        ctx: Any, distances: torch.Tensor, temperatures: Temperatures, model: Callable[..., Model]
    ) -> torch.Tensor:
        weights = _empty_like(distances)
        ctx.found = _models(distances, temperatures, model, weights)
        ctx.temperatures, ctx.model = temperatures, model
        ctx.save_for_backward(distances, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        distances, weights = ctx.saved_tensors
        # once only, so that a loss that somebody keeps does not keep the models as well
        found, ctx.found = ctx.found, None
        if found is None:
            found = _models(distances, ctx.temperatures, ctx.model, _empty_like(distances))
        out = _empty_like(gradient)
        matrices = _matrices(gradient), _matrices(weights), _matrices(out)
        changes = list(zip(found, *matrices, strict=True))
        in_threads(lambda one: one[0].pull_back(*one[1:]), changes)
        if torch.is_grad_enabled():  # somebody means to differentiate again
            out = FirstDerivative.apply(out, gradient, distances)  # type: ignore[no-untyped-call]
        return out, None, None


def _models(
    distances: torch.Tensor,
    temperatures: Temperatures,
    model: Callable[..., Model],
    weights: torch.Tensor,
) -> list[Model]:
    """For each matrix, and its W written."""
    given = list(zip(_matrices(distances), temperatures, _matrices(weights), strict=True))
    return in_threads(lambda one: model(one[0], temperature=one[1], out=one[2]), given)


def _matrices(tensor: torch.Tensor) -> Iterable[Matrix]:
    """One by one, of (..., n, n). They share its memory, if it is contiguous."""
    matrices = flat(tensor.detach()).contiguous()
    return matrices.numpy() if has_compiled_loops(tensor) else matrices


def _empty_like(matrices: torch.Tensor) -> torch.Tensor:
    if has_compiled_loops(matrices):
        return empty(*matrices.shape)
    return torch.empty_like(matrices, memory_format=torch.contiguous_format)


class FirstDerivative(torch.autograd.Function):
    """A gradient that says so when it is asked for its own."""

    @staticmethod
    def forward(_: Any, value: torch.Tensor, *__: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
