"""The figure of a power study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crossedge.studies.grid import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS_PER_ROW = 3


def draw_study(frame: Any, x: str, points: list[Point], tests: Sequence[str] | None) -> Figure:
    """Draw power against x, in one panel for each combination of the other values."""
    from crossedge.plots import plot_power  # imported late: it needs matplotlib

    others = [{name: value for name, value in point.items() if name != x} for point in points]
    panels = [other for place, other in enumerate(others) if other not in others[:place]]
    varied = [name for name in panels[0] if len({other[name] for other in panels}) > 1]
    import matplotlib.pyplot as plt

    columns = min(PANELS_PER_ROW, len(panels))
    rows = -(-len(panels) // columns)
    size = (4.2 * columns + 1.6, 3.2 * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained"
    )
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for ax, panel in zip(axes.flat, panels, strict=False):
        inside = [point == {**point, **panel} for point in points]
        chosen = [one for one in inside for _ in range(len(frame) // len(points))]
        plot_power(frame[chosen], x, tests=tests, ax=ax)
        ax.set_title(", ".join(f"{name} = {panel[name]}" for name in varied), fontsize=10)
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=9)
    return figure
