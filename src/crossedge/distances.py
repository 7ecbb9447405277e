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
from crossedge.headroom import check_room
from crossedge.samples import (
    Samples,
    check_distance_rows,
    differ,
    pool,
    pool_precomputed,
)
from crossedge.threads import in_threads

Floats = npt.NDArray[np.float64]
BlockDistance = Callable[[Any, Any], Any]  # two tensors in; a tensor or an array out
Distance = float | Literal["precomputed"] | BlockDistance

WIDE = 32  # columns from which products of matrices are quicker than differences
PROBES = 33  # points, spread over both samples, on which a callable is tried first
NUMBERS = 1 << 17  # distances in the rows that are worked on together: they stay in the cache


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
    if isinstance(distances, RowDistances) and distances.matrix is not None:
        return distances.matrix
    check_room(distances.n, 1)
    if isinstance(distances, RowDistances):
        matrix = np.stack([distances.row(index) for index in range(distances.n)])
        check_distance_rows(matrix, "distance", "d(a, b) and d(b, a) must agree")
        return matrix
    with np.errstate(over="ignore"):
        matrix = np.ldexp(lp_matrix(distances.points, distances.p), -distances.exponent)
    if not np.isfinite(matrix).all():
        raise ValueError("the points are farther apart than a float can hold: rescale them")
    return matrix


def rows_of(distances: Distances) -> Callable[[int, int], Floats]:
    """A function of first and last that returns rows first ... last - 1."""
    if isinstance(distances, RowDistances) and distances.matrix is None:
        row = distances.row
        return lambda first, last: np.stack([row(index) for index in range(first, last)])
    matrix = distance_matrix(distances)
    return lambda first, last: matrix[first:last]


def lp_matrix(points: Floats, p: float) -> Floats:
    """(n, d) points -> (n, n) distances, symmetric with a zero diagonal.

    Squares are in range for points of the order of 2^500, however near some are to each other.
    """
    if p == 2 and points.shape[1] >= WIDE:
        tensor = torch.from_numpy(points)
        found: Floats = euclidean_distances(tensor, tensor[:0]).numpy()
        return found
    n, columns = len(points), np.ascontiguousarray(points.T)
    size = max(NUMBERS // n, 1)
    matrix = np.empty((n, n))

    def of_rows(first: int) -> None:
        _lp_rows(columns, first, p, matrix[first : first + size])

    in_threads(of_rows, range(0, n, size))
    return matrix


def _lp_rows(columns: Floats, first: int, p: float, out: Floats) -> None:
    """Write rows of distances, from `first` on, between (d, n) points."""
    own = columns[:, first : first + len(out), None]
    out[:] = 0.0
    if p == 2:
        for rows, column in zip(own, columns, strict=True):
            out += (rows - column) ** 2
        np.sqrt(out, out=out)
    elif p == 1:
        for rows, column in zip(own, columns, strict=True):
            out += np.abs(rows - column)
    else:
        for rows, column in zip(own, columns, strict=True):
            np.maximum(out, np.abs(rows - column), out=out)
        if p < np.inf:  # relative to the largest difference, so that no power leaves the range
            powers, largest = np.zeros_like(out), np.where(out > 0, out, 1.0)
            with np.errstate(under="ignore"):
                for rows, column in zip(own, columns, strict=True):
                    powers += (np.abs(rows - column) / largest) ** p
            powers[out == 0] = 1.0
            out *= powers ** (1 / p)


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
    """Distances by a function of two blocks of points, (a, d) and (b, d), that returns (a, b).

    Every row is checked when it is asked for. Symmetry is tried on points of both samples here, and
    on all of them once there is a matrix.
    """
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

    def row(index: int) -> Floats:
        found: Floats = block(tensor[index : index + 1], tensor)[0]
        _check_itself(found[index], found.max())
        return found

    probes = np.unique(np.linspace(0, len(points) - 1, PROBES).astype(int))
    few, more = tensor[probes[::2]], tensor[probes]
    there = block(few, more)
    _check_itself(np.diagonal(there[:, ::2]).max(), there.max())
    if differ(there, block(more, few).T).any():
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")
    return RowDistances(len(points), row)


def _check_itself(own: Any, largest: Any) -> None:
    if own > 1e-3 * largest:
        raise ValueError(
            f"distance returned {own:g} for a point and itself: "
            "it must be 0 there (is this a similarity?)"
        )


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


def check_returned(distances: Any, n: int) -> None:
    """Raise unless what a callable returned to a loss is an (n, n) tensor of distances."""
    if not isinstance(distances, torch.Tensor):
        raise TypeError(
            f"distance returned {type(distances).__name__}: it must return a tensor, "
            "which has the gradient"
        )
    if distances.shape != (n, n):
        raise ValueError(
            f"distance returned shape {tuple(distances.shape)} for blocks of {n} and {n} points: "
            f"it must return ({n}, {n}), as torch.cdist does"
        )
    fixed = distances.detach()
    check_values(fixed)
    largest = float(fixed.max())
    _check_itself(float(fixed.diagonal().max()), largest)
    typical = fixed.median(1, keepdim=True).values  # as `differ` has it
    allowed = 1e-6 * torch.maximum(fixed, fixed.mT) + 1e-3 * typical
    if bool(((fixed - fixed.mT).abs() > allowed).any()):
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")


def check_values(distances: torch.Tensor) -> None:
    """Raise ValueError unless all distances are finite and non-negative."""
    if not distances.numel():
        return
    least, most = torch.aminmax(distances.detach())
    if not (least.item() >= 0 and most.item() < np.inf):  # false where they are NaN
        raise ValueError(
            "distances has NaN, infinite or negative entries: "
            "all entries must be finite and non-negative"
        )
