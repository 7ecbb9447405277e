"""Losses whose derivative is left to autograd, on a tape of a few sums or, at worst, of W.

Every statistic of the within-sums with every law is a function of ten sums of W (see
`LabelMoments`), so the tape holds ten numbers. Only a statistic that is divided by its own
deviation looks at W itself.
"""

from __future__ import annotations

import numpy as np
import torch

from crossedge.losses.points import symmetric_product
from crossedge.losses.settings import Settings
from crossedge.losses.slopes import NO_SLOPES, Slopes
from crossedge.moments import LabelMoments
from crossedge.moments.centred import SecondSums, ThirdSums
from crossedge.numerics.pairs.sums import PairSums, gradient_in_weights
from crossedge.numerics.pairs.third import (
    ThirdParts,
    gradient_with_third,
    third_parts,
    without_effects,
)
from crossedge.runtime.types import Floats
from crossedge.statistics import WithinSums
from crossedge.statistics.mean_discrepancies import mmd_deviation
from crossedge.weights import DenseWeights

MODERATE_SQUARES = 1e-12, 1e12  # of the sum of V^2


class Thirds:
    """The sums that third moments need, computed when they are first asked for."""

    def __init__(self, W: Floats, sums: PairSums, precision: type) -> None:
        # cubes of other weights would leave the range of float32
        moderate = MODERATE_SQUARES[0] < sums.squares < MODERATE_SQUARES[1]
        self.W, self.sums, self.precision = W, sums, precision if moderate else np.float64
        self.parts: ThirdParts | None = None

    def __call__(self) -> ThirdSums:
        """Return the sums; the product of matrices is computed in the given precision."""
        V, degree = without_effects(self.W, self.sums.effect, self.precision), self.sums.degree
        walks = symmetric_product(torch.from_numpy(V)).numpy()
        self.parts = third_parts(V, walks, degree)
        return ThirdSums(
            cubes=self.parts.cubes,
            triangles=self.parts.triangles,
            degree3=float((degree**3).sum()),
            degree_squares=float(degree @ self.parts.squares),
            degree_degree=float(degree @ self.parts.onward),
        )

    def gradient(self, slopes: Slopes, n_x: int) -> Floats:
        """Return the gradient in W as if all of its entries were independent."""
        n, sums = len(self.W), self.sums
        if self.parts is None or slopes.third is None:
            return gradient_in_weights(slopes.direction(n, sums.total), sums, self.W, n_x)
        return gradient_with_third(slopes[:5], slopes.third, sums, self.parts, n_x)


def loss_by_tape(
    settings: Settings,
    sums: PairSums,
    thirds: Thirds | None,
    n_x: int,
    n_y: int,
    *,
    gradient: bool,
) -> tuple[float, Slopes]:
    """Return the loss and, if asked for, its derivatives in the sums of W.

    `thirds` may be None where third moments are not used.
    """
    leaves = [torch.tensor(sums[:5], dtype=torch.float64, requires_grad=True)]

    def third() -> ThirdSums:
        assert thirds is not None
        leaves.append(torch.tensor(thirds(), dtype=torch.float64, requires_grad=True))
        return ThirdSums(*leaves[1])

    with torch.enable_grad():
        x, y, *second = leaves[0]
        moments = LabelMoments.from_sums(SecondSums(*second), n_x, n_y, third)
        # a loss that is constant has slopes of 0; without the last term it would have none
        loss = settings.of_sums(WithinSums(x, y), moments) + 0 * x
    if not gradient:
        return float(loss.detach()), NO_SLOPES
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    of_second, *of_third = ([0.0] * 5 if one is None else one.tolist() for one in found)
    return float(loss.detach()), Slopes(*of_second, *(ThirdSums(*one) for one in of_third))


def studentized_loss(
    settings: Settings, W: Floats, n_x: int, *, gradient: bool
) -> tuple[float, Floats | None]:
    """Return the same for a statistic that is divided by its deviation over fresh samples."""
    n_y = len(W) - n_x
    in_x = (torch.arange(len(W)) < n_x).to(torch.float64)[:, None]
    with torch.enable_grad():
        leaf = torch.from_numpy(W).requires_grad_(gradient)
        within = WithinSums(
            leaf[:n_x, :n_x].sum() / 2, leaf[n_x:, n_x:].sum() / 2, mmd_deviation(leaf, in_x)[0]
        )
        loss = settings.of_sums(within, LabelMoments(DenseWeights(leaf), n_x, n_y))
    if not gradient:
        return float(loss.detach()), None
    (found,) = torch.autograd.grad(loss, leaf)
    return float(loss.detach()), ((found + found.T) / 2).numpy()
