"""One column of a table as coordinates of points, and back.

A number takes one coordinate, centred at its median and divided by its robust spread. A category
takes one for each of its values, 1 for the value of the row and 0 for the others. A column with
missing cells takes one more, which says whether the cell is missing. This is the scale of
`crossedge test`: numbers of spread 1 and different categories are about equally far apart.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.data.coordinates import (
    APART,
    MOST_CATEGORIES,
    MOST_SHARE,
    QUARTILES_OF_A_NORMAL,
)
from crossedge.data.joined import join
from crossedge.data.raw import Raw, read_column, spelt_cells
from crossedge.data.spelling import as_number
from crossedge.runtime.types import Bools, Floats

MOST_DECIMALS = 6  # of numbers that are written with a fixed number of decimals
ROUNDING = 1e-15  # relative; numbers this close to one with few decimals are meant to be it
FEW_TEXTS = 20  # up to this many rows, all texts may differ by chance
DAY = np.timedelta64(86_400_000_000, "us")


@dataclass(frozen=True)
class ColumnCode:
    """How a column becomes coordinates.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : {"number", "category", "constant"}
        What the coordinates stand for. A constant has none, but for the mark of missing cells.
    type : str
        The type of the cells: a type of numpy or pandas, "text", "boolean", "date" or "duration".
    centre, spread : float
        What numbers are centred at and divided by; dates are numbers of days.
    low, high : float
        The range of the numbers.
    decimals : int or None
        With how many decimals all numbers can be written; None if with more than six.
    missing : bool
        Whether some cells are missing.
    levels : tuple of str
        The values of a category, and the value of a constant that is text.
    """

    name: str
    kind: str
    type: str
    centre: float = 0.0
    spread: float = 1.0
    low: float = 0.0
    high: float = 0.0
    decimals: int | None = None
    missing: bool = False
    levels: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """The number of coordinates."""
        values = {"number": 1, "category": len(self.levels), "constant": 0}[self.kind]
        return values + self.missing

    def encode(self, column: Any) -> Floats:
        """Return the coordinates of all cells, (n, width)."""
        raw = raw_of(column, self.name)
        coordinates = np.zeros((len(raw.missing), self.width))
        if self.kind == "number":
            coordinates[:, 0] = np.where(raw.missing, 0.0, self._scaled(raw))
        elif self.kind == "category":
            places = self.places(column)
            known = np.flatnonzero(~raw.missing)
            coordinates[known, places[known]] = 1.0
        if self.missing:
            coordinates[:, -1] = raw.missing * (1.0 if self.kind == "category" else APART)
        return coordinates

    def places(self, column: Any) -> npt.NDArray[np.int64]:
        """Return the place of each cell of a category among the levels; -1 where missing."""
        known = {"": -1, **{level: place for place, level in enumerate(self.levels)}}
        cells = _texts(column, self.name)
        for cell in dict.fromkeys(cells):
            if cell not in known:
                raise ValueError(f"column {self.name!r} has the value {cell!r}, which is new")
        return np.array([known[cell] for cell in cells], np.int64)

    def decode(self, coordinates: Floats) -> Any:
        """Return the cells that coordinates stand for, as an array or a pandas array.

        Numbers are brought into their range and rounded to their decimals, and a category is the
        one with the largest coordinate. A cell is missing if its mark is nearer to that of a
        missing cell, or the largest of those of a category.
        """
        count = len(coordinates)
        if self.kind == "category":
            return self.of_places(np.argmax(coordinates, 1))
        missing = np.zeros(count, np.bool_)
        if self.missing:
            missing = coordinates[:, -1] > APART / 2
        if self.levels:
            return self.of_places(np.where(missing, 1, 0))
        if self.kind == "constant":
            numbers = np.full(count, self.low)
        else:
            numbers = self.rounded(coordinates[:, 0] * self.spread + self.centre)
        return _typed(numbers, missing, self.type)

    def of_places(self, places: npt.NDArray[np.int64]) -> Any:
        """Return cells of a category by the places of its levels; those beyond are missing."""
        if self.type == "text":
            return np.array([*self.levels, None], object)[places]
        values = [level == "True" for level in self.levels]
        if self.type != "boolean":
            values = [as_number(level) for level in self.levels]  # type: ignore[misc]
        missing = places >= len(self.levels)
        cells = np.array([*values, 0], np.float64)[np.minimum(places, len(values))]
        return _typed(cells, missing, self.type)

    def rounded(self, numbers: Floats) -> Floats:
        """Return numbers within the range, with the decimals of the column."""
        inside = np.clip(numbers, self.low, self.high)
        return inside if self.decimals is None else np.round(inside, self.decimals)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as JSON has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ColumnCode:
        """Return the code that `to_dict` wrote."""
        return cls(**{**values, "levels": tuple(values["levels"])})

    def _scaled(self, raw: Raw) -> Floats:
        if raw.kind not in ("number", "date", "boolean", "empty"):
            raise ValueError(f"column {self.name!r} holds {raw.kind}, not numbers as before")
        scaled: Floats = (raw.values.astype(np.float64) - self.centre) / self.spread
        return scaled


def learn_column(column: Any, name: str, scale: tuple[float, float] | None = None) -> ColumnCode:
    """Return how to encode a column.

    `scale` is the centre and the spread of a number; by default its own, that are robust.
    """
    raw = raw_of(column, name)
    missing = bool(raw.missing.any())
    kept = raw.values[~raw.missing]
    kind = _type_of(column, raw)
    if raw.kind == "empty":
        return ColumnCode(name, "constant", "float64", low=math.nan)
    if raw.kind in ("text", "boolean"):
        levels = tuple(sorted(set(_texts(column, name)) - {""}))
        if len(levels) == 1:
            return ColumnCode(name, "constant", kind, missing=missing, levels=levels)
        _check_levels(levels, name, len(kept))
        return ColumnCode(name, "category", kind, missing=missing, levels=levels)
    low, high = float(kept.min()), float(kept.max())
    decimals = decimals_of(kept, 0 if raw.kind == "date" else MOST_DECIMALS)  # or whole days
    if low == high:
        return ColumnCode(name, "constant", kind, low=low, high=high, missing=missing)
    centre, spread = scale or robust_scale(kept)
    return ColumnCode(name, "number", kind, centre, spread, low, high, decimals, missing)


def learn_labels(column: Any, name: str, most: int) -> ColumnCode:
    """Return a column as a category, also if it holds numbers; no cell may be missing."""
    raw = raw_of(column, name)
    if raw.missing.any():
        raise ValueError(f"column {name!r} has missing labels: drop such rows, or fill them")
    levels = tuple(dict.fromkeys(_texts(column, name)))
    if not 2 <= len(levels) <= most:
        raise ValueError(
            f"column {name!r} has {len(levels):,} labels: condition on one with 2 to {most}"
        )
    as_texts = sorted(levels)
    numbers = [as_number(level) for level in levels]
    if None not in numbers:
        as_texts = sorted(levels, key=float)
    return ColumnCode(name, "category", _type_of(column, raw), levels=tuple(as_texts))


def robust_scale(values: Floats) -> tuple[float, float]:
    """Return the median, and the interquartile range as that of a normal law with spread 1.

    Where that is 0, the spread is the standard deviation.
    """
    values = values.astype(np.float64)
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = float(high - low) / QUARTILES_OF_A_NORMAL or float(values.std())
    return float(centre), spread or 1.0


def decimals_of(values: Floats, most: int = MOST_DECIMALS) -> int | None:
    """Return the least number of decimals with which all numbers can be written, if few do."""
    values = values.astype(np.float64)
    for decimals in range(most + 1):
        if (np.abs(np.round(values, decimals) - values) <= ROUNDING * np.abs(values)).all():
            return decimals
    return None


def raw_of(column: Any, name: str) -> Raw:
    """Return a column as arrays, with texts that are dates as dates."""
    raw = read_column(column, name, "the data")
    return join(raw, raw.rows(np.zeros(0, np.int64)), name) if raw.kind == "text" else raw


def _texts(column: Any, name: str) -> list[str]:
    """Return the cells as text; "" where missing."""
    raw = raw_of(column, name)
    if raw.kind == "boolean":
        texts = np.where(raw.values.astype(np.bool_), "True", "False")
        return np.where(raw.missing, "", texts).tolist()  # type: ignore[no-any-return]
    return spelt_cells(column, name)


def _type_of(column: Any, raw: Raw) -> str:
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if raw.kind == "date":
        return "duration" if kind == "m" else "date"
    if raw.kind in ("text", "boolean"):
        return raw.kind
    name = str(getattr(column, "dtype", "float64"))
    return name if raw.kind == "number" and kind in "iuf" else "float64"


def _typed(numbers: Floats, missing: Bools, kind: str) -> Any:
    """Return numbers as cells of a type."""
    if kind in ("date", "duration"):
        micros = np.round(np.where(missing, 0.0, numbers) * DAY.astype(np.float64))
        cells = micros.astype(np.int64).astype("M8[us]" if kind == "date" else "m8[us]")
        cells[missing] = "NaT"
        return cells
    if kind == "boolean" and not missing.any():
        return numbers.astype(np.bool_)
    plain = kind[:1].islower() and kind != "boolean"  # a type of numpy
    if plain and (kind.startswith("float") or not missing.any()):
        return np.where(missing, np.nan, numbers).astype(kind)
    import pandas as pd  # which has types with missing cells

    own = {"i": kind.replace("i", "I", 1), "u": kind.replace("ui", "UI", 1)}.get(kind[:1], kind)
    cells = pd.array(np.where(missing, 0, numbers), dtype="Float64").astype(own)
    cells[missing] = pd.NA
    return cells


def _check_levels(levels: tuple[str, ...], name: str, rows: int) -> None:
    if len(levels) == rows > FEW_TEXTS:
        raise ValueError(
            f"column {name!r} has a different text in every row, which cannot be learned: "
            f"leave it out (--drop {name})"
        )
    if len(levels) > MOST_CATEGORIES and len(levels) > MOST_SHARE * rows:
        raise ValueError(
            f"column {name!r} is text with {len(levels):,} distinct values in {rows:,} rows: "
            "leave it out (--drop), or group its values into categories"
        )
