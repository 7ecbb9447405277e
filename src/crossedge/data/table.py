"""The contents of a file, which `two_sample` takes like a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossedge.data.columns import nearly
from crossedge.data.files import check_size
from crossedge.runtime.types import Bools, Ints

BYTES_PER_CELL = 8


@dataclass(frozen=True)
class Table:
    """The contents of a file, which `two_sample` takes like a frame."""

    source: str  # the name of the file
    values: Any  # a pandas frame, or an (n, d) array
    names: tuple[str, ...]
    named: bool  # whether the file names its columns; otherwise they are "1", "2", ...
    decimal: str = ""  # the decimal sign that the text of the file tells, as in `decimal_signs`
    asked: tuple[str, ...] = ()  # columns that are compared even if they are identifiers

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.names

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Any:
        """Return a column."""
        place = self.names.index(name)
        is_array = isinstance(self.values, np.ndarray)
        return self.values[:, place] if is_array else self.values.iloc[:, place]

    def with_rows(self, rows: Ints | Bools) -> Table:
        """Return some of the rows."""
        is_array = isinstance(self.values, np.ndarray)
        return replace(self, values=self.values[rows] if is_array else self.values.iloc[rows])

    def with_columns(self, names: Sequence[str]) -> Table:
        """Return some of the columns, in the order of the names."""
        places = [self.names.index(name) for name in names]
        is_array = isinstance(self.values, np.ndarray)
        values = self.values[:, places] if is_array else self.values.iloc[:, places]
        return replace(self, values=values, names=tuple(names))


def stacked(tables: Sequence[Table]) -> Table:
    """Return the rows of tables with the same columns, one table below the other."""
    values = [each.values for each in tables]
    if all(isinstance(each, np.ndarray) for each in values):
        return replace(tables[0], values=np.concatenate(values))
    import pandas as pd

    return replace(tables[0], values=pd.concat(values))


def matched(x: Table, y: Table) -> tuple[Table, Table]:
    """Return two tables with the same columns in the same order, or raise ValueError.

    Columns are matched by name if both tables have names, and by position otherwise.
    """
    if x.named and y.named:
        for one, other in ((x, y), (y, x)):
            strangers = [name for name in one.names if name not in other.names]
            if strangers:
                raise ValueError(
                    f"{one.source} has a column {strangers[0]!r} that {other.source} lacks"
                    f"{nearly(strangers[0], other.names)}: "
                    "both must have the same columns (choose some by --columns or --drop)"
                )
        return x, y.with_columns(x.names)
    if len(x.names) != len(y.names):
        raise ValueError(
            f"{y.source} has {len(y.names)} columns, {x.source} has {len(x.names)}: "
            "both must have the same columns"
        )
    names = x.names if x.named else y.names
    return replace(x, names=names), replace(y, names=names)


class FaultError(ValueError):
    """A fault of a file that has been put into words."""


def framed(frame: Any, name: str, named: bool = True) -> Table:
    """Return a frame as a table."""
    names = tuple(map(str, frame.columns))
    if len(set(names)) < len(names):
        raise FaultError(f"{name} has two columns of the same name: rename one of them")
    return Table(name, frame, names, named)


def numbered(width: int) -> list[str]:
    return [str(place) for place in range(1, width + 1)]


def check_size_of_cells(rows: float, columns: float, name: str) -> None:
    """Raise a fault if so many cells are too large."""
    try:
        check_size(BYTES_PER_CELL * float(rows) * columns, name)
    except ValueError as error:
        raise FaultError(str(error)) from None
