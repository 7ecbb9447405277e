"""One batch out of the shares of many processes, with gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

KIND_BYTES = 128  # in which a process says what it gives: its shape, its type, its gradient


def gather(points: torch.Tensor) -> torch.Tensor:
    """Return the points of all processes as one batch, in the order of their ranks.

    A two-sample statistic is not a sum over points, so a loss must see the whole batch. Gather the
    generated points, and the data if every process loads a share of it, before the loss. Each
    process then computes the loss of the whole batch.

    The gradient in the points of a process is the sum over the losses of all processes. So
    `DistributedDataParallel` and FSDP, which average the gradients of parameters over processes,
    give the gradient of the mean loss: the same as one process with the whole batch. Derivatives of
    any order pass through.

    Parameters
    ----------
    points : torch.Tensor
        (n, ...) points of this process; all processes must give the same shape and type, and all
        or none of them points with a gradient.

    Returns
    -------
    torch.Tensor
        (n * processes, ...) points; the given ones if there is only one process.

    Raises
    ------
    ValueError
        In all processes, if their points differ in shape, type or whether they have a gradient.

    See Also
    --------
    TwoSampleLoss : The loss to call with the result.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> points = torch.zeros(4, 2)
    >>> ce.gather(points) is points  # without torch.distributed
    True
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return points
    _check_alike(points)
    found: torch.Tensor = _Gather.apply(points)  # type: ignore[no-untyped-call]
    return found


def _check_alike(points: torch.Tensor) -> None:
    """Raise ValueError in all processes unless all of them give points of one kind.

    What each process gives is exchanged in words, in tensors of one size.
    """
    has_gradient = torch.is_grad_enabled() and points.requires_grad
    own = f"{tuple(points.shape)} {points.dtype}{' with a gradient' * has_gradient}"
    words = torch.tensor(list(own.ljust(KIND_BYTES).encode()[:KIND_BYTES]), dtype=torch.uint8)
    kinds = sorted(
        {bytes(one.tolist()).decode().strip() for one in _shares(words.to(points.device))}
    )
    if len(kinds) > 1:
        raise ValueError(
            f"processes give points of {' and '.join(kinds)}: all of them must give one shape and "
            "type (drop_last=True in a loader), and all or none a gradient"
        )


def _shares(own: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors of all processes, which have one shape and type."""
    own = own.detach().contiguous()
    shares = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, own)
    return shares


# Let P processes have shares p_r, and losses L_r of the whole batch G p = (p_1, ..., p_P). The
# gradient of the sum of all losses in p_r is sum_s (dL_s / dG)_r: add up what arrives in all
# processes, and take the own rows. This map is linear, and is the adjoint of G. So each of the two
# is the derivative of the other, and derivatives of any order are right.


class _Gather(torch.autograd.Function):
    """The points of all processes."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return torch.cat(_shares(own))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        found: torch.Tensor = _OwnRows.apply(gradient)  # type: ignore[no-untyped-call]
        return found


class _OwnRows(torch.autograd.Function):
    """The rows of this process in the sum over processes."""

    @staticmethod
    def forward(ctx: Any, batch: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        total = batch.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        n = len(total) // dist.get_world_size()
        return total[dist.get_rank() * n :][:n].clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        found: torch.Tensor = _Gather.apply(gradient)  # type: ignore[no-untyped-call]
        return found
