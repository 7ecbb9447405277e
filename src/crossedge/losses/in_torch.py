"""The loss in torch alone: for devices without compiled loops, and for second derivatives.

It is written for few large kernels. Neighbours and kernels read no value back to the host; trees
and some laws of -log p do. Precision is that of the points. Autograd has all derivatives, except
that trees have the first only.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import softplus

from crossedge.autograd.distances import lp_distances
from crossedge.losses.settings import Settings, scale_name
from crossedge.moments import LabelMoments
from crossedge.statistics import WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights, GraphWeights, KernelWeights, NearestNeighbours
from crossedge.weights.kernels import LARGEST_RATIO, BandwidthKernel
from crossedge.weights.smoothed import smoothed

TILT_STEPS = 24  # of the bisection for the tilt of the odds
LARGEST_TILT = 80.0  # temperatures: the least odds of float32 are e^-88


def loss_in_torch(
    settings: Settings, x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss of (n_x, d) and (n_y, d) points by Euclidean distance.

    `scale` has the temperatures or bandwidths, unless they are the median distance.
    """
    pooled = torch.cat([x, y])
    # a power of two, so that no square leaves the range
    largest = pooled.detach().abs().amax()
    exponent = torch.where(largest > 0, torch.frexp(largest).exponent - 1, 0)
    unit = torch.ldexp(torch.ones_like(largest), exponent)
    distances = lp_distances(pooled / unit, 2.0)
    loss = of_distances(settings, distances, len(x), None if scale is None else scale / unit)
    if settings.scales_with_weights and isinstance(settings.weights, KernelWeights):
        return loss * unit**settings.weights.degree
    return loss


