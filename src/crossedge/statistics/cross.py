"""The paper's statistic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def cross(within_x: Floats, within_y: Floats, total: float) -> Floats:
    """T = m - R_x - R_y: the weight of the edges that cross between the samples (section 2)."""
    return total - within_x - within_y
