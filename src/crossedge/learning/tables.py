"""Rows of a training run as a table, and other data as a table of the same kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crossedge.data.table import Table
from crossedge.learning.layout import Layout
from crossedge.learning.learn import Run
from crossedge.learning.runs import LAYOUT, RunFolder
from crossedge.learning.sources import read_rows


def of_run(path: Path, rows: int, seed: int) -> Table:
    """Return rows that the generator of a run makes."""
    run = Run.load(path)
    values = run.rows(rows, seed)
    source = f"{rows:,} rows of {path}"
    if not isinstance(values, np.ndarray):
        return Table(source, values, tuple(map(str, values.columns)), named=_is_named(run.layout))
    names = tuple(map(str, range(1, values.shape[1] + 1)))
    return Table(source, values, names, named=False)


def read_like(path: Path, run: Path, header: bool | None = None) -> tuple[Table, tuple[str, ...]]:
    """Read data as those of a run were read, and name the columns that the run has not learned.

    These are left out of the table.
    """
    folder = RunFolder(run)
    configuration = folder.configuration()
    saved = folder.read_json(LAYOUT)
    layout = Layout.from_dict(saved["layout"]) if saved else None
    named = configuration.header if header is None else header
    table = read_rows(path, named, is_image=layout is not None and layout.image is not None)
    if layout is None or not layout.names or not (table.named and _is_named(layout)):
        return table, ()
    left_out = tuple(name for name in table.names if name not in layout.names)
    kept = [name for name in table.names if name in layout.names]
    return (table.with_columns(kept), left_out) if kept else (table, ())


def _is_named(layout: Layout) -> bool:
    return getattr(layout.code, "named", False)
