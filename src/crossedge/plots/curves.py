"""Pictures of studies: the power of tests as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from crossedge.plots.axes import axes_or_new
from crossedge.plots.colours import GREY

# Colours of curves, by Paul Tol: distinct also for readers who are colour-blind. Beyond seven
# curves, the colours are repeated with the next style of line.
CURVE_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#222222")
LINE_STYLES = ("-", "--", ":")


def plot_power(
    frame: Any,
    x: str,
    *,
    tests: Sequence[str] | None = None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the power of tests as curves, with 95% confidence bands.

    Parameters
    ----------
    frame : DataFrame
        The frame of a `PowerStudy`, or some of its rows: one for each test and value of `x`.
    x : str
        The column on the horizontal axis.
    tests : sequence of str, optional
        The tests to draw, in this order; by default all.
    styles : dict, optional
        Arguments of `Axes.plot` for tests by name, such as {"tree": {"color": "black"}}.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    ValueError
        If the frame has no rows for one of the tests.

    See Also
    --------
    crossedge.power_study : Estimate the power of tests.
    """
    ax = axes_or_new(ax)
    names = list(dict.fromkeys(frame["test"])) if tests is None else list(tests)
    for place, name in enumerate(names):
        rows = frame[frame["test"] == name].sort_values(x)
        if not len(rows):
            raise ValueError(f"frame has no test {name!r}: it has {', '.join(set(frame['test']))}")
        style = {
            "color": CURVE_COLOURS[place % len(CURVE_COLOURS)],
            "ls": LINE_STYLES[place // len(CURVE_COLOURS) % len(LINE_STYLES)],
            "lw": 1.4,
            "marker": "o",
            "ms": 3,
            **((styles or {}).get(name, {})),
        }
        along = rows[x].to_numpy()
        (line,) = ax.plot(along, rows["power"].to_numpy(), label=name, **style)
        band = rows["lower"].to_numpy(), rows["upper"].to_numpy()
        ax.fill_between(along, *band, color=line.get_color(), alpha=0.15, lw=0)
    ax.axhline(float(frame["level"].iloc[0]), color=GREY, lw=0.7, ls=":")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(x)
    ax.set_ylabel("power")
    return ax
