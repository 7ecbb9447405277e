"""What every family of graph weights shares."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import torch

from crossedge.distances import Distances, matrix_distances
from crossedge.weights.edge_list import EdgeList

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class GraphWeights(ABC):
    """Distances -> pair weights W, symmetric and blind to labels."""

    temperature: float

    def __post_init__(self) -> None:
        temperature = self.temperature
        if isinstance(temperature, bool) or not isinstance(temperature, int | float | np.number):
            raise TypeError(f"temperature={temperature!r} is not a number: give 0")
        if not temperature >= 0:
            raise ValueError(f"temperature={temperature} is negative: give 0")
        if temperature > 0:
            raise NotImplementedError(
                f"temperature={temperature}: this version has the classical graphs only; give 0"
            )

    @property
    @abstractmethod
    def name(self) -> str:
        """What a person calls this neighbourhood."""

    @abstractmethod
    def edges(self, distances: Distances) -> EdgeList:
        """W as a list of edges, without ever forming an n x n matrix."""

    def __call__(self, distances: torch.Tensor) -> torch.Tensor:
        """(..., n, n) distances -> (..., n, n) pair weights W, with a zero diagonal."""
        if distances.ndim < 2 or distances.shape[-1] != distances.shape[-2]:
            raise ValueError(
                f"distances has shape {tuple(distances.shape)}: give square matrices, (..., n, n)"
            )
        n = distances.shape[-1]
        if n < 2:
            raise ValueError(f"distances has {n} points: give at least 2")
        if not distances.is_floating_point():
            raise TypeError(f"distances is {distances.dtype}: give floating point numbers")
        matrices = distances.detach().to("cpu", torch.float64).reshape(-1, n, n).numpy()
        if not np.isfinite(matrices).all() or (matrices < 0).any():
            raise ValueError("distances has NaN, infinite or negative entries: give none")
        weights = torch.zeros_like(distances, requires_grad=False).reshape(-1, n, n)
        for weight, matrix in zip(weights, matrices, strict=True):
            weight.copy_(self.edges(matrix_distances(matrix)).dense())
        return weights.reshape(distances.shape)


def atoms_of(points: Floats) -> tuple[Floats, Ints, Ints]:
    """The distinct points, which of them each point is, and how many copies each has."""
    distinct, atom, sizes = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    if len(distinct) == len(points):  # keep the order of the samples
        return points, np.arange(len(points)), sizes
    return distinct, atom.reshape(-1), sizes
