"""Which rows and columns of tables are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossedge.data.columns import Column
from crossedge.data.encoding import asked_for, identifiers
from crossedge.data.files import STDIN
from crossedge.data.raw import spelt_cells
from crossedge.data.table import Table, matched
from crossedge.data.tables import read_tables

SHOWN_VALUES = 5  # in a message
MOST_VALUES = 12  # of a column that splits a file: each pair of them is tested


class Pair(NamedTuple):
    """Two tables with the same columns."""

    x: Table
    y: Table


class Sampled(NamedTuple):
    """Random rows of two tables, without columns that number the rows of the whole."""

    pair: Pair
    left_out: tuple[Column, ...]


def read_pair(
    x_path: Path,
    y_path: Path,
    header: bool | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> Pair:
    """Read two files, and match those of their columns that are compared."""
    if str(x_path) == str(y_path) == STDIN:
        raise ValueError("both samples are standard input: give a file for one of them")
    return pair_of(*read_tables(x_path, y_path, header), columns, drop)


def pair_of(x: Table, y: Table, columns: Sequence[str] = (), drop: Sequence[str] = ()) -> Pair:
    """Return two tables with those of their columns that are compared."""
    if not (x.named and y.named):
        x, y = matched(x, y)
    return Pair(*matched(*choose_columns(Pair(x, y), columns, drop)))


def split_by(table: Table, by: str) -> tuple[list[Table], str]:
    """Split a table by the values of a column, and say which they are and what is left out.

    `by` is the name of a column with a few values, or name=a,b for two of them or more.
    """
    name, equals, rest = by.partition("=")
    if by in table.names or not equals:
        name, wanted = by, None
    else:
        wanted = [value.strip() for value in rest.split(",")]
        if len(wanted) < 2 or len(set(wanted)) < len(wanted) or "" in wanted:
            raise ValueError(f"--by {by} does not name two values or more: give --by {name}=a,b")
    _check_names(table, [name], "--by")
    cells = spelt_cells(table[name], name)
    values = sorted({cell for cell in cells if cell})
    if wanted is None:
        if not 2 <= len(values) <= MOST_VALUES:
            shown = ", ".join(values[:SHOWN_VALUES]) + ", ..." * (len(values) > SHOWN_VALUES)
            raise ValueError(
                f"column {name!r} of {table.source} has {len(values)} value"
                f"{'' if len(values) == 1 else 's'} ({shown}), not two to {MOST_VALUES}: "
                f"choose some of them by --by {name}=a,b"
            )
        wanted = values
    for value in wanted:
        if value not in values:
            raise ValueError(f"column {name!r} of {table.source} has no value {value!r}")
    others = [each for each in table.names if each != name]
    if not others:
        raise ValueError(f"{table.source} has no column beside {name!r}: give one to compare")
    array = np.array(cells, object)
    rest_of_table = table.with_columns(others)
    parts = [rest_of_table.with_rows(np.flatnonzero(array == value)) for value in wanted]
    sources = [f"{name}={value}" for value in wanted]
    groups = [replace(part, source=own) for part, own in zip(parts, sources, strict=True)]
    unused = len(table) - sum(map(len, groups))
    told = " against ".join(sources)
    return groups, told + (f", {unused:,} other rows not used" if unused else "")


def choose_columns(pair: Pair, columns: Sequence[str], drop: Sequence[str]) -> Pair:
    """Return two tables with only these columns, or without those; names may be joined by commas.

    Only the chosen columns must be in both tables, and those are compared even if they are
    identifiers.
    """
    x, y = pair
    kept = _listed(x, columns, "--columns") if columns else list(x.names)
    gone = _listed(x, drop, "--drop", y) if drop else []
    kept = [name for name in kept if name not in gone]
    if not kept:
        raise ValueError("--drop leaves no column: name fewer")
    if columns:
        _check_names(y, kept, "--columns")
        asked = tuple(kept)
        chosen = (replace(each.with_columns(kept), asked=asked) for each in (x, y))
        return Pair(*chosen)
    own = [name for name in y.names if name not in gone]
    return Pair(x.with_columns(kept), y.with_columns(own))


def sample_rows(pair: Pair, size: int, seed: int) -> Sampled:
    """Return at most so many random rows of each table, in their order.

    A column that numbers the rows is left out, because one cannot tell that from some of the rows.
    """
    source = np.random.default_rng(seed)
    left_out = tuple(identifiers(*pair, pair.x.names, asked_for(*pair)))
    gone = {column.name for column in left_out}
    kept = [name for name in pair.x.names if name not in gone]
    tables = []
    for table in pair:
        if len(table) > size:
            table = table.with_rows(np.sort(source.permutation(len(table))[:size]))
        tables.append(table.with_columns(kept))
    return Sampled(Pair(*tables), left_out)


def _listed(
    table: Table, texts: Sequence[str], option: str, other: Table | None = None
) -> list[str]:
    """Return names that may be joined by commas, each of which is in the table, or in the other."""
    known = {*table.names, *(other.names if other else ())}
    names: list[str] = []
    for text in texts:
        parts = [text] if text in known else [part.strip() for part in text.split(",")]
        for part in parts:
            if part not in known:
                _check_names(table, [part], option)
            if part not in names:
                names.append(part)
    return names


def _check_names(table: Table, names: Sequence[str], option: str) -> None:
    for name in names:
        if name not in table.names:
            shown = ", ".join(table.names[:SHOWN_VALUES])
            more = ", ..." * (len(table.names) > SHOWN_VALUES)
            raise ValueError(
                f"{option}: {table.source} has no column {name!r}: it has {shown}{more}"
            )
