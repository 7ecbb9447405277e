"""How close the permutation null is to a normal law: the paper's theorem 4."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch

from crossedge.null.moments import label_moments
from crossedge.statistics.label_moments import Form
from crossedge.weights import DenseWeights


@dataclass(frozen=True)
class Normality:
    """What `normality` returns."""

    S2: float  # edges that share a vertex
    S3: float  # stars of three edges
    L4: float  # paths over four vertices
    sigma: float  # the standard deviation of T over all labellings
    bound: float  # (n k^3 + k S2 + S3 + L4) / sigma^3


def normality(weights_matrix: Any, n_x: int, n_y: int) -> Normality:
    """The terms of the paper's bound on how far the cross count is from a normal law.

    By Wasserstein's distance, up to a constant that is not known. So the number itself says little,
    but how it changes with temperature, graph and sample size does: it falls as weights gather on
    few edges, where null="normal" errs least.

    Parameters
    ----------
    weights_matrix : tensor or array
        (n, n) pair weights, as of `weights(distances)`.
    n_x, n_y : int
        The sizes of the samples; n of them together.

    Returns
    -------
    Normality
        With S2, S3, L4, sigma and bound. Sums run over all indices, as the theorem writes them, of
        half the weights, so that k = m / n: k for k nearest neighbours, nearly 1 for a tree. The
        theorem is one of order: the bound has no constant, and is infinite where sigma is 0.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> points = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    >>> distances = torch.cdist(points, points)
    >>> cold, hot = (ce.normality(ce.SpanningTree(t)(distances), 50, 50) for t in (0.01, 10.0))
    >>> cold.bound < hot.bound
    True
    """
    if not isinstance(weights_matrix, torch.Tensor):
        try:
            weights_matrix = np.asarray(weights_matrix, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"weights_matrix is of type {type(weights_matrix).__name__}: "
                "give a matrix of numbers, as weights(distances)"
            ) from None
    W = torch.as_tensor(weights_matrix).detach().to("cpu", torch.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(
            f"weights_matrix has shape {tuple(W.shape)}: give a square matrix, "
            "as weights(distances)"
        )
    if not torch.isfinite(W).all() or (W < 0).any():
        raise ValueError("weights_matrix has NaN, infinite or negative entries: give pair weights")
    if W.diagonal().any() or not torch.allclose(W, W.T, rtol=1e-5, atol=1e-8):
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
    sigma = float(label_moments(DenseWeights(W), n_x, n_y).law(Form(-0.5, 0.0)).std)
    size = n * k**3 + k * s2 + s3 + l4
    return Normality(s2, s3, l4, sigma, size / sigma**3 if sigma else float("inf"))
