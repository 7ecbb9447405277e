"""Distances between pooled points, kept as a recipe: an n x n matrix is made only when needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from crossedge.data.euclidean import MANY_COLUMNS, euclidean_by_product
from crossedge.data.precomputed import check_distance_rows, differ, pool_labels, pool_precomputed
from crossedge.data.representations import Transform, represent
from crossedge.data.samples import Samples, pool
from crossedge.numerics.tolerances import NEGATIVE
from crossedge.runtime.arrays import is_tensor, to_tensor
from crossedge.runtime.headroom import check_room
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Array, Floats, Ints

BlockDistance = Callable[[Any, Any], Any]  # (a, d) and (b, d) points -> (a, b) distances
Distance = float | Literal["precomputed"] | BlockDistance

PROBES = 33  # points, spread over both samples, on which a callable is tested first
BLOCK_DISTANCES = 1 << 17  # distances in a block of rows, which then stays in the cache


@dataclass(frozen=True)
class PointDistances:
    """The l_p distance between n points, computed where it is needed."""

    points: Floats  # (n, d), scaled by 2^exponent so that no square leaves the range of doubles
    p: float
    exponent: int

    @property
    def n(self) -> int:
        """The number of pooled points."""
        return len(self.points)


@dataclass(frozen=True)
class RowDistances:
    """Any distance between n points, available row by row."""

    n: int
    row: Callable[[int], Floats]  # index -> (n,) distances
    matrix: Floats | None = None  # all rows, if the caller gave them
    origin: PointDistances | None = None  # the points, if there are any


Distances = PointDistances | RowDistances


def check_norm(p: object, choices: str) -> None:
    """Raise TypeError or ValueError unless p is a number of at least 1; infinity is allowed."""
    if isinstance(p, bool) or not isinstance(p, Real):
        raise TypeError(f"distance is of type {type(p).__name__}: give {choices}")
    if not float(p) >= 1:
        raise ValueError(f"distance={p} is not a norm: l_p needs p >= 1, or infinity")


def pooled_distances(
    x: object,
    y: object,
    distance: Distance,
    transform: Transform | None = None,
    scale: str | None = None,
    thin: Callable[[Samples], Samples] = lambda samples: samples,
) -> tuple[Samples, Distances]:
    """Check and pool two samples, and return them with the distances between all points.

    `thin` may leave out points before distances are computed.
    """
    if isinstance(distance, str):
        if distance != "precomputed":
            raise ValueError(
                f"distance={distance!r} is unknown: "
                "give p >= 1 for l_p, a callable, or 'precomputed'"
            )
        if transform is not None:
            raise ValueError(
                "transform does not go with distance='precomputed', which has no points: "
                "leave one of them out"
            )
        if scale is not None:
            raise ValueError(
                "scale does not go with distance='precomputed', which has no points: "
                "leave one of them out"
            )
        samples = pool_precomputed(x, y)
        return samples, matrix_distances(samples.values)
    if not callable(distance):
        check_norm(distance, "p >= 1 for l_p, a callable, or 'precomputed'")
    samples = represent(thin(pool(x, y, scale)), transform)
    return samples, distances_of(samples, distance)


def distances_of(samples: Samples, distance: float | BlockDistance) -> Distances:
    """Return the distances between all points of samples that were pooled."""
    if callable(distance):
        return callable_distances(samples.values, distance, samples.as_tensors)
    return point_distances(samples.values, float(distance))


def no_distances(y: object) -> tuple[Samples, Distances]:
    """Return samples of which only the labels are known, for a graph that is known already."""
    samples = pool_labels(y)
    return samples, RowDistances(len(samples.in_x), lambda _: np.empty(0))


def point_distances(points: Floats, p: float) -> PointDistances:
    """Return l_p distances, with the largest coordinate scaled to the order of 2^500."""
    largest = np.abs(points).max()
    exponent = 500 - int(np.frexp(largest)[1]) if largest > 0 else 0
    return PointDistances(np.ldexp(points, exponent), p, exponent)


def distance_matrix(distances: Distances) -> Floats:
    """Return all distances as an (n, n) matrix."""
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
    """Return a function of `first` and `last` that gives the rows first, ..., last - 1."""
    if isinstance(distances, RowDistances) and distances.matrix is None:
        row = distances.row
        return lambda first, last: np.stack([row(index) for index in range(first, last)])
    matrix = distance_matrix(distances)
    return lambda first, last: matrix[first:last]


def lp_matrix(points: Floats, p: float) -> Floats:
    """Return the (n, n) distances of (n, d) points, symmetric with a zero diagonal.

    For points of the order of 2^500 squares neither overflow nor underflow, even between points
    that are close to each other.
    """
    if p == 2 and points.shape[1] >= MANY_COLUMNS:
        product = euclidean_by_product(points)
        if product is not None:
            found: Floats = product.distances
            return found
    n, columns = len(points), np.ascontiguousarray(points.T)
    size = max(BLOCK_DISTANCES // n, 1)
    matrix = np.empty((n, n))

    def of_rows(first: int) -> None:
        _lp_rows(columns, first, p, matrix[first : first + size])

    in_threads(of_rows, range(0, n, size))
    return matrix


def _lp_rows(columns: Floats, first: int, p: float, out: Floats) -> None:
    """Write the rows of distances from `first` on to `out`, for points given as (d, n) columns."""
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
        if p < np.inf:  # divide by the largest difference, so that no power overflows
            powers, largest = np.zeros_like(out), np.where(out > 0, out, 1.0)
            with np.errstate(under="ignore"):
                for rows, column in zip(own, columns, strict=True):
                    powers += (np.abs(rows - column) / largest) ** p
            powers[out == 0] = 1.0
            out *= powers ** (1 / p)


def lp_norms(differences: Floats, p: float) -> Floats:
    """Return the l_p norms of (m, d) differences, of the order of 2^500 as the points are."""
    norms: Floats
    if p == 2:
        norms = np.sqrt(np.einsum("ij,ij->i", differences, differences))
        return norms
    sizes = np.abs(differences)
    if p == 1:
        norms = sizes.sum(1)
        return norms
    largest: Floats = sizes.max(1)
    if np.isinf(p):
        return largest
    with np.errstate(under="ignore"):  # relative to the largest, so that no power overflows
        powers = (sizes / np.where(largest > 0, largest, 1.0)[:, None]) ** p
    return largest * np.where(largest > 0, powers.sum(1), 1.0) ** (1 / p)


def euclidean_points(distances: Distances) -> PointDistances | None:
    """Return the points of Euclidean distances, if they are known."""
    points = distances.origin if isinstance(distances, RowDistances) else distances
    return points if points is not None and points.p == 2.0 else None


def some_distances(distances: Distances, rows: Ints) -> Distances:
    """Return the distances between some of the points."""
    if isinstance(distances, PointDistances):
        return replace(distances, points=distances.points[rows])
    row = distances.row
    return RowDistances(len(rows), lambda index: row(int(rows[index]))[rows])


def matrix_distances(matrix: Floats, origin: PointDistances | None = None) -> RowDistances:
    """Return an (n, n) matrix of distances as `RowDistances`."""
    return RowDistances(len(matrix), lambda index: matrix[index], matrix, origin)


def callable_distances(
    points: Floats, distance: BlockDistance, as_tensors: bool = False
) -> RowDistances:
    """Return distances by a function of two blocks of points that returns their distances.

    The function receives arrays. It receives tensors if the samples are tensors, or if it rejects
    arrays and torch is loaded. Every row is checked when it is computed. Symmetry is checked here
    on some points of both samples, and on all points once there is a matrix.
    """
    given = to_tensor(points) if as_tensors else points

    def block(rows: Array, columns: Array) -> Floats:
        values = _as_block(distance(rows, columns))
        if values.shape != (len(rows), len(columns)):
            raise ValueError(
                f"distance returned shape {values.shape} for blocks of {len(rows)} and "
                f"{len(columns)} points: it must return ({len(rows)}, {len(columns)}), "
                "as scipy.spatial.distance.cdist does"
            )
        if not np.isfinite(values).all() or values.min() < -NEGATIVE * values.max():
            worst = values[~np.isfinite(values)] if not np.isfinite(values).all() else values
            raise ValueError(f"distance returned {worst.min():g}: give finite values of at least 0")
        return np.maximum(values, 0.0)

    def row(index: int) -> Floats:
        found: Floats = block(given[index : index + 1], given)[0]
        check_itself(found[index], found.max())
        return found

    probes = np.unique(np.linspace(0, len(points) - 1, PROBES).astype(int))
    few, more = given[probes[::2]], given[probes]
    try:
        there = block(few, more)
    except (TypeError, AttributeError, ValueError) as error:
        if str(error).startswith("distance returned"):
            raise
        if not as_tensors and "torch" in sys.modules and not isinstance(error, ValueError):
            return callable_distances(points, distance, as_tensors=True)
        shapes = f"{tuple(few.shape)} and {tuple(more.shape)}"
        raise type(error)(
            f"distance failed on blocks of points of shape {shapes}: {error}; it must take two "
            "blocks and return all distances between them, such as scipy.spatial.distance.cdist"
        ) from error
    check_itself(np.diagonal(there[:, ::2]).max(), there.max())
    if differ(there, block(more, few).T).any():
        raise ValueError("distance is not symmetric: d(a, b) and d(b, a) must agree")
    return RowDistances(len(points), row)


def check_itself(own: Any, largest: Any) -> None:
    """Raise ValueError if a point's distance to itself is not 0, up to 1e-3 of the largest."""
    if own > 1e-3 * largest:
        raise ValueError(
            f"distance returned {own:g} for a point and itself: "
            "it must be 0 there (is this a similarity?)"
        )


def _as_block(values: Any) -> Floats:
    """Return the result of a callable distance as doubles, or raise TypeError."""
    if is_tensor(values):
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
