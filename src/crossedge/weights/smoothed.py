"""The paper's smoothed neighbourhoods as differentiable functions of distances.

All take (..., n, n) distances in float64, with a temperature for each matrix. Jacobians are
symmetric, because marginals are the gradient of log Z, eq. (2): the way back is a tangent. Compiled
loops serve the CPU and take arrays, their twins in torch any other device and tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from crossedge.compiled import has_compiled_loops
from crossedge.numerics.memory import empty_array
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
Matrices = Any
ForEach = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class Model(Protocol):
    """A Gibbs measure on the neighbourhoods of one matrix of distances, made with its W.

    It is made with room for the gradient as well, in which it may keep what it likes until then.
    """

    def pull_back(self, gradient: Matrix, weights: Matrix, out: Matrix) -> None:
        """Write the gradient in the distances, from that in W, to the room that it was given."""


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
        # their loops share out the rows, which is faster than a matrix for each thread
        return _apply(distances, temperatures, softmax_marginals, one_by_one)
    return _apply(distances, temperatures, partial(neighbour_marginals, k=k))


def one_by_one(work: Callable[[Any], Any], blocks: Sequence[Any]) -> list[Any]:
    return [work(block) for block in blocks]


def _apply(
    distances: torch.Tensor,
    temperatures: Temperatures,
    model: Callable[..., Model],
    for_each: ForEach = in_threads,
) -> torch.Tensor:
    given = temperatures, model, for_each
    weights: torch.Tensor = Smoothed.apply(distances, *given)  # type: ignore[no-untyped-call]
    return weights


class Smoothed(torch.autograd.Function):
    """Distances -> W, by a model for each matrix."""

    @staticmethod
    def forward(
        ctx: Any,
        distances: torch.Tensor,
        temperatures: Temperatures,
        model: Callable[..., Model],
        for_each: ForEach,
    ) -> torch.Tensor:
        weights, ctx.solved = _solve(distances, temperatures, model, for_each)
        ctx.given = temperatures, model, for_each
        ctx.save_for_backward(distances, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        distances, _ = ctx.saved_tensors  # which says so if anyone has changed them
        # once only, so that a loss that somebody keeps does not keep the models as well
        solved, ctx.solved = ctx.solved, None
        if solved is None:
            _, solved = _solve(distances, *ctx.given)
        models, out, matrices = solved
        changes = list(zip(models, _matrices(gradient), *matrices, strict=True))
        for_each: ForEach = ctx.given[2]
        for_each(lambda one: one[0].pull_back(*one[1:]), changes)
        if torch.is_grad_enabled():  # somebody means to differentiate again
            out = FirstDerivative.apply(out, gradient, distances)  # type: ignore[no-untyped-call]
        return out, None, None, None


# models, room for their gradients, and the matrices of W and of that room
Solved = tuple[list[Model], torch.Tensor, tuple[Matrices, Matrices]]


def _solve(
    distances: torch.Tensor,
    temperatures: Temperatures,
    model: Callable[..., Model],
    for_each: ForEach,
) -> tuple[torch.Tensor, Solved]:
    """W, and what its gradient needs: without W itself, which would then never be let go."""
    weights, w = _empty_like(distances)
    room, r = _empty_like(distances)
    given = list(zip(_matrices(distances), w, r, temperatures, strict=True))
    return weights, (for_each(lambda one: model(*one), given), room, (w, r))


def _matrices(tensor: torch.Tensor) -> Matrices:
    """One by one, of (..., n, n)."""
    if not has_compiled_loops(tensor):
        return flat(tensor.detach()).contiguous()
    plain = tensor.detach().resolve_neg() if tensor.is_neg() else tensor.detach()
    return flat(plain.contiguous().numpy())


def _empty_like(matrices: torch.Tensor) -> tuple[torch.Tensor, Matrices]:
    """A tensor, and its memory one by one. (To ask tensors for arrays takes its time.)"""
    if has_compiled_loops(matrices):
        array = empty_array(*matrices.shape)
        return torch.from_numpy(array), flat(array)
    tensor = torch.empty_like(matrices, memory_format=torch.contiguous_format)
    return tensor, flat(tensor)


class FirstDerivative(torch.autograd.Function):
    """A gradient that says so when it is asked for its own."""

    @staticmethod
    def forward(_: Any, value: torch.Tensor, *__: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
