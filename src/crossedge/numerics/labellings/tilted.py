"""Tail probabilities of a statistic Q by importance sampling with tilted labellings.

Uniform labellings seldom reach a far tail. Labellings with probability proportional to e^(tilt Q)
do, and their likelihood ratios are known up to a factor. A ladder of tilts leads from 0 to where
the mean of Q reaches the observed value. Its steps are small enough that the labellings of one
tilt, reweighted, represent the next (sequential Monte Carlo). In the end each labelling is weighted
as a draw from the mixture of all tilts (Bennett, 1976; Shirts and Chodera, 2008). The first moments
of Q are known and serve as control variates: regression corrects for the weights' error in them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from crossedge.numerics.labellings.canonical import canonical_order
from crossedge.numerics.labellings.dense import half_squares
from crossedge.numerics.labellings.draws import LANES, draw_labels
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.threads import in_threads
from crossedge.runtime.types import Floats, Ints

BLOCKS = 64  # of LANES labellings without a tilt
CHAINS, TASK_CHAINS = 4096, 64
LARGE_SAMPLE = 400  # points: above it, half as many blocks and chains keep the time in bounds
LOOKS = 4  # values of Q taken from each chain, for each tilt
PROPOSALS = 150  # exchanges proposed before each look
EFFECTIVE_SHARE = 0.35  # target effective sample size, as a fraction, from one tilt to the next
MOST_TILTS, LARGEST_STEP = 8, 1e3  # of the ladder; the largest step between two tilts
SAME_VALUE = 1e-8  # values that differ by less are equal but for rounding
LEAST_BEYOND = 100  # labellings beyond a value, for an estimate of its tail probability
GROUP_SIZE = 8  # neighbouring values that share a weight while normalisers are computed
KEY = np.uint64(0x243F6A8885A308D3)  # of the draws; fixed: p-values depend on the samples alone


class TiltedLabellings:
    """Labellings s = +-1, n_x of them +1, tilted towards large Q = s'As / 2 + c's.

    Q has mean 0 and variance 1 over all labellings. `moments` are the known moments of Q, from the
    zeroth on.
    """

    def __init__(self, A: Floats, c: Floats, n_x: int, moments: Floats) -> None:
        n = len(A)
        # the result must depend neither on which sample is x nor on the order of points
        if 2 * n_x > n:
            n_x, c = n - n_x, -c
        self.points = canonical_order(A, c)
        A, c = A[np.ix_(self.points, self.points)], c[self.points]
        self.A, self.n_x, self.moments = np.ascontiguousarray(A), n_x, moments
        self.chains = CHAINS if n <= LARGE_SAMPLE else CHAINS // 2
        starts = 2 * self.chains // LANES  # blocks of labellings from which chains may start

        def stand_at(block: int) -> tuple[Ints, Floats, Floats]:
            s = self._random_labellings(block)
            field = self.A @ s + c[:, None]
            value = (s * (field + c[:, None])).sum(0) / 2
            return np.argsort(-s, axis=0, kind="stable").T, field.T, value

        def value_at(block: int) -> Floats:
            s = self._random_labellings(block)
            return half_squares(np.ascontiguousarray(s.T), self.A) + c @ s

        stand = in_threads(stand_at, range(starts))
        # the states of the chains: labellings of the last tilt
        self.order, self.field, self.value = (
            np.concatenate(one) for one in zip(*stand, strict=True)
        )
        values = in_threads(value_at, range(starts, self._blocks))
        self.tilts, self.seen = [0.0], [np.concatenate([self.value, *values])]

    def log_tail(self, z: float) -> tuple[float, float]:
        """Return log P(Q >= z), and z; if z is out of reach, both for the largest z in reach."""
        while self.seen[-1].mean() < z and len(self.tilts) < MOST_TILTS and self._climb():
            pass
        far = [bool(values.mean() >= z) for values in self.seen]
        used = far.index(True) + 1 if any(far) else len(far)
        values, tilts = np.concatenate(self.seen[:used]), np.array(self.tilts[:used])
        last = float(np.partition(values, -LEAST_BEYOND)[-LEAST_BEYOND])
        z = min(z, last - SAME_VALUE)  # ties of the last one count too
        log_weight = -_log_mixture(values, tilts, *_factors(tilts, self.seen[:used]))
        beyond = values >= z
        log_p = float(logsumexp(log_weight[beyond]))
        weight, powers = np.exp(log_weight), np.vander(values, len(self.moments), increasing=True)
        scaled = weight * beyond / math.exp(log_p)
        slope = np.linalg.lstsq(weight[:, None] * powers, scaled, rcond=None)[0]
        more = float((self.moments - weight @ powers) @ slope)  # relative to p
        return log_p + math.log1p(max(more, -0.5)), z

    def share_of_both(self, z: float, other: Floats) -> float:
        """Return the fraction of labellings, without a tilt, with Q >= z and |other's| >= z."""
        other = other[self.points]
        labellings = (self._random_labellings(block) for block in range(self._blocks))
        sizes = np.concatenate([np.abs(other @ s) for s in labellings])
        return float(((self.seen[0] >= z) & (sizes >= z)).mean())

    @property
    def _blocks(self) -> int:
        return BLOCKS * self.chains // CHAINS

    def _random_labellings(self, block: int) -> Floats:
        """Draw (n, LANES) labels s, without a tilt."""
        labels = draw_labels(int(KEY), block, len(self.A), self.n_x, LANES)
        return 2.0 * labels.astype(np.float64) - 1.0

    def _climb(self) -> bool:
        """Add a tilt, and return True; return False if Q is the same for all labellings at hand."""
        from crossedge.numerics.labellings.exchanges import run_chains

        checkpoint()
        behind = self.value - self.value.max()

        def surplus(more: float) -> float:
            weight = np.exp(more * behind)
            return float(weight.sum() ** 2 / (weight @ weight)) / len(weight) - EFFECTIVE_SHARE

        if surplus(LARGEST_STEP) > 0:
            return False
        more = brentq(surplus, 0.0, LARGEST_STEP, rtol=1e-6)
        ends = np.cumsum(np.exp(more * behind))
        chosen = np.searchsorted(ends, (np.arange(self.chains) + 0.5) / self.chains * ends[-1])
        stand = self.order, self.field, self.value
        order, field, value = (np.ascontiguousarray(one[chosen]) for one in stand)
        tilt, first = self.tilts[-1] + more, len(self.tilts) * CHAINS

        def run(start: int) -> Floats:
            seen, own = np.empty((1 + LOOKS, TASK_CHAINS)), slice(start, start + TASK_CHAINS)
            arrays = order[own], field[own], value[own], seen
            run_chains(self.A, tilt, self.n_x, *arrays, PROPOSALS, KEY, first + start)
            return seen[1:].ravel()  # without the first look, by which copies of a labelling part

        found = in_threads(run, range(0, self.chains, TASK_CHAINS))
        self.order, self.field, self.value = order, field, value
        self.tilts.append(tilt)
        self.seen.append(np.concatenate(found))
        return True


def _factors(tilts: Floats, seen: list[Floats]) -> tuple[Floats, Floats]:
    """Return, for each tilt, the logarithms of the mean of e^(tilt Q) and of the sample size."""
    log_counts = np.log([len(values) for values in seen])
    grouped = [np.sort(values).reshape(-1, GROUP_SIZE).mean(1) for values in seen]
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
    """Return the log density of all values seen, relative to that of Q without a tilt."""
    terms = np.multiply.outer(tilts, values) + (log_counts - log_means)[:, None]
    found: Floats = logsumexp(terms, axis=0)
    return found
