"""Spectral sparsifiers: few edges with new conductances, and nearly the same quadratic form.

Edges are drawn with replacement, with probability p_e = mu_e / (n - 1), and each of N draws adds
w_e / (N p_e) to the conductance of its edge. In the coordinates in which L is the identity, each
draw adds a matrix of rank one, whose norm is w_e R_e / (N p_e) = (n - 1) / N, and their sum is the
identity in expectation. By the Chernoff bound for matrices (Tropp, 2012) all eigenvalues are within
epsilon of 1, except with probability 2 n exp(-epsilon^2 N / (3 (n - 1))).
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from crossedge.runtime.types import Floats, Ints

FAILURE = 0.01  # the largest probability that some quadratic form is off by more than epsilon


def draws_for(n: int, epsilon: float) -> int:
    """Return the number of draws after which all quadratic forms are right to epsilon."""
    return ceil(3 * max(n - 1, 1) * log(2 * n / FAILURE) / epsilon**2)


def draw_edges(mu: Floats, draws: int, source: np.random.Generator) -> tuple[Ints, Floats]:
    """Return the edges that were drawn, and the factors by which their conductances grow."""
    share = mu / mu.sum()
    count = source.multinomial(draws, share / share.sum())
    edges = np.flatnonzero(count)
    return edges, count[edges] / (draws * share[edges])
