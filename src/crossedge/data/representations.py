"""Representations of the pooled sample: a test may look at points through any map that is blind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from crossedge.data.samples import Samples
from crossedge.runtime.arrays import is_tensor, to_tensor

Transform = Callable[[Any], Any]  # (n, d) points -> (n, e) points


def check_transform(transform: object) -> None:
    """Raise TypeError unless the transform is None or a function of points."""
    if isinstance(transform, type):
        raise TypeError(f"transform is the class {transform.__name__}: give an instance of it")
    if transform is not None and not callable(transform):
        raise TypeError(
            f"transform={transform!r} is not callable: give a function of points, or None"
        )


def represent(samples: Samples, transform: Transform | None) -> Samples:
    """Return the samples with all points mapped at once, so that the map cannot see labels.

    The map receives an array. It receives a tensor without a gradient if the samples are tensors,
    or if it is a module of torch, in the precision of its parameters.
    """
    if transform is None:
        return samples
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