def batched_in_torch(
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


def of_distances(
    settings: Settings, distances: torch.Tensor, n_x: int, scale: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss for an (n, n) tensor of distances."""
    W = _weights(settings, (distances + distances.T) / 2, scale)
    within = WithinSums(W[:n_x, :n_x].sum() / 2, W[n_x:, n_x:].sum() / 2)
    if settings.statistic.studentized:
        in_x = (torch.arange(len(W), device=W.device) < n_x).to(W)[:, None]
        within = within._replace(deviation=mmd_deviation(W, in_x)[0])
    moments = LabelMoments(DenseWeights(W), n_x, len(W) - n_x)
    found: torch.Tensor = settings.of_sums(within, moments)
    return found


def _weights(
    settings: Settings, distances: torch.Tensor, scale: torch.Tensor | None
) -> torch.Tensor:
    weights = settings.weights
    if not scale_name(weights):
        return weights.of_matrices(distances)  # type: ignore[no-any-return]
    levels = _median(distances).reshape(1) if scale is None else scale.reshape(-1).to(distances)
    parts = []
    for level in levels:
        if isinstance(weights, BandwidthKernel):
            ratio = (distances / level).clamp(max=min(LARGEST_RATIO, _root_of_range(distances)))
            parts.append(_off_diagonal(weights.profile(ratio)))
        elif isinstance(weights, NearestNeighbours):
            chosen = _softmax if weights.k == 1 else _chosen
            found = chosen(distances, level, weights.k)
            parts.append(found + found.T)
        else:
            assert isinstance(weights, GraphWeights)  # a tree; it asks the host for its bands
            recipe = weights.recipe(distances, [float(level.detach())])
            parts.append(smoothed(distances * (level.detach() / level), recipe))
    return parts[0] if len(parts) == 1 else torch.stack(parts).mean(0)


def _off_diagonal(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.masked_fill(torch.eye(len(matrix), dtype=torch.bool, device=matrix.device), 0.0)


def _root_of_range(like: torch.Tensor) -> float:
    """Return a number whose square is in the range of a type."""
    return math.sqrt(torch.finfo(like.dtype).max) / 2


def _median(distances: torch.Tensor) -> torch.Tensor:
    """Return the median distance off the diagonal; of those above 0, if it is 0; or else 1."""
    n = len(distances)
    above = torch.triu_indices(n, n, 1, device=distances.device)
    found = distances.detach()[above[0], above[1]].sort().values
    size, zeros = len(found), (found <= 0).sum()

    def median_from(first: torch.Tensor) -> torch.Tensor:
        middle = torch.stack([(first + size - 1) // 2, (first + size) // 2])
        return found[middle.clamp(max=size - 1)].mean()

    median, apart = median_from(torch.zeros_like(zeros)), median_from(zeros)
    return torch.where(median > 0, median, torch.where(zeros < size, apart, 1.0))


def _softmax(distances: torch.Tensor, temperature: torch.Tensor, _: int) -> torch.Tensor:
    """Return P(i chooses j), a softmax in each row."""
    itself = torch.eye(len(distances), dtype=torch.bool, device=distances.device)
    return torch.softmax((-distances / temperature).masked_fill(itself, -torch.inf), 1)


def _chosen(distances: torch.Tensor, temperature: torch.Tensor, k: int) -> torch.Tensor:
    """Return P(j among the k neighbours of i), the gradient of log Z in the log-odds.

    Z is the coefficient of x^k in the product of 1 + e^(theta_j) x over the other points j. A
    common tilt of the odds changes Z by a known factor. It is chosen such that independent choices
    take k points on average. Coefficients are then probabilities of the number of choices, and
    nothing overflows.
    """
    n = len(distances)
    place = torch.arange(n, device=distances.device)
    column = place[:-1] + (place[:-1] >= place[:, None])  # (n, n - 1) without the diagonal
    others = distances.gather(1, column)
    with torch.enable_grad():
        log_odds = -others / temperature
        if not log_odds.requires_grad:
            log_odds.requires_grad_()
        tilted = log_odds + _tilt(log_odds.detach(), k)
        number = _number_of_choices(torch.sigmoid(tilted), torch.sigmoid(-tilted), k)
        log_z = (softplus(tilted).sum(1) + number[:, k].log()).sum()
        (chosen,) = torch.autograd.grad(log_z, log_odds, create_graph=True)
    return torch.zeros_like(distances).scatter(1, column, chosen)


def _tilt(log_odds: torch.Tensor, k: int) -> torch.Tensor:
    """Return the (rows, 1) tilts with which independent choices take k points on average."""
    least, most = (value[:, None] for value in torch.aminmax(log_odds, dim=1))
    low, high = -most - LARGEST_TILT, -least + LARGEST_TILT
    for _ in range(TILT_STEPS):
        middle = (low + high) / 2
        too_few = torch.sigmoid(log_odds + middle).sum(1, keepdim=True) < k
        low, high = torch.where(too_few, middle, low), torch.where(too_few, high, middle)
    return (low + high) / 2


def _number_of_choices(take: torch.Tensor, leave: torch.Tensor, k: int) -> torch.Tensor:
    """Return (rows, k + 1): the probability of 0 ... k choices, by products of pairs of parts."""
    parts = torch.stack([leave, take], 2)
    while parts.shape[1] > 1:
        if parts.shape[1] % 2:
            none = torch.nn.functional.pad(
                parts.new_ones(len(parts), 1, 1), (0, parts.shape[2] - 1)
            )
            parts = torch.cat([parts, none], 1)
        a, b = parts[:, ::2, :, None], parts[:, 1::2, None, :]
        size = parts.shape[2]
        # entry (i, j) of the product of both goes to the coefficient i + j, up to k
        total = torch.arange(size, device=parts.device)[:, None] + torch.arange(
            size, device=parts.device
        )
        kept = torch.arange(min(2 * size - 1, k + 1), device=parts.device)
        place = (total[..., None] == kept).to(parts).reshape(size * size, len(kept))
        parts = (a * b).flatten(2) @ place
    return torch.nn.functional.pad(parts[:, 0], (0, max(k + 1 - parts.shape[2], 0)))
