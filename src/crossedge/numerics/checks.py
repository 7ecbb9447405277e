"""What distances must be."""

from __future__ import annotations

import math

from crossedge.runtime.arrays import fixed
from crossedge.runtime.types import Array


def check_values(distances: Array) -> None:
    """Raise ValueError unless all distances are finite and non-negative."""
    if 0 in distances.shape:
        return
    given = fixed(distances)
    if not (float(given.min()) >= 0 and float(given.max()) < math.inf):  # false where they are NaN
        raise ValueError(
            "distances has NaN, infinite or negative entries: "
            "all entries must be finite and non-negative"
        )
