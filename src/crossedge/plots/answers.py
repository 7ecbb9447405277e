"""Pictures of answers: how large a difference is, how many rows show it, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crossedge.data.columns import short_name
from crossedge.effects import EffectSize
from crossedge.monitoring import MonitorState
from crossedge.planning import Plan
from crossedge.plots.axes import axes_or_new
from crossedge.plots.colours import CROSS_COLOUR, GREY, X_COLOUR


def plot_effect(found: EffectSize, ax: Axes | None = None) -> Axes:
    """Draw an estimated divergence with its confidence interval, between equal and no overlap.

    Parameters
    ----------
    found : EffectSize
        What `effect_size` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If `found` is not an EffectSize.
    """
    if not isinstance(found, EffectSize):
        raise TypeError(f"found is of type {type(found).__name__}: give that of ce.effect_size")
    ax = axes_or_new(ax)
    ax.plot(found.interval, (0, 0), color=X_COLOUR, lw=4, solid_capstyle="butt")
    ax.plot([found.divergence], [0], "o", color=X_COLOUR, ms=9)
    if found.tolerance is not None:
        ax.axvline(found.tolerance, color=CROSS_COLOUR, lw=1, ls="--")
    ax.set_xlim(-0.02, 1.02)
    ax.set_yticks([])
    ax.set_xlabel("divergence: 0 is equal, 1 is no overlap")
    return ax


def plot_monitor(history: Sequence[Any], ax: Axes | None = None) -> Axes:
    """Draw the evidence of a monitor after each batch, its threshold, and the p-values as points.

    Parameters
    ----------
    history : sequence of MonitorState
        The history of a `Monitor`.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    ValueError
        If there is no state.
    """
    if not history:
        raise ValueError("the monitor has seen no batch: update it first")
    ax = axes_or_new(ax)
    batches = [state.batch for state in history]
    ax.plot(batches, [state.evidence for state in history], color=X_COLOUR, label="evidence")
    ax.plot(batches, [1 / state.pvalue for state in history], ".", color=GREY, label="1 / p-value")
    ax.axhline(history[-1].threshold, color=CROSS_COLOUR, lw=1, ls="--", label="threshold")
    if history[-1].since is not None:
        ax.axvspan(history[-1].since - 0.5, batches[-1] + 0.5, color=CROSS_COLOUR, alpha=0.1, lw=0)
    ax.set_yscale("log")
    ax.set_xlabel("batch")
    ax.legend(frameon=False, loc="upper left")
    return ax


def plot_changes(state: MonitorState, ax: Axes | None = None) -> Axes:
    """Draw how far the columns changed that changed most, after the alarm of a monitor.

    Columns that changed by more than chance explains are drawn in red.

    Parameters
    ----------
    state : MonitorState
        What `Monitor.update` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If `state` is not a MonitorState.
    ValueError
        If there is no alarm, and so no change to draw.

    See Also
    --------
    plot_monitor : Draw the evidence of all batches.
    """
    if not isinstance(state, MonitorState):
        raise TypeError(f"state is of type {type(state).__name__}: give that of Monitor.update")
    if not state.columns:
        raise ValueError("there is no change to draw: monitor.plot() draws the evidence")
    ax = axes_or_new(ax)
    columns = state.columns[::-1]  # the most changed one on top
    colours = [CROSS_COLOUR if column.is_clear else GREY for column in columns]
    ax.barh(range(len(columns)), [column.change for column in columns], color=colours)
    ax.set_yticks(range(len(columns)), [short_name(column.name) for column in columns])
    ax.set_xlim(0, 1)
    ax.set_xlabel("difference of frequencies: 0 is none, 1 is no overlap")
    ax.set_title(f"changed since about batch {state.since}", fontsize=10)
    return ax


def plot_plan(found: Plan, ax: Axes | None = None) -> Axes:
    """Draw how the power grows with the number of rows, and how many rows are needed.

    Points are shares of subsamples of the pilots that were found different. The curve is the one
    fitted to them, dashed beyond the pilots. The band is the 95% interval of the rows.

    Parameters
    ----------
    found : Plan
        What `plan` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If `found` is not a Plan.
    """
    if not isinstance(found, Plan):
        raise TypeError(f"found is of type {type(found).__name__}: give that of ce.plan")
    ax = axes_or_new(ax)
    pilot, (low, high) = sum(found.pilot), found.interval
    needed = None if found.n_x is None or found.n_y is None else found.n_x + found.n_y
    sizes, shares = zip(*found.curve, strict=True)
    last = 1.2 * max(pilot, needed or 0, min(high or 0, 4 * (needed or 0)))
    grid = np.geomspace(min(sizes) / 2, last, 200)
    power = [found.power_at(n) for n in grid]
    for inside, style in ((grid <= pilot, "-"), (grid >= pilot, "--")):
        ax.plot(grid[inside], np.array(power)[inside], style, color=X_COLOUR)
    ax.plot(sizes, shares, "o", color=X_COLOUR, label="subsamples of the pilots")
    ax.axhline(found.power, color=GREY, lw=0.7, ls=":")
    if needed is not None:
        ax.axvline(needed, color=CROSS_COLOUR, lw=1, label=f"{needed:,} rows in all")
        ax.axvspan(low or grid[0], high or last, color=CROSS_COLOUR, alpha=0.1, lw=0)
    ax.set_xscale("log")
    ax.set_xlim(grid[0], last)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("rows of both samples")
    ax.set_ylabel("power")
    ax.legend(frameon=False, loc="lower right")
    return ax
