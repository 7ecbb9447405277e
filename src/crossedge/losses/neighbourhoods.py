"""W of two samples with its sums, and the way back from a gradient in W to the distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch

from crossedge.losses.points import DirectPoints, Points
from crossedge.losses.settings import scale_name
from crossedge.numerics.pairs.kernels import kernel_parts, spread_of_kernel
from crossedge.numerics.pairs.points import spread_of
from crossedge.numerics.pairs.sums import PairSums, pair_sums, sums_with_squares
from crossedge.numerics.smoothed import Recipe, Solved, pull_back, solve
from crossedge.runtime.types import Floats
from crossedge.weights import GraphWeights, KernelWeights, Weights
from crossedge.weights.dense import LEAST_IN_RANGE, MOST_IN_RANGE
from crossedge.weights.kernels import BandwidthKernel
from crossedge.weights.scales import median_distances

LEAST_BANDWIDTH = 1e-150  # of scaled distances: one over its square is finite


class Neighbourhood(Protocol):
    """W over `unit`, its sums, and the way back."""

    W: Floats
    sums: PairSums
    unit: float

    def to_distances(self, gradient: Floats) -> tuple[Floats, list[float]]:
        """Return the gradient in the distances and in each temperature or bandwidth.

        The gradients in W and in the distances are as if all of their entries were independent.
        """

    def to_spread(self, gradient: Floats, rows: slice) -> tuple[Floats, list[float]]:
        """Return, in place of the first, rows of the gradient in the distance of two points.

        It is divided by that distance, which is how it goes into the gradient in the points.
        """


def levels_of(weights: Weights, points: Points, given: Sequence[float]) -> list[float]:
    """Return the temperatures or bandwidths in the unit of the distances; [] if there are none."""
    if not scale_name(weights):
        return []
    if not isinstance(getattr(weights, scale_name(weights)), str):
        least = LEAST_BANDWIDTH if isinstance(weights, BandwidthKernel) else 0.0
        return [max(value * points.scale, least) for value in given]
    (median,) = median_distances(points.distances)
    return [median or 1.0] if isinstance(weights, BandwidthKernel) else [median]


@dataclass
class Graph:
    """A smoothed graph: W is a mean over temperatures. A temperature of 0 has no gradient."""

    weights: GraphWeights
    distances: Floats
    n_x: int
    levels: list[float]
    learns: bool  # whether the derivative in the temperatures is asked for
    unit: float = 1.0
    parts: list[tuple[Recipe, Solved]] = field(init=False)

    def __post_init__(self) -> None:
        D, self.parts, total = self.distances, [], np.zeros(0)
        for level in self.levels:
            if level > 0:
                recipe = self.weights.recipe(D, [level])
                W, solved = solve(D, recipe)
                self.parts.append((recipe, solved))
            else:  # the median of points of which most are equal
                cold: Any = replace(self.weights, temperature=0.0)  # type: ignore[type-var]
                W = cold.of_matrices(D)
            total = W if not len(total) else total + W
        self.W: Floats = total / len(self.levels) if len(self.levels) > 1 else total
        self.sums = pair_sums(self.W, self.n_x)

    def to_distances(self, gradient: Floats) -> tuple[Floats, list[float]]:
        gradient = gradient / len(self.levels) if len(self.levels) > 1 else gradient
        found = [pull_back(gradient, solved, recipe) for recipe, solved in self.parts]
        if not found:
            return np.zeros_like(gradient), [0.0] * len(self.levels)
        slopes = []
        if self.learns:  # W depends on d / t alone
            pairs = zip(found, self.levels, strict=True)
            slopes = [-float((one * self.distances).sum()) / level for one, level in pairs]
            # so far below the distances that their ratio leaves the range, W is constant
            slopes = [slope if math.isfinite(slope) else 0.0 for slope in slopes]
        return sum(found[1:], found[0]), slopes

    def to_spread(self, gradient: Floats, rows: slice) -> tuple[Floats, list[float]]:
        found, slopes = self.to_distances(gradient)
        return spread_of(found, self.distances, rows.start, rows.stop), slopes


@dataclass
class Kernel:
    """A kernel that compiled loops know."""

    weights: KernelWeights
    points: Points
    n_x: int
    levels: list[float]
    learns: bool  # whether the derivative in the bandwidth is asked for
    unit: float = 1.0

    def __post_init__(self) -> None:
        points, profile = self.points, self.weights.compiled_profile
        is_direct = isinstance(points, DirectPoints)
        given = points.columns if isinstance(points, DirectPoints) else points.distances
        found = kernel_parts(given, is_direct, self.n_x, profile, self.levels or [1.0])
        self.W, self.ratio, degree, own = found
        largest = np.abs(degree).max()
        if largest != 0 and not LEAST_IN_RANGE < largest < MOST_IN_RANGE:
            self.unit = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1021), 1023))
            for values in (self.W, self.ratio, degree, own):
                values /= self.unit
        self.sums = sums_with_squares(self.W, self.n_x, degree, own)

    def to_distances(self, gradient: Floats) -> tuple[Floats, list[float]]:
        return gradient * self.ratio * self.points.distances, self._slopes(gradient)

    def to_spread(self, gradient: Floats, rows: slice) -> tuple[Floats, list[float]]:
        found = spread_of_kernel(self.ratio, gradient, rows.start, rows.stop)
        return found, self._slopes(gradient)

    def _slopes(self, gradient: Floats) -> list[float]:
        """Return the derivative in the bandwidth h, since W depends on d / h alone."""
        if not self.learns:
            return []
        (level,) = self.levels
        return [-float((gradient * self.ratio * self.points.distances**2).sum()) / level]


@dataclass
class Taped:
    """Weights of any other kind, by the tape of torch."""

    weights: Weights
    distances: Floats
    n_x: int
    levels: list[float]
    unit: float = 1.0
    length: float = 1.0  # the unit of distances, for weights that are a power of these
    range: float = 1.0  # that of the weights of distances in this unit

    def __post_init__(self) -> None:
        weights, name, degree = self.weights, scale_name(self.weights), 0
        if isinstance(weights, KernelWeights) and weights.degree > 1:
            degree = weights.degree
            exponent = math.frexp(float(self.distances.max()))[1]
            self.length = math.ldexp(1.0, min(max(exponent, -1000), 1000))
        with torch.enable_grad():
            self.leaf = torch.from_numpy(self.distances / self.length).requires_grad_()
            self.scale = torch.tensor(self.levels, dtype=torch.float64, requires_grad=True)
            if name and self.levels:
                weights = replace(weights, **{name: self.scale})  # type: ignore[type-var]
            self.tensor: torch.Tensor = weights.of_matrices(self.leaf)
        largest = float(self.tensor.detach().abs().max())
        if largest != 0 and not LEAST_IN_RANGE < largest < MOST_IN_RANGE:
            self.range = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1021), 1023))
        self.W: Floats = (self.tensor.detach() / self.range).contiguous().numpy()
        exponent = math.frexp(self.range)[1] + degree * (math.frexp(self.length)[1] - 1)
        self.unit = math.ldexp(0.5, min(max(exponent, -1020), 1024))
        self.sums = pair_sums(self.W, self.n_x)

    def to_distances(self, gradient: Floats) -> tuple[Floats, list[float]]:
        back: Any = torch.autograd.grad(
            self.tensor,
            (self.leaf, self.scale),
            torch.from_numpy(gradient / self.range),
            allow_unused=True,
        )
        found, scale = (None if one is None else one.numpy() for one in back)
        found = np.zeros_like(gradient) if found is None else np.ascontiguousarray(found)
        found = found / self.length
        return found, [0.0] * len(self.levels) if scale is None else scale.tolist()

    def to_spread(self, gradient: Floats, rows: slice) -> tuple[Floats, list[float]]:
        found, slopes = self.to_distances(gradient)
        return spread_of(found, self.distances, rows.start, rows.stop), slopes


def neighbourhood(
    weights: Weights, points: Points, n_x: int, levels: list[float], *, learns: bool
) -> Neighbourhood:
    """Return W of these points; `learns` says that the temperature or bandwidth does."""
    if isinstance(weights, GraphWeights):
        return Graph(weights, points.distances, n_x, levels, learns)
    known = isinstance(weights, KernelWeights) and weights.compiled_profile
    if known and not (learns and len(levels) > 1):
        return Kernel(weights, points, n_x, levels, learns)  # type: ignore[arg-type]
    return Taped(weights, points.distances, n_x, levels)
