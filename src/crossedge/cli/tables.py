"""Two tables on the command line: the options that choose and read them."""

from __future__ import annotations

import os
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from crossedge.data.selection import Pair
    from crossedge.data.table import Table

SCALES = ("none", "std", "robust", "rank")  # those of crossedge.data.columns, which imports numpy
ROWS = 1000  # drawn from each of two runs
FILE = click.Path(path_type=Path, allow_dash=True)
_OPTIONS: tuple[Any, ...] = (
    click.argument("x", type=FILE),
    click.argument("y", type=FILE, required=False),
    click.option(
        "--by", metavar="COLUMN[=a,b]", help="Split X by the values of a column.  [default: no]"
    ),
    click.option(
        "--columns",
        multiple=True,
        metavar="NAMES",
        help="Compare these columns only.  [default: all]",
    ),
    click.option(
        "--drop", multiple=True, metavar="NAMES", help="Leave these out.  [default: none]"
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a text or sheet names the columns.  "
        "[default: by its looks]",
    ),
    click.option(
        "--scale",
        type=click.Choice(SCALES),
        help="Scale of numbers, by both samples together.  "
        "[default: robust if the columns have names, else none]",
    ),
)


def two_tables(command: Any) -> Any:
    """Give a command the arguments X and Y, and the options that say how they are read."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def check(options: SimpleNamespace) -> None:
    """Complain of files before anything heavy is imported."""
    if options.y is None and options.by is None:
        raise ValueError("one file is given: give a second one, or --by COLUMN to split it")
    if options.y is not None and options.by is not None:
        raise ValueError("--by splits one file, and two are given: leave one of them out")
    for path in (options.x, options.y):
        if path is not None and str(path) != "-":
            os.stat(path)


def read(options: SimpleNamespace) -> tuple[Pair, str]:
    """Read two samples, and say what they are."""
    from crossedge.data.selection import Pair

    groups, told = read_groups(options)
    if len(groups) > 2:
        name = options.by.partition("=")[0]
        raise ValueError(f"--by {options.by} has {len(groups)} values: choose two by {name}=a,b")
    return Pair(*groups), told


def read_groups(options: SimpleNamespace) -> tuple[list[Table], str]:
    """Read two samples, or several that are told apart by a column, and say what they are."""
    from crossedge.data.selection import Pair, choose_columns, read_pair, split_by
    from crossedge.data.tables import read_table

    if options.y is not None and (is_run(options.x) or is_run(options.y)):
        pair, told = _with_a_run(options)
        return [*pair], told
    if options.y is not None:
        pair = read_pair(options.x, options.y, options.header, options.columns, options.drop)
        return [*pair], f"{pair.x.source} against {pair.y.source}"
    table = read_table(options.x, options.header)
    groups, told = split_by(table, options.by)
    chosen = [choose_columns(Pair(one, one), options.columns, options.drop).x for one in groups]
    return chosen, f"{table.source}, {told}"


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a training run."""
    return (path / "config.json").is_file() and (path / "checkpoint.npz").is_file()


def _with_a_run(options: SimpleNamespace) -> tuple[Pair, str]:
    """Return two tables of which one or both are drawn from the generator of a run, and say so.

    As many rows are drawn as the other has, or as --sample says, and only columns that were learned
    are compared.
    """
    from crossedge.data.selection import Pair, pair_of
    from crossedge.learning.tables import of_run, read_like

    paths = (options.x, options.y)
    wanted = getattr(options, "sample", None)
    if is_run(options.x) and is_run(options.y):
        seeds = (options.seed, options.seed + 1)
        drawn = [
            of_run(path, wanted or ROWS, seed) for path, seed in zip(paths, seeds, strict=True)
        ]
        pair = pair_of(drawn[0], drawn[1], options.columns, options.drop)
        return pair, f"{pair.x.source} against {pair.y.source}"
    place = 0 if is_run(options.x) else 1
    real, left_out = read_like(paths[1 - place], paths[place], options.header)
    fake = of_run(paths[place], wanted or len(real), options.seed)
    both = (fake, real) if place == 0 else (real, fake)
    pair = Pair(*pair_of(both[0], both[1], options.columns, options.drop))
    told = f"{pair.x.source} against {pair.y.source}"
    return pair, told + (f", not learned: {', '.join(left_out)}" if left_out else "")
