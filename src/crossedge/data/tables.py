"""Files with a point in each row (.csv and .npy), read and checked for the command line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Floats

INTEGER = re.compile(r"[+-]?[0-9]+")
LARGEST_INTEGER = 2**53  # beyond it, not all integers are doubles
HEADER_LOOKAHEAD = 1000  # lines below the first that decide whether the first holds names
EVEN_COLUMNS = 4  # this many numbers in equal steps may be names rather than a point


@dataclass(frozen=True)
class Table:
    """The values of a file, and the names of its columns if it has any."""

    path: Path
    values: Floats
    names: list[str] | None = None


class Line(NamedTuple):
    """A line of a file."""

    number: int  # counted from 1
    text: str
    separator: str = ","

    @property
    def cells(self) -> list[str]:
        """The cells of the line, stripped of blanks."""
        try:
            return [
                cell.strip() for cell in next(csv.reader([self.text], delimiter=self.separator))
            ]
        except csv.Error:  # a cell longer than the limit of the csv module
            return [self.text]


def read_two(x_path: Path, y_path: Path, header: bool | None = None) -> tuple[Floats, Floats]:
    """Read two files, with columns matched by name if both have names, else by position.

    The first line of a .csv holds names if `header` is true, and a point if it is false. If it is
    None, the file decides; ValueError is raised if it is ambiguous.
    """
    if header is not None and x_path.suffix == y_path.suffix == ".npy":
        option = "--header" if header else "--no-header"
        raise ValueError(f"{option} is for .csv files: leave it out")
    x, y = read_table(x_path, header), read_table(y_path, header)
    if x.names is None or y.names is None:
        if x.values.shape[1] != y.values.shape[1]:
            raise ValueError(
                f"{y.path} has {y.values.shape[1]} columns, {x.path} has {x.values.shape[1]}: "
                "both must have the same columns"
            )
        return x.values, y.values
    for one, other in ((x, y), (y, x)):
        strangers = [name for name in one.names or () if name not in (other.names or ())]
        if strangers:
            raise ValueError(
                f"{one.path} has a column {strangers[0]!r} that {other.path} lacks: "
                "both must have the same columns"
            )
    return x.values, y.values[:, [y.names.index(name) for name in x.names]]


def read_table(path: Path, header: bool | None = None) -> Table:
    """Read one file of numbers, or raise ValueError that names the first fault."""
    if path.suffix == ".npy":
        return Table(path, _read_array(path))
    lines = _read_lines(path)
    names = _names(path, lines, header) if lines else None
    if names is not None:
        del lines[0]
    if not lines:
        raise ValueError(f"{path} has no points: give a row for each")
    try:
        values = np.loadtxt(
            _texts(lines), delimiter=lines[0].separator, quotechar='"', comments=None, ndmin=2
        )
    except ValueError:
        values = None
    if values is None or (names is not None and len(names) != values.shape[1]):
        raise ValueError(f"{path} is no table of numbers: {_fault(lines, names)}")
    _check_finite(path, values, lines, names)
    _check_digits(path, values, lines, names)
    return Table(path, values, names)


def _read_array(path: Path) -> Floats:
    """Read a .npy file as (n, d) doubles."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        array = None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} is no array of numbers: save one by numpy.save")
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"{path} has shape {array.shape}: give a row for each point, (n, d)")
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > LARGEST_INTEGER:
        raise ValueError(
            f"{path} has integers beyond 2^53, which lose digits as floating point numbers: "
            "subtract a common offset first"
        )
    values = array.reshape(len(array), -1).astype(np.float64, copy=False)
    _check_finite(path, values)
    return values


def _read_lines(path: Path) -> list[Line]:
    """Return all lines that are not blank, and find their separator."""
    lines = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, text in enumerate(file, 1):
                checkpoint()
                if text.strip():
                    lines.append(Line(number, text.rstrip("\r\n")))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text: give a .csv, or a .npy of numpy.save") from None
    separator = max(",;\t", key=lines[0].text.count) if lines else ","
    return lines if separator == "," else [line._replace(separator=separator) for line in lines]


