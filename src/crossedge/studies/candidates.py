"""The tests of a power study, and their p-values for one pair of samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from crossedge.data.columns import check_scale
from crossedge.data.distances import (
    Distance,
    Distances,
    PointDistances,
    distance_matrix,
    matrix_distances,
    pooled_distances,
)
from crossedge.data.representations import Transform, check_transform
from crossedge.data.samples import Samples
from crossedge.studies.grid import Point, taken
from crossedge.verbs import checked_test, two_sample
from crossedge.weights import Weights

MAX_MATRIX_POINTS = 3000  # pooled points up to which all tests share one matrix of distances
# Arguments of `two_sample` that a test may set; the study itself provides the others
OPTIONS = sorted(
    set(inspect.signature(two_sample).parameters) - {"x", "y", "rng", "blocks", "max_points"}
)
OF_POINTS = ("distance", "transform", "scale")  # those that say what the points are
REMEDY = (
    "give weights, None for the adaptive test, a dictionary of arguments of two_sample, "
    "or a function of (x, y, rng) that returns a p-value"
)


@dataclass(frozen=True)
class Candidate:
    """A test under study: the user's function if there is one, else arguments for `two_sample`."""

    name: str
    function: Callable[..., Any] | None
    options: Mapping[str, Any]

    @property
    def depends_on(self) -> list[Callable[..., Any]]:
        """Functions that may take values of the grid."""
        weights = self.options.get("weights")
        return [one for one in (self.function, weights) if _is_function(one)]  # type: ignore[misc]

    def pvalue(self, pair: Pair, seed: int, point: Point) -> float:
        """Return the p-value of the test for a pair of samples at a point of the grid."""
        if self.function is not None:
            rng = np.random.default_rng(seed)
            answer = self.function(pair.x, pair.y, rng, **taken(self.function, point))
            return _check_pvalue(getattr(answer, "pvalue", answer))
        options = dict(self.options)
        of_points = {name: options.pop(name) for name in OF_POINTS if name in options}
        weights = options.pop("weights", None)
        if _is_function(weights):
            weights = weights(**taken(weights, point))
        test = checked_test(weights, **options, brief=True)
        return test(*pair.distances(**of_points), seed).pvalue


class Pair:
    """Two samples, with their distances computed when a test first asks and then shared."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y
        self._known: dict[Any, tuple[Samples, Distances]] = {}

    def distances(
        self, distance: Distance = 2.0, transform: Transform | None = None, scale: str | None = None
    ) -> tuple[Samples, Distances]:
        """Return the pooled sample and its distances."""
        key = distance, transform, scale
        if key not in self._known:
            samples, found = pooled_distances(self.x, self.y, *key)
            if isinstance(found, PointDistances) and found.n <= MAX_MATRIX_POINTS:
                found = matrix_distances(distance_matrix(found), found)
            self._known[key] = samples, found
        return self._known[key]


def check_candidates(tests: object, n_resamples: int) -> list[Candidate]:
    """Return the tests of a study, or raise TypeError or ValueError with a remedy."""
    if not isinstance(tests, Mapping):
        raise TypeError(
            f"tests is of type {type(tests).__name__}: give a dictionary, "
            "as {'tree': ce.SpanningTree(), 'adaptive': None}"
        )
    if not tests:
        raise ValueError("tests is empty: give at least one")
    return [_candidate(name, test, n_resamples) for name, test in tests.items()]


def _candidate(name: object, test: Any, n_resamples: int) -> Candidate:
    """Return one test of a study, checked as far as it does not depend on the grid."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"tests has the name {name!r}: give text")
    if isinstance(test, type):
        raise TypeError(f"test {name!r} is a class: give an instance, as {test.__name__}()")
    if _is_function(test):
        return Candidate(name, test, {})
    if test is None or (isinstance(test, Weights | Sequence) and not isinstance(test, str)):
        test = {"weights": test}
    if not isinstance(test, Mapping):
        raise TypeError(f"test {name!r} is {test!r}: {REMEDY}")
    for option in test:
        if option not in OPTIONS:
            known = ", ".join(OPTIONS)
            raise ValueError(f"test {name!r} has the argument {option!r}: choose from {known}")
    options = {"n_resamples": n_resamples, **test}
    if not _is_function(options.get("weights")):  # functions of the grid are checked at each point
        checked = {key: value for key, value in options.items() if key not in OF_POINTS}
        try:
            check_transform(options.get("transform"))
            check_scale(options.get("scale"))
            checked_test(checked.pop("weights", None), **checked)
        except (TypeError, ValueError) as error:
            raise type(error)(f"test {name!r}: {error}") from None
    return Candidate(name, None, options)


def _is_function(value: object) -> bool:
    """Return whether a value is a function; weights are callable, but do not count as one."""
    return callable(value) and not isinstance(value, Weights)


def _check_pvalue(value: Any) -> float:
    """Return a p-value as a float, or raise ValueError unless it is a number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"it returned {value!r}: give a p-value, from 0 to 1")
    return float(value)
