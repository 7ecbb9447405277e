"""Points -> distances, as a recipe: no n x n matrix is made unless the caller brings one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from crossedge.euclidean import direct_distances, euclidean_distances
from crossedge.samples import Samples, differ, pool, pool_precomputed

Floats = npt.NDArray[np.float64]
BlockDistance = Callable[[Any, Any], Any]  # two tensors in; a tensor or an array out
Distance = float | Literal["precomputed"] | BlockDistance

# Two distances within this factor of each other are a tie: data rounded to 0.1 have ties in plan
# but, by the rounding of 0.1 itself, not in binary. Continuous data hardly ever come so close.
TIE = 1 + 1e-12
# At temperatures below this share of a distance, only such ties can be told from differences.
COLD = 1e-14
WIDE = 32  # columns from which products of matrices are quicker than differences


@dataclass(frozen=True)
class PointDistances:
    """l_p between n points, computed where it is needed."""

    points: Floats  # (n, d), times 2^exponent so that no square leaves the range of doubles
    p: float
    exponent: int

    @property
    def n(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class RowDistances:
    """Any distance between n points that can be asked for by the row."""

    n: int
    row: Callable[[int], Floats]  # index -> (n,)
    matrix: Floats | None = None  # all rows, if the caller brought them


Distances = PointDistances | RowDistances


def check_norm(p: object, choices: str) -> None:
    if isinstance(p, bool) or not isinstance(p, Real):
        raise TypeError(f"distance is of type {type(p).__name__}: give {choices}")
    if not float(p) >= 1:
        raise ValueError(f"distance={p} is not a norm: l_p needs p >= 1, or infinity")


def pooled_distances(x: object, y: object, distance: Distance) -> tuple[Samples, Distances]:
    """Two samples through the door, and the distances between all their points."""
    if isinstance(distance, str):
        if distance != "precomputed":
            raise ValueError(
                f"distance={distance!r} is unknown: "
                "give p >= 1 for l_p, a callable, or 'precomputed'"
            )
        samples = pool_precomputed(x, y)
        return samples, matrix_distances(samples.values)
    if callable(distance):
        samples = pool(x, y)
        return samples, callable_distances(samples.values, distance)
    check_norm(distance, "p >= 1 for l_p, a callable, or 'precomputed'")
    samples = pool(x, y)
    return samples, point_distances(samples.values, float(distance))


def point_distances(points: Floats, p: float) -> PointDistances:
    largest = np.abs(points).max()
    exponent = 500 - int(np.frexp(largest)[1]) if largest > 0 else 0
    return PointDistances(np.ldexp(points, exponent), p, exponent)


def distance_matrix(distances: Distances) -> Floats:
    """All distances, (n, n)."""
    if isinstance(distances, RowDistances):
        if distances.matrix is not None:
            return distances.matrix
        return np.stack([distances.row(index) for index in range(distances.n)])
    near_one = torch.from_numpy(np.ldexp(distances.points, -500))  # for any power p
    matrix: Floats = lp_distances(near_one, distances.p).numpy()
    return np.ldexp(matrix, 500 - distances.exponent)


def lp_distances(x: torch.Tensor, p: float, y: torch.Tensor | None = None) -> torch.Tensor:
    """(n, d) points, or two parts of them -> (n, n), with gradient 0 between equal points.

    By differences, or by a product of matrices where that is quicker and cancels nothing.
    """
    if p == 2 and x.shape[1] >= WIDE:
        return euclidean_distances(x, x[:0] if y is None else y)
    return direct_distances(x if y is None else torch.cat([x, y]), p)


def matrix_distances(matrix: Floats) -> RowDistances:
    return RowDistances(len(matrix), lambda index: matrix[index], matrix)


def callable_distances(points: Floats, distance: BlockDistance) -> RowDistances:
    """Distances by a function of two blocks of points, (a, d) and (b, d), that returns (a, b)."""
    tensor = torch.from_numpy(points)

    def block(rows: torch.Tensor, columns: torch.Tensor) -> Floats:
        values = _as_block(distance(rows, columns))
        if values.shape != (len(rows), len(columns)):
            raise ValueError(
                f"distance returned shape {values.shape} for blocks of {len(rows)} and "
                f"{len(columns)} points: it must return ({len(rows)}, {len(columns)}), "
                "as torch.cdist does"
            )
        if not np.isfinite(values).all() or values.min() < -1e-6 * values.max():
            worst = values[~np.isfinite(values)] if not np.isfinite(values).all() else values
            raise ValueError(f"distance returned {worst.min():g}: give finite values of at least 0")
        return np.maximum(values, 0.0)  # rounding, as in 1 - cosine

    few, more = tensor[:17], tensor[:33]
    there = block(few, more)
    if np.diagonal(there).max() > 1e-3 * there.max():
        raise ValueError(
            f"distance returned {np.diagonal(there).max():g} for a point and itself: "
            "it must be 0 there (is this a similarity?)"
        )
    if differ(there, block(more, few).T).any():
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")
    return RowDistances(len(points), lambda index: block(tensor[index : index + 1], tensor)[0])


def _as_block(values: Any) -> Floats:
    """What a callable returned, as doubles."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise TypeError(
            f"distance returned {type(values).__name__} of no real numbers: "
            "it must return an (a, b) tensor or array"
        ) from None


def check_values(distances: torch.Tensor) -> None:
    """Whether they are finite and not negative, or one clear line."""
    if not distances.numel():
        return
    least, most = torch.aminmax(distances.detach())
    if not (least.item() >= 0 and most.item() < np.inf):  # false where they are NaN
        raise ValueError("distances has NaN, infinite or negative entries: give none")