def _texts(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the text of each line, interruptibly."""
    for line in lines:
        checkpoint()
        yield line.text


def _names(path: Path, lines: Sequence[Line], header: bool | None) -> list[str] | None:
    """Return the names of the columns; None if the first line is a point."""
    cells = lines[0].cells
    if header is None:
        numbers = [_is_number(cell) for cell in cells]
        if all(numbers):
            header = _numbers_are_names(path, lines)
        elif any(numbers) and not (cells[0] == "" and _count_up(cells[1:])):
            odd = cells[numbers.index(False)]
            raise ValueError(
                f"{path} has {_shown(odd)} among numbers in its first line: give a number"
            )
        else:
            header = True
    if not header:
        return None
    if "" in cells:
        raise ValueError(
            f"{path} has a column without a name: leave it out if it counts the rows, "
            "as with to_csv(index=False), or give it one"
        )
    if len(set(cells)) < len(cells):
        raise ValueError(f"{path} has two columns of the same name: rename one of them")
    return cells


def _numbers_are_names(path: Path, lines: Sequence[Line]) -> bool:
    """Return whether a first line of numbers holds names; raise ValueError if it is ambiguous.

    Frames without names are written with the names 0, 1, 2, ... Such a line holds names if hardly
    any value below it is written as an integer. Quoted numbers above unquoted ones are names too.
    These lines are ambiguous: 0, 1, 2, ... above columns of integers; other distinct integers above
    a column with hardly any integers; many numbers in equal steps, such as years or wavelengths;
    and a single 0, the name that a series without a name is written with.
    """
    cells, rest = lines[0].cells, lines[1:]
    if rest and lines[0].text.count('"') == 2 * len(cells) and '"' not in rest[0].text:
        return True
    counted = len(cells) > 1 and _count_up(cells)
    even = _in_equal_steps(cells) and not (rest and _in_equal_steps(rest[0].cells))
    distinct = len(set(cells)) == len(cells) and all(map(INTEGER.fullmatch, cells))
    if not even and not distinct:
        return False
    whole = _columns_with_whole_numbers(rest[:HEADER_LOOKAHEAD], len(cells))
    if counted and rest and not any(whole):
        return True
    if counted or even or cells == ["0"] or (rest and not all(whole)):
        first = ", ".join(cells[:3]) + (", ..." if len(cells) > 3 else "")
        raise ValueError(
            f"{path} begins with {first}, which may be names or a point: "
            "add --header if these are names, --no-header if not"
        )
    return False


def _count_up(cells: Sequence[str]) -> bool:
    """Return whether the cells are 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(
        list(cells) == [str(first + place) for place in range(len(cells))] for first in (0, 1)
    )


def _in_equal_steps(cells: Sequence[str]) -> bool:
    """Return whether the cells are at least four numbers that rise by the same step."""
    if len(cells) < EVEN_COLUMNS or not all(map(_is_number, cells)):
        return False
    steps = np.diff([float(cell) for cell in cells])
    return bool((steps > 0).all() and np.ptp(steps) < 1e-9 * steps[0])


def _columns_with_whole_numbers(lines: Sequence[Line], width: int) -> list[bool]:
    """Return for each column whether more than 1% of its cells are integers, or not numbers."""
    counts = [0] * width
    for line in lines:
        for place, cell in enumerate(line.cells[:width]):
            counts[place] += not _is_number(cell) or INTEGER.fullmatch(cell) is not None
    return [100 * count > len(lines) for count in counts]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, other programs do not


def _fault(lines: Sequence[Line], names: Sequence[str] | None) -> str:
    """Describe the first fault of a table, and its line."""
    width = len(names or lines[0].cells)
    for line in lines:
        checkpoint()
        cells = line.cells
        for place, cell in enumerate(cells[:width]):
            if not _is_number(cell):
                return f"line {line.number} has {_shown(cell)} in column {_column(place, names)}"
        if len(cells) != width:
            return f"line {line.number} has {len(cells)} cells, not {width}"
    return "separate its numbers by commas"


def _shown(cell: str) -> str:
    """Return a cell in quotes, shortened to 40 characters."""
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def _column(place: int, names: Sequence[str] | None) -> str:
    """Return the name of a column in quotes, or its number counted from 1."""
    return repr(names[place]) if names else str(place + 1)


def _check_finite(
    path: Path,
    values: Floats,
    lines: Sequence[Line] | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Raise ValueError that names the first NaN or infinite value."""
    finite = np.isfinite(values)
    if finite.all():
        return
    row, place = (int(index) for index in np.argwhere(~finite)[0])
    found = "NaN" if math.isnan(values[row, place]) else "infinity"
    where = f"line {lines[row].number}" if lines else f"row {row + 1}"
    raise ValueError(
        f"{path} has {found} in {where}, column {_column(place, names)}: "
        "drop such rows or fill them"
    )


def _check_digits(
    path: Path, values: Floats, lines: Sequence[Line], names: Sequence[str] | None
) -> None:
    """Raise ValueError if an integer is too large to be represented as a double."""
    for row in np.flatnonzero((np.abs(values) >= LARGEST_INTEGER).any(axis=1)).tolist():
        checkpoint()
        for place, cell in enumerate(lines[row].cells):
            if INTEGER.fullmatch(cell) and abs(int(cell)) > LARGEST_INTEGER:
                raise ValueError(
                    f"{path} has {cell} in line {lines[row].number}, column "
                    f"{_column(place, names)}: integers beyond 2^53 lose digits as floating point "
                    "numbers; subtract a common offset first"
                )
