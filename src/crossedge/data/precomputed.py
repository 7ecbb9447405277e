"""Check samples that are given without points: as a matrix of distances, or as labels alone."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from crossedge.data.samples import Samples, as_points, describe
from crossedge.numerics.tolerances import NEGATIVE
from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.types import Bools, Floats


def pool_precomputed(x: object, y: object) -> Samples:
    """Check an (n, n) matrix x of distances within the pooled sample, and the rows that y selects.

    y is either the size of the second sample, which then has the last rows, or a boolean mask that
    is true on its rows.
    """
    _check_labels_of_matrix(x)
    matrix = as_points(x, "x", "drop such points, row and column")
    n = len(matrix)
    if matrix.shape != (n, n):
        raise ValueError(
            f"x has shape {matrix.shape}: with distance='precomputed' it must be the square matrix "
            "of distances between all pooled points"
        )
    if n < 2:
        raise ValueError("x is the distance matrix of a single pooled point: give at least 2")
    check_distance_rows(matrix, "x", "mend it, as with (x + x.T) / 2")
    if matrix.min() < 0:  # rounding may give negative values, as in 1 - cosine
        matrix = np.maximum(matrix, 0.0)
    return Samples(matrix, ~_rows_of_y(y, n))


def pool_labels(y: object) -> Samples:
    """Return samples without points, of which a boolean mask tells which are from y."""
    mask = np.asarray(y.detach().cpu() if is_tensor(y) else y)  # type: ignore[attr-defined]
    if mask.dtype != np.bool_ or mask.ndim != 1 or mask.all() or not mask.any():
        raise ValueError(
            "with x=None, y must be a mask: for each point of the graph, whether it is in the "
            "second sample, and both samples must have points"
        )
    return Samples(np.empty((len(mask), 0)), ~mask)


def check_distance_rows(matrix: Floats, name: str, remedy: str) -> None:
    """Raise ValueError unless a square matrix holds valid distances, up to rounding."""
    largest = matrix.max()
    for start in range(0, len(matrix), 256):  # in blocks: the matrix may fill half of the memory
        rows = matrix[start : start + 256]
        columns = matrix[:, start : start + 256].T
        if rows.min() < -NEGATIVE * largest:
            row, column = np.argwhere(rows == rows.min())[0]
            raise ValueError(
                f"{name} has a negative distance {rows.min():g} at ({start + row}, {column}): "
                "distances must be at least 0"
            )
        if (np.diagonal(rows, start) > 1e-3 * largest).any():
            raise ValueError(
                f"{name} has {np.diagonal(rows, start).max():g} on its diagonal: the distance of a "
                "point to itself must be 0 (is this a matrix of similarities?)"
            )
        unlike = differ(rows, columns)
        if unlike.any():
            row, column = np.argwhere(unlike)[0]
            raise ValueError(
                f"{name} is not symmetric: {rows[row, column]:g} at ({start + row}, {column}) but "
                f"{columns[row, column]:g} at ({column}, {start + row}); {remedy}"
            )


def differ(there: Floats, back: Floats) -> Bools:
    """Return where two (a, b) blocks, distances from a to b and from b to a, differ too much.

    The formula |a|^2 + |b|^2 - 2 a'b for |a - b|^2 has a rounding error proportional to |a|^2,
    which is noise between close points. Differences are therefore compared with the typical
    distance, so that distances in single precision pass too.
    """
    typical = np.median(there, axis=1, keepdims=True)
    return np.abs(there - back) > 1e-6 * np.maximum(there, back) + 1e-3 * typical


def _check_labels_of_matrix(x: Any) -> None:
    """Raise ValueError if a labelled matrix has its rows and columns in different orders."""
    if not (hasattr(x, "index") and hasattr(x, "columns")):
        return
    rows, columns = list(x.index), list(x.columns)
    if rows != columns and set(rows) == set(columns):
        raise ValueError("x has its rows and columns in different orders: pass x[x.index]")


def _rows_of_y(y: Any, n: int) -> Bools:
    """Return a mask (n,) of the rows of the second sample, or raise."""
    told = (
        "with distance='precomputed' y tells which rows of x are the second sample: "
        "their number (the last ones) or a boolean mask"
    )
    try:
        size = None if isinstance(y, bool) else index(y)
    except TypeError:
        size = None
    if size is not None:
        if not 0 < size < n:
            raise ValueError(
                f"y={size} of {n} points leaves a sample empty: give a size from 1 to {n - 1}"
            )
        return np.arange(n) >= n - size
    try:
        mask = y.detach().cpu().numpy() if is_tensor(y) else np.asarray(y)
    except ValueError:
        raise ValueError(f"y is ragged: {told}") from None
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError(f"y is {describe(y)}: {told}")
    if len(mask) != n:
        raise ValueError(f"y has {len(mask)} entries, x has {n} rows: give one for each row")
    if mask.all() or not mask.any():
        raise ValueError(f"y is {bool(mask[0])} everywhere, which leaves a sample empty: {told}")
    return mask
