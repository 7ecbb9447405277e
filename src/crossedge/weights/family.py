"""The base class of all weights, and the checks that the families share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from crossedge.data.distances import Distances, distance_matrix
from crossedge.numerics.checks import check_values
from crossedge.runtime.arrays import is_tensor, namespace
from crossedge.runtime.headroom import check_room
from crossedge.runtime.threads import has_compiled_loops
from crossedge.runtime.types import Array
from crossedge.weights.dense import DenseWeights
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.low_rank import LowRankWeights
from crossedge.weights.streamed import StreamedWeights

PairWeights = EdgeList | DenseWeights | LowRankWeights | StreamedWeights


class Weights(ABC):
    """Base class of weights: functions from distances to pair weights W.

    W[i, j] says how strongly the pooled points i and j are neighbours. The matrix is symmetric with
    a zero diagonal, and depends neither on labels nor on the order of the points. CONTRIBUTING.md
    shows how to write a new family.

    See Also
    --------
    GraphWeights : Base class of graphs with a temperature.
    KernelWeights : Base class of kernels.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of these weights in a summary."""

    @property
    @abstractmethod
    def default_statistic(self) -> str:
        """The statistic of a test that names none: "cross" for graphs, "mmd" for kernels."""

    @property
    @abstractmethod
    def is_smooth(self) -> bool:
        """Whether W is a differentiable function of the distances."""

    @property
    def peak_matrices(self) -> float:
        """The number of (n, n) matrices of doubles that a test holds at its peak of memory."""
        return 6.0

    @abstractmethod
    def check_size(self, n: int) -> None:
        """Raise ValueError if n points are too few for these weights."""

    @abstractmethod
    def of_matrices(self, distances: Array) -> Array:
        """Return the (..., n, n) pair weights of (..., n, n) distances in float64, unchecked."""

    def pairs(self, distances: Distances) -> PairWeights:
        """Return W of the pooled sample, as a list of edges or as a matrix."""
        self.check_size(distances.n)
        check_room(distances.n, self.peak_matrices)
        return DenseWeights.in_range(self.of_matrices(distance_matrix(distances)))

    def __call__(self, distances: Array) -> Array:
        """Return the pair weights W of a matrix of distances, or of a batch of matrices.

        Parameters
        ----------
        distances : array or tensor
            (..., n, n) distances, floating point numbers.

        Returns
        -------
        array or tensor
            (..., n, n) pair weights of the same type as the distances. Tensors of smooth weights
            are differentiable.

        Raises
        ------
        TypeError
            If `distances` is not an array or tensor of floating point numbers.
        ValueError
            If the matrices are not square, have invalid entries or too few points.
        MemoryError
            If the computation needs more memory than is free.
        """
        self.check_distances(distances)
        if 0 in distances.shape:
            return distances * 0.0
        if has_compiled_loops(distances):
            check_room(distances.shape[-1], self.peak_matrices)
        xp = namespace(distances)
        if distances.dtype == xp.float64:
            return self.of_matrices(distances)
        if not is_tensor(distances):
            return self.of_matrices(distances.astype(np.float64)).astype(distances.dtype)
        # MPS is the one device of torch that has no float64
        device = "cpu" if distances.device.type == "mps" else distances.device
        return self.of_matrices(distances.to(device, xp.float64)).to(distances)

    def check_distances(self, distances: Array) -> None:
        """Raise TypeError or ValueError unless these are square matrices of valid distances."""
        if not is_tensor(distances) and not isinstance(distances, np.ndarray):
            raise TypeError(
                f"distances is of type {type(distances).__name__}: give an array or a tensor"
            )
        if distances.ndim < 2 or distances.shape[-1] != distances.shape[-2]:
            raise ValueError(
                f"distances has shape {tuple(distances.shape)}: give square matrices, (..., n, n)"
            )
        n = distances.shape[-1]
        if n < 2:
            raise ValueError(f"distances has {n} points: give at least 2")
        if not namespace(distances).isdtype(distances.dtype, "real floating"):
            raise TypeError(f"distances is {distances.dtype}: give floating point numbers")
        self.check_values(distances)
        self.check_size(n)

    def check_values(self, distances: Array) -> None:
        """Raise ValueError unless all distances are finite and non-negative.

        Families whose loops notice invalid entries by themselves may leave the check to these.
        """
        check_values(distances)


WEIGHTS_HINT = "give ce.SpanningTree(), ce.NearestNeighbours(k) or a kernel, as ce.GaussianKernel()"


def check_weights(weights: object, known: str = WEIGHTS_HINT) -> Weights:
    """Return the weights, or raise TypeError unless they are an instance of a family."""
    if weights is None:
        raise TypeError(f"weights is missing: {known}")
    if isinstance(weights, type):
        raise TypeError(f"weights is a class: give an instance, as {weights.__name__}()")
    if not isinstance(weights, Weights):
        raise TypeError(f"weights is of type {type(weights).__name__}: {known}")
    return weights
