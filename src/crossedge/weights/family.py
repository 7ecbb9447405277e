"""What every family of graph weights shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crossedge.distances import Distances, PointDistances, matrix_distances
from crossedge.weights.edge_list import EdgeList

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class GraphWeights(ABC):
    """Distances -> pair weights W, symmetric and blind to labels."""

    temperature: float

    def __post_init__(self) -> None:
        temperature = self.temperature
        if isinstance(temperature, bool) or not isinstance(temperature, Real):
            raise TypeError(f"temperature={temperature!r} is not a real number: give 0")
        if not temperature >= 0:
            raise ValueError(f"temperature={temperature} is not at least 0: give 0")
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
        matrices = distances.detach().to("cpu", torch.float64).reshape(-1, n, n).numpy()
        if not np.isfinite(matrices).all() or (matrices < 0).any():
            raise ValueError("distances has NaN, infinite or negative entries: give none")
        weights = torch.zeros_like(distances, requires_grad=False).reshape(-1, n, n)
        for weight, matrix in zip(weights, matrices, strict=True):
            weight.copy_(self.edges(matrix_distances(matrix)).dense())
        return weights.reshape(distances.shape)


class Distinct(NamedTuple):
    """Equal points as one."""

    distances: Distances  # between the distinct points
    atom: Ints  # (n,): which of them each point is
    copies: Ints  # (atoms,)


def distinct(distances: Distances) -> Distinct:
    """Merge points with equal coordinates, or with equal rows in a matrix of distances."""
    n = distances.n
    if isinstance(distances, PointDistances):
        points, atom, copies = np.unique(
            distances.points, axis=0, return_inverse=True, return_counts=True
        )
        if len(points) < n:
            return Distinct(PointDistances(points, distances.p), atom.reshape(n), copies)
    elif distances.matrix is not None:
        first = _first_equal_row(distances.matrix)
        kept, atom, copies = np.unique(first, return_inverse=True, return_counts=True)
        if len(kept) < n:
            return Distinct(matrix_distances(distances.matrix[np.ix_(kept, kept)]), atom, copies)
    return Distinct(distances, np.arange(n), np.ones(n, np.int64))


def _first_equal_row(matrix: Floats) -> Ints:
    """For each point the first one at distance 0 whose row is the same, if only itself."""
    first = np.arange(len(matrix))
    for i, row in enumerate(matrix):
        candidate = int(np.argmax(row == 0))
        if candidate < i and np.array_equal(matrix[candidate], row):
            first[i] = candidate
    return first
