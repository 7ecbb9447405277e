"""`crossedge test`: compare two files of points."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from crossedge.cli.arguments import seed, whole_number


def add_to(commands: Any) -> None:
    test = commands.add_parser("test", help="compare two files of points (.csv or .npy)")
    test.add_argument("x", type=Path, help="a point in each row; the first may name the columns")
    test.add_argument("y", type=Path, help="likewise; columns are matched by name, if any")
    test.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of each .csv names the columns (default: by its looks)",
    )
    test.add_argument(
        "--resamples", type=whole_number(1), default=9999, help="random labellings (%(default)s)"
    )
    test.add_argument("--seed", type=seed, default=0, help="of the labellings (%(default)s)")
    test.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> str:
    from crossedge.data.tables import read_two

    x, y = read_two(options.x, options.y, options.header)
    from crossedge.verbs import two_sample  # after the files: it imports numpy and scipy

    return str(two_sample(x, y, n_resamples=options.resamples, rng=options.seed))
