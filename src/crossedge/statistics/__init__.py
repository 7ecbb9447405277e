"""(R_x, R_y) -> statistic, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crossedge.statistics.cross import cross

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """A test statistic as a function of the within-sums, small where the samples differ."""

    title: str
    value: Callable[[Floats, Floats, float], Floats]  # R_x, R_y, m


STATISTICS = {"cross": Statistic("cross-edge count", cross)}


def statistic_named(name: object) -> Statistic:
    if not isinstance(name, str) or name not in STATISTICS:
        known = ", ".join(repr(known) for known in STATISTICS)
        raise ValueError(f"statistic={name!r} is unknown: choose from {known}")
    return STATISTICS[name]
