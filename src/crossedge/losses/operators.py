"""The loss as an operation of torch: autograd, batches, transforms and compilers.

The compiled loops find the loss and its gradient in one go. So the operation returns both, and its
derivative is a product of the gradient that is already there with a number. The derivative of these
gradients in a direction v is a product H v with the second derivatives H of the loss. It is an
operation of its own, which is computed anew by `in_torch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from crossedge.losses.in_torch import loss_in_torch, of_distances
from crossedge.losses.on_arrays import Found, Wants, loss_of_distances, loss_of_points
from crossedge.losses.settings import Settings
from crossedge.losses.sparse import is_sparse
from crossedge.runtime.headroom import check_room
from crossedge.runtime.interrupts import run_in_thread, run_interruptibly
from crossedge.weights import SpanningTree
from crossedge.weights.scales import check_positive

Tensors = tuple[torch.Tensor, ...]
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
            out = _add_second(out, ctx.settings, None, (x, y, scale), along)
        return *out, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Any, tuple[Any, ...]]:
        """Move the batch to the front, where points have batches anyway."""
        *tensors, text, wants = given
        x, y, scale = _in_front(info.batch_size, in_dims[:3], tensors)
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
            out = _add_second(out, ctx.settings, ctx.n_x, (distances, scale), along)
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


def _in_front(size: int, dims: Sequence[int | None], given: Sequence[Any]) -> list[Any]:
    """Return tensors with the dimension of a batch in front; None where there is none."""
    return [
        [None] * size
        if one is None
        else one.expand((size, *one.shape))
        if dim is None
        else one.movedim(dim, 0)
        for one, dim in zip(given, dims, strict=True)
    ]


def _add_second(
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
        fronts = _in_front(info.batch_size, in_dims[2:], given)
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
            loss = _batched_in_torch(settings, wide[0], wide[1], level)
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


def _batched_in_torch(
    settings: Settings, x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the losses of (..., n, d) points by torch alone; every problem has its own scale."""
    batch = x.shape[:-2]
    if not batch:
        return loss_in_torch(settings, x, y, scale)
    x, y = x.reshape(-1, *x.shape[-2:]), y.reshape(-1, *y.shape[-2:])
    scales = [None] * len(x) if scale is None else scale.reshape(-1, *scale.shape[len(batch) :])
    each = zip(x, y, scales, strict=True)
    return torch.stack([loss_in_torch(settings, *one) for one in each]).reshape(batch)


def loss_of(
    settings: Settings, text: str, x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss of (..., n, d) points by Euclidean distance, on any device."""
    if not x.is_cpu:
        _check_dense(settings)
        own = None if scale is None else scale.expand((*x.shape[:-2], *scale.shape))
        return _batched_in_torch(settings, x, y, own)
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
