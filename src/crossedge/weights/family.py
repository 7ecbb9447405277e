"""What every family of weights shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch

from crossedge.distances import Distances, check_values, distance_matrix
from crossedge.headroom import check_room
from crossedge.weights.dense import DenseWeights
from crossedge.weights.edge_list import EdgeList

PairWeights = EdgeList | DenseWeights
Scale = float | Sequence[float] | Literal["median"]


class Weights(ABC):
    """Distances -> pair weights W, symmetric and blind to labels."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What a person calls these weights."""

    @property
    @abstractmethod
    def default_statistic(self) -> str:
        """The statistic that belongs to them."""

    @property
    @abstractmethod
    def is_smooth(self) -> bool:
        """Whether W has a gradient in the distances."""

    @property
    def peak_matrices(self) -> float:
        """How many (n, n) matrices of doubles a test with these weights holds at its peak."""
        return 6.0

    @abstractmethod
    def check_size(self, n: int) -> None:
        """Whether n points are enough."""

    @abstractmethod
    def of_matrices(self, distances: torch.Tensor) -> torch.Tensor:
        """(..., n, n) distances -> (..., n, n) pair weights, in float64."""

    def pairs(self, distances: Distances) -> PairWeights:
        """W as the rest of the pipeline takes it."""
        self.check_size(distances.n)
        check_room(distances.n, self.peak_matrices)
        matrix = torch.from_numpy(distance_matrix(distances))
        return DenseWeights.in_range(self.of_matrices(matrix).detach())

    def __call__(self, distances: torch.Tensor) -> torch.Tensor:
        """(..., n, n) distances -> (..., n, n) pair weights W, with a zero diagonal."""
        self.check_distances(distances)
        if not distances.numel():
            return distances * 0.0
        if distances.is_cpu:
            check_room(distances.shape[-1], self.peak_matrices)
        if distances.dtype == torch.float64:
            return self.of_matrices(distances)
        # the one device of torch that has no float64
        device = "cpu" if distances.device.type == "mps" else distances.device
        return self.of_matrices(distances.to(device, torch.float64)).to(distances)

    def check_distances(self, distances: torch.Tensor) -> None:
        if not isinstance(distances, torch.Tensor):
            raise TypeError(
                f"distances is of type {type(distances).__name__}: give a tensor, "
                "as with torch.as_tensor"
            )
        if distances.ndim < 2 or distances.shape[-1] != distances.shape[-2]:
            raise ValueError(
                f"distances has shape {tuple(distances.shape)}: give square matrices, (..., n, n)"
            )
        n = distances.shape[-1]
        if n < 2:
            raise ValueError(f"distances has {n} points: give at least 2")
        if not distances.is_floating_point():
            raise TypeError(f"distances is {distances.dtype}: give floating point numbers")
        self.check_values(distances)
        self.check_size(n)

    def check_values(self, distances: torch.Tensor) -> None:
        """Whether they can be distances, unless whoever reads them first sees to that."""
        check_values(distances)


def check_scale(scale: object, name: str, *, zero: bool) -> Any:
    """One number, several as a tuple, or "median"; above 0, or at least 0."""
    if isinstance(scale, str):
        if scale != "median":
            raise ValueError(f"{name}={scale!r} is unknown: give a number or 'median'")
        return scale
    _check_no_gradient(scale, name)
    if isinstance(scale, np.ndarray | np.generic | torch.Tensor):
        scale = scale.tolist()
    values: tuple[Any, ...] = (scale,)
    if isinstance(scale, Sequence):
        for value in scale:
            _check_no_gradient(value, name)
        scale = values = tuple(
            value.item() if isinstance(value, torch.Tensor) and not value.ndim else value
            for value in scale
        )
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(
                f"{name}={value!r} is not a real number: give one, a list of them, or just 'median'"
            )
        if zero and not float(value) >= 0:
            raise ValueError(f"{name}={value} is not at least 0: give 0 or more")
        if not zero and not float(value) > 0:
            raise ValueError(f"{name}={value} is not above 0: give a positive number")
    if not values:
        raise ValueError(f"{name} is an empty sequence: give one at least")
    return scale


def _check_no_gradient(scale: object, name: str) -> None:
    if isinstance(scale, torch.Tensor) and scale.requires_grad:
        raise ValueError(
            f"{name} is a tensor that requires a gradient, and weights have none in it: "
            f"give {name}.detach()"
        )


def show_scale(scale: Scale, one: str, several: str) -> str:
    """In words."""
    if isinstance(scale, tuple):
        return f"{several} " + ", ".join(f"{value:g}" for value in scale)
    return f"{one} {scale}" if isinstance(scale, str) else f"{one} {scale:g}"


def median_distances(distances: torch.Tensor) -> list[float]:
    """For each of (..., n, n) matrices, as if they stood in a row."""
    return [_median_distance(matrix) for matrix in flat(distances.detach())]


def flat(matrices: Any) -> Any:
    """(..., n, n) -> (batch, n, n), a tensor or an array."""
    return matrices[None] if matrices.ndim == 2 else matrices.reshape(-1, *matrices.shape[-2:])


def _median_distance(distances: torch.Tensor) -> float:
    """Of an (n, n) matrix off the diagonal; where that is 0, of those that are not.

    Derivatives take it as given.
    """
    n = len(distances)
    above = torch.ones(n, n, dtype=torch.bool, device=distances.device).triu_(1)
    between = distances[above] / 2 + distances.mT[above] / 2
    median = _median(between)
    return median if median > 0 else _median(between[between > 0])


def _median(values: torch.Tensor) -> float:
    """0 of none. The two halves are taken first: their sum might overflow."""
    count = len(values)
    if not count:
        return 0.0
    low, high = (float(values.kthvalue(k).values) for k in ((count + 1) // 2, count // 2 + 1))
    return low / 2 + high / 2


ANY = "give ce.SpanningTree(), ce.NearestNeighbours(k) or a kernel, as ce.GaussianKernel()"


def check_weights(weights: object, known: str = ANY) -> Weights:
    """An instance of a family, or one clear line."""
    if weights is None:
        raise TypeError(f"weights is missing: {known}")
    if isinstance(weights, type):
        raise TypeError(f"weights is a class: give an instance, as {weights.__name__}()")
    if not isinstance(weights, Weights):
        raise TypeError(f"weights is of type {type(weights).__name__}: {known}")
    return weights
