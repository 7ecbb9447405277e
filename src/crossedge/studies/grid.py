"""The points of a study, the cells that they are worked off in, and where random numbers come from.

A point is a dictionary of plain values. All randomness of a repetition follows from the seed of the
study, the values of the point and the number of the repetition: not from the other points, from the
order of work or from the worker. So a study can grow, and has the same numbers however it is run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

Point = dict[str, Any]
Grid = Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]]

BLOCK = 25  # repetitions that are done, kept and counted together
RESERVED = {"rng", "x", "y", "test", "versus", "power", "difference", "standard_error"}
RESERVED |= {"lower", "upper", "repetitions", "level"}


class Cell(NamedTuple):
    """A point and some repetitions: what a worker does in one go."""

    point: int  # its place in the grid
    first: int
    last: int


def check_grid(grid: Grid | None) -> list[Point]:
    """The points, from lists of values for each name (all combinations) or point by point."""
    if grid is None:
        return [{}]
    if isinstance(grid, Mapping):
        values = [_values(name, some) for name, some in grid.items()]
        points = [dict(zip(grid, each, strict=True)) for each in product(*values)]
    elif isinstance(grid, Sequence) and all(isinstance(point, Mapping) for point in grid):
        points = [dict(point) for point in grid]
    else:
        raise TypeError(
            f"grid is of type {type(grid).__name__}: give a dictionary of lists, "
            "as {'d': [2, 4]}, or a list of dictionaries, one for each point"
        )
    if not points:
        raise ValueError("grid is empty: give at least one point")
    seen: set[str] = set()
    for point in points:
        if list(point) != list(points[0]):
            raise ValueError(
                f"grid has points with {list(points[0])} and with {list(point)}: "
                "give all the same names, in the same order"
            )
        for name, value in point.items():
            _check_name(name)
            point[name] = _plain(name, value)
        if (text := as_text(point)) in seen:
            raise ValueError(f"grid has the point {point} twice: once is enough")
        seen.add(text)
    return points


def _values(name: object, values: object) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"grid has {values!r} for {name!r}: give a list of values")
    found = list(values)
    if not found:
        raise ValueError(f"grid has no values for {name!r}: give at least one")
    return found


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"grid has the name {name!r}: give the name of an argument, as 'd'")
    if name in RESERVED:
        raise ValueError(f"grid has the name {name!r}, which the study itself uses: choose another")


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"grid has {name}={value!r} of type {type(value).__name__}: "
            "give numbers, text or booleans"
        )
    return value


def as_text(point: Point) -> str:
    """The same for equal points, whichever way their numbers are written."""

    def normal(value: Any) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps({name: normal(point[name]) for name in sorted(point)})


def cells_of(points: Sequence[Point], repetitions: int) -> list[Cell]:
    """All points side by side: stopped half-way, the study is one with half the repetitions."""
    return [
        Cell(place, first, min(first + BLOCK, repetitions))
        for first in range(0, repetitions, BLOCK)
        for place in range(len(points))
    ]


def seeds(key: int, point: Point, repetition: int) -> tuple[np.random.Generator, int]:
    """For the samples of a repetition, and for the labellings that all tests share."""
    digest = hashlib.sha256(as_text(point).encode()).digest()
    words = np.frombuffer(digest, "<u4").tolist()
    samples, labels = np.random.SeedSequence(key, spawn_key=(*words, repetition)).spawn(2)
    return np.random.default_rng(samples), int(labels.generate_state(1, np.uint64)[0])


def taken(function: Callable[..., Any], point: Point) -> Point:
    """Those values of the point that the function takes by name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not written in Python
        return point
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return point
    named = {each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY}
    return {name: value for name, value in point.items() if name in named}


def check_all_taken(point: Point, functions: Iterable[Callable[..., Any]]) -> None:
    """A value that nobody looks at is a mistake."""
    used: set[str] = set()
    for function in functions:
        used |= taken(function, point).keys()
    for name in point:
        if name not in used:
            raise ValueError(
                f"grid has {name!r}, which no sampler and no test takes: "
                f"give one an argument {name!r}, or leave it out"
            )
