"""Tables as points, and points as tables: the coder of all columns, and that of images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossedge.data.table import Table
from crossedge.learning.column_code import ColumnCode, learn_column
from crossedge.runtime.types import Floats


@dataclass(frozen=True)
class TableCode:
    """How a table becomes points.

    Attributes
    ----------
    columns : tuple of ColumnCode
        The columns in order.
    named : bool
        Whether the table names its columns. Then each number has its own scale. Columns without
        names share one scale, because their differences in size may matter.
    """

    columns: tuple[ColumnCode, ...]
    named: bool = True

    @property
    def width(self) -> int:
        """The number of coordinates of a point."""
        return sum(column.width for column in self.columns)

    def encode(self, table: Any) -> Floats:
        """Return the rows of a table as points, (n, width) doubles."""
        parts = [column.encode(table[column.name]) for column in self.columns]
        points = np.concatenate(parts, 1)
        if not np.isfinite(points).all():
            raise ValueError("some numbers are too large beside their spread: drop such rows")
        return points

    def decode(self, points: Floats) -> Any:
        """Return points as a pandas frame, or as an array if the columns have no names."""
        cells, first = [], 0
        for column in self.columns:
            cells.append(column.decode(points[:, first : first + column.width]))
            first += column.width
        plain = all(isinstance(each, np.ndarray) and each.dtype.kind in "biuf" for each in cells)
        if plain and not self.named:
            return np.stack(cells, 1)
        import pandas as pd

        frame = pd.concat([pd.Series(each) for each in cells], axis=1)
        return frame.set_axis([column.name for column in self.columns], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as JSON has them."""
        columns = [column.to_dict() for column in self.columns]
        return {"kind": "table", "named": self.named, "columns": columns}


@dataclass(frozen=True)
class ImageCode:
    """How images of one size become points with values in [0, 1].

    Attributes
    ----------
    shape : (height, width, channels)
        The size of the images; one channel is grey, three are red, green and blue.
    low, high : float
        The values that become 0 and 1.
    type : str
        The type of the values.
    decimals : int or None
        With how many decimals all values can be written.
    """

    shape: tuple[int, int, int]
    low: float = 0.0
    high: float = 255.0
    type: str = "uint8"
    decimals: int | None = 0

    @property
    def width(self) -> int:
        """The number of values of an image."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def encode(self, table: Any) -> Floats:
        """Return images in rows as points, (n, width) doubles."""
        values = np.asarray(table.values, np.float64)
        return (values - self.low) / (self.high - self.low)

    def decode(self, points: Floats) -> Any:
        """Return points as images in rows, with the values of the data."""
        values = np.clip(points, 0.0, 1.0) * (self.high - self.low) + self.low
        return (values if self.decimals is None else values.round(self.decimals)).astype(self.type)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as JSON has them."""
        return {
            "kind": "images",
            "shape": list(self.shape),
            "low": self.low,
            "high": self.high,
            "type": self.type,
            "decimals": self.decimals,
        }


Code = TableCode | ImageCode


def learn_table(table: Table) -> TableCode:
    """Return how to encode a table."""
    if table.named:
        columns = tuple(learn_column(table[name], name) for name in table.names)
    else:
        alone = [learn_column(table[name], name) for name in table.names]
        spread = _common_spread(alone)
        columns = tuple(
            replace(column, spread=spread) if column.kind == "number" else column
            for column in alone
        )
    if not any(column.width for column in columns):
        raise ValueError(f"{table.source} has no column that varies: there is nothing to learn")
    return TableCode(columns, table.named)


def learn_images(table: Table, shape: tuple[int, int, int]) -> ImageCode:
    """Return how to encode images in rows.

    Bytes become [0, 1] by 255, and other values by their range, if it is not within [0, 1].
    """
    values = np.asarray(table.values)
    if values.shape[1] != shape[0] * shape[1] * shape[2]:
        sizes = " x ".join(map(str, shape))
        raise ValueError(
            f"{table.source} has {values.shape[1]} columns, which are no {sizes} images"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{table.source} has missing or infinite values: fill them")
    if values.dtype == np.uint8:
        return ImageCode(shape)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    kind, decimals = str(values.dtype), 0 if values.dtype.kind in "iu" else None
    return ImageCode(shape, low, high, kind, decimals)


def code_from_dict(values: dict[str, Any]) -> Code:
    """Return the code that `to_dict` wrote."""
    if values["kind"] == "table":
        columns = tuple(ColumnCode.from_dict(column) for column in values["columns"])
        return TableCode(columns, values["named"])
    height, width, channels = values["shape"]
    own = {name: values[name] for name in ("low", "high", "type", "decimals")}
    return ImageCode((height, width, channels), **own)


def _common_spread(columns: list[ColumnCode]) -> float:
    """Return the root mean square of the spreads of all numbers."""
    spreads = [column.spread for column in columns if column.kind == "number"]
    return float(np.sqrt(np.mean(np.square(spreads)))) if spreads else 1.0
