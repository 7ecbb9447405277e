"""Pictures of tests: samples and their graphs, null distributions, answers, and power curves."""

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "crossedge.plots needs matplotlib: pip install 'crossedge[plots]'"
    ) from None

from crossedge.plots.answers import plot_changes, plot_effect, plot_monitor, plot_plan
from crossedge.plots.curves import plot_power
from crossedge.plots.samples import plot_graph, plot_null, plot_witness

__all__ = [
    "plot_changes",
    "plot_effect",
    "plot_graph",
    "plot_monitor",
    "plot_null",
    "plot_plan",
    "plot_power",
    "plot_witness",
]
