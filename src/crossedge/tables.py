"""Files with a point in each row, for the command line."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """What a file holds, and the names of its columns where it has them."""

    path: Path
    values: Floats
    names: list[str] | None = None


def read_two(x_path: Path, y_path: Path) -> tuple[Floats, Floats]:
    """Columns are matched by name where both files have names, else by position."""
    x, y = read_table(x_path), read_table(y_path)
    if x.names is None or y.names is None:
        return x.values, y.values
    for one, other in ((x, y), (y, x)):
        strangers = [name for name in one.names or () if name not in (other.names or ())]
        if strangers:
            raise ValueError(
                f"{one.path} has a column {strangers[0]!r} that {other.path} lacks: "
                "both must have the same columns"
            )
    return x.values, y.values[:, [y.names.index(name) for name in x.names]]


def read_table(path: Path) -> Table:
    if path.suffix == ".npy":
        try:
            return Table(path, np.load(path, allow_pickle=False))
        except (ValueError, EOFError):
            raise ValueError(f"{path} is no array of numbers: save one by numpy.save") from None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text: give a .csv, or a .npy of numpy.save") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    separator = max(",;\t", key=lines[0][1].count) if lines else ","
    names = _names(path, _cells(lines[0][1], separator)) if lines else None
    if names is not None:
        del lines[0]
    if not lines:
        raise ValueError(f"{path} has no points: give a row for each")
    rows = [line for _, line in lines]
    try:
        values = np.loadtxt(rows, delimiter=separator, quotechar='"', comments=None, ndmin=2)
    except ValueError:
        values = None
    if values is None or (names is not None and len(names) != values.shape[1]):
        raise ValueError(f"{path} is no table of numbers: {_fault(lines, separator, names)}")
    return Table(path, values, names)


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _names(path: Path, cells: list[str]) -> list[str] | None:
    """Of the columns, if the first line has names; it has either names or numbers."""
    numbers = [_is_number(cell) for cell in cells]
    if all(numbers):
        return None
    if any(numbers):
        odd = cells[numbers.index(False)]
        raise ValueError(f"{path} has {odd!r} among numbers in its first line: give a number")
    if "" in cells:
        raise ValueError(
            f"{path} has a column without a name: leave it out if it counts the rows, "
            "as with to_csv(index=False), or give it one"
        )
    if len(set(cells)) < len(cells):
        raise ValueError(f"{path} has two columns of the same name: rename one of them")
    return cells


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _fault(lines: list[tuple[int, str]], separator: str, names: Sequence[str] | None) -> str:
    """The first thing that is wrong, and in which line."""
    width = len(names or _cells(lines[0][1], separator))
    for number, line in lines:
        cells = _cells(line, separator)
        for place, cell in enumerate(cells[:width]):
            if not _is_number(cell):
                column = repr(names[place]) if names else place + 1
                return f"line {number} has {cell!r} in column {column}"
        if len(cells) != width:
            return f"line {number} has {len(cells)} cells, not {width}"
    return "separate its numbers by commas"
