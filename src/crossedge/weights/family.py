"""What every family of graph weights shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch

from crossedge.compiled import has_compiled_loops
from crossedge.distances import Distances, distance_matrix, matrix_distances
from crossedge.numerics.finite import finite_and_not_negative
from crossedge.weights.dense import DenseWeights
from crossedge.weights.edge_list import EdgeList, Ints

Temperature = float | Sequence[float] | Literal["median"]


class GraphWeights(ABC):
    """Distances -> pair weights W, symmetric and blind to labels.

    At temperature 0 the classical graph; above it the marginals of the paper's Gibbs measure,
    eq. (2), as differentiable functions of the distances.
    """

    temperature: Temperature

    def __post_init__(self) -> None:
        temperature = self.temperature
        if isinstance(temperature, str):
            if temperature != "median":
                raise ValueError(
                    f"temperature={temperature!r} is unknown: give a number or 'median'"
                )
            return
        if isinstance(temperature, np.ndarray | np.generic | torch.Tensor):
            temperature = temperature.tolist()
            object.__setattr__(self, "temperature", temperature)
        values: tuple[Any, ...] = (temperature,)
        if isinstance(temperature, Sequence):
            values = tuple(temperature)
            object.__setattr__(self, "temperature", values)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(
                    f"temperature={value!r} is not a real number: give one, several, or 'median'"
                )
            if not float(value) >= 0:
                raise ValueError(f"temperature={value} is not at least 0: give 0 or more")
        if not values:
            raise ValueError("temperature is an empty sequence: give one at least")

    @property
    @abstractmethod
    def name(self) -> str:
        """What a person calls this neighbourhood."""

    @property
    def warmth(self) -> str:
        """The temperature, in words."""
        if isinstance(self.temperature, tuple):
            return "temperatures " + ", ".join(f"{value:g}" for value in self.temperature)
        shown = self.temperature if isinstance(self.temperature, str) else f"{self.temperature:g}"
        return f"temperature {shown}"

    @abstractmethod
    def classical_edges(self, distances: Distances) -> EdgeList:
        """W at temperature 0 as a list of edges, without ever forming an n x n matrix."""

    @abstractmethod
    def smoothed(self, distances: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
        """W at temperatures above 0, one for each of (batch, n, n) distances, in float64."""

    @abstractmethod
    def draw(self, distances: torch.Tensor, temperature: float, rng: np.random.Generator) -> Ints:
        """(m, 2): the edges of a random neighbourhood, for (n, n) distances in float64."""

    @abstractmethod
    def check_size(self, n: int) -> None:
        """Whether n points are enough."""

    def temperatures(self, distances: torch.Tensor) -> tuple[float, ...]:
        """In numbers; the median is that of the (n, n) distances off the diagonal."""
        if self.temperature == "median":
            n = len(distances)
            i, j = torch.triu_indices(n, n, 1, device=distances.device)
            fixed = distances.detach()
            between = (fixed[i, j] / 2 + fixed[j, i] / 2).sort().values
            middle = between[(len(between) - 1) // 2] / 2 + between[len(between) // 2] / 2
            return (float(middle),)
        if isinstance(self.temperature, tuple):
            return tuple(float(value) for value in self.temperature)
        return (float(self.temperature),)  # type: ignore[arg-type]

    def pairs(self, distances: Distances) -> EdgeList | DenseWeights:
        """W as a list of edges at temperature 0, else as a matrix."""
        self.check_size(distances.n)
        if self.temperature == 0:
            return self.classical_edges(distances)
        matrix = torch.from_numpy(distance_matrix(distances))
        return DenseWeights(self._of_matrices(matrix[None])[0].detach())

    def __call__(self, distances: torch.Tensor) -> torch.Tensor:
        """(..., n, n) distances -> (..., n, n) pair weights W, with a zero diagonal."""
        self.check_distances(distances)
        if not distances.numel():
            return distances * 0.0
        n = distances.shape[-1]
        # the one device of torch that has no float64
        device = "cpu" if distances.device.type == "mps" else distances.device
        matrices = distances.to(device, torch.float64).reshape(-1, n, n)
        return self._of_matrices(matrices).reshape(distances.shape).to(distances)

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
        if distances.numel() and not finite_and_not_negative(distances.detach()):
            raise ValueError("distances has NaN, infinite or negative entries: give none")
        self.check_size(n)

    def _of_matrices(self, distances: torch.Tensor) -> torch.Tensor:
        """(batch, n, n) -> (batch, n, n), in float64."""
        levels = zip(*(self.temperatures(matrix) for matrix in distances), strict=True)
        parts = [self._at(temperatures, distances) for temperatures in levels]
        return parts[0] if len(parts) == 1 else torch.stack(parts).mean(0)

    def _at(self, temperatures: Sequence[float], distances: torch.Tensor) -> torch.Tensor:
        if min(temperatures) > 0:
            return self.smoothed(distances, temperatures)
        if max(temperatures) == 0:
            return self._classical(distances)
        # medians, some of them 0
        each = zip(temperatures, distances, strict=True)
        return torch.cat([self._at([temperature], matrix[None]) for temperature, matrix in each])

    def _classical(self, distances: torch.Tensor) -> torch.Tensor:
        if not has_compiled_loops(distances):  # the twins of smoothed weights include their limit
            return self.smoothed(distances.detach(), [0.0] * len(distances))
        matrices = distances.detach().numpy()
        return torch.stack(
            [self.classical_edges(matrix_distances(matrix)).dense() for matrix in matrices]
        )


def check_weights(weights: object) -> GraphWeights:
    """An instance of a family, or one clear line."""
    if weights is None:
        raise TypeError("weights is missing: give ce.SpanningTree() or ce.NearestNeighbours(k)")
    if isinstance(weights, type):
        raise TypeError(f"weights is a class: give an instance, as {weights.__name__}()")
    if not isinstance(weights, GraphWeights):
        raise TypeError(
            f"weights is of type {type(weights).__name__}: "
            "give ce.SpanningTree() or ce.NearestNeighbours(k)"
        )
    return weights
