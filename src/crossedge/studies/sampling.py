"""The samplers of a power study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crossedge.studies.grid import Point, taken

Sampler = Callable[..., Any]
REMEDY = "give a function of (rng, ...) that returns (x, y), or two that return a sample each"


def check_samplers(samplers: object) -> tuple[Sampler, ...]:
    """Return one function that draws both samples, or two that draw one each."""
    if callable(samplers):
        return (samplers,)
    if isinstance(samplers, Sequence) and len(samplers) == 2 and all(map(callable, samplers)):
        return tuple(samplers)
    raise TypeError(f"samplers is {samplers!r}: {REMEDY}")


def draw(samplers: tuple[Sampler, ...], rng: np.random.Generator, point: Point) -> tuple[Any, Any]:
    """Draw two samples, from one generator of random numbers and one after the other."""
    if len(samplers) == 2:
        x, y = (sampler(rng, **taken(sampler, point)) for sampler in samplers)
        return x, y
    pair = samplers[0](rng, **taken(samplers[0], point))
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"the sampler returned a {type(pair).__name__}: {REMEDY}")
    return pair[0], pair[1]
