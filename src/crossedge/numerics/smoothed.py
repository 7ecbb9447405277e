"""The paper's smoothed neighbourhoods: distances -> W, one Gibbs measure for each matrix.

All take (..., n, n) distances in float64, with a temperature for each matrix. Compiled loops serve
arrays and tensors on the CPU, their twins in torch any other device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.calls import USUAL
from crossedge.runtime.interrupts import run_interruptibly
from crossedge.runtime.threads import has_compiled_loops, in_threads
from crossedge.runtime.types import Array

Temperatures = Sequence[float]

LONG = 1500  # points: from here on loops may take a second, and must be interruptible
SMALL = 256  # up to here compiled loops alone are as fast, and a batch has a thread for each matrix

ForEach = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class Model(Protocol):
    """A Gibbs measure on the neighbourhoods of one matrix of distances, made with its W.

    It is made with a matrix for the gradient as well, which it may use as scratch until then.
    """

    def pull_back(self, gradient: Array, weights: Array, out: Array) -> None:
        """Write the gradient in the distances, from that in W, to the room that it was given."""


class Recipe(NamedTuple):
    """How to make W from distances."""

    temperatures: Temperatures
    model: Callable[..., Model]
    for_each: ForEach = in_threads


class Solved(NamedTuple):
    """What the gradient needs. W is not part of it: a cycle of references would keep it alive."""

    models: list[Model]
    room: Array  # for the gradients
    matrices: tuple[Sequence[Array], Sequence[Array]]  # those of W and of the room, one by one


def tree_recipe(distances: Array, temperatures: Temperatures) -> Recipe:
    """Edge marginals of the Gibbs measure on spanning trees."""
    if not has_compiled_loops(distances):
        from crossedge.numerics.trees.in_torch import tree_in_torch

        return Recipe(temperatures, tree_in_torch)
    from crossedge.numerics.trees.marginals import tree_marginals
    from crossedge.numerics.trees.star_mesh import PANEL

    n = distances.shape[-1]
    panel = n if len(temperatures) > 1 and n <= SMALL else PANEL
    return Recipe(temperatures, partial(tree_marginals, panel=panel))


def neighbours_recipe(distances: Array, k: int, temperatures: Temperatures) -> Recipe:
    """W_ij = P(j among the k neighbours of i) + P(i among those of j)."""
    if not has_compiled_loops(distances):
        from crossedge.numerics.neighbours.in_torch import neighbours_in_torch

        return Recipe(temperatures, partial(neighbours_in_torch, k=k))
    if k == 1:
        from crossedge.numerics.neighbours.softmax import softmax_marginals

        # their loops share out the rows, which is faster than a matrix for each thread
        return Recipe(temperatures, softmax_marginals, one_by_one)
    from crossedge.numerics.neighbours.marginals import neighbour_marginals

    return Recipe(temperatures, partial(neighbour_marginals, k=k))


def one_by_one(work: Callable[[Any], Any], blocks: Sequence[Any]) -> list[Any]:
    """Do the work on every block, in this thread."""
    return [work(block) for block in blocks]


def solve(distances: Array, recipe: Recipe) -> tuple[Array, Solved]:
    """Return W, and what its gradient needs."""
    weights, w = _empty_like(distances)
    room, r = _empty_like(distances)
    each = list(zip(_matrices(distances), w, r, recipe.temperatures, strict=True))
    models = _run(recipe, lambda one: recipe.model(*one), each, distances.shape[-1])
    return weights, Solved(models, room, (w, r))


def pull_back(gradient: Array, solved: Solved, recipe: Recipe) -> Array:
    """Return the gradient in the distances, from that in W."""
    changes = list(zip(solved.models, _matrices(gradient), *solved.matrices, strict=True))
    _run(recipe, lambda one: one[0].pull_back(*one[1:]), changes, gradient.shape[-1])
    return solved.room


def flat(matrices: Array) -> Array:
    """Return (..., n, n) matrices as (batch, n, n)."""
    return matrices[None] if matrices.ndim == 2 else matrices.reshape(-1, *matrices.shape[-2:])


def _run(recipe: Recipe, work: Callable[[Any], Any], each: list[Any], n: int) -> list[Any]:
    """Work for many points in a thread of its own, so that an interrupt need not wait for loops."""
    with np.errstate(**USUAL):
        if n <= LONG:
            return recipe.for_each(work, each)
        return run_interruptibly(lambda: recipe.for_each(work, each))


def _matrices(given: Array) -> Array:
    """Return (..., n, n) matrices one by one, as compiled loops or their twins take them."""
    if not is_tensor(given):
        return flat(np.ascontiguousarray(given))
    if not has_compiled_loops(given):
        return flat(given.detach()).contiguous()
    plain = given.detach().resolve_neg() if given.is_neg() else given.detach()
    return flat(plain.contiguous().numpy())


def _empty_like(matrices: Array) -> tuple[Array, Array]:
    """Return an array, and its memory one by one.

    The array is made before the tensor: to ask a tensor for its array is slow.
    """
    if not is_tensor(matrices):
        array = np.empty(matrices.shape)
        return array, flat(array)
    import torch

    if has_compiled_loops(matrices):
        array = np.empty(matrices.shape)
        return torch.from_numpy(array), flat(array)
    tensor = torch.empty_like(matrices, memory_format=torch.contiguous_format)
    return tensor, flat(tensor)
