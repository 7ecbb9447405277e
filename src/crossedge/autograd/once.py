"""Gradients that cannot be differentiated again, and say so.

Torch's own `once_differentiable` stays silent, and gives a wrong second derivative, where the
incoming gradient is a constant.
"""

from __future__ import annotations

from typing import Any

import torch


def only_once(gradient: torch.Tensor, what: str, *given: torch.Tensor) -> torch.Tensor:
    """Return a gradient in these tensors; to differentiate it raises NotImplementedError."""
    if not torch.is_grad_enabled():
        return gradient
    found: torch.Tensor = _Once.apply(gradient, what, *given)  # type: ignore[no-untyped-call]
    return found


class _Once(torch.autograd.Function):
    """The gradient itself, with a derivative that raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: torch.Tensor, what: str, *given: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG004
        ctx.what = inputs[1]

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Any:
        raise NotImplementedError(
            f"{ctx.what} can be differentiated once only: leave out create_graph=True, or take "
            "a loss of NearestNeighbours or of a kernel with distance=2, which has second "
            "derivatives"
        )
