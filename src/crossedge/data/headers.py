"""Whether the first row of a table holds the names of its columns, or a point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

INTEGER = re.compile(r"[+-]?[0-9]+")
HEADER_LOOKAHEAD = 1000  # rows below the first that decide whether the first holds names
EVEN_COLUMNS = 4  # this many numbers in equal steps may be names rather than a point


class Head(NamedTuple):
    """The first rows of a table, as text."""

    rows: list[list[str]]
    only_first_quoted: bool = False  # whether the cells of the first row alone are in quotes


def names_of(name: str, head: Head, header: bool | None) -> list[str] | None:
    """Return the names of the columns; None if the first row is a point."""
    cells = head.rows[0]
    if header is None:
        header = _holds_names(name, head)
    if not header:
        return None
    if "" in cells:
        raise ValueError(
            f"{name} has a column without a name: leave it out if it counts the rows, "
            "as with to_csv(index=False), or give it one"
        )
    if len(set(cells)) < len(cells):
        raise ValueError(f"{name} has two columns of the same name: rename one of them")
    return cells


def _holds_names(name: str, head: Head) -> bool:
    """Return whether the first row holds names; raise ValueError if it is ambiguous."""
    cells = head.rows[0]
    numbers = [cell for cell in cells if is_number(cell)]
    words = [cell for cell in cells if cell and cell not in numbers]
    if not numbers:
        return True
    if not words:
        if "" in cells and not (cells[0] == "" and _count_up(cells[1:])):
            return False  # a point with a missing value
        return "" in cells or _numbers_are_names(name, head)
    if len(set(numbers)) == len(numbers) and all(map(INTEGER.fullmatch, numbers)):
        raise _ambiguous(name, cells)
    for place, cell in enumerate(cells):
        below = [row[place] for row in head.rows[1:] if len(row) > place and row[place]]
        if cell in words and below and all(map(is_number, below)):
            raise _ambiguous(name, cells)
    return False


def _numbers_are_names(name: str, head: Head) -> bool:
    """Return whether a first row of numbers holds names; raise ValueError if it is ambiguous.

    Frames without names are written with the names 0, 1, 2, ... Such a row holds names if hardly
    any value below it is written as an integer. Quoted numbers above unquoted ones are names too.
    These rows are ambiguous: 0, 1, 2, ... above columns of integers; other distinct integers above
    a column with hardly any integers; many numbers in equal steps, such as years or wavelengths;
    and a single 0, the name that a series without a name is written with.
    """
    cells, rest = head.rows[0], head.rows[1:]
    if head.only_first_quoted:
        return True
    counted = len(cells) > 1 and _count_up(cells)
    even = _in_equal_steps(cells) and not (rest and _in_equal_steps(rest[0]))
    distinct = len(set(cells)) == len(cells) and all(map(INTEGER.fullmatch, cells))
    if not even and not distinct:
        return False
    whole = _columns_with_whole_numbers(rest[:HEADER_LOOKAHEAD], len(cells))
    if counted and rest and not any(whole):
        return True
    if counted or even or cells == ["0"] or (rest and not all(whole)):
        raise _ambiguous(name, cells)
    return False


def _ambiguous(name: str, cells: Sequence[str]) -> ValueError:
    short = [cell if len(cell) <= 40 else cell[:37] + "..." for cell in cells[:3]]
    first = ", ".join(short) + (", ..." if len(cells) > 3 else "")
    return ValueError(
        f"{name} begins with {first}, which may be names or a point: "
        "add --header if these are names, --no-header if not"
    )


def _count_up(cells: Sequence[str]) -> bool:
    """Return whether the cells are 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(
        list(cells) == [str(first + place) for place in range(len(cells))] for first in (0, 1)
    )


def _in_equal_steps(cells: Sequence[str]) -> bool:
    """Return whether the cells are at least four numbers that rise by the same step."""
    if len(cells) < EVEN_COLUMNS or not all(map(is_number, cells)):
        return False
    steps = np.diff([float(cell) for cell in cells])
    return bool((steps > 0).all() and np.ptp(steps) < 1e-9 * steps[0])


def _columns_with_whole_numbers(rows: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return for each column whether more than 1% of its cells are integers, or not numbers."""
    counts = [0] * width
    for row in rows:
        for place, cell in enumerate(row[:width]):
            counts[place] += not is_number(cell) or INTEGER.fullmatch(cell) is not None
    return [100 * count > len(rows) for count in counts]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, other programs do not
