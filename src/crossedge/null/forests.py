"""Edge counts of trees: no approximation, but the law itself.

The number of edges of a forest that cross, with n_x points in x, has a generating function that
costs no more than a walk over the forest: see numerics/forest_counts.py. Its coefficients are a
Fourier transform in two angles, on circles through the saddle point, where nothing cancels, so that
the tail is right to many digits however far out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import gammaln

from crossedge.statistics.label_moments import (
    Form,
    LabelMoments,
    cross_count,
    is_cross_count,
)
from crossedge.threads import team_size
from crossedge.weights import EdgeList, PairWeights

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]

MOST_POINTS, MOST_EDGES = 2000, 10_000
COLDEST, LEANEST = 300.0, 400.0  # logarithms of the variables of the generating function
HALVINGS = 50
VALLEY = 1e-6  # a share of the tilted law that is too small to be near a mode of it
NOISE = 2e-13  # of the tilted law, by rounding
NEGLIGIBLE = math.log(1e-11)
MOST_HUBS, MOST_CASES = 10, 64
ROUNDING = 1e-3  # of a step
WRAPPED = 1e-11  # of the probability, that may be taken for something else in a coarse transform


@dataclass(frozen=True)
class Forest:
    """Points in an order in which those farther from the root come first."""

    below: Ints  # (n,): the next towards the root, -1 for the root itself
    weight: Ints  # (n,): of the edge between the two, in steps; 0 if there is none
    step: float

    def log_lower_tail(self, n_x: int, count: int) -> float:
        """The logarithm of P(no more edges cross than `count`), over all labellings.

        With a hub, the tilted law has two modes, hub in x and hub in y, and what is observed may
        lie in the valley between them, where there is nothing but rounding. Each label is then a
        case of its own, with a saddle point of its own, and so on for the next hub; but for those
        that cannot matter, by Chernoff's bound.
        """
        n, n_x = len(self.below), min(n_x, len(self.below) - n_x)  # which is which does not matter
        log_all = log_choose(n, n_x)
        if count >= self.weight.sum():
            return 0.0
        if count < 0:
            return -log_all  # as of a single labelling: logarithms of 0 are of no use
        hubs = np.argsort(-self._degree(), kind="stable")[:MOST_HUBS]
        total, cases, transforms = -math.inf, [_Case(self, np.zeros(n, np.int64), n_x, count)], 0
        while cases:
            case = max(cases, key=lambda one: one.log_bound)
            if case.log_bound < total + NEGLIGIBLE:
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


def log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


class _Case:
    """Labellings of which some labels are given, at the saddle point of n_x and a count.

    There both are the means of the tilted law, but that counts above the mean are not tilted. Log G
    is convex, so both means rise with their own variable, and that of the edges with the first
    alone if the second follows.
    """

    def __init__(self, forest: Forest, label: Ints, n_x: int, count: int) -> None:
        self.forest, self.label, self.n_x, self.count = forest, label, n_x, count
        from crossedge.numerics.forest_counts import expected_counts

        self.divisor = np.empty(len(label))
        coldest = COLDEST / forest.weight.max()

        def means(tilt: float, lean: float) -> tuple[float, float, float]:
            given = forest.below, forest.weight, label, tilt, lean
            return expected_counts(*given, self.divisor)

        def lean_at(tilt: float) -> float:
            return _halve(lambda lean: means(tilt, lean)[2] < n_x, -LEANEST, LEANEST)

        self.tilt = 0.0
        if means(0.0, lean_at(0.0))[1] > count:
            self.tilt = _halve(lambda tilt: means(tilt, lean_at(tilt))[1] < count, -coldest, 0.0)
        self.lean = lean_at(self.tilt)
        # of the number of labellings with no more edges that cross
        self.log_bound = means(self.tilt, self.lean)[0] - self.tilt * count - self.lean * n_x

    def values(self, theta: Floats, phi: Floats) -> Complexes:
        """The generating function at these angles, over that at 0."""
        from crossedge.numerics.forest_counts import values_at

        angles = theta.ravel(), phi.ravel()
        given = self.forest.below, self.forest.weight, self.label, self.tilt, self.lean
        return values_at(team_size(), *given, self.divisor, *angles).reshape(theta.shape)

    def lower_tail(self) -> float:
        """The labellings with no more edges that cross, as a share of the bound."""
        n, n_x, count, total = len(self.label), self.n_x, self.count, int(self.forest.weight.sum())
        # by the tilted law, where labels are free: how many points are in x, and how many edges
        # cross; to see how coarse a transform may be before its ends meet
        points = _coefficients(lambda phi: self.values(0 * phi, phi), n + 1)
        if points[n_x] < VALLEY:
            return float(max(points[n_x], 0.0))  # which it cannot exceed
        edges = _coefficients(lambda theta: self.values(theta, 0 * theta), total + 1)
        wrapped = max(WRAPPED * points[n_x], NOISE)
        circle = _least_circle(points, n_x, wrapped)
        reach = _least_reach(edges, count, wrapped)
        size = min(2 * reach + 1, total + 1)
        phi = 2 * math.pi * np.arange(circle) / circle
        turn = np.exp(-2j * math.pi * ((np.arange(circle) * n_x) % circle) / circle) / circle
        tilted = _coefficients(lambda theta: self.values(*np.meshgrid(theta, phi)).T @ turn, size)
        counts = np.arange(max(count - reach, 0), count + 1)
        return float(tilted[counts % size] @ np.exp(-self.tilt * (counts - count)))


def forest_of(weights: PairWeights) -> Forest | None:
    """None where there are cycles, or edges have no whole weights, or are too many."""
    if not isinstance(weights, EdgeList) or not weights.step or weights.n > MOST_POINTS:
        return None
    if weights.total > MOST_EDGES * weights.step:
        return None
    from crossedge.numerics.forest_counts import peel

    order, hangs_on = peel(weights.n, weights.i, weights.j)
    if order[-1] < 0:
        return None
    place = np.argsort(order)
    hangs = hangs_on >= 0
    edge = hangs_on[hangs]
    below, weight = np.full(weights.n, -1), np.zeros(weights.n, np.int64)
    below[hangs] = place[weights.i[edge] + weights.j[edge] - order[hangs]]
    weight[hangs] = np.rint(weights.weight[edge] / weights.step)
    return Forest(below, weight, weights.step)


def log_count_tail(
    z: torch.Tensor, forest: Forest | None, moments: LabelMoments, form: Form, sign: int
) -> torch.Tensor | None:
    """The logarithm of P(sign Z >= z), for a form Z of mean 0 and variance 1; None if unknown."""
    if forest is None or not is_cross_count(form, sign) or not moments.law(form).std > 0:
        return None
    count = math.floor(cross_count(z, moments, form, sign) / forest.step + ROUNDING)
    return z.new_tensor(forest.log_lower_tail(moments.n_x, count))


def _halve(is_low: Callable[[float], bool], low: float, high: float) -> float:
    """Where it ends to be."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if is_low(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _coefficients(values: Callable[[Floats], Complexes], size: int) -> Floats:
    """Of a polynomial, from its values at `size` angles of which half will do."""
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    return np.fft.irfft(np.conj(values(angles)), size)


def _least_circle(probability: Floats, place: int, wrapped: float) -> int:
    """How many steps the shortest circle has on which little else falls on a place."""
    n = len(probability)
    for circle in range(1, n):
        others = probability[place % circle :: circle].sum() - probability[place]
        if others <= wrapped:
            return circle
    return n


def _least_reach(probability: Floats, place: int, wrapped: float) -> int:
    """How far from a place next to nothing is left on either side."""
    below, above = np.cumsum(probability), np.cumsum(probability[::-1])[::-1]
    for reach in range(1, len(probability)):
        low, high = place - reach - 1, place + reach + 1
        outside = (below[low] if low >= 0 else 0.0) + (above[high] if high < len(above) else 0.0)
        if outside <= wrapped:
            return reach
    return len(probability)
