"""Representations of the pooled sample: a test may look at points through any map that is blind.

A map that is learned from the pooled points alone knows no labels, so that p-values stay valid. It
must not depend on the order of the rows either, of which the first are x: not even by rounding,
since a last digit that tells equal rows apart may decide which of them are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from crossedge.data.samples import Samples
from crossedge.runtime.arrays import is_tensor, to_tensor
from crossedge.runtime.threads import one_blas_thread
from crossedge.runtime.types import Floats

Transform = str | Callable[[Any], Any]  # a name, or (n, d) points -> (n, e) points
RIDGE = 0.1  # of whitened points, in units of the mean eigenvalue
ITERATIONS = 4  # of the subspaces of principal components
ROUNDING = 1e-12  # an eigenvalue that is so small, relative to the largest, is rounding
CONSTANT = 1e-13  # a column that varies by less, relative to its largest entry, is constant


def check_transform(transform: object) -> None:
    """Raise TypeError or ValueError unless this is None, a known name or a function of points."""
    if isinstance(transform, type):
        raise TypeError(f"transform is the class {transform.__name__}: give an instance of it")
    if isinstance(transform, str):
        if transform not in REPRESENTATIONS:
            known = ", ".join(repr(name) for name in REPRESENTATIONS)
            raise ValueError(f"transform={transform!r} is unknown: choose from {known}")
    elif transform is not None and not callable(transform):
        raise TypeError(
            f"transform={transform!r} is not callable: give a name, a function of points, or None"
        )


def in_own_order(represent: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Return the map of points that are sorted first, and where equal rows have equal images.

    So the image of a row depends on the set of all rows alone, to the last digit.
    """
    for column in points.T:
        order = np.argsort(column)
        if (np.diff(column[order]) > 0).all():  # no rows are equal, which is the fast case
            mapped = represent(points[order])
            found = np.empty_like(mapped)
            found[order] = mapped
            return found
    rows, row, copies = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    first = np.cumsum(copies) - copies
    mapped = represent(np.repeat(rows, copies, axis=0))
    images: Floats = mapped[first][row.reshape(len(points))]
    return images


def represent(samples: Samples, transform: Transform | None) -> Samples:
    """Return the samples with all points mapped at once, so that the map cannot see labels.

    The map receives an array. It receives a tensor without a gradient if the samples are tensors,
    or if it is a module of torch, in the precision of its parameters.
    """
    if transform is None:
        return samples
    if isinstance(transform, str):
        values = in_own_order(REPRESENTATIONS[transform], samples.values)
        return replace(samples, values=values)
    points: Any = samples.values
    parameters = getattr(transform, "parameters", None)
    if samples.as_tensors or parameters is not None:
        points = to_tensor(points)
        first = next(iter(parameters()), None) if callable(parameters) else None
        points = points if first is None else points.to(first)
    with _no_gradient(points):
        found = transform(points)
    if is_tensor(found):
        found = found.detach().cpu().double().numpy()
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"transform returned {type(found).__name__} of no real numbers: it must return (n, e) "
            "points"
        ) from None
    values = values[:, None] if values.ndim == 1 else values
    n = len(samples.in_x)
    if values.ndim != 2 or len(values) != n or not values.size:
        raise ValueError(
            f"transform returned shape {values.shape} for {n} points: it must give ({n}, e) points"
        )
    if not np.isfinite(values).all():
        raise ValueError("transform returned NaN or infinite values: give a map to finite points")
    return replace(samples, values=values)


def _no_gradient(points: Any) -> Any:
    if not is_tensor(points):
        return nullcontext()
    import torch

    return torch.no_grad()


def standardized(points: Floats) -> Floats:
    """Return the points with all columns centred and divided by their standard deviations.

    Constant columns become 0.
    """
    largest = np.abs(points).max(0)
    # a power of two, so that it does not round; no square leaves the range of doubles
    unit = np.ldexp(1.0, np.clip(-np.frexp(largest)[1], -1000, 1000))
    centred = points * unit
    centred -= centred.mean(0)
    deviation = np.sqrt((centred**2).mean(0))
    varies = (deviation > CONSTANT) & (points.max(0) > points.min(0))
    found: Floats = np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)
    return found


def squares(points: Floats) -> Floats:
    """Return the squares of standardised columns, standardised: their distances see spread."""
    return standardized(standardized(points) ** 2)


def ranks(points: Floats) -> Floats:
    """Return the normal scores of the ranks in each column, which no outlier can blind."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    found: Floats = ndtri((rankdata(points, axis=0) - 0.5) / len(points))
    found -= found.mean(0)
    return found


def whitened(points: Floats) -> Floats:
    """Return the points in coordinates in which the pooled covariance is as good as the identity.

    Columns are standardised, and the eigenvalues of their covariance, the correlation matrix, are
    shrunk towards their mean 1 by adding RIDGE. With more columns than points nothing would be left
    without it: all points are at equal distances then.
    """
    columns = standardized(points)
    n, d = columns.shape
    with one_blas_thread():  # threads that share a small matrix wait for each other
        products = columns.T @ columns if d <= n else columns @ columns.T
        values, vectors = np.linalg.eigh(products / n)
    # directions without variance, whose square root would be far above rounding, are left out
    values[values < ROUNDING * values[-1]] = 0.0
    found: Floats
    if d <= n:
        found = columns @ (vectors / np.sqrt(values + RIDGE))
    else:
        found = vectors * np.sqrt(n * values / (values + RIDGE))
    return found


def principal(points: Floats, count: int) -> Floats:
    """Return the points in their `count` largest principal components, by subspace iteration.

    They are found to some percent, from a fixed start: any directions serve a test that were chosen
    by the pooled points alone.
    """
    d = points.shape[1]
    if count >= d:
        return points
    centred = points - points.mean(0)
    largest = np.abs(centred).max()
    centred /= largest or 1.0
    directions = np.random.default_rng(0).normal(size=(d, count))
    for _ in range(ITERATIONS):
        directions = np.linalg.qr(centred.T @ (centred @ directions))[0]
    found: Floats = centred @ directions
    return found


REPRESENTATIONS: dict[str, Callable[[Floats], Floats]] = {
    "standardize": standardized,
    "whiten": whitened,
    "squares": squares,
    "rank": ranks,
}
