"""Columns of any kind turned into points: numbers, dates, booleans, categories, missing values.

Every decision is taken on the pooled sample, without regard to which row is from which sample, so
that p-values by labellings stay valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from crossedge.data.columns import SHOWN_NAMES, Column, left_out_lines
from crossedge.data.coordinates import Made, coordinates_of
from crossedge.data.identifiers import identifier, names_rows, numbers_rows
from crossedge.data.joined import join
from crossedge.data.raw import Raw, read_column
from crossedge.runtime.headroom import check_bytes
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.types import Floats


class Encoded(NamedTuple):
    """Points made of the columns of two tables, and how they were made."""

    points: Floats  # (n, d), the rows of x first
    columns: tuple[Column, ...]
    cautions: tuple[str, ...]  # what was left out, one line each
    raws: tuple[Raw, ...]  # the pooled columns in their own units, in the order of `columns`


def encode(x: Any, y: Any, names: Sequence[Any], scale: str) -> Encoded:
    """Turn two tables into points, column by column.

    A table gives a column for a name: x[name]. Both have all the names.
    """
    pooled = (
        (
            str(name),
            join(
                read_column(x[name], str(name), "x"),
                read_column(y[name], str(name), "y"),
                str(name),
            ),
        )
        for name in names
    )
    return encode_pooled(pooled, len(names), scale)


def encode_pooled(columns: Iterable[tuple[str, Raw]], count: int, scale: str) -> Encoded:
    """Turn so many columns, each with its name, into points."""
    made: list[Made] = []
    raws: list[Raw] = []
    height = 0
    for name, column in columns:
        checkpoint()
        height = len(column.missing)
        made.append(coordinates_of(column, name, scale, alone=count == 1))
        raws.append(column)
    described = tuple(each.column for each in made)
    if not any(column.outputs for column in described):
        reasons = "; ".join(
            f"{column.name!r} is {column.treatment}" for column in described[:SHOWN_NAMES]
        )
        raise ValueError(f"no column is left to compare ({reasons}): give one that varies")
    width = sum(len(each.coordinates) for each in made)
    check_bytes(16.0 * height * width, f"{height:,} points in {width} dimensions", "drop columns")
    points = np.empty((height, width))
    place = 0
    for each in made:
        for coordinate in each.coordinates:
            points[:, place] = coordinate
            place += 1
        each.coordinates.clear()
    return Encoded(points, described, tuple(left_out_lines(described)), tuple(raws))


def identifiers(x: Any, y: Any, names: Sequence[Any]) -> list[Column]:
    """Return the columns that number or name the rows and say nothing else."""
    if len(names) == 1:
        return []
    found = []
    for name in names:
        shown = str(name)
        joined = join(read_column(x[name], shown, "x"), read_column(y[name], shown, "y"), shown)
        if numbers_rows(joined):
            found.append(identifier(shown, "number"))
        elif joined.kind == "text" and names_rows(joined):
            found.append(identifier(shown, "category"))
    return found
