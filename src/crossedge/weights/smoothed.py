"""The paper's smoothed neighbourhoods as differentiable functions of distances.

All take (batch, n, n) distances in float64, with a temperature for each matrix. Jacobians are
symmetric, because marginals are the gradient of log Z, eq. (2): the way back is a tangent. Compiled
loops serve the CPU, their twins in torch any other device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from crossedge.compiled import has_compiled_loops, in_threads
from crossedge.numerics.neighbour_marginals import NeighbourMarginals, neighbour_marginals
from crossedge.numerics.neighbours_in_torch import NeighboursInTorch, neighbours_in_torch
from crossedge.numerics.star_mesh import PANEL
from crossedge.numerics.tree_in_torch import TreeInTorch, tree_in_torch
from crossedge.numerics.tree_marginals import BandedTree, PlainTree, tree_marginals

Temperatures = Sequence[float]
Tree = PlainTree | BandedTree | TreeInTorch
Neighbours = NeighbourMarginals | NeighboursInTorch

SMALL = 256  # up to here compiled loops alone are as fast, and a batch has a thread for each matrix


class SmoothedTree(torch.autograd.Function):
    """Distances -> edge marginals of the Gibbs measure on spanning trees.

    With log w = -(d_ij + d_ji) / (2 temperature) and a cotangent G on both mu_ij and mu_ji, the
    direction of log w is G + G', and the gradient is -1 / (2 temperature) times d mu along it.
    """

    @staticmethod
    def forward(ctx: Any, distances: torch.Tensor, temperatures: Temperatures) -> torch.Tensor:
        batch, n, _ = distances.shape
        matrices = distances.detach().contiguous()
        panel = n if batch > 1 and n <= SMALL else PANEL

        def of_matrix(i: int) -> Tree:
            if has_compiled_loops(matrices):
                return tree_marginals(matrices[i], temperatures[i], panel)
            return tree_in_torch(matrices[i], temperatures[i])

        ctx.found, ctx.temperatures = in_threads(of_matrix, range(batch)), temperatures
        found: list[Tree] = ctx.found
        return _stack([one.marginals for one in found])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        found: list[Tree] = ctx.found
        cotangents = gradient.detach().contiguous()
        changes = in_threads(
            lambda i: found[i].tangent(cotangents[i], -0.5 / ctx.temperatures[i]),
            range(len(found)),
        )
        return _once(_stack(changes), gradient), None


class SmoothedNeighbours(torch.autograd.Function):
    """Distances -> W_ij = P(j among the k neighbours of i) + P(i among those of j)."""

    @staticmethod
    def forward(
        ctx: Any, distances: torch.Tensor, k: int, temperatures: Temperatures
    ) -> torch.Tensor:
        matrices = distances.detach().contiguous()
        model = neighbour_marginals if has_compiled_loops(matrices) else neighbours_in_torch

        def of_matrix(i: int) -> tuple[Neighbours, torch.Tensor]:
            one = model(matrices[i], k, temperatures[i])
            return one, one.weights()

        found = in_threads(of_matrix, range(len(matrices)))
        ctx.found = [one for one, _ in found]
        return _stack([weights for _, weights in found])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        found: list[Neighbours] = ctx.found
        cotangents = gradient.detach().contiguous()
        changes = in_threads(lambda i: found[i].pull_back(cotangents[i]), range(len(found)))
        return _once(_stack(changes), gradient), None, None


def _stack(matrices: list[torch.Tensor]) -> torch.Tensor:
    return matrices[0][None] if len(matrices) == 1 else torch.stack(matrices)


def _once(value: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    first: torch.Tensor = FirstDerivative.apply(value, source)  # type: ignore[no-untyped-call]
    return first


class FirstDerivative(torch.autograd.Function):
    """A gradient that says so when it is asked for its own."""

    @staticmethod
    def forward(_: Any, value: torch.Tensor, __: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
