"""The loss as an operation of torch: autograd, batches, transforms and compilers.

The compiled loops find the loss and its gradient in one go. So the operation returns both, and its
derivative is a product of the gradient that is already there with a number. The derivative of these
gradients in a direction is an operation of its own, in `second_derivative`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from crossedge.losses.in_torch import batched_in_torch, of_distances
from crossedge.losses.on_arrays import Found, Wants, loss_of_distances, loss_of_points
from crossedge.losses.second_derivative import Tensors, add_second, in_front
from crossedge.losses.settings import Settings
from crossedge.losses.sparse import is_sparse
from crossedge.runtime.headroom import check_room
from crossedge.runtime.interrupts import run_in_thread, run_interruptibly
from crossedge.weights.scales import check_positive

LONG = 1500  # points: from here on the loops may take a second, and must be interruptible

# A compiler keeps settings in a graph by their text, under which they are found here.
_known: WeakValueDictionary[str, Settings] = WeakValueDictionary()


def remember(settings: Settings) -> tuple[str, Settings]:
    """Return the text of the settings, and the one object that stands for equal settings."""
    text = f"{settings.weights!r}, {settings.statistic.name}, {settings.standardize}"
    return text, _known.setdefault(text, settings)


def _points(
    x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None, text: str, wants: list[bool]
) -> Tensors:
    """Return the loss of (..., n, d) points on the CPU, and its gradients in x, y and the scale.

    A gradient that is not asked for is empty.
    """
    settings = _known[text]
    batch = x.shape[:-2]
    n_x, n_y, d = x.shape[-2], y.shape[-2], x.shape[-1]
    check_room(n_x + n_y, settings.weights.peak_matrices, "give x and y that together have")
    given = [one.detach().contiguous().numpy().reshape(-1, *one.shape[-2:]) for one in (x, y)]
    scales = _scales(settings, scale)
    asked = Wants(*wants)
    rows = asked.rows(n_x, n_x + n_y)

    def one(x: Any, y: Any) -> Found:
        return loss_of_points(settings, x, y, scales, asked)

    found = _each(one, zip(*given, strict=True), n_x + n_y)
    values = _stack([each.value for each in found], x, batch)
    gradients = [x.new_empty(0), x.new_empty(0)]
    for place, (first, last) in enumerate(((0, n_x), (n_x, n_x + n_y))):
        if wants[place]:
            parts = [each.gradient[first - rows.start : last - rows.start] for each in found]
            gradients[place] = _stack(parts, x, (*batch, last - first, d))
    return values, *gradients, _of_scale(found, scale, batch, wants[2])


def _distances(
    distances: torch.Tensor, scale: torch.Tensor | None, n_x: int, text: str, wants: list[bool]
) -> Tensors:
    """Return the loss of (n, n) distances on the CPU, and its gradients in these and the scale."""
    settings = _known[text]
    n = len(distances)
    check_room(n, settings.weights.peak_matrices, "give x and y that together have")
    scales, asked = _scales(settings, scale), Wants(wants[0], wants[0], wants[1])
    matrix = distances.detach().to(torch.float64).contiguous().numpy()

    def one(matrix: Any) -> Found:
        return loss_of_distances(settings, matrix, n_x, scales, asked)

    found = _each(one, [(matrix,)], n)
    gradient = (
        _stack([found[0].gradient], distances, (n, n)) if wants[0] else distances.new_empty(0)
    )
    value = _stack([found[0].value], distances, ())
    return value, gradient, _of_scale(found, scale, (), wants[1])


def _each(work: Callable[..., Found], given: Any, n: int) -> list[Found]:
    """Do the work on every problem of a batch; an interrupt ends long work at once."""
    with np.errstate(all="ignore"):
        if n <= LONG:
            return [work(*one) for one in given]
        return run_interruptibly(lambda: [work(*one) for one in given])


def _scales(settings: Settings, scale: torch.Tensor | None) -> tuple[float, ...]:
    if scale is None:
        return settings.scales
    values = tuple(scale.detach().reshape(-1).tolist())
    check_positive(values, settings.scale_name)
    return values


def _stack(values: list[Any], like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    stacked = values[0] if len(values) == 1 else np.stack(values)
    return torch.as_tensor(stacked, dtype=like.dtype).reshape(shape)


def _of_scale(
    found: list[Found], scale: torch.Tensor | None, batch: tuple[int, ...], wanted: bool
) -> torch.Tensor:
    if scale is None or not wanted:
        return torch.empty(0)
    values = np.array([each.scale for each in found])
    return torch.as_tensor(values, dtype=scale.dtype).reshape((*batch, *scale.shape))


def _with_tape(function: Callable[..., Tensors]) -> Callable[..., Tensors]:
    """Run a function in a thread of its own, where torch records tapes.

    Torch calls an operator with autograd switched off, for which `enable_grad` is no remedy. Some
    losses need a tape on the way (see `taped`).
    """
    return lambda *given: run_in_thread(lambda: function(*given))


_points_op: Any = torch.library.custom_op(
    "crossedge::loss_of_points",
    _with_tape(_points),
    mutates_args=(),
    schema="(Tensor x, Tensor y, Tensor? scale, str text, bool[] wants)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
)
_distances_op: Any = torch.library.custom_op(
    "crossedge::loss_of_distances",
    _with_tape(_distances),
    mutates_args=(),
    schema="(Tensor distances, Tensor? scale, int n_x, str text, bool[] wants)"
    " -> (Tensor, Tensor, Tensor)",
)


@_points_op.register_fake  # type: ignore[untyped-decorator]
def _(
    x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None, _: str, wants: list[bool]
) -> Tensors:
    shapes = [x.shape, y.shape, () if scale is None else (*x.shape[:-2], *scale.shape)]
    return x.new_empty(x.shape[:-2]), *_fakes(x, shapes, [x, y, scale], wants)


@_distances_op.register_fake  # type: ignore[untyped-decorator]
def _(
    distances: torch.Tensor, scale: torch.Tensor | None, _: int, __: str, wants: list[bool]
) -> Tensors:
    shapes = [distances.shape, () if scale is None else scale.shape]
    return distances.new_empty(()), *_fakes(distances, shapes, [distances, scale], wants)


def _fakes(like: torch.Tensor, shapes: list[Any], given: list[Any], wants: list[bool]) -> Tensors:
    return tuple(
        (like if one is None else one).new_empty(shape if wanted and one is not None else (0,))
        for shape, one, wanted in zip(shapes, given, wants, strict=True)
    )


class LossOfPoints(torch.autograd.Function):
    """The loss of (..., n, d) points on the CPU by Euclidean distance, and its gradients."""

    @staticmethod
    def forward(
        x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None, text: str, wants: list[bool]
    ) -> Tensors:
        # a compiler sees an operator, which costs more to call than the function itself
        call = _points_op if torch.compiler.is_compiling() else _points
        found: Tensors = call(x, y, scale, text, wants)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        x, y, scale, ctx.text, ctx.wants = inputs
        if not torch.compiler.is_compiling():
            ctx.settings = _known[ctx.text]  # kept as long as the graph
        ctx.save_for_backward(x, y, scale, *output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None, *along: Any) -> tuple[Any, ...]:
        x, y, scale, *own = ctx.saved_tensors
        needs = list(ctx.needs_input_grad[:3])
        if any(needed and not had for needed, had in zip(needs, ctx.wants, strict=True)):
            own = LossOfPoints.apply(x, y, scale, ctx.text, needs)[1:]  # type: ignore[no-untyped-call]
        out = _chain(gradient, own, needs, x.ndim - 2)
        if not torch.compiler.is_compiling() and any(one is not None for one in along):
            out = add_second(out, ctx.settings, None, (x, y, scale), along)
        return *out, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Any, tuple[Any, ...]]:
        """Move the batch to the front, where points have batches anyway."""
        *tensors, text, wants = given
        x, y, scale = in_front(info.batch_size, in_dims[:3], tensors)
        call: Any = LossOfPoints.apply
        if in_dims[2] is None:
            out = call(x, y, tensors[2], text, wants)
            return out, (0, *(0 if one.numel() else None for one in out[1:]))
        # a temperature for each problem
        each = [call(*one, text, wants) for one in zip(x, y, scale, strict=True)]
        return tuple(torch.stack(parts) for parts in zip(*each, strict=True)), (0, 0, 0, 0)


class LossOfDistances(torch.autograd.Function):
    """The loss of (n, n) distances on the CPU, and its gradients."""

    @staticmethod
    def forward(
        distances: torch.Tensor, scale: torch.Tensor | None, n_x: int, text: str, wants: list[bool]
    ) -> Tensors:
        call = _distances_op if torch.compiler.is_compiling() else _distances
        found: Tensors = call(distances, scale, n_x, text, wants)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        distances, scale, ctx.n_x, ctx.text, ctx.wants = inputs
        if not torch.compiler.is_compiling():
            ctx.settings = _known[ctx.text]  # kept as long as the graph
        ctx.save_for_backward(distances, scale, *output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None, *along: Any) -> tuple[Any, ...]:
        distances, scale, *own = ctx.saved_tensors
        needs = list(ctx.needs_input_grad[:2])
        if any(needed and not had for needed, had in zip(needs, ctx.wants, strict=True)):
            given = distances, scale, ctx.n_x, ctx.text, needs
            own = LossOfDistances.apply(*given)[1:]  # type: ignore[no-untyped-call]
        out = _chain(gradient, own, needs, 0)
        if not torch.compiler.is_compiling() and any(one is not None for one in along):
            out = add_second(out, ctx.settings, ctx.n_x, (distances, scale), along)
        return *out, None, None, None


def _chain(
    gradient: torch.Tensor | None, own: Any, needs: list[bool], batch_dims: int
) -> list[torch.Tensor | None]:
    """Return the gradients of the loss times the gradient in the loss; the last is the scale's."""
    out: list[torch.Tensor | None] = []
    for place, (one, needed) in enumerate(zip(own, needs, strict=True)):
        if not needed or gradient is None:
            out.append(None)
            continue
        if not batch_dims:
            out.append(one * gradient)
            continue
        product = one * gradient.reshape(*gradient.shape, *[1] * (one.ndim - gradient.ndim))
        if place == len(needs) - 1 and batch_dims:
            product = product.sum(tuple(range(batch_dims)))
        out.append(product)
    return out


