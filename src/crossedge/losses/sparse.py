"""The loss on candidate pairs only: memory and time are proportional to their number.

Which pairs are candidates is a choice, without a gradient. Given them, W is a function of their
lengths, and all pairs without a weight enter the sums of W as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crossedge.data.distances import Distances, matrix_distances, point_distances
from crossedge.losses.settings import Settings
from crossedge.losses.slopes import Slopes, closed_form, has_closed_form
from crossedge.losses.taped import loss_by_tape
from crossedge.moments.edges import EdgeSums
from crossedge.numerics.pairs.sums import PairSums, row_effects
from crossedge.runtime.types import Bools, Floats
from crossedge.weights import EdgeList, GraphWeights
from crossedge.weights.candidates import Candidates


def is_sparse(settings: Settings) -> bool:
    """Return whether the loss is one of candidate pairs."""
    return getattr(settings.weights, "neighbours", None) is not None


def sparse_loss_of_points(
    settings: Settings, pooled: Any, n_x: int, scales: Sequence[float], *, gradient: bool
) -> tuple[float, Floats | None, list[float]]:
    """Return the loss of (n, d) points, its gradient in them, and in each temperature."""
    points = np.asarray(pooled, np.float64)
    if not np.isfinite(points).all():
        raise ValueError("x or y has NaN or infinite entries: the loss needs finite points")
    distances = point_distances(points, 2.0)
    value, pairs, slope, of_scale = _loss_of_pairs(settings, distances, n_x, scales, gradient)
    if slope is None:
        return value, None, []
    # the gradient of a length is a unit vector, so the power of two of the points cancels
    from scipy.sparse import coo_array

    scaled = np.ldexp(distances.points, -500)  # of the order of 1
    length = np.ldexp(pairs.length, distances.exponent - 500)
    share = np.divide(slope, length, out=np.zeros_like(slope), where=length > 0)
    joined: Any = coo_array((share, (pairs.i, pairs.j)), (pairs.n, pairs.n)).tocsr()
    joined = joined + joined.T
    return value, joined.sum(1)[:, None] * scaled - joined @ scaled, of_scale


def sparse_loss_of_distances(
    settings: Settings, matrix: Floats, n_x: int, scales: Sequence[float], *, gradient: bool
) -> tuple[float, Floats | None, list[float]]:
    """Return the loss of an (n, n) matrix of distances, and its gradients."""
    distances = matrix_distances((matrix + matrix.T) / 2)
    value, pairs, slope, of_scale = _loss_of_pairs(settings, distances, n_x, scales, gradient)
    if slope is None:
        return value, None, []
    out = np.zeros_like(matrix)
    out[pairs.i, pairs.j] = out[pairs.j, pairs.i] = slope / 2
    return value, out, of_scale


def _loss_of_pairs(
    settings: Settings, distances: Distances, n_x: int, scales: Sequence[float], gradient: bool
) -> tuple[float, Candidates, Floats | None, list[float]]:
    """Return the loss, the pairs, its gradient in their lengths, and in each temperature."""
    weights = settings.weights
    assert isinstance(weights, GraphWeights)
    weights.check_size(distances.n)
    pairs = weights.candidates(distances)
    levels = tuple(scales) or weights.sparse_temperatures(pairs)
    models = [weights.sparse_model(pairs, level) for level in levels]
    W: Floats = sum(model.weight for model in models) / len(models)  # type: ignore[assignment]
    in_x = np.arange(pairs.n) < n_x
    sums = _sums(EdgeList(np.arange(pairs.n), pairs.i, pairs.j, W), in_x)
    if has_closed_form(settings):
        value, slopes = closed_form(settings, sums, n_x, pairs.n - n_x)
    else:
        value, slopes = loss_by_tape(settings, sums, None, n_x, pairs.n - n_x, gradient=gradient)
    if not gradient:
        return value, pairs, None, []
    in_weights = _in_weights(slopes, sums, pairs, W, in_x) / len(models)
    parts = [model.pull_back(in_weights) for model in models]
    of_scale = [
        -float(part @ pairs.length) / level for part, level in zip(parts, levels, strict=True)
    ]  # W depends on d / t alone
    return value, pairs, sum(parts[1:], parts[0]), of_scale


def _sums(graph: EdgeList, in_x: Bools) -> PairSums:
    """Return the sums of W that a loss needs."""
    second = EdgeSums(graph).second()
    centred, effect = row_effects(graph.degree)
    both = in_x[graph.i] & in_x[graph.j]
    neither = ~(in_x[graph.i] | in_x[graph.j])
    return PairSums(
        x=float(graph.weight[both].sum()),
        y=float(graph.weight[neither].sum()),
        total=float(second.total),
        squares=float(second.squares),
        degree2=float(second.degree2),
        degree=centred,
        effect=effect,
    )


def _in_weights(
    slopes: Slopes, sums: PairSums, pairs: Candidates, W: Floats, in_x: Bools
) -> Floats:
    """Return the gradient in the weight of each pair: see numerics/pairs/sums.py."""
    a, b, c, x, y = slopes.direction(pairs.n, sums.total)
    first, second = in_x[pairs.i], in_x[pairs.j]
    within = np.where(first & second, x, np.where(first | second, 0.0, y))
    found: Floats = a + b * (sums.degree[pairs.i] + sums.degree[pairs.j]) + c * W + within
    return found
