"""The grid of a power study, its division into cells, and the seeds of its repetitions.

A point of the grid is a dictionary of plain values. The random numbers of a repetition depend only
on the seed of the study, the values of the point and the number of the repetition. They do not
depend on other points, the order of work or the worker. So a study can grow, and its numbers are
the same however it is run.
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

CELL_REPETITIONS = 25  # saved together: an interruption loses at most one cell per worker
# Columns of the tables of a study and arguments of samplers and tests, which the grid cannot have
RESERVED = {"rng", "x", "y", "test", "versus", "power", "difference", "standard_error"}
RESERVED |= {"lower", "upper", "repetitions", "level"}


class Cell(NamedTuple):
    """Some repetitions at one point: the unit of work."""

    point: int  # position in the grid
    first: int  # first repetition, from 0
    last: int  # one past the last repetition


def check_grid(grid: Grid | None) -> list[Point]:
    """Return the points of a grid, or raise TypeError or ValueError with a remedy.

    A dictionary of lists stands for all combinations; a list of dictionaries has one point each.
    """
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
    """Return the values of one name as a list that is not empty."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"grid has {values!r} for {name!r}: give a list of values")
    found = list(values)
    if not found:
        raise ValueError(f"grid has no values for {name!r}: give at least one")
    return found


def _check_name(name: object) -> None:
    """Raise ValueError unless a name can be an argument and is not reserved."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"grid has the name {name!r}: give the name of an argument, as 'd'")
    if name in RESERVED:
        raise ValueError(f"grid has the name {name!r}, which the study itself uses: choose another")


def _plain(name: str, value: Any) -> Any:
    """Return a value of the grid as a plain Python scalar."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"grid has {name}={value!r} of type {type(value).__name__}: "
            "give numbers, text or booleans"
        )
    return value


def as_text(point: Point) -> str:
    """Return a text that is the same for equal points, such as {"d": 1} and {"d": 1.0}."""

    def normal(value: Any) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps({name: normal(point[name]) for name in sorted(point)})


def cells_of(points: Sequence[Point], repetitions: int) -> list[Cell]:
    """Return the cells in order of work: all points first, then the next repetitions.

    So a study that is stopped half-way has half the repetitions at every point.
    """
    return [
        Cell(place, first, min(first + CELL_REPETITIONS, repetitions))
        for first in range(0, repetitions, CELL_REPETITIONS)
        for place in range(len(points))
    ]


def seeds(key: int, point: Point, repetition: int) -> tuple[np.random.Generator, int]:
    """Return the generator of the samples of a repetition, and the seed that all tests share."""
    digest = hashlib.sha256(as_text(point).encode()).digest()
    words = np.frombuffer(digest, "<u4").tolist()
    samples, labels = np.random.SeedSequence(key, spawn_key=(*words, repetition)).spawn(2)
    return np.random.default_rng(samples), int(labels.generate_state(1, np.uint64)[0])


def taken(function: Callable[..., Any], point: Point) -> Point:
    """Return the values of a point that a function takes by name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function without a signature
        return point
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return point
    named = {each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY}
    return {name: value for name, value in point.items() if name in named}


def check_all_taken(point: Point, functions: Iterable[Callable[..., Any]]) -> None:
    """Raise ValueError if no function takes one of the values of a point."""
    used: set[str] = set()
    for function in functions:
        used |= taken(function, point).keys()
    for name in point:
        if name not in used:
            raise ValueError(
                f"grid has {name!r}, which no sampler and no test takes: "
                f"give one an argument {name!r}, or leave it out"
            )
