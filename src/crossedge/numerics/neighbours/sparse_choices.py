"""Smoothed nearest neighbours among a few candidates of each point, and their tangent.

Point i chooses k of its candidates, a set S with probability proportional to exp(-sum of d_ij over
S / temperature). With odds e^(theta_j), theta_j = -d_ij / temperature, the probability that j is
chosen is p_j times the probability that the others give k - 1 choices, over the probability of k
choices, where every candidate is chosen by itself with probability p_j. A common tilt of the odds
changes nothing. It is set such that about k choices are expected, so no probability is tiny.

The Jacobian in theta is a covariance, hence symmetric: a gradient is pulled back by the tangent of
the same recursion. Candidates are a ragged table, whose row i has entries from start[i] on.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from crossedge.runtime.compiled import compiled
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

BLOCK_ENTRIES = 1 << 18  # entries of the table in a block of rows, the unit of work of a thread
TILT_STEPS = 60  # at most, of the search for the tilt; Newton's steps need about five


def chosen(start: Ints, length: Floats, k: int, temperature: float) -> Floats:
    """Return the probability of each entry of the table to be chosen; every row has k or more."""
    out = np.empty_like(length)

    def of_rows(rows: tuple[int, int]) -> None:
        _choose(start, length, k, temperature, *rows, out)

    in_threads(of_rows, _blocks(start))
    return out


def chosen_tangent(
    start: Ints, length: Floats, probability: Floats, k: int, temperature: float, along: Floats
) -> Floats:
    """Return the derivative of the probabilities along a change of all theta."""
    out = np.empty_like(length)

    def of_rows(rows: tuple[int, int]) -> None:
        _choose_tangent(start, length, probability, k, temperature, along, *rows, out)

    in_threads(of_rows, _blocks(start))
    return out


def _blocks(start: Ints) -> list[tuple[int, int]]:
    """Return the first and last row of each block."""
    count = max(int(start[-1]) // BLOCK_ENTRIES, 1)
    border = np.searchsorted(start, np.linspace(0, start[-1], count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], border, [len(start) - 1]])).tolist()
    return list(pairwise(edges))


@compiled
def _choose(
    start: Ints, length: Floats, k: int, temperature: float, first: int, last: int, out: Floats
) -> None:
    for row in range(first, last):
        d, p = length[start[row] : start[row + 1]], out[start[row] : start[row + 1]]
        if k == 1:
            _softmax(d, temperature, p)
        elif len(d) == k:
            p[:] = 1.0
        else:
            _tilted(d, k, temperature, p)
            before, after = _counts(p, k)
            whole = after[0, k]
            for j in range(len(d)):
                others = 0.0
                for c in range(k):
                    others += before[j, c] * after[j + 1, k - 1 - c]
                p[j] *= others / whole


@compiled
def _softmax(d: Floats, temperature: float, out: Floats) -> None:
    nearest, total = d.min(), 0.0
    for j in range(len(d)):
        out[j] = np.exp((nearest - d[j]) / temperature)
        total += out[j]
    for j in range(len(d)):
        out[j] /= total


@compiled
def _tilted(d: Floats, k: int, temperature: float, out: Floats) -> None:
    """Write independent probabilities, by odds e^(tilt - d / temperature), that add up to k +- 1/2.

    The tilt is found by Newton's method, kept between bounds.
    """
    order = np.sort(d)
    # at the one bound less than 1/2 is expected of each of k candidates, at the other more
    low, high = order[0] - temperature * 40.0, order[-1] + temperature * 40.0
    reach = (order[k - 1] + order[k]) / 2  # the tilt, as a length
    for _ in range(TILT_STEPS):
        total, slope = 0.0, 0.0
        for j in range(len(d)):
            odds = np.exp(-np.abs(d[j] - reach) / temperature)
            out[j] = (1.0 if d[j] < reach else odds) / (1.0 + odds)
            total += out[j]
            slope += odds / (1.0 + odds) ** 2
        if abs(total - k) <= 0.5:
            return
        if total < k:
            low = reach
        else:
            high = reach
        step = (k - total) / slope * temperature if slope > 0.0 else np.inf
        reach += step
        if not low < reach < high:
            reach = (low + high) / 2


@compiled
def _counts(p: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the probabilities of 0 ... k choices among the entries before, and from, each one."""
    m = len(p)
    before, after = np.zeros((m + 1, k + 1)), np.zeros((m + 1, k + 1))
    before[0, 0] = after[m, 0] = 1.0
    for j in range(m):
        back = m - 1 - j
        before[j + 1, 0] = before[j, 0] * (1.0 - p[j])
        after[back, 0] = after[back + 1, 0] * (1.0 - p[back])
        for c in range(1, k + 1):
            before[j + 1, c] = before[j, c] * (1.0 - p[j]) + before[j, c - 1] * p[j]
            after[back, c] = after[back + 1, c] * (1.0 - p[back]) + after[back + 1, c - 1] * p[back]
    return before, after


@compiled
def _counts_tangent(
    p: Floats, dp: Floats, k: int, before: Floats, after: Floats
) -> tuple[Floats, Floats]:
    """Return the derivatives of `_counts` along a change dp of p."""
    m = len(p)
    d_before, d_after = np.zeros((m + 1, k + 1)), np.zeros((m + 1, k + 1))
    for j in range(m):
        back = m - 1 - j
        for c in range(k + 1):
            one_less = before[j, c - 1] if c > 0 else 0.0
            d_one_less = d_before[j, c - 1] if c > 0 else 0.0
            d_before[j + 1, c] = (
                d_before[j, c] * (1.0 - p[j])
                + d_one_less * p[j]
                + (one_less - before[j, c]) * dp[j]
            )
            one_less = after[back + 1, c - 1] if c > 0 else 0.0
            d_one_less = d_after[back + 1, c - 1] if c > 0 else 0.0
            d_after[back, c] = (
                d_after[back + 1, c] * (1.0 - p[back])
                + d_one_less * p[back]
                + (one_less - after[back + 1, c]) * dp[back]
            )
    return d_before, d_after


@compiled
def _choose_tangent(
    start: Ints,
    length: Floats,
    probability: Floats,
    k: int,
    temperature: float,
    along: Floats,
    first: int,
    last: int,
    out: Floats,
) -> None:
    for row in range(first, last):
        here = slice(start[row], start[row + 1])
        d, mu, g, change = length[here], probability[here], along[here], out[here]
        if k == 1:
            mean = 0.0
            for j in range(len(d)):
                mean += mu[j] * g[j]
            for j in range(len(d)):
                change[j] = mu[j] * (g[j] - mean)
        elif len(d) == k:
            change[:] = 0.0
        else:
            p = np.empty(len(d))
            _tilted(d, k, temperature, p)
            dp = p * (1.0 - p) * g
            before, after = _counts(p, k)
            d_before, d_after = _counts_tangent(p, dp, k, before, after)
            whole, d_whole = after[0, k], d_after[0, k]
            for j in range(len(d)):
                others, d_others = 0.0, 0.0
                for c in range(k):
                    others += before[j, c] * after[j + 1, k - 1 - c]
                    d_others += d_before[j, c] * after[j + 1, k - 1 - c]
                    d_others += before[j, c] * d_after[j + 1, k - 1 - c]
                change[j] = (
                    dp[j] * others + p[j] * d_others - p[j] * others * d_whole / whole
                ) / whole
