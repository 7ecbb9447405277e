"""Tests as losses: what to minimise until two samples cannot be told apart."""

from __future__ import annotations

from typing import Literal

import torch

from crossedge.distances import Distance, lp_distances
from crossedge.null.moments import label_moments
from crossedge.null.pvalues import check_null, smooth_pvalue
from crossedge.statistics import statistic_named
from crossedge.statistics.edge_counts import zscore
from crossedge.weights import DenseWeights, GraphWeights
from crossedge.weights.family import check_weights

Standardize = bool | Literal["normal", "pearson3"]


class TwoSampleLoss(torch.nn.Module):
    """How well a test tells two samples apart, as a differentiable loss to minimise.

    Parameters
    ----------
    weights : SpanningTree or NearestNeighbours
        With a temperature above 0.
    statistic : "cross", "weighted", "generalized" or "max"
        As in `two_sample`. The loss has the sign that makes it large where samples differ.
    standardize : bool, "normal" or "pearson3"
        True: the z-score of the statistic, by its exact mean and variance over all labellings; for
        "cross", -t with the paper's t. False: the statistic itself, -T for "cross" (the two others
        are standardized anyway). "normal" or "pearson3": -log p, by that law.
    distance : float or callable
        As in `two_sample`.

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
        weights: GraphWeights,
        statistic: str | None = None,
        standardize: Standardize = True,
        *,
        distance: Distance = 2.0,
    ) -> None:
        super().__init__()
        self.weights = check_weights(weights)
        if self.weights.temperature == 0:
            raise ValueError(
                "weights has temperature 0, where a test has no gradient: give one above 0"
            )
        self.statistic = statistic_named("cross" if statistic is None else statistic)
        if not isinstance(standardize, bool):
            if standardize not in ("normal", "pearson3"):
                raise ValueError(
                    f"standardize={standardize!r} is unknown: "
                    "choose from True, False, 'normal', 'pearson3'"
                )
            check_null(self.statistic, standardize)
        self.standardize = standardize
        self.distance = distance

    def extra_repr(self) -> str:
        return (
            f"{self.weights}, statistic={self.statistic.name!r}, standardize={self.standardize!r}"
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss for (n_x, d) and (n_y, d) points."""
        for name, points in (("x", x), ("y", y)):
            if not isinstance(points, torch.Tensor) or points.ndim != 2 or not len(points):
                raise ValueError(f"{name} is not a tensor of shape (n, d), n > 0: give one")
        if x.shape[1] != y.shape[1]:
            raise ValueError(
                f"x has {x.shape[1]} columns and y has {y.shape[1]}: give points of one dimension"
            )
        pooled = torch.cat([x, y])
        distances = (
            self.distance(pooled, pooled)
            if callable(self.distance)
            else lp_distances(pooled, float(self.distance))
        )
        n_x, n_y = len(x), len(y)
        W = self.weights(distances).double()
        within_x, within_y = W[:n_x, :n_x].sum() / 2, W[n_x:, n_x:].sum() / 2
        fourth = self.standardize == "pearson3"
        moments = label_moments(DenseWeights(W), n_x, n_y, fourth=fourth)
        statistic, sign = self.statistic, self.statistic.sign
        if isinstance(self.standardize, str):
            loss = -smooth_pvalue(statistic, self.standardize, within_x, within_y, moments)
        elif self.standardize and statistic.form is not None:
            form = statistic.form(moments)
            r, l = 2 * (within_x + within_y) - moments.total, 2 * (within_x - within_y)  # noqa: E741
            loss = sign * zscore(r, l, form, moments.law(form))
        else:
            loss = sign * statistic.value(within_x, within_y, moments)
        return loss.to(distances.dtype)
