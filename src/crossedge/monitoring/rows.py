"""The rows that a monitor remembers: points, or the columns of a table as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.data.cautions import look_out
from crossedge.data.columns import Column
from crossedge.data.encoding import asked_for, encode_pooled, identifiers
from crossedge.data.joined import join
from crossedge.data.raw import Raw, read_column
from crossedge.data.samples import as_points, as_table, is_frame
from crossedge.runtime.types import Floats, Ints


@dataclass(frozen=True)
class Rows:
    """Rows of points, or of a table with columns of any kind."""

    points: Floats | None  # (n, d), or None for a table
    table: dict[str, Raw]  # a column for each name, or nothing for points

    def __len__(self) -> int:
        if self.points is not None:
            return len(self.points)
        return len(next(iter(self.table.values())).missing)

    def fingerprint(self) -> str:
        """Return a text that tells these rows from others."""
        found = sha256()
        columns: dict[str, npt.NDArray[Any]] = {"": self.points} if self.points is not None else {}
        for name, raw in self.table.items():
            found.update(repr((name, raw.kind, raw.texts)).encode())
            columns[name] = np.where(raw.missing, 0, raw.values)
            columns[f"{name} missing"] = raw.missing
        for values in columns.values():
            found.update(repr(values.shape).encode())
            found.update(np.ascontiguousarray(values).tobytes())
        return found.hexdigest()

    def take(self, rows: Ints) -> Rows:
        """Return some of the rows."""
        if self.points is not None:
            return Rows(self.points[rows], {})
        return Rows(None, {name: _rows_of(raw, rows) for name, raw in self.table.items()})

    def with_more(self, more: Rows) -> Rows:
        """Return these rows and more, which have the same columns."""
        if self.points is not None:
            assert more.points is not None
            return Rows(np.concatenate([self.points, more.points]), {})
        return Rows(
            None, {name: join(raw, more.table[name], name) for name, raw in self.table.items()}
        )

    def encoded(self, n_past: int, scale: str | None, look: bool) -> Encoding:
        """Return the rows as points, scaled by all of them together, and what there is to say.

        If `look`, that includes cautions on both samples. Once the past has several batches, it is
        in the order of time, and a change would look like rows that depend on each other.
        """
        if self.points is not None:
            return Encoding(self.points, (), ())
        chosen = scale or "robust"
        # the reference alone has told which columns are identifiers
        made = encode_pooled(self.table.items(), self.table, chosen)
        owners = [column.name for column in made.columns for _ in column.outputs]
        in_past = np.arange(len(self)) < n_past
        unscaled = chosen == "none"
        seen = look_out(made.points, in_past, owners, unscaled=unscaled) if look else ()
        return Encoding(made.points, made.columns, (*made.cautions, *seen))


@dataclass(frozen=True)
class Encoding:
    """Rows as points, what was done to each column, and what the caller should know."""

    points: Floats
    columns: tuple[Column, ...]
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Reader:
    """Turns what a caller gives into rows that fit the reference."""

    names: tuple[str, ...] | None  # of the columns of a table that are used; None for points
    width: int  # the number of columns of the reference
    left_out: tuple[Column, ...] = ()  # columns that number the rows of the reference

    def read(self, batch: Any) -> Rows:
        """Return a batch as rows, or raise TypeError or ValueError."""
        if self.names is None and not is_frame(batch):
            points = as_points(batch, "batch")
            self._check_width(points.shape[1])
            return Rows(points, {})
        table = as_table(batch, "batch")
        if self.names is None:
            self._check_width(len(table))
            columns = [read_column(each, str(name), "batch") for name, each in table.items()]
            for name, raw in zip(table, columns, strict=True):
                if raw.kind not in ("number", "boolean") or raw.missing.any():
                    raise TypeError(
                        f"column {str(name)!r} of batch is not all numbers, but the reference is "
                        "an array of numbers: give both as frames"
                    )
            return Rows(np.stack([raw.values for raw in columns], 1).astype(np.float64), {})
        if not is_frame(batch):
            everything = [*self.names, *(column.name for column in self.left_out)]
            self._check_width(len(table))
            if self.left_out:
                raise ValueError(
                    "batch has no names of columns, and the reference has some that are left out: "
                    "give a frame"
                )
            table = dict(zip(everything, table.values(), strict=True))
        named = {str(name): column for name, column in table.items()}
        for name in self.names:
            if name not in named:
                raise ValueError(f"batch has no column {name!r}, which the reference has")
        known = {*self.names, *(column.name for column in self.left_out)}
        strangers = [name for name in named if name not in known]
        if strangers:
            raise ValueError(
                f"batch has a column {strangers[0]!r} that the reference lacks: leave it out"
            )
        rows = Rows(None, {name: read_column(named[name], name, "batch") for name in self.names})
        if not len(rows):
            raise ValueError("batch has no rows: give at least one")
        return rows

    def _check_width(self, width: int) -> None:
        if width != self.width:
            raise ValueError(
                f"batch has {width} column{'' if width == 1 else 's'}, the reference has "
                f"{self.width}: both must share their columns"
            )


def read_reference(reference: Any, scale: str | None) -> tuple[Rows, Reader]:
    """Return the reference as rows, and what reads batches that fit it."""
    frame = is_frame(reference)
    if not frame and scale in (None, "none"):
        points = as_points(reference, "reference")
        return Rows(points, {}), Reader(None, points.shape[1])
    table = {str(name): each for name, each in as_table(reference, "reference").items()}
    nothing = {name: np.empty(0) for name in table}
    left_out = (
        tuple(identifiers(table, nothing, list(table), asked_for(reference))) if frame else ()
    )
    gone = {column.name for column in left_out}
    names = tuple(name for name in table if name not in gone)
    rows = Rows(None, {name: read_column(table[name], name, "reference") for name in names})
    if not len(rows):
        raise ValueError("reference has no rows: give at least two")
    return rows, Reader(names, len(table), left_out)


def scale_of(reference: Any, scale: str | None) -> str | None:
    """Return the scale that a monitor uses: "robust" for frames that name their columns."""
    if scale is None and is_frame(reference):
        return "robust" if getattr(reference, "named", True) else "none"
    return scale


def _rows_of(raw: Raw, rows: Ints) -> Raw:
    """Return some rows of a column, with the texts that occur in them."""
    values, missing = raw.values[rows], raw.missing[rows]
    chosen = raw._replace(values=values, missing=missing)
    if missing.all():
        return Raw("empty", np.zeros(len(rows)), missing)
    if raw.kind != "text":
        return chosen
    used, places = np.unique(values[~missing], return_inverse=True)
    codes = np.full(len(rows), -1, np.int64)
    codes[~missing] = places
    return chosen._replace(values=codes, texts=tuple(raw.texts[code] for code in used.tolist()))
