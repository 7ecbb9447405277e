"""Pictures of samples: their graph, the null distribution, and where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from scipy import stats

from crossedge.data.columns import short_name
from crossedge.data.distances import Distance, pooled_distances
from crossedge.plots.axes import axes_or_new
from crossedge.plots.colours import CROSS_COLOUR, GREY, X_COLOUR, Y_COLOUR
from crossedge.result import TwoSampleResult
from crossedge.weights import EdgeList, GraphWeights, SpanningTree
from crossedge.weights.graphs import check_graph
from crossedge.witnesses import Witness


def plot_graph(
    x: Any,
    y: Any,
    weights: GraphWeights | None = None,
    *,
    layout: Any = None,
    distance: Distance = 2.0,
    labels: tuple[str, str] = ("x", "y"),
    ax: Axes | None = None,
) -> Axes:
    """Draw the pooled sample and its neighbourhood graph, with the cross edges in red.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The samples, as in `two_sample`.
    weights : SpanningTree or NearestNeighbours, optional
        The graph; by default the minimum spanning tree.
    layout : array, optional
        (n_x + n_y, 2) positions of the points, x first. By default the points themselves if they
        are in two dimensions, otherwise their first two principal components.
    distance : float, callable or "precomputed", optional
        As in `two_sample`.
    labels : pair of str, optional
        The names of the samples in the legend.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If the weights are not a graph.
    ValueError
        If the samples are invalid, or if the layout has the wrong shape.

    See Also
    --------
    plot_null : Draw the null distribution and the observed statistic.
    """
    graph = SpanningTree() if weights is None else check_graph(weights)
    samples, distances = pooled_distances(x, y, distance)
    pairs = graph.pairs(distances)
    places = _principal_plane(samples.values) if layout is None else np.asarray(layout, float)
    if places.shape != (pairs.n, 2):
        raise ValueError(f"layout has shape {places.shape}: give ({pairs.n}, 2) places")
    if isinstance(pairs, EdgeList) and len(pairs.sizes) == pairs.n:
        i, j, weight = pairs.i, pairs.j, pairs.weight
    else:  # list every pair, also pairs of equal points, which an EdgeList merges into atoms
        W = pairs.dense()
        i, j = np.nonzero(np.triu(W))
        weight = W[i, j]
    crossing = samples.in_x[i] != samples.in_x[j]
    lines = places[np.stack([i, j], axis=1)]
    ax = axes_or_new(ax)
    for chosen, colour, order in ((~crossing, GREY, 1), (crossing, CROSS_COLOUR, 2)):
        widths = 0.8 * np.minimum(weight[chosen], 1.0)
        ax.add_collection(
            LineCollection(list(lines[chosen]), linewidths=widths, colors=colour, zorder=order)
        )
    for inside, colour, label in (
        (samples.in_x, X_COLOUR, labels[0]),
        (~samples.in_x, Y_COLOUR, labels[1]),
    ):
        ax.scatter(
            places[inside, 0],
            places[inside, 1],
            s=7,
            color=colour,
            label=label,
            zorder=3,
            linewidths=0,
        )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.legend(frameon=False, loc="upper right", markerscale=2)
    return ax


def plot_null(result: TwoSampleResult, ax: Axes | None = None) -> Axes:
    """Draw the null distribution of a test and the observed statistic.

    The picture has a histogram of the statistic on relabelled samples, if the result has these, and
    the density of a gamma law with the mean, standard deviation and skewness of the null. For
    null="normal" the density is normal.

    Parameters
    ----------
    result : TwoSampleResult
        What `two_sample` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If `result` is not a TwoSampleResult.

    See Also
    --------
    plot_graph : Draw the samples and their graph.
    """
    if not isinstance(result, TwoSampleResult):
        raise TypeError(f"result is of type {type(result).__name__}: give that of ce.two_sample")
    ax = axes_or_new(ax)
    grid = result.null_mean + result.null_std * np.linspace(-4.5, 4.5, 200)
    if result.null_distribution is not None:
        values = result.null_distribution
        bins = list(np.linspace(values.min(), values.max() + 1e-12, 41))
        if (values == np.rint(values)).all():  # counts: every bin gets equally many integers
            width = max(1.0, np.ceil(np.ptp(values) / 40))
            bins = list(np.arange(values.min() - 0.5, values.max() + width, width))
        ax.hist(values, bins=bins, density=True, color=GREY, alpha=0.6)
    if result.null_std:
        skewness = 0.0 if result.null == "normal" else result.null_skewness
        law = stats.pearson3(skewness, result.null_mean, result.null_std)
        ax.plot(grid, law.pdf(grid), color="black", lw=0.8)
    ax.axvline(result.statistic, color=CROSS_COLOUR, lw=2)
    ax.set_yticks([])
    ax.set_xlabel(result.statistic_title)
    ax.set_title(f"z = {result.zscore:.2f},  p = {result.pvalue:.3g}", fontsize=10)
    return ax


def plot_witness(found: Witness, ax: Axes | None = None) -> Axes:
    """Draw a map of the pooled sample, coloured by the excess of y around each point.

    Points that are significant are drawn large. The map has the points themselves in two
    dimensions, otherwise their first two principal components.

    Parameters
    ----------
    found : Witness
        What `witness` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    TypeError
        If `found` is not a Witness.
    ValueError
        If there are only distances, and so no coordinates to draw.

    See Also
    --------
    plot_graph : Draw the samples and their graph.
    """
    if not isinstance(found, Witness):
        raise TypeError(f"found is of type {type(found).__name__}: give that of ce.witness")
    if found.coordinates is None:
        raise ValueError("the distances were precomputed, so there are no points to draw")
    ax = axes_or_new(ax)
    places = _principal_plane(found.coordinates)
    colours = LinearSegmentedColormap.from_list("excess", [X_COLOUR, "#d9d9d9", Y_COLOUR])
    chosen = found.points.significant
    for some, size in ((~chosen, 5), (chosen, 16)):
        drawn = ax.scatter(
            places[some, 0],
            places[some, 1],
            c=found.points.excess[some],
            s=size,
            cmap=colours,
            vmin=-1,
            vmax=1,
            linewidths=0,
        )
    bar = ax.figure.colorbar(drawn, ax=ax, ticks=[-1, 0, 1])
    x, y = map(short_name, found.names)
    bar.ax.set_yticklabels([f"only {x}", "as expected", f"only {y}"])
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(f"p = {found.pvalue:.3g}, {chosen.sum():,} points significant", fontsize=10)
    return ax


def _principal_plane(points: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return the points themselves in two dimensions, else their first two principal components."""
    if points.shape[1] == 2:
        return points
    centred = points - points.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
