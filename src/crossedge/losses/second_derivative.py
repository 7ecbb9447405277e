"""Second derivatives of the loss, as an operation of torch.

The derivative of the gradients of a loss in a direction v is a product H v with its second
derivatives H. It is computed anew by `in_torch`, which keeps a tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from crossedge.losses.in_torch import batched_in_torch, of_distances
from crossedge.losses.settings import Settings
from crossedge.losses.sparse import is_sparse
from crossedge.weights import SpanningTree

Tensors = tuple[torch.Tensor, ...]


def in_front(size: int, dims: Sequence[int | None], given: Sequence[Any]) -> list[Any]:
    """Return tensors with the dimension of a batch in front; None where there is none."""
    return [
        [None] * size
        if one is None
        else one.expand((size, *one.shape))
        if dim is None
        else one.movedim(dim, 0)
        for one, dim in zip(given, dims, strict=True)
    ]


def add_second(
    out: list[torch.Tensor | None],
    settings: Settings,
    n_x: int | None,
    given: tuple[Any, ...],
    along: tuple[Any, ...],
) -> list[torch.Tensor | None]:
    """Add the second derivatives along directions; those in the scale are summed over a batch."""
    found = SecondDerivative.of(settings, n_x, given, along)
    total: list[torch.Tensor | None] = []
    for one, more, like in zip(out, found, given, strict=True):
        if like is None:
            total.append(None)
            continue
        summed = more.sum(tuple(range(more.ndim - like.ndim))) if more.ndim > like.ndim else more
        total.append(summed if one is None else one + summed)
    return total


class _NotAgain(torch.autograd.Function):
    """A tensor itself, with a derivative that raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(given: torch.Tensor) -> torch.Tensor:
        return given.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Save nothing."""

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise NotImplementedError(
            "a loss has no third derivatives: leave out create_graph=True in the second"
        )


class SecondDerivative(torch.autograd.Function):
    """The product H v of the second derivatives of the loss with a direction.

    H is symmetric, so the derivative of H v in v along g is H g. The derivative in the points would
    be a third one, at which `_NotAgain` raises.

    `given` are points or distances and the scale, then the directions in each of them. Every
    problem of a batch counts as having a scale of its own.
    """

    @staticmethod
    def of(settings: Settings, n_x: int | None, given: Any, along: Any) -> Tensors:
        """Return H v; directions that are None or empty are 0."""
        fixed = (None if one is None else _NotAgain.apply(one) for one in given)  # type: ignore[no-untyped-call]
        ways = (None if one is None or not one.numel() else one for one in along)
        found: Tensors = SecondDerivative.apply(settings, n_x, *fixed, *ways)  # type: ignore[no-untyped-call]
        return found

    @staticmethod
    def forward(settings: Settings, n_x: int | None, *given: Any) -> Tensors:
        half = len(given) // 2
        return _second_derivative(settings, n_x, given[:half], given[half:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:  # noqa: ARG004
        ctx.settings, ctx.n_x, *given = inputs
        ctx.save_for_backward(*given[: len(given) // 2])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *along: Any) -> tuple[Any, ...]:
        given = ctx.saved_tensors
        found = SecondDerivative.of(ctx.settings, ctx.n_x, given, along)
        needs = ctx.needs_input_grad[2 + len(given) :]
        out = [one if needed else None for one, needed in zip(found, needs, strict=True)]
        return None, None, *[None] * len(given), *out

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], settings: Settings, n_x: int | None, *given: Any
    ) -> tuple[Any, tuple[int, ...]]:
        """Take one problem after the other."""
        fronts = in_front(info.batch_size, in_dims[2:], given)
        call: Any = SecondDerivative.apply
        each = [call(settings, n_x, *one) for one in zip(*fronts, strict=True)]
        found = tuple(torch.stack(parts) for parts in zip(*each, strict=True))
        return found, (0,) * len(found)


def _second_derivative(
    settings: Settings, n_x: int | None, given: tuple[Any, ...], along: tuple[Any, ...]
) -> Tensors:
    """Return H v in each of the given tensors; that of a scale which is None is empty."""
    if is_sparse(settings):
        raise NotImplementedError(
            "a loss of candidate pairs has no second derivatives: leave out neighbours, or "
            "create_graph=True"
        )
    if isinstance(settings.weights, SpanningTree):
        raise NotImplementedError(
            "a loss of spanning trees has no second derivatives: take NearestNeighbours or a "
            "kernel, or leave out create_graph=True"
        )
    *points, scale = given
    batch, none = points[0].shape[:-2], points[0].new_empty(0)
    own = none if scale is None else scale.expand((*batch, *scale.shape))
    with torch.enable_grad():
        leaves: list[Any] = [one.detach().double().requires_grad_() for one in (*points, own)]
        *wide, level = leaves
        if scale is None:
            constants = torch.tensor(settings.scales, dtype=torch.float64)
            level = constants.expand((*batch, *constants.shape)) if settings.scales else None
        if n_x is None:
            loss = batched_in_torch(settings, wide[0], wide[1], level)
        else:
            loss = of_distances(settings, wide[0], n_x, level)
        slopes = torch.autograd.grad(loss.sum(), leaves, create_graph=True, materialize_grads=True)
        # slopes that are constant are on no tape without the last term
        slopes = tuple(slope + 0 * leaf for slope, leaf in zip(slopes, leaves, strict=True))
    pairs = zip(along, leaves, strict=True)
    ways = [torch.zeros_like(leaf) if way is None else way.double() for way, leaf in pairs]
    # directions may be the batches of `is_grads_batched`, which only `grad_outputs` takes
    found = torch.autograd.grad(slopes, leaves, ways)
    return tuple(one.to(like) for one, like in zip(found, (*points, own), strict=True))
