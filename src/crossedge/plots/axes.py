"""Where a picture is drawn if nobody says so."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes that were given, or those of a new figure: no picture covers another."""
    return plt.subplots()[1] if ax is None else ax
