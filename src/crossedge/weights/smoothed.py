"""The paper's smoothed neighbourhoods as differentiable functions of distances.

All take (batch, n, n) distances in float64, with a temperature for each matrix. Jacobians are
symmetric, because marginals are the gradient of log Z, eq. (2): the way back is a tangent. Compiled
loops serve the CPU, their twins in torch any other device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from crossedge.compiled import has_compiled_loops, in_threads
from crossedge.numerics.neighbour_marginals import neighbour_marginals
from crossedge.numerics.neighbours_in_torch import neighbours_in_torch
from crossedge.numerics.star_mesh import PANEL
from crossedge.numerics.tree_in_torch import tree_in_torch
from crossedge.numerics.tree_marginals import tree_marginals

Temperatures = Sequence[float]

SMALL = 256  # up to here compiled loops alone are as fast, and a batch has a thread for each matrix


class Model(Protocol):
    """A Gibbs measure on the neighbourhoods of one matrix of distances."""

    def weights(self) -> torch.Tensor:
        """W, in memory of its own."""

    def pull_back(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient in the distances, from that in W."""


def smoothed_tree(distances: torch.Tensor, temperatures: Temperatures) -> torch.Tensor:
    """Edge marginals of the Gibbs measure on spanning trees."""
    batch, n, _ = distances.shape
    if not has_compiled_loops(distances):
        return _apply(distances, temperatures, tree_in_torch)
    panel = n if batch > 1 and n <= SMALL else PANEL
    return _apply(distances, temperatures, partial(tree_marginals, panel=panel))


def smoothed_neighbours(
    distances: torch.Tensor, k: int, temperatures: Temperatures
) -> torch.Tensor:
    """W_ij = P(j among the k neighbours of i) + P(i among those of j)."""
    model = neighbour_marginals if has_compiled_loops(distances) else neighbours_in_torch
    return _apply(distances, temperatures, partial(model, k=k))


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
        ctx.save_for_backward(distances)
        ctx.temperatures, ctx.model = temperatures, model
        ctx.found = _models(distances, temperatures, model)
        return _stack(in_threads(lambda one: one.weights(), ctx.found))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (distances,) = ctx.saved_tensors
        # once only, so that a loss that somebody keeps does not keep the models as well
        found, ctx.found = ctx.found or _models(distances, ctx.temperatures, ctx.model), None
        cotangents = gradient.detach().contiguous()
        changes = in_threads(lambda i: found[i].pull_back(cotangents[i]), range(len(found)))
        first: torch.Tensor = FirstDerivative.apply(_stack(changes), gradient, distances)  # type: ignore[no-untyped-call]
        return first, None, None


def _models(
    distances: torch.Tensor, temperatures: Temperatures, model: Callable[..., Model]
) -> list[Model]:
    matrices = distances.detach().contiguous()
    return in_threads(
        lambda i: model(matrices[i], temperature=temperatures[i]), range(len(matrices))
    )


def _stack(matrices: list[torch.Tensor]) -> torch.Tensor:
    return matrices[0][None] if len(matrices) == 1 else torch.stack(matrices)


class FirstDerivative(torch.autograd.Function):
    """A gradient that says so when it is asked for its own."""

    @staticmethod
    def forward(_: Any, value: torch.Tensor, *__: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
