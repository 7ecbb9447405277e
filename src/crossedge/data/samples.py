"""Check two samples in any common form, once, and pool them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crossedge.data.cautions import long_tails, look_out
from crossedge.data.columns import Column, check_scale, nearly
from crossedge.data.encoding import asked_for, encode
from crossedge.data.raw import Raw
from crossedge.data.table import Table, stacked
from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from crossedge.data.designs import Design


@dataclass(frozen=True)
class Samples:
    """The pooled points, or their distances, and which of them are from x."""

    values: Floats  # (n, d) points, or (n, n) distances
    in_x: Bools  # (n,)
    as_tensors: bool = False  # whether x or y was given as a tensor
    columns: tuple[str, ...] | None = None  # names of the coordinates, if x or y is a frame
    made: tuple[Column, ...] = ()  # what was done to the columns of a frame
    cautions: tuple[str, ...] = ()  # what the caller should know of a frame, one line each
    far: tuple[str, ...] = ()  # likewise, for weights that grow with the distance
    raws: tuple[Raw, ...] = ()  # the columns of a frame in their own units, as in `made`
    design: Design | None = None  # which labels may be exchanged; None for all

    @property
    def n_x(self) -> int:
        """The number of points in x."""
        return int(self.in_x.sum())

    @property
    def n_y(self) -> int:
        """The number of points in y."""
        return len(self.in_x) - self.n_x

    def rows(self, kept: Ints) -> Samples:
        """Return some of the points."""
        raws = tuple(raw.rows(kept) for raw in self.raws)
        return replace(self, values=self.values[kept], in_x=self.in_x[kept], raws=raws)


def pool(x: object, y: object, scale: str | None = None) -> Samples:
    """Check two samples of points and stack them, x first.

    Frames are matched by the names of their columns, everything else by position. Frames may hold
    columns of any kind, and are scaled robustly unless `scale` says otherwise; arrays are taken as
    they are.
    """
    check_scale(scale)
    if is_frame(x) or is_frame(y) or scale not in (None, "none"):
        return _pool_tables(x, y, scale)
    x_points, y_points = as_points(x, "x"), as_points(y, "y")
    _check_width(x_points.shape[1], y_points.shape[1])
    in_x = np.arange(len(x_points) + len(y_points)) < len(x_points)
    return Samples(np.concatenate([x_points, y_points]), in_x, is_tensor(x) or is_tensor(y))


def is_frame(sample: Any) -> bool:
    """Return whether a sample has columns with names, as a frame of pandas or polars has."""
    if hasattr(sample, "collect") and hasattr(sample, "lazy"):
        return False
    # tables of our own have `named`
    return hasattr(sample, "columns") and (hasattr(sample, "to_numpy") or hasattr(sample, "named"))


def name_of(sample: Any, name: str) -> str:
    """Return what a message calls a sample: a table by its file, others by the argument."""
    return sample.source if isinstance(sample, Table) else name


def _pool_tables(x: Any, y: Any, scale: str | None) -> Samples:
    """Pool two samples of which at least one is a frame, or which are to be scaled."""
    x_name, y_name = (name_of(sample, name) for sample, name in ((x, "x"), (y, "y")))
    x_table, y_table = as_table(x, x_name), as_table(y, y_name)
    frames = [sample for sample in (x, y) if is_frame(sample)]
    if len(frames) == 2:
        for own, has, other, lacks in (
            (y_table, y_name, x_table, x_name),
            (x_table, x_name, y_table, y_name),
        ):
            strangers = [name for name in own if name not in other]
            if strangers:
                raise ValueError(
                    f"{has} has a column {strangers[0]!r} that {lacks} lacks"
                    f"{nearly(strangers[0], other)}: "
                    "both samples must share their columns"
                )
    else:
        _check_width(len(x_table), len(y_table))
        if is_frame(y):
            x_table = dict(zip(y_table, x_table.values(), strict=True))
        elif frames:
            y_table = dict(zip(x_table, y_table.values(), strict=True))
    if scale is None:
        scale = "robust" if any(getattr(frame, "named", True) for frame in frames) else "none"
    names = list(x_table)
    n_x, n_y = (len(table[names[0]]) for table in (x_table, y_table))
    for name, size in ((x_name, n_x), (y_name, n_y)):
        if not size:
            raise ValueError(f"{name} has no rows: each sample needs at least one point")
    decimals = getattr(x, "decimal", ""), getattr(y, "decimal", "")
    encoded = encode(
        x_table, y_table, names, scale, asked_for(x, y), (x_name, y_name), decimals=decimals
    )
    in_x = np.arange(n_x + n_y) < n_x
    outputs = tuple(output for column in encoded.columns for output in column.outputs)
    cautions = encoded.cautions
    owners = [column.name for column in encoded.columns for _ in column.outputs]
    if frames:
        cautions += look_out(encoded.points, in_x, owners, unscaled=scale == "none")
    return Samples(
        encoded.points,
        in_x,
        is_tensor(x) or is_tensor(y),
        outputs,
        encoded.columns,
        cautions,
        far=long_tails(encoded.points, owners) if frames and scale != "none" else (),
        raws=encoded.raws,
    )


def stacked_frames(first: Any, rest: list[Any]) -> Any:
    """Return the other frames below each other, with the columns of the first."""
    columns = list(first.columns) if is_frame(first) else []
    for each in rest:
        if type(each) is not type(first):
            raise TypeError(
                f"the samples are of types {type(first).__name__} and {type(each).__name__}: "
                "give frames of one library, or arrays"
            )
        if set(each.columns) != set(columns):
            odd = sorted(map(str, set(each.columns) ^ set(columns)))[0]
            raise ValueError(
                f"only some samples have a column {odd!r}: all samples must share their columns"
            )
    if isinstance(first, Table):
        return stacked(rest)
    library = import_module(type(first).__module__.partition(".")[0])
    return library.concat([each[columns] for each in rest])


def as_table(sample: Any, name: str) -> dict[Any, Any]:
    """Return a sample as a column for each name, or for each place if it has no names."""
    if not is_frame(sample):
        points = as_points(sample, name)
        return dict(enumerate(points.T))
    columns = list(sample.columns)
    if len(set(columns)) < len(columns):
        raise ValueError(f"{name} has two columns of the same name: rename one of them")
    if not columns:
        raise ValueError(f"{name} has no columns: each point needs at least one coordinate")
    return {column: sample[column] for column in columns}


def _check_width(x_width: int, y_width: int) -> None:
    if x_width != y_width:
        raise ValueError(
            f"y has {_count(y_width, 'column')}, x has {x_width}: "
            "both samples must share their columns"
        )


def thinned(samples: Samples, most: int, rng: np.random.Generator) -> Samples:
    """Return at most so many random points, with the same share of both samples."""
    if len(samples.in_x) <= most:
        return samples
    return samples.rows(random_rows(samples, most, rng))


def random_rows(samples: Samples, most: int, rng: np.random.Generator) -> Ints:
    """Return the places of at most so many random points, with the same share of both samples."""
    n = len(samples.in_x)
    if n <= most:
        return np.arange(n)
    from_x = min(max(round(most * samples.n_x / n), 1), most - 1)
    chosen = [
        rng.choice(np.flatnonzero(side), min(size, int(side.sum())), replace=False)
        for side, size in ((samples.in_x, from_x), (~samples.in_x, most - from_x))
    ]
    return np.sort(np.concatenate(chosen))


def as_points(sample: Any, name: str, remedy: str = "drop such rows or fill them") -> Floats:
    """Return a sample as (n, d) doubles."""
    columns = None
    if type(sample).__module__.partition(".")[0] == "cupy":
        sample = sample.get()  # copy from the GPU, which numpy does not do by itself
    if is_tensor(sample):
        if sample.is_sparse or str(sample.layout) != "torch.strided":
            raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense()")
        tensor = sample.detach().cpu()
        array = _as_doubles(
            (tensor.double() if tensor.is_floating_point() else tensor).numpy(), name
        )
    elif hasattr(sample, "collect") and hasattr(sample, "lazy"):
        raise TypeError(f"{name} is a lazy frame: pass {name}.collect()")
    elif hasattr(sample, "columns") and hasattr(sample, "to_numpy"):
        columns = list(sample.columns)  # of a frame that is a matrix of distances
        if len(set(columns)) < len(columns):
            raise ValueError(f"{name} has two columns of the same name: rename one of them")
        array = _stack_columns(sample, name)
    elif hasattr(sample, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: pass {name}.toarray()")
    elif np.ma.isMaskedArray(sample) and np.ma.is_masked(sample):
        raise ValueError(f"{name} has masked entries: {remedy}")
    elif not hasattr(sample, "__len__") or isinstance(sample, dict | set | frozenset | str | bytes):
        hint = "; for a matrix of distances say distance='precomputed'" if name == "y" else ""
        raise TypeError(
            f"{name} is {describe(sample)}: give an array, a tensor, a list of points "
            f"or a frame{hint}"
        )
    else:
        try:
            array = np.asarray(sample)
        except ValueError:
            raise ValueError(f"{name} is ragged: its rows must all have the same length") from None
        except (TypeError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            raise TypeError(f"{name} cannot be read as an array: {reason}") from None
        is_series = hasattr(sample, "to_frame")  # a column of pandas or polars
        array = _as_doubles(array, name, "put it in a DataFrame" if is_series else "")
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
        raise ValueError(f"{name} has {found} at row {row}, {where}: {remedy}")
    return array


def _stack_columns(frame: Any, name: str) -> Floats:
    """Return a frame as (n, d) doubles, checked column by column."""
    columns = [
        _as_doubles(np.asarray(frame[column]), f"column {column!r} of {name}")
        for column in frame.columns
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def _as_doubles(array: npt.NDArray[Any], name: str, remedy: str = "") -> Floats:
    """Return an array as doubles, or raise if its values are not real numbers."""
    kind = array.dtype.kind
    if kind == "c" or (kind == "O" and any(isinstance(value, complex) for value in array.flat)):
        raise TypeError(f"{name} holds complex numbers: give real ones")
    if kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > 2**53:
        raise ValueError(
            f"{name} has integers beyond 2^53, which lose digits as floating point numbers: "
            "subtract a common offset first"
        )
    if kind in "biuf":
        return array.astype(np.float64, copy=False)
    if kind == "O" and not any(isinstance(value, str | bytes) for value in array.flat):
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise ValueError(
                f"{name} has numbers beyond the range of doubles: rescale it"
            ) from None
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name} is {describe(array)}: {remedy or 'every value must be a real number'}")


def describe(value: Any) -> str:
    """Return what a value is, in words, for an error message."""
    if isinstance(value, np.ndarray):
        kinds = {"U": "text", "S": "text", "M": "dates", "m": "durations", "O": "mixed objects"}
        if value.dtype.kind == "O" and any(isinstance(entry, str | bytes) for entry in value.flat):
            return "text"
        return kinds.get(value.dtype.kind, f"an array of {value.dtype} and shape {value.shape}")
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, int | float | complex | np.number):
        return f"the single number {value}"
    return f"of type {type(value).__name__}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
