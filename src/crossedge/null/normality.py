"""How close the permutation distribution is to a normal law: theorem 4 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from crossedge.moments import Form, LabelMoments
from crossedge.runtime.arrays import is_tensor
from crossedge.weights import DenseWeights


@dataclass(frozen=True)
class Normality:
    """The result of `normality`: the terms of the bound, and the bound.

    Attributes
    ----------
    S2 : float
        The weight of pairs of edges that share a vertex.
    S3 : float
        The weight of stars of three edges.
    L4 : float
        The weight of paths over four vertices.
    sigma : float
        The standard deviation of the cross-edge count T over all labellings.
    bound : float
        (n k^3 + k S2 + S3 + L4) / sigma^3; infinite if sigma is 0.
    """

    S2: float
    S3: float
    L4: float
    sigma: float
    bound: float


def normality(weights_matrix: Any, n_x: int, n_y: int) -> Normality:
    """Return the terms of the paper's bound on how far the cross-edge count is from a normal law.

    Parameters
    ----------
    weights_matrix : array or tensor
        (n, n) pair weights W, such as `weights(distances)`.
    n_x, n_y : int
        The sizes of the samples, n_x + n_y = n.

    Returns
    -------
    Normality
        S2, S3, L4, sigma and the bound.

    Raises
    ------
    TypeError
        If `weights_matrix` is not a matrix of numbers, or a size is not an integer.
    ValueError
        If the matrix is not finite, non-negative and symmetric with a zero diagonal, or if the
        sizes do not add up to n.

    See Also
    --------
    Normal : The null whose accuracy the bound describes.

    Notes
    -----
    Theorem 4 bounds the Wasserstein distance between the standardised count and a normal variable,
    up to an unknown constant. The value by itself therefore says little. How it changes with
    temperature, graph and sample size is informative: it falls as the weights concentrate on few
    edges, where null="normal" errs least. The sums run over all indices, as in the theorem, with
    half the weights, so that k = m / n: k for k nearest neighbours and nearly 1 for a tree.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> distances = np.linalg.norm(points[:, None] - points, axis=2)
    >>> cold, hot = (ce.normality(ce.SpanningTree(t)(distances), 50, 50) for t in (0.01, 10.0))
    >>> cold.bound < hot.bound
    True
    """
    if is_tensor(weights_matrix):
        weights_matrix = weights_matrix.detach().cpu()
    try:
        W = np.asarray(weights_matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"weights_matrix is of type {type(weights_matrix).__name__}: "
            "give a matrix of numbers, as weights(distances)"
        ) from None
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(
            f"weights_matrix has shape {tuple(W.shape)}: give a square matrix, "
            "as weights(distances)"
        )
    if not np.isfinite(W).all() or (W < 0).any():
        raise ValueError("weights_matrix has NaN, infinite or negative entries: give pair weights")
    if np.diagonal(W).any() or not np.allclose(W, W.T, rtol=1e-5, atol=1e-8):
        raise ValueError(
            "weights_matrix is not symmetric with a zero diagonal: give weights(distances)"
        )
    for name, count in (("n_x", n_x), ("n_y", n_y)):
        if isinstance(count, bool) or not isinstance(count, Integral):
            raise TypeError(f"{name}={count!r} is not an integer: give the size of a sample")
    if n_x < 1 or n_y < 1 or n_x + n_y != len(W):
        raise ValueError(
            f"n_x={n_x} and n_y={n_y} do not make {len(W)} points: give sizes of at least 1 that do"
        )
    half = W / 2
    degree = half.sum(1)
    n, k = len(W), float(degree.sum()) / len(W)
    s2, s3 = float((degree**2).sum()), float((degree**3).sum())
    l4 = float(degree @ half @ degree)
    pairs = DenseWeights.in_range(W)
    sigma = pairs.unit * float(LabelMoments(pairs, n_x, n_y).std(Form(-0.5, 0.0)))
    size = n * k**3 + k * s2 + s3 + l4
    return Normality(s2, s3, l4, sigma, size / sigma**3 if sigma else float("inf"))
