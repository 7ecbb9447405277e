"""The paper's smoothed neighbourhoods as differentiable functions of distances."""

from __future__ import annotations

from typing import Any

import torch

from crossedge.compiled import in_threads
from crossedge.distances import TIE
from crossedge.numerics.cardinality import Floats, choose_marginals, choose_tangent, kth_smallest
from crossedge.numerics.tree_marginals import TreeMarginals, tree_marginals

ROWS = 32  # of the k-NN model, for a thread at a time


class SmoothedTree(torch.autograd.Function):
    """(n, n) distances -> edge marginals of the Gibbs measure on spanning trees, eq. (2).

    With log w = -(d_ij + d_ji) / (2 temperature) and a cotangent G on both mu_ij and mu_ji, the
    direction of log w is G + G', and the gradient is -1 / (2 temperature) times d mu along it.
    """

    @staticmethod
    def forward(ctx: Any, distances: torch.Tensor, temperature: float) -> torch.Tensor:
        symmetric = (distances + distances.T) / 2
        ctx.found = tree_marginals(symmetric, temperature)
        ctx.temperature = temperature
        found: TreeMarginals = ctx.found
        return found.marginals.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        direction = (gradient + gradient.T).detach().contiguous()
        change = ctx.found.tangent(direction)
        return _once(change / -2 / ctx.temperature, gradient), None


def _in_temperatures(gap: torch.Tensor, distance: torch.Tensor, temperature: float) -> torch.Tensor:
    """Gaps beside distances, (n, n) and (n, 1), as multiples of the temperature.

    Where it is too cold to tell rounding from a difference, near-ties are ties.
    """
    if temperature <= 1e-8 * float(distance.max()):
        gap = gap.masked_fill((gap.abs() <= (TIE - 1) * distance) | (gap == 0), 0.0)
        return torch.where(gap == 0, gap, gap / temperature)
    return gap / temperature


def from_kth(
    distances: torch.Tensor, k: int, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k-th smallest distance of each row, (n,), and exp(-|d - kth| / temperature)."""
    kth = distances.new_empty(len(distances))
    kth_smallest(distances.numpy(), k, kth.numpy())
    gap = (distances - kth[:, None]).abs_()
    return kth, torch.exp(-_in_temperatures(gap, kth[:, None], temperature))


class SmoothedNeighbours(torch.autograd.Function):
    """(n, n) distances -> P(j among the k neighbours of i), a row for each point i.

    Rows are independent, and log w = -d / temperature.
    """

    @staticmethod
    def forward(ctx: Any, distances: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
        n = len(distances)
        kth, decay = from_kth(distances, k, temperature)
        marginals = torch.empty_like(distances)
        arrays = distances.numpy(), decay.numpy(), kth.numpy()
        in_threads(
            lambda row: choose_marginals(row, min(row + ROWS, n), *arrays, k, marginals.numpy()),
            range(0, n, ROWS),
        )
        ctx.arrays, ctx.k, ctx.temperature = arrays, k, temperature
        return marginals

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        n = len(gradient)
        arrays: tuple[Floats, Floats, Floats] = ctx.arrays
        direction, k = gradient.detach().contiguous().numpy(), ctx.k
        change = gradient.new_empty(n, n)
        in_threads(
            lambda row: choose_tangent(
                row, min(row + ROWS, n), *arrays, k, direction, change.numpy()
            ),
            range(0, n, ROWS),
        )
        return _once(change / -ctx.temperature, gradient), None, None


def _once(value: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    first: torch.Tensor = FirstDerivative.apply(value, source)  # type: ignore[no-untyped-call]
    return first


class SmoothedNearest(torch.autograd.Function):
    """The same for k = 1, a softmax in each row."""

    @staticmethod
    def forward(ctx: Any, distances: torch.Tensor, temperature: float) -> torch.Tensor:
        others = distances.clone().fill_diagonal_(torch.inf)
        nearest, ctx.place = others.min(1, keepdim=True)
        exponent = _in_temperatures(distances - nearest, nearest, temperature).neg_()
        exponent.fill_diagonal_(-torch.inf)
        marginals = torch.softmax(exponent, 1)
        ctx.marginals, ctx.temperature = marginals, temperature
        return marginals.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        # measured from the nearest, so that nothing is left to cancel where it has all the weight
        direction = gradient.detach()
        direction = direction - direction.gather(1, ctx.place)
        mean = (ctx.marginals * direction).sum(1, keepdim=True)
        change = direction.sub_(mean).mul_(ctx.marginals)
        return _once(change.div_(-ctx.temperature), gradient), None


class FirstDerivative(torch.autograd.Function):
    """A gradient that says so when it is asked for its own."""

    @staticmethod
    def forward(_: Any, value: torch.Tensor, __: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_: Any, __: torch.Tensor) -> None:
        raise RuntimeError("smoothed weights have no second derivatives: differentiate them once")
