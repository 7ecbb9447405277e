"""The paper's smoothed neighbourhoods as differentiable functions of distances.

All take (..., n, n) distances in float64, with a temperature for each matrix. Jacobians are
symmetric, because marginals are the gradient of log Z, eq. (2): the way back is a tangent. Compiled
loops serve the CPU and take arrays, their twins in torch any other device and tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from crossedge.calls import USUAL
from crossedge.interrupts import run_interruptibly
from crossedge.numerics.memory import empty_array
from crossedge.threads import has_compiled_loops, in_threads
from crossedge.weights.family import flat

Temperatures = Sequence[float]

LONG = 1500  # points, from which on loops may take a second
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
        from crossedge.numerics.tree_in_torch import tree_in_torch

        return _apply(distances, temperatures, tree_in_torch)
    from crossedge.numerics.star_mesh import PANEL
    from crossedge.numerics.tree_marginals import tree_marginals

    panel = n if len(temperatures) > 1 and n <= SMALL else PANEL
    return _apply(distances, temperatures, partial(tree_marginals, panel=panel))


def smoothed_neighbours(
    distances: torch.Tensor, k: int, temperatures: Temperatures
) -> torch.Tensor:
    """W_ij = P(j among the k neighbours of i) + P(i among those of j)."""
    if not has_compiled_loops(distances):
        from crossedge.numerics.neighbours_in_torch import neighbours_in_torch

        return _apply(distances, temperatures, partial(neighbours_in_torch, k=k))
    if k == 1:
        from crossedge.numerics.softmax_marginals import softmax_marginals

        # their loops share out the rows, which is faster than a matrix for each thread
        return _apply(distances, temperatures, softmax_marginals, one_by_one)
    from crossedge.numerics.neighbour_marginals import neighbour_marginals

    return _apply(distances, temperatures, partial(neighbour_marginals, k=k))


def one_by_one(work: Callable[[Any], Any], blocks: Sequence[Any]) -> list[Any]:
    return [work(block) for block in blocks]


def _apply(
    distances: torch.Tensor,
    temperatures: Temperatures,
    model: Callable[..., Model],
    for_each: ForEach = in_threads,
) -> torch.Tensor:
    given = _Given(temperatures, model, for_each)
    weights: torch.Tensor = Smoothed.apply(distances, given)  # type: ignore[no-untyped-call]
    return weights


class _Given:
    """How to make W from the distances; until the way back, also what was found on the way."""

    def __init__(
        self, temperatures: Temperatures, model: Callable[..., Model], for_each: ForEach
    ) -> None:
        self.temperatures, self.model, self.for_each = temperatures, model, for_each
        self.solved: Solved | None = None


class Smoothed(torch.autograd.Function):
    """Distances -> W, by a model for each matrix."""

    @staticmethod
    def forward(distances: torch.Tensor, given: _Given) -> torch.Tensor:
        weights, given.solved = _solve(distances, given)
        return weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        distances, ctx.given = inputs
        ctx.save_for_backward(distances, output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        distances, _ = ctx.saved_tensors  # which says so if anyone has changed them
        return _PullBack.apply(gradient, distances, ctx.given), None  # type: ignore[no-untyped-call]


class _PullBack(torch.autograd.Function):
    """The gradient in W -> that in the distances.

    A function of its own, since transforms such as `torch.func.grad` give plain tensors to the way
    there only; and one that says so when it is asked for its derivative.
    """

    @staticmethod
    def forward(gradient: torch.Tensor, distances: torch.Tensor, given: _Given) -> torch.Tensor:
        # once only, so that a loss that somebody keeps does not keep the models as well
        solved, given.solved = given.solved, None
        if solved is None:
            _, solved = _solve(distances, given)
        models, out, matrices = solved
        changes = list(zip(models, _matrices(gradient), *matrices, strict=True))
        _run(given, lambda one: one[0].pull_back(*one[1:]), changes, distances.shape[-1])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")


# models, room for their gradients, and the matrices of W and of that room
Solved = tuple[list[Model], torch.Tensor, tuple[Matrices, Matrices]]


def _solve(distances: torch.Tensor, given: _Given) -> tuple[torch.Tensor, Solved]:
    """W, and what its gradient needs: without W itself, which would then never be let go."""
    weights, w = _empty_like(distances)
    room, r = _empty_like(distances)
    each = list(zip(_matrices(distances), w, r, given.temperatures, strict=True))
    models = _run(given, lambda one: given.model(*one), each, distances.shape[-1])
    return weights, (models, room, (w, r))


def _run(given: _Given, work: Callable[[Any], Any], each: list[Any], n: int) -> list[Any]:
    """For many points in a thread of its own, so that an interrupt need not wait for the loops."""
    with np.errstate(**USUAL):
        if n <= LONG:
            return given.for_each(work, each)
        return run_interruptibly(lambda: given.for_each(work, each))


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
