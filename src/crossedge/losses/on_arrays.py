"""The loss of two samples and its gradient, on arrays: no tape, and few matrices of all pairs.

A loss is a function of a few sums of W (see `slopes`). So there are three steps: distances and W
with its sums; the loss and its derivatives in the sums; the gradient in W, pulled back to the
points. For single nearest neighbours they are fused loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from crossedge.losses.neighbourhoods import Neighbourhood, levels_of, neighbourhood
from crossedge.losses.points import DirectPoints, GivenDistances, Points, scaled_points
from crossedge.losses.settings import Settings
from crossedge.losses.slopes import closed_form, has_closed_form, needs_third
from crossedge.losses.sparse import is_sparse, sparse_loss_of_distances, sparse_loss_of_points
from crossedge.losses.taped import Thirds, loss_by_tape, studentized_loss
from crossedge.numerics.neighbours.fused import FusedNearest, fused_nearest
from crossedge.runtime.types import Floats
from crossedge.weights import KernelWeights, NearestNeighbours


class Wants(NamedTuple):
    """The arguments in which a gradient is asked for."""

    x: bool
    y: bool
    scale: bool

    @property
    def any(self) -> bool:
        """Whether any gradient is asked for."""
        return self.x or self.y or self.scale

    def rows(self, n_x: int, n: int) -> slice:
        """Return the rows of the pooled sample that need a gradient."""
        return slice(0 if self.x else n_x, n if self.y else n_x)


class Found(NamedTuple):
    """A loss, its gradient in points or distances, and in each temperature or bandwidth."""

    value: float
    gradient: Any  # None if it was not asked for; rows that were not are missing
    scale: list[float]


def loss_of_points(
    settings: Settings, x: Any, y: Any, scales: Sequence[float], wants: Wants
) -> Found:
    """Return the loss of (n_x, d) and (n_y, d) arrays of float32 or float64, by Euclidean distance.

    `scales` are the temperatures or bandwidths, unless these are the median distance.
    """
    n_x, pooled = len(x), np.concatenate([x, y])
    rows = wants.rows(n_x, len(pooled))
    if is_sparse(settings):
        found = Found(*sparse_loss_of_points(settings, pooled, n_x, scales, gradient=wants.any))
        return found._replace(gradient=found.gradient[rows]) if wants.any else found
    points = scaled_points(pooled)
    levels = levels_of(settings.weights, points, scales)
    fused = None if wants.scale else _fused(settings, points, n_x, levels)
    if fused is not None:
        value, slopes = closed_form(settings, fused.sums, n_x, len(y))
        if not wants.any:
            return Found(value, None, [])
        spread = fused.spread(slopes.direction(len(pooled), fused.sums.total), rows)
        return Found(value, _times(points.pull(spread, rows.start), points.scale), [])
    near = neighbourhood(settings.weights, points, n_x, levels, learns=wants.scale)
    value, gradient = _in_weights(settings, near, n_x, pooled.dtype, wants)
    factor = _factor(settings, near, points)
    if gradient is None:
        return Found(value * factor, None, [])
    spread, of_scale = near.to_spread(gradient, rows)
    scale = [slope * points.scale * factor for slope in of_scale]
    gradient = _times(points.pull(spread, rows.start), points.scale * factor)
    return Found(value * factor, gradient, scale)


def loss_of_distances(
    settings: Settings, distances: Floats, n_x: int, scales: Sequence[float], wants: Wants
) -> Found:
    """Return the loss for an (n, n) matrix of distances."""
    if is_sparse(settings):
        return Found(
            *sparse_loss_of_distances(settings, distances, n_x, scales, gradient=wants.any)
        )
    points = GivenDistances(distances)
    levels = levels_of(settings.weights, points, scales)
    found = neighbourhood(settings.weights, points, n_x, levels, learns=wants.scale)
    value, gradient = _in_weights(settings, found, n_x, distances.dtype, wants)
    factor = _factor(settings, found, points)
    if gradient is None:
        return Found(value * factor, None, [])
    to_distances, of_scale = found.to_distances(gradient)
    return Found(value * factor, to_distances * factor, [slope * factor for slope in of_scale])


def _fused(
    settings: Settings, points: Points, n_x: int, levels: list[float]
) -> FusedNearest | None:
    """Return the fused loops of a single nearest neighbour, where they serve."""
    weights = settings.weights
    if not (isinstance(weights, NearestNeighbours) and weights.k == 1 and len(levels) == 1):
        return None
    if not has_closed_form(settings) or needs_third(settings):
        return None
    if isinstance(points, DirectPoints):
        return fused_nearest(points.columns, True, n_x, levels[0])
    return fused_nearest(points.distances, False, n_x, levels[0])


def _in_weights(
    settings: Settings, found: Neighbourhood, n_x: int, precision: Any, wants: Wants
) -> tuple[float, Floats | None]:
    """Return the loss, and its gradient in W as if all of its entries were independent."""
    sums, n_y = found.sums, len(found.W) - n_x
    if settings.statistic.studentized:
        return studentized_loss(settings, found.W, n_x, gradient=wants.any)
    thirds = Thirds(found.W, sums, precision)
    if has_closed_form(settings):
        value, slopes = closed_form(settings, sums, n_x, n_y, thirds)
    else:
        value, slopes = loss_by_tape(settings, sums, thirds, n_x, n_y, gradient=wants.any)
    return value, thirds.gradient(slopes, n_x) if wants.any else None


def _times(values: Any, factor: float) -> Any:
    return values if factor == 1 else values * factor


def _factor(settings: Settings, found: Neighbourhood, points: Points) -> float:
    """Return the loss over that of the scaled distances and weights."""
    if not settings.scales_with_weights:
        return 1.0
    weights = settings.weights
    degree = weights.degree if isinstance(weights, KernelWeights) else 0
    return found.unit / points.scale**degree
