"""The door: two samples in any common form are checked once and pooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

COMPLEX = "holds complex numbers: pass real and imaginary parts as columns"


@dataclass(frozen=True)
class Samples:
    """The pooled points, or their distances, and which of them are from x."""

    values: Floats  # (n, d) points, or (n, n) distances
    in_x: Bools  # (n,)

    @property
    def n_x(self) -> int:
        return int(self.in_x.sum())

    @property
    def n_y(self) -> int:
        return len(self.in_x) - self.n_x


def pool(x: object, y: object) -> Samples:
    """Check two samples of points and stack them, x first.

    Frames are matched by the names of their columns, everything else by position.
    """
    x_points, x_columns = _as_points(x, "x")
    y_points, y_columns = _as_points(y, "y")
    if x_points.shape[1] != y_points.shape[1]:
        raise ValueError(
            f"y has {_count(y_points.shape[1], 'column')}, x has {x_points.shape[1]}: "
            "both samples must share their columns"
        )
    if x_columns is not None and y_columns is not None:
        strangers = [name for name in y_columns if name not in x_columns]
        if strangers:
            raise ValueError(
                f"y has a column {strangers[0]!r} that x lacks: "
                "both samples must share their columns"
            )
        y_points = y_points[:, [y_columns.index(name) for name in x_columns]]
    in_x = np.arange(len(x_points) + len(y_points)) < len(x_points)
    return Samples(np.concatenate([x_points, y_points]), in_x)


def pool_precomputed(x: object, y: object) -> Samples:
    """Check an (n, n) matrix x of distances within the pooled sample, and which rows are y's.

    y is either the size of the second sample, which then owns the last rows, or a boolean mask
    that is true on its rows.
    """
    matrix, _ = _as_points(x, "x")
    n = len(matrix)
    if matrix.shape != (n, n):
        raise ValueError(
            f"x has shape {matrix.shape}: with distance='precomputed' it must be the square matrix "
            "of distances between all pooled points"
        )
    if n < 2:
        raise ValueError("x is the distance matrix of a single pooled point: give at least 2")
    largest = matrix.max()
    for start in range(0, n, 256):  # by blocks: the matrix may fill half of the memory
        rows = matrix[start : start + 256]
        columns = matrix[:, start : start + 256].T
        if (rows < 0).any():
            row, column = np.argwhere(rows < 0)[0]
            raise ValueError(
                f"x has a negative distance {rows[row, column]:g} at ({start + row}, {column}): "
                "distances must be at least 0"
            )
        if (np.diagonal(rows, start) > 1e-3 * largest).any():
            raise ValueError(
                f"x has {np.diagonal(rows, start).max():g} on its diagonal: the distance of a "
                "point to itself must be 0 (is this a matrix of similarities?)"
            )
        if (np.abs(rows - columns) > 1e-6 * largest).any():
            row, column = np.argwhere(np.abs(rows - columns) > 1e-6 * largest)[0]
            raise ValueError(
                f"x is not symmetric: {rows[row, column]:g} at ({start + row}, {column}) but "
                f"{columns[row, column]:g} at ({column}, {start + row}); mend it, "
                "as with (x + x.T) / 2"
            )
    return Samples(matrix, ~_rows_of_y(y, n))


def _rows_of_y(y: object, n: int) -> Bools:
    told = (
        "with distance='precomputed' y tells which rows of x are the second sample: "
        "their number (the last ones) or a boolean mask"
    )
    if isinstance(y, int | np.integer) and not isinstance(y, bool):
        if not 0 < y < n:
            raise ValueError(
                f"y={y} of {n} points leaves a sample empty: give a size from 1 to {n - 1}"
            )
        return np.arange(n) >= n - int(y)
    mask = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError(f"y is {_describe(y)}: {told}")
    if len(mask) != n:
        raise ValueError(f"y has {len(mask)} entries, x has {n} rows: give one for each row")
    if mask.all() or not mask.any():
        raise ValueError(f"y is {bool(mask[0])} everywhere, which leaves a sample empty: {told}")
    return mask


def _as_points(sample: object, name: str) -> tuple[Floats, list[str] | None]:
    """(n, d) doubles, and the names of the columns where the sample has them."""
    columns = None
    if isinstance(sample, torch.Tensor):
        if sample.layout != torch.strided:
            raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense()")
        if sample.is_complex():
            raise TypeError(f"{name} {COMPLEX}")
        array = sample.detach().to("cpu", torch.float64).numpy()
    elif hasattr(sample, "columns") and hasattr(sample, "to_numpy"):
        columns = [str(column) for column in sample.columns]
        if len(set(columns)) < len(columns):
            raise ValueError(f"{name} has two columns of the same name: rename one of them")
        array = _stack_columns(sample, name)
    elif hasattr(sample, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: pass {name}.toarray()")
    elif np.ma.isMaskedArray(sample) and np.ma.is_masked(sample):
        raise ValueError(f"{name} has masked entries: drop those rows or fill them")
    else:
        try:
            array = np.asarray(sample)
        except ValueError:
            raise ValueError(f"{name} is ragged: its rows must all have the same length") from None
        array = _as_doubles(array, name)
    if array.ndim == 1 and columns is None:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ValueError(
            f"{name} has {_count(array.ndim, 'dimension')}: it must have rows of points, (n, d), "
            f"or be a plain list of n numbers; flatten each point first, as with "
            f"{name}.reshape(len({name}), -1)"
        )
    if not len(array):
        raise ValueError(f"{name} has no rows: each sample needs at least one point")
    if not array.shape[1]:
        raise ValueError(f"{name} has no columns: each point needs at least one coordinate")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        found = "NaN" if np.isnan(array[row, column]) else "infinity"
        where = f"column {columns[column]!r}" if columns else f"column {column}"
        raise ValueError(
            f"{name} has {found} at row {row}, {where}: drop such rows or fill them in"
        )
    return array, columns


def _stack_columns(frame: Any, name: str) -> Floats:
    columns = [
        _as_doubles(np.asarray(frame[column]), f"column {str(column)!r} of {name}")
        for column in frame.columns
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def _as_doubles(array: npt.NDArray[Any], name: str) -> Floats:
    if array.dtype.kind == "c":
        raise TypeError(f"{name} {COMPLEX}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name} is {_describe(array)}: every value must be a real number")


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        kinds = {"U": "text", "S": "text", "M": "dates", "m": "durations", "O": "mixed objects"}
        if value.dtype.kind == "O" and value.size and isinstance(value.flat[0], str):
            return "text"
        return kinds.get(value.dtype.kind, f"an array of {value.dtype} and shape {value.shape}")
    return f"of type {type(value).__name__}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
