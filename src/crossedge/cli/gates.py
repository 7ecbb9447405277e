"""Gates of `crossedge test`, and whether they can fire at all."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossedge.data.columns import Column
    from crossedge.result import TwoSampleResult

FEWEST = 0.05  # a smallest possible p-value above this calls for a warning


def check_gate(options: SimpleNamespace) -> None:
    """Complain of --fail-below that no number of random labellings can reach."""
    level, drawn = options.fail_below, options.resamples
    if level is not None and options.null == "permutation" and level <= 1 / (drawn + 1):
        raise ValueError(
            f"--fail-below {level:g} can never fire: {drawn:,} labellings give no p-value below "
            f"{1 / (drawn + 1):.3g}. Give --resamples {math.floor(1 / level)} or more"
        )


def look_at_labellings(found: TwoSampleResult, level: float | None) -> tuple[str, ...]:
    """Return a line if there are so few labellings that p is never small, or raise for a gate."""
    least = found.least_pvalue
    if not found.exact or (level is None and least <= FEWEST):
        return ()
    few = f"there are {found.n_resamples:,} labellings, so p cannot be below {least:.3g}"
    if level is not None and level <= least:
        raise ValueError(f"--fail-below {level:g} can never fire: {few}. Give more rows or blocks")
    return (few,) if least > FEWEST else ()


def left_out_of_gate(columns: Sequence[Column], level: float | None) -> tuple[str, ...]:
    """Return a line if a gate that did not fire has not seen all columns."""
    from crossedge.data.columns import share_compared

    compared = share_compared(columns)
    if level is None or not compared:
        return ()
    return (f"--fail-below saw not all of the data: {compared}",)
