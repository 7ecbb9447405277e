"""Tests as losses: what to minimise until two samples cannot be told apart."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Literal

import torch

from crossedge.distances import Distance, check_norm, check_returned, lp_distances
from crossedge.headroom import check_room
from crossedge.null.moments import label_moments
from crossedge.null.pvalues import check_law, smooth_pvalue
from crossedge.statistics import WithinSums, statistic_named
from crossedge.statistics.edge_counts import zscore
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights, Weights
from crossedge.weights.family import check_weights

Standardize = bool | Literal["normal", "pearson3"]
SMOOTH = "give one, as ce.SpanningTree(temperature=1.0) or ce.GaussianKernel()"


class TwoSampleLoss(torch.nn.Module):
    """How well a test tells two samples apart, as a differentiable loss to minimise.

    Parameters
    ----------
    weights : SpanningTree or NearestNeighbours with a temperature above 0, or a kernel
    statistic : str
        As in `two_sample`, by default "cross" for graphs, "mmd" for kernels and "energy" for
        EnergyKernel. The loss is large where samples differ.
    standardize : bool, "normal" or "pearson3"
        True: for "cross", -t with the paper's t; for "weighted", "mmd" and "energy" the z-score, by
        the exact mean and variance over all labellings. False: the statistic itself, -T for
        "cross", the squared distance for "mmd" and "energy". The others are standardized as they
        are: True and False are the same. "normal" or "pearson3": -log p, by that law, the latter
        with all moments that are known, which takes a tenth of a second and more for each step.
    distance : float or callable
        As in `two_sample`.

    Notes
    -----
    A smoothed graph sees as far as its temperature. Samples that are many temperatures apart hardly
    attract each other, and the loss falls by what each sample does alone: begin with a temperature
    of the order of their distance, as "median", or give several. Points that are equal have equal
    gradients, so it takes some noise to part them.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> generator = torch.Generator().manual_seed(0)
    >>> data = torch.randn(64, 2, generator=generator)
    >>> fake = torch.randn(64, 2, generator=generator).add(1).requires_grad_()
    >>> loss = ce.TwoSampleLoss(ce.SpanningTree(temperature=0.5))(data, fake)
    >>> loss.backward()
    >>> f"{loss:.2f}", fake.grad.shape
    ('14.72', torch.Size([64, 2]))
    """

    def __init__(
        self,
        weights: Weights,
        statistic: str | None = None,
        standardize: Standardize = True,
        *,
        distance: Distance = 2.0,
    ) -> None:
        super().__init__()
        self.weights = check_weights(weights, SMOOTH)
        levels = getattr(self.weights, "temperature", 1.0)
        if not self.weights.is_smooth or (isinstance(levels, tuple) and 0 in levels):
            raise ValueError(
                "weights has temperature 0, where a test has no gradient: give one above 0"
            )
        self.statistic = statistic_named(
            self.weights.default_statistic if statistic is None else statistic
        )
        self.statistic.check_weights(self.weights)
        if not isinstance(standardize, bool):
            if standardize not in ("normal", "pearson3"):
                raise ValueError(
                    f"standardize={standardize!r} is unknown: "
                    "choose from True, False, 'normal', 'pearson3'"
                )
            check_law(self.statistic, standardize, "standardize")
        self.standardize = standardize
        if not callable(distance):
            check_norm(distance, "p >= 1 for l_p, or a callable")
        self.distance = distance

    def extra_repr(self) -> str:
        names = f"statistic={self.statistic.name!r}, standardize={self.standardize!r}"
        return f"{self.weights}, {names}, distance={self.distance}"

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss for (n_x, d) and (n_y, d) tensors of points, a scalar of their type.

        Half precision is taken to single, and of two types the wider one wins.
        """
        if "torch._dynamo" in sys.modules:  # which torch.compile imports, and nobody else should
            return _outside_graphs()(self, x, y)
        return self._loss(x, y)

    def _loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        largest = max(_largest("x", x), _largest("y", y))
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"x has {x.shape[1]} columns and y has {y.shape[1]}: give points of one dimension"
            )
        dtype = torch.promote_types(x.dtype, y.dtype)
        if dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
        extreme = dtype == torch.float32 and not 1e-30 < largest < 1e30  # its unit is out of range
        wide = torch.float64 if extreme and largest > 0 else dtype
        x, y = x.to(wide), y.to(wide)
        n_x, n_y = len(x), len(y)
        if x.is_cpu:
            remedy = "give x and y that together have"
            check_room(n_x + n_y, self.weights.peak_matrices, remedy)
        if callable(self.distance):
            pooled = torch.cat([x, y])
            distances = self.distance(pooled, pooled)
            check_returned(distances, n_x + n_y)
        elif self.distance == 2 and (largest == 0 or 1e-3 < largest < 1e12):
            distances = lp_distances(x, 2.0, y)
        else:  # scaled by a power of two, so that no square leaves the range
            room = 400 if wide == torch.float64 else 0
            unit = (
                math.ldexp(1.0, max(math.frexp(largest)[1] - room, -1021)) if largest > 0 else 1.0
            )
            distances = lp_distances(x / unit, float(self.distance), y / unit) * unit
        pairs = DenseWeights.in_range(self.weights(distances.double()))
        W = pairs.matrix
        within = WithinSums(W[:n_x, :n_x].sum() / 2, W[n_x:, n_x:].sum() / 2)
        if self.statistic.studentized:
            in_x = (torch.arange(n_x + n_y, device=W.device) < n_x).to(W)[:, None]
            within = within._replace(deviation=mmd_deviation(W, in_x)[0])
        statistic, sign = self.statistic, self.statistic.sign
        fourth = self.standardize == "pearson3"
        third = fourth or statistic.order > 2
        moments = label_moments(pairs, n_x, n_y, third=third, fourth=fourth)
        if isinstance(self.standardize, str):
            loss = -smooth_pvalue(statistic, self.standardize, within.x, within.y, moments)
        elif self.standardize and statistic.form is not None:
            form = statistic.form(moments)
            loss = sign * zscore(within.x, within.y, moments, form)
        else:
            loss = sign * statistic.of(within, moments)
            if statistic.form is not None:  # as large as the weights
                loss = loss * pairs.unit
        return loss.to(dtype)


def _outside_graphs() -> Callable[..., torch.Tensor]:
    """The loss as a function that torch.compile leaves as it is."""
    global _disabled
    if _disabled is None:
        _disabled = torch.compiler.disable(TwoSampleLoss._loss)  # type: ignore[no-untyped-call]
    return _disabled


_disabled: Callable[..., torch.Tensor] | None = None


def _largest(name: str, points: object) -> float:
    """The largest coordinate of points that a loss can be computed of."""
    if not isinstance(points, torch.Tensor):
        raise TypeError(
            f"{name} is of type {type(points).__name__}: give a tensor (torch.as_tensor)"
        )
    if points.ndim != 2 or not points.numel():
        raise ValueError(f"{name} has shape {tuple(points.shape)}: give points, (n, d) with n > 0")
    if not points.is_floating_point():
        raise TypeError(f"{name} is {points.dtype}: give floating point numbers")
    low, high = (float(value) for value in torch.aminmax(points.detach()))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name} has NaN or infinite entries: the loss needs finite points")
    return max(-low, high)
