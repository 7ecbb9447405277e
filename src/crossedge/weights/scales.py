"""Temperatures and bandwidths: numbers, sequences, "median", or tensors that learn."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from crossedge.numerics.smoothed import flat
from crossedge.runtime.arrays import fixed, is_tensor, namespace
from crossedge.runtime.types import Array

Scale = float | Sequence[float] | Literal["median"] | Array


def check_scale(scale: object, name: str, *, zero: bool) -> Any:
    """Return a temperature or bandwidth as a number, a tuple, "median" or a tensor that learns.

    Raise TypeError or ValueError unless every number is positive, or non-negative if `zero`. A
    tensor that requires a gradient is kept as it is, since an optimizer may change it in place.
    """
    if isinstance(scale, str):
        if scale != "median":
            raise ValueError(f"{name}={scale!r} is unknown: give a number or 'median'")
        return scale
    if learns(scale):
        if scale.ndim > 1 or not scale.is_floating_point():  # type: ignore[attr-defined]
            raise ValueError(
                f"{name} is a tensor of shape {tuple(scale.shape)}: "  # type: ignore[attr-defined]
                "give one floating point number, or a row of them"
            )
        check_positive(scale_values(scale), name)
        return scale
    if isinstance(scale, np.ndarray | np.generic) or is_tensor(scale):
        scale = scale.tolist()  # type: ignore[attr-defined]
    values: tuple[Any, ...] = (scale,)
    if isinstance(scale, Sequence):
        if any(learns(value) for value in scale):
            raise ValueError(
                f"{name} is a sequence with a tensor that requires a gradient: "
                "give one tensor, as torch.stack makes of several"
            )
        scale = values = tuple(
            value.item() if is_tensor(value) and not value.ndim else value for value in scale
        )
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(
                f"{name}={value!r} is not a real number: give one, a list of them, or just 'median'"
            )
        if zero and not float(value) >= 0:
            raise ValueError(f"{name}={value} is not at least 0: give 0 or more")
        if not zero:
            check_positive((float(value),), name)
    if not values:
        raise ValueError(f"{name} is an empty sequence: give one at least")
    return scale


def learns(scale: object) -> bool:
    """Return whether a scale is a tensor that requires a gradient."""
    return is_tensor(scale) and bool(scale.requires_grad)  # type: ignore[attr-defined]


def check_positive(values: Sequence[float], name: str) -> None:
    """Raise ValueError unless all numbers are positive."""
    for value in values:
        if not value > 0:
            raise ValueError(f"{name}={value} is not above 0: give a positive number")


def scale_values(scale: Scale) -> tuple[float, ...]:
    """Return the numbers of a scale as they are now; () for "median"."""
    if isinstance(scale, str):
        return ()
    if is_tensor(scale):
        found = fixed(scale).tolist()
        return tuple(found) if isinstance(found, list) else (found,)
    values: Any = scale if isinstance(scale, tuple) else (scale,)
    return tuple(float(value) for value in values)


def show_scale(scale: Scale, one: str, several: str) -> str:
    """Return the scale in words: `one` or `several` is the noun before the numbers."""
    if isinstance(scale, str):
        return f"{one} {scale}"
    values = scale_values(scale)
    return f"{one if len(values) == 1 else several} " + ", ".join(f"{v:g}" for v in values)


def median_distances(distances: Array) -> list[float]:
    """Return the median distance of each of (..., n, n) matrices, in a flat list.

    It is the median of the distances off the diagonal; if that is 0, of the distances above 0.
    Derivatives treat it as a constant.
    """
    return [_median_distance(matrix) for matrix in flat(fixed(distances))]


def _median_distance(distances: Array) -> float:
    above = namespace(distances).triu(distances == distances, k=1)
    between = distances[above] / 2 + distances.mT[above] / 2
    median = _median(between)
    return median if median > 0 else _median(between[between > 0])


def _median(values: Array) -> float:
    """Return the median; 0 if there are no values. Halves are added, since sums may overflow."""
    if not len(values):
        return 0.0
    middle = [(len(values) - 1) // 2, len(values) // 2]
    if is_tensor(values):
        low, high = (float(values.kthvalue(place + 1).values) for place in middle)
    else:
        low, high = np.partition(values, middle)[middle]
    return float(low / 2 + high / 2)
