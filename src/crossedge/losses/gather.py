"""One batch out of the shares of many processes, with gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def gather(points: torch.Tensor) -> torch.Tensor:
    """Return the points of all processes as one batch, in the order of their ranks.

    A two-sample statistic is not a sum over points, so a loss must see the whole batch. Gather the
    generated points, and the data if every process loads a share of it, before the loss. Each
    process then computes the loss of the whole batch.

    The gradient in the points of a process is the sum over the losses of all processes. So
    `DistributedDataParallel` and FSDP, which average the gradients of parameters over processes,
    give the gradient of the mean loss: the same as one process with the whole batch.

    Parameters
    ----------
    points : torch.Tensor
        (n, ...) points of this process; all processes must give the same shape and type.

    Returns
    -------
    torch.Tensor
        (n * processes, ...) points; the given ones if there is only one process.

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
    found: torch.Tensor = _Gather.apply(points)  # type: ignore[no-untyped-call]
    return found


class _Gather(torch.autograd.Function):
    """All shares; the gradient in the own share is a sum over processes."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor) -> torch.Tensor:
        ctx.n = len(own)
        shares = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(shares, own.detach().contiguous())
        return torch.cat(shares)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        first = dist.get_rank() * ctx.n
        return total[first : first + ctx.n]
