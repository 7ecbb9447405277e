"""Tails of a statistic from labellings that are tilted towards them.

Random labellings seldom reach a far tail. Those with probability proportional to e^(tilt Q) do, and
by how much a tilt favours each is known but for a factor. A ladder of tilts leads from 0 to where Q
is as large as observed, in steps small enough for the labellings of one tilt, weighted, to stand
for those of the next (sequential Monte Carlo). In the end each labelling has the weight as if drawn
from the mixture of all tilts (Bennett, 1976; Shirts and Chodera, 2008). The first moments of Q are
known: what the weights miss of them is made good by regression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

from crossedge.interrupts import checkpoint
from crossedge.null.canonical import canonical_order
from crossedge.numerics.labellings import LANES, draw_labels
from crossedge.threads import in_threads

Floats = npt.NDArray[np.float64]

BLOCKS = 64  # of labellings without a tilt
CHAINS, TOGETHER = 4096, 64
MANY = 200  # points, from which on half as many have to do
LOOKS = 4  # at each chain, for each tilt
PROPOSALS = 150  # before each look
ALIKE = 0.35  # to what share the labellings of one tilt, weighted for the next, amount
MOST_TILTS, STEEPEST = 8, 1e3
ENOUGH = 100  # labellings beyond a value, to tell how rare it is
GROUP = 8  # values side by side that share a weight while factors are found
KEY = np.uint64(0x243F6A8885A308D3)  # always the same: p-values depend on nothing but the samples


class TiltedLabellings:
    """Of Q = s'As / 2 + c's, of mean 0 and variance 1, for labels s = +-1 with n_x of +1.

    The moments of Q are those that are known, from the zeroth on.
    """

    def __init__(self, A: Floats, c: Floats, n_x: int, moments: Floats) -> None:
        n = len(A)
        # neither the order of the samples nor that of points decides
        if 2 * n_x > n:
            n_x, c = n - n_x, -c
        self.points = canonical_order(A, c)
        A, c = A[np.ix_(self.points, self.points)], c[self.points]
        self.A, self.n_x, self.moments = np.ascontiguousarray(A), n_x, moments
        self.fell_short = False  # whether a value was out of reach
        self.chains = CHAINS if n <= MANY else CHAINS // 2
        values, stand = [], []
        for block, s in enumerate(self._random_labellings()):
            field = self.A @ s + c[:, None]
            values.append((s * (field + c[:, None])).sum(0) / 2)
            if block * LANES < 2 * self.chains:
                stand.append((np.argsort(-s, axis=0, kind="stable").T, field.T, values[-1]))
        self.tilts, self.seen = [0.0], [np.concatenate(values)]
        # chains stand at labellings of the last tilt
        self.order, self.field, self.value = (
            np.concatenate(one) for one in zip(*stand, strict=True)
        )

    def log_tail(self, z: float) -> tuple[float, float]:
        """The logarithm of P(Q >= z), and z; both for the largest that is in reach, if z is not."""
        while self.seen[-1].mean() < z and len(self.tilts) < MOST_TILTS and self._climb():
            pass
        far = [bool(values.mean() >= z) for values in self.seen]
        used = far.index(True) + 1 if any(far) else len(far)
        values, tilts = np.concatenate(self.seen[:used]), np.array(self.tilts[:used])
        last = float(np.partition(values, -ENOUGH)[-ENOUGH])
        self.fell_short |= z > last
        z = min(z, last)
        log_weight = -_log_mixture(values, tilts, *_factors(tilts, self.seen[:used]))
        beyond = values >= z
        log_p = float(logsumexp(log_weight[beyond]))
        weight, powers = np.exp(log_weight), np.vander(values, len(self.moments), increasing=True)
        scaled = weight * beyond / math.exp(log_p)
        slope = np.linalg.lstsq(weight[:, None] * powers, scaled, rcond=None)[0]
        more = float((self.moments - weight @ powers) @ slope)  # relative to p
        return log_p + math.log1p(max(more, -0.5)), z

    def share_of_both(self, z: float, other: Floats) -> float:
        """How often Q >= z and |other's| >= z, of labellings without a tilt."""
        other = other[self.points]
        sizes = np.concatenate([np.abs(other @ s) for s in self._random_labellings()])
        return float(((self.seen[0] >= z) & (sizes >= z)).mean())

    def _random_labellings(self) -> Iterator[Floats]:
        """(n, LANES) labels at a time."""
        for block in range(BLOCKS * self.chains // CHAINS):
            labels = draw_labels(int(KEY), block, len(self.A), self.n_x, LANES)
            yield 2.0 * labels.astype(np.float64) - 1.0

    def _climb(self) -> bool:
        """Whether there is another tilt, or the labellings are all alike."""
        from crossedge.numerics.exchanges import run_chains

        checkpoint()
        behind = self.value - self.value.max()

        def surplus(more: float) -> float:
            weight = np.exp(more * behind)
            return float(weight.sum() ** 2 / (weight @ weight)) / len(weight) - ALIKE

        if surplus(STEEPEST) > 0:
            return False
        more = brentq(surplus, 0.0, STEEPEST, rtol=1e-6)
        ends = np.cumsum(np.exp(more * behind))
        chosen = np.searchsorted(ends, (np.arange(self.chains) + 0.5) / self.chains * ends[-1])
        stand = self.order, self.field, self.value
        order, field, value = (np.ascontiguousarray(one[chosen]) for one in stand)
        tilt, first = self.tilts[-1] + more, len(self.tilts) * CHAINS

        def run(start: int) -> Floats:
            seen, own = np.empty((1 + LOOKS, TOGETHER)), slice(start, start + TOGETHER)
            arrays = order[own], field[own], value[own], seen
            run_chains(self.A, tilt, self.n_x, *arrays, PROPOSALS, KEY, first + start)
            return seen[1:].ravel()  # the first look is for those chosen twice to part

        found = in_threads(run, range(0, self.chains, TOGETHER))
        self.order, self.field, self.value = order, field, value
        self.tilts.append(tilt)
        self.seen.append(np.concatenate(found))
        return True


def _factors(tilts: Floats, seen: list[Floats]) -> tuple[Floats, Floats]:
    """The logarithms of the mean of e^(tilt Q), for each tilt, and of how many were seen."""
    log_counts = np.log([len(values) for values in seen])
    grouped = [np.sort(values).reshape(-1, GROUP).mean(1) for values in seen]
    values, log_means = np.concatenate(grouped), np.zeros(len(tilts))
    for k in range(1, len(tilts)):
        more = logsumexp((tilts[k] - tilts[k - 1]) * grouped[k - 1]) - math.log(len(grouped[k - 1]))
        log_means[k] = log_means[k - 1] + more
    for _ in range(100):
        log_mixture = _log_mixture(values, tilts, log_means, log_counts)
        found = logsumexp(np.multiply.outer(tilts, values) - log_mixture, axis=1)
        found -= found[0]
        change, log_means = np.abs(found - log_means).max(), found
        if change < 1e-5:
            break
    return log_means, log_counts


def _log_mixture(values: Floats, tilts: Floats, log_means: Floats, log_counts: Floats) -> Floats:
    """How many are seen at a value, relative to its probability without a tilt."""
    terms = np.multiply.outer(tilts, values) + (log_counts - log_means)[:, None]
    found: Floats = logsumexp(terms, axis=0)
    return found
