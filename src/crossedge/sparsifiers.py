"""Spectral sparsifiers of the network behind the smoothed spanning tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.calls import run_usual
from crossedge.runtime.randomness import Rng, random_key
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights import SpanningTree

MOST_TEMPERATURES = 700.0  # e^-700 is still a double
EXACT_VERTICES = 2000  # of a list of edges: larger graphs are sampled by estimated marginals
ACCURACY = 0.1  # of these estimates: the draws stay right in expectation


@dataclass(frozen=True, eq=False)
class Sparsifier:
    """A network with few edges, whose Laplacian is close to that of another.

    Attributes
    ----------
    n : int
        The number of vertices.
    i, j : (edges,) arrays
        The ends of the edges, i < j, each pair once.
    conductance : (edges,) array
        Their conductances.
    """

    n: int
    i: Ints
    j: Ints
    conductance: Floats

    def matrix(self) -> Any:
        """Return the Laplacian, as a scipy sparse array in rows."""
        from scipy.sparse import coo_array

        own = np.arange(self.n)
        total = np.bincount(self.i, self.conductance, self.n)
        total += np.bincount(self.j, self.conductance, self.n)
        rows = np.concatenate([self.i, self.j, own])
        columns = np.concatenate([self.j, self.i, own])
        values = np.concatenate([-self.conductance, -self.conductance, total])
        return coo_array((values, (rows, columns)), (self.n, self.n)).tocsr()


def sparsify(
    weights: SpanningTree,
    distances: Array | tuple[Any, Any, Any],
    epsilon: float = 0.5,
    rng: Rng = None,
) -> Sparsifier:
    """Draw a spectral sparsifier of the network with conductances exp(-distance / temperature).

    An edge is drawn with probability proportional to its probability in the smoothed spanning tree
    [1]_. This is the view of the paper [2]_ on that tree: its cross-edge count is proportional to
    the number of edges between the samples that a sparsifier is expected to keep.

    Parameters
    ----------
    weights : SpanningTree
        The smoothed tree, with one temperature above 0.
    distances : array, tensor, or triple of arrays
        (n, n) distances, or the edges (i, j, length) of a connected graph, each pair once.
    epsilon : float, optional
        Between 0 and 1. All x' L x are kept within a factor of 1 ± epsilon, with a probability of
        99 %. The number of draws is about 3 n log(200 n) / epsilon^2, so that only large graphs
        with many edges become smaller.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.

    Returns
    -------
    Sparsifier
        `n`, `i`, `j`, `conductance`, and `matrix()`, the Laplacian.

    Raises
    ------
    TypeError
        If the weights are not a spanning tree, or the distances are not floating point numbers.
    ValueError
        If there is not one temperature above 0, epsilon is not between 0 and 1, the distances are
        invalid, the edges do not connect all points, or conductances are too small for a double.

    See Also
    --------
    SpanningTree : Calling it returns the probabilities themselves.

    References
    ----------
    .. [1] D. Spielman and N. Srivastava, "Graph sparsification by effective resistances", SIAM
       Journal on Computing, 2011.
    .. [2] J. Djolonga and A. Krause, "Learning implicit generative models using differentiable
       graph tests", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> points = np.random.default_rng(0).normal(size=(400, 2))
    >>> d = np.linalg.norm(points[:, None] - points, axis=-1)
    >>> few = ce.sparsify(ce.SpanningTree(temperature=2.0), d, epsilon=0.9, rng=0)
    >>> len(few.i) < 400 * 399 / 2 / 4
    True
    >>> x, K = points[:, 0], np.exp(-d / 2.0)
    >>> before = x @ (np.diag(K.sum(0)) - K) @ x
    >>> bool(abs(x @ few.matrix() @ x / before - 1) < 0.9)
    True
    """
    if not isinstance(weights, SpanningTree):
        raise TypeError(f"weights is of type {type(weights).__name__}: give a SpanningTree")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon={epsilon} is not between 0 and 1")
    source = np.random.default_rng(int(random_key(rng)))
    weights = replace(weights, neighbours=None, accuracy=None)  # all pairs that are given
    if isinstance(distances, tuple):
        i, j, length = _checked_edges(*distances)
        return run_usual(lambda: _of_edges(weights, i, j, length, epsilon, source))
    weights.check_distances(distances)
    if distances.ndim != 2:
        raise ValueError(f"distances has shape {tuple(distances.shape)}: give one matrix, (n, n)")
    given = distances.detach().cpu().numpy() if is_tensor(distances) else distances
    matrix = np.ascontiguousarray(given, dtype=np.float64)
    temperature = _one_temperature(weights, matrix)
    mu, (i, j) = np.asarray(weights(matrix)), np.triu_indices(len(matrix), 1)
    return _drawn(
        len(matrix), i, j, (matrix / 2 + matrix.T / 2)[i, j], mu[i, j], temperature, epsilon, source
    )


def _of_edges(
    weights: SpanningTree,
    i: Ints,
    j: Ints,
    length: Floats,
    epsilon: float,
    source: np.random.Generator,
) -> Sparsifier:
    from crossedge.numerics.trees.sparse_marginals import sparse_tree_marginals

    n = int(j.max()) + 1
    if isinstance(weights.temperature, str):
        raise ValueError("temperature='median' needs all distances: give a number")
    temperature = _one_temperature(weights, np.zeros((2, 2)))
    accuracy = None if n <= EXACT_VERTICES else ACCURACY
    seed = int(source.integers(2**31))
    mu = sparse_tree_marginals(n, i, j, length, temperature, accuracy, seed).mu
    return _drawn(n, i, j, length, mu, temperature, epsilon, source)


def _drawn(
    n: int,
    i: Ints,
    j: Ints,
    length: Floats,
    mu: Floats,
    temperature: float,
    epsilon: float,
    source: np.random.Generator,
) -> Sparsifier:
    from crossedge.numerics.trees.sparsifier import draw_edges, draws_for

    if not len(i):
        return Sparsifier(n, i, j, length)
    edges, factor = draw_edges(mu, draws_for(n, epsilon), source)
    exponent = length[edges] / temperature
    if exponent.max() > MOST_TEMPERATURES:
        raise ValueError(
            f"the longest edge is {exponent.max():.3g} temperatures long, and its conductance is "
            f"too small for a double: give a temperature above {length.max() / 700:.3g}"
        )
    return Sparsifier(n, i[edges], j[edges], np.exp(-exponent) * factor)


def _one_temperature(weights: SpanningTree, matrix: Floats) -> float:
    found = [temperature for (temperature,) in weights.temperatures(matrix)]
    if len(found) != 1 or not 0 < found[0] < inf:
        raise ValueError(f"temperature={weights.temperature}: give one number above 0")
    return found[0]


def _checked_edges(i: Any, j: Any, length: Any) -> tuple[Ints, Ints, Floats]:
    """Return edges with i < j in their order; raise unless they are valid and connect all."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    i, j, length = np.asarray(i), np.asarray(j), np.asarray(length, np.float64)
    if not i.ndim == j.ndim == length.ndim == 1 or not len(i) == len(j) == len(length) > 0:
        raise ValueError("i, j and length must be rows of the same length, with one edge at least")
    if i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
        raise TypeError(f"i and j are of type {i.dtype} and {j.dtype}: give integers")
    if not (np.isfinite(length).all() and (length >= 0).all()):
        raise ValueError("length has entries that are negative or not finite")
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    n = int(high.max()) + 1
    order = np.argsort(low * n + high, kind="stable")
    low, high, length = low[order], high[order], length[order]
    pairs = low * n + high
    if low.min() < 0 or (low == high).any() or (np.diff(pairs) == 0).any():
        raise ValueError("edges must join two different points, each pair once")
    graph: Any = coo_array((np.ones(len(low)), (low, high)), (n, n))
    parts = connected_components(graph, directed=False)[0]
    if parts > 1:
        raise ValueError(f"the edges leave {parts} parts: add some until they connect all points")
    return low, high, length
