"""Columns of any kind turned into points: numbers, dates, booleans, categories, missing values.

Every decision is taken on the pooled sample, without regard to which row is from which sample, so
that p-values by labellings stay valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from crossedge.data.amounts import Hint, decimal_of
from crossedge.data.columns import SHOWN_NAMES, Column, left_out_lines
from crossedge.data.coordinates import Made, coordinates_of
from crossedge.data.identifiers import identifier_of
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


def encode(
    x: Any,
    y: Any,
    names: Sequence[Any],
    scale: str,
    asked: Collection[str] = (),
    called: tuple[str, str] = ("x", "y"),
    decimals: tuple[str, str] = ("", ""),
) -> Encoded:
    """Turn two tables into points, column by column.

    A table gives a column for a name: x[name]. Both have all the names. Columns that are asked for
    are not left out as identifiers. `decimals` has the decimal signs that are known of files.
    """
    hints = hint_of(x, names, decimals[0]), hint_of(y, names, decimals[1])
    pooled = (
        (
            str(name),
            join(
                read_column(x[name], str(name), called[0]),
                read_column(y[name], str(name), called[1]),
                str(name),
                called,
                hints,
            ),
        )
        for name in names
    )
    known = [str(name) for name in names]
    return encode_pooled(pooled, known if len(known) == 1 else asked, scale)


def encode_pooled(
    columns: Iterable[tuple[str, Raw]], asked: Collection[str], scale: str
) -> Encoded:
    """Turn columns, each with its name, into points."""
    made: list[Made] = []
    raws: list[Raw] = []
    height = 0
    for name, column in columns:
        checkpoint()
        height = len(column.missing)
        made.append(coordinates_of(column, name, scale, wanted=name in asked))
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


def hint_of(table: Any, names: Sequence[Any], known: str = "") -> Hint:
    """Return a function that finds the decimal sign of a table, once, where it is asked for."""
    if known in (",", "."):
        return lambda: known
    return cache(lambda: decimal_of(read_column(table[name], str(name), "x") for name in names))


def identifiers(x: Any, y: Any, names: Sequence[Any], asked: Collection[str] = ()) -> list[Column]:
    """Return the columns that number or name the rows and say nothing else, unless asked for."""
    if len(names) == 1:
        return []
    found = []
    hints = hint_of(x, names), hint_of(y, names)
    for name in names:
        shown = str(name)
        if shown not in asked:
            own = read_column(x[name], shown, "x"), read_column(y[name], shown, "y")
            found.append(identifier_of(join(*own, shown, hints=hints), shown))
    return [each for each in found if each is not None]


def asked_for(*samples: Any) -> frozenset[str]:
    """Return the names of the columns that somebody asked for, identifiers or not."""
    return frozenset(name for sample in samples for name in getattr(sample, "asked", ()))
