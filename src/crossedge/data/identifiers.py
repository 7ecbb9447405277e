"""Columns that number or name the rows and say nothing else."""

from __future__ import annotations

import numpy as np

from crossedge.data.columns import LEFT_OUT, Column
from crossedge.data.raw import Raw

FEW_ROWS = 20  # up to this many rows, distinct values in sequence may be there by chance


def identifier(name: str, kind: str) -> Column:
    what = "row numbers" if kind == "number" else "a different text in every row"
    return Column(name, kind, LEFT_OUT + what)


def numbers_rows(raw: Raw) -> bool:
    """Return whether a column counts the rows, once over both samples or once in each."""
    if not (raw.kind == "number" and raw.whole) or raw.missing.any() or len(raw.values) <= FEW_ROWS:
        return False
    least, most = raw.values.min(), raw.values.max()
    if most - least >= len(raw.values):
        return False
    counts = np.bincount((raw.values - least).astype(np.int64))
    return bool(counts.min() >= 1 and counts.max() <= 2)


def names_rows(raw: Raw) -> bool:
    """Return whether all texts are different."""
    return len(raw.texts) > FEW_ROWS and len(raw.texts) == int((~raw.missing).sum())
