"""The exact law of the number of crossing edges of a forest.

With n_x points in x, this number has a generating function that costs no more than a walk over the
forest: see forest_counts.py. Its coefficients are a Fourier transform in two angles. The transform
is taken on circles through the saddle point, where nothing cancels, so the tail is right to many
digits however far out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from crossedge.runtime.threads import team_size
from crossedge.runtime.types import Complexes, Floats, Ints

LARGEST_TILT, LARGEST_LEAN = 300.0, 400.0  # |log| of z^w and of u: both stay in range
BISECTIONS = 50
VALLEY = 1e-6  # a probability under the tilted law that is too small to be near one of its modes
NOISE = 2e-13  # rounding error of a probability under the tilted law
LOG_NEGLIGIBLE = math.log(1e-11)  # relative to the total so far
MOST_HUBS, MOST_CASES = 10, 64  # points whose label may be fixed, and transforms: limits of time
ALIASED = 1e-11  # share of a probability that may be aliased in a coarse transform


@dataclass(frozen=True)
class Forest:
    """A forest, its points in an order in which those farther from the root come first."""

    below: Ints  # (n,): the next point towards the root, -1 for the root itself
    weight: Ints  # (n,): of the edge between the two, in steps; 0 if there is none
    step: float  # the unit of weights

    def log_lower_tail(self, n_x: int, count: int) -> float:
        """Return log P(at most `count` edges cross), over all labellings.

        With a hub, the tilted law has two modes, hub in x and hub in y, and the observed count may
        lie in the valley between them, where only rounding errors are left. Each label of the hub
        is then a case with its own saddle point, and so on for the next hub. Cases that cannot
        matter, by Chernoff's bound, are left out.
        """
        n, n_x = len(self.below), min(n_x, len(self.below) - n_x)  # symmetric in x and y
        log_all = float(gammaln(n + 1) - gammaln(n_x + 1) - gammaln(n - n_x + 1))
        if count >= self.weight.sum():
            return 0.0
        if count < 0:
            return -log_all  # as for a single labelling, because the logarithm of 0 is of no use
        hubs = np.argsort(-self._degree(), kind="stable")[:MOST_HUBS]
        total, cases, transforms = -math.inf, [_Case(self, np.zeros(n, np.int64), n_x, count)], 0
        while cases:
            case = max(cases, key=lambda one: one.log_bound)
            if case.log_bound < total + LOG_NEGLIGIBLE:
                break
            cases.remove(case)
            lower, free = case.lower_tail(), hubs[case.label[hubs] == 0]
            transforms += 1
            if lower > VALLEY or not len(free) or transforms >= MOST_CASES:
                total = np.logaddexp(total, case.log_bound + math.log(max(lower, NOISE)))
                continue
            for label in (-1, 1):
                labels = case.label.copy()
                labels[free[0]] = label
                if (labels > 0).sum() <= n_x and (labels < 0).sum() <= n - n_x:
                    cases.append(_Case(self, labels, n_x, count))
        return float(np.clip(total - log_all, -log_all, 0.0))

    def _degree(self) -> Ints:
        hangs = self.below >= 0
        degree = self.weight.copy()
        np.add.at(degree, self.below[hangs], self.weight[hangs])
        return degree


class _Case:
    """Labellings with some labels given, tilted to the saddle point of n_x and a count.

    There both are the means of the tilted law; a count above the untilted mean gets no tilt. Log G
    is convex, so each mean rises with its own variable. The mean of the edges also rises with the
    tilt if the lean is adjusted to keep n_x.
    """

    def __init__(self, forest: Forest, label: Ints, n_x: int, count: int) -> None:
        self.forest, self.label, self.n_x, self.count = forest, label, n_x, count
        from crossedge.numerics.trees.forest_counts import expected_counts

        self.divisor = np.empty(len(label))
        coldest = LARGEST_TILT / forest.weight.max()

        def means(tilt: float, lean: float) -> tuple[float, float, float]:
            given = forest.below, forest.weight, label, tilt, lean
            return expected_counts(*given, self.divisor)

        def lean_at(tilt: float) -> float:
            return _halve(lambda lean: means(tilt, lean)[2] < n_x, -LARGEST_LEAN, LARGEST_LEAN)

        self.tilt = 0.0
        if means(0.0, lean_at(0.0))[1] > count:
            self.tilt = _halve(lambda tilt: means(tilt, lean_at(tilt))[1] < count, -coldest, 0.0)
        self.lean = lean_at(self.tilt)
        # Chernoff's bound on the number of labellings with at most `count` crossing edges
        self.log_bound = means(self.tilt, self.lean)[0] - self.tilt * count - self.lean * n_x

    def values(self, theta: Floats, phi: Floats) -> Complexes:
        """Return the generating function at these angles, relative to angles 0."""
        from crossedge.numerics.trees.forest_counts import values_at

        angles = theta.ravel(), phi.ravel()
        given = self.forest.below, self.forest.weight, self.label, self.tilt, self.lean
        return values_at(team_size(), *given, self.divisor, *angles).reshape(theta.shape)

    def lower_tail(self) -> float:
        """Return the number of labellings with at most `count` crossing edges, over its bound."""
        n, n_x, count, total = len(self.label), self.n_x, self.count, int(self.forest.weight.sum())
        # marginals of the tilted law, of points in x and of crossing edges: they show how coarse a
        # transform may be without aliasing
        points = _coefficients(lambda phi: self.values(0 * phi, phi), n + 1)
        if points[n_x] < VALLEY:
            return float(max(points[n_x], 0.0))  # an upper bound
        edges = _coefficients(lambda theta: self.values(theta, 0 * theta), total + 1)
        wrapped = max(ALIASED * points[n_x], NOISE)
        circle = _least_circle(points, n_x, wrapped)
        reach = _least_reach(edges, count, wrapped)
        size = min(2 * reach + 1, total + 1)
        phi = 2 * math.pi * np.arange(circle) / circle
        turn = np.exp(-2j * math.pi * ((np.arange(circle) * n_x) % circle) / circle) / circle
        tilted = _coefficients(lambda theta: self.values(*np.meshgrid(theta, phi)).T @ turn, size)
        counts = np.arange(max(count - reach, 0), count + 1)
        return float(tilted[counts % size] @ np.exp(-self.tilt * (counts - count)))


def _halve(is_low: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect for the point where `is_low` turns false."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if is_low(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _coefficients(values: Callable[[Floats], Complexes], size: int) -> Floats:
    """Return the real coefficients of a polynomial from its values at half of `size` angles."""
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    return np.fft.irfft(np.conj(values(angles)), size)


def _least_circle(probability: Floats, place: int, wrapped: float) -> int:
    """Return the shortest period with which at most `wrapped` is aliased to a place."""
    n = len(probability)
    for circle in range(1, n):
        others = probability[place % circle :: circle].sum() - probability[place]
        if others <= wrapped:
            return circle
    return n


def _least_reach(probability: Floats, place: int, wrapped: float) -> int:
    """Return the distance from a place beyond which at most `wrapped` is left on both sides."""
    below, above = np.cumsum(probability), np.cumsum(probability[::-1])[::-1]
    for reach in range(1, len(probability)):
        low, high = place - reach - 1, place + reach + 1
        outside = (below[low] if low >= 0 else 0.0) + (above[high] if high < len(above) else 0.0)
        if outside <= wrapped:
            return reach
    return len(probability)