def loss_of(
    settings: Settings, text: str, x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss of (..., n, d) points by Euclidean distance, on any device."""
    if not x.is_cpu:
        _check_dense(settings)
        own = None if scale is None else scale.expand((*x.shape[:-2], *scale.shape))
        return batched_in_torch(settings, x, y, own)
    _leave_nested_transforms_to_eager()
    found: Tensors = LossOfPoints.apply(  # type: ignore[no-untyped-call]
        x, y, scale, text, _wants(x, y, scale)
    )
    return found[0]


def loss_of_matrix(
    settings: Settings, text: str, distances: torch.Tensor, n_x: int, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss of (n, n) distances, on any device."""
    if not distances.is_cpu:
        _check_dense(settings)
        return of_distances(settings, distances, n_x, scale)
    _leave_nested_transforms_to_eager()
    wants = _wants(distances, scale)
    given = distances, scale, n_x, text, wants
    found: Tensors = LossOfDistances.apply(*given)  # type: ignore[no-untyped-call]
    return found[0]


def _check_dense(settings: Settings) -> None:
    """Raise ValueError for losses that other devices do not have."""
    if is_sparse(settings):
        raise ValueError("a loss with neighbours works on the CPU only: leave out neighbours")


def _leave_nested_transforms_to_eager() -> None:
    """Break the graph of a compiler inside of two transforms, such as two gradients.

    The compiler would take the saved gradient for a constant, and second derivatives for 0.
    """
    if torch.compiler.is_compiling() and _n_transforms() > 1:
        torch._dynamo.graph_break()


def _n_transforms() -> int:
    return torch._C._functorch.maybe_current_level() or 0


# what torch.compiler.assume_constant_result does, which would import the compiler, for seconds
_n_transforms._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _wants(*given: torch.Tensor | None) -> list[bool]:
    on = torch.is_grad_enabled()
    return [on and one is not None and one.requires_grad for one in given]
