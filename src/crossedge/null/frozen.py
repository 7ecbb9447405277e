"""Weights that are whole numbers but for a few edges, as at low temperature.

The weight of crossing edges is then A + B: a count of whole edges, which moves in steps, and a
small rest, from edges that nearly tie. Neither a smooth law nor one in steps fits. But the law of A
is known well, and that of B is seen on some random labellings. Given A = a, it is tilted, with
weights e^(c B), so that its mean is that of the regression of B on A; and

    P(A + B <= t) = sum over a of P(A = a) P(B <= t - a | A = a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from crossedge.null.forests import forest_of, log_choose
from crossedge.null.moments import label_moments
from crossedge.statistics.label_moments import Form, LabelMoments
from crossedge.weights import DenseWeights, EdgeList, PairWeights

Floats = npt.NDArray[np.float64]

SMEARED = 0.4  # the standard deviation of the rest, in steps and in that of whole edges
DRAWS = 8192
ROUNDING = 1e-8  # of the standard deviation: values that differ by less are equal
FEW, MOST_POINTS = 16, 2000  # fewer have an exact law of their own: see strata.py
LOOSE, TINY = 1e-12, 1e-300
CROSS = Form(-0.5, 0.0)


@dataclass(frozen=True)
class Frozen:
    whole: EdgeList
    rest: sparse.csr_array  # (n, n)
    n_x: int

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """(DRAWS,), (DRAWS,): of whole edges that cross on some labellings, and of the rest."""
        labels = np.tile(np.arange(self.whole.n) < self.n_x, (DRAWS, 1))
        Z = np.random.default_rng(0).permuted(labels, axis=1).astype(float)
        whole = sparse.csr_array(self.whole.dense().numpy())
        a, b = (((Z @ W) * (1 - Z)).sum(1) for W in (whole, self.rest))
        return a, b

    @cached_property
    def moments(self) -> LabelMoments:
        """Of the whole edges; the fourth too, unless these are a forest, whose law is known."""
        sizes = self.n_x, self.whole.n - self.n_x
        return label_moments(self.whole, *sizes, fourth=forest_of(self.whole) is None)

    def log_tail(
        self, count: float, log_whole_tail: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """The logarithm of P(no more than `count` cross), from that of whole edges by z-score."""
        a, b = self.counts
        law, step = self.moments.law(CROSS), self.whole.step
        mean = float(self.moments.total - self.moments.mean_r) / 2
        tilt = float(((a - a.mean()) * b).mean() / max(a.var() * b.var(), TINY))
        count += ROUNDING * float(law.std)
        lowest, highest = np.floor((count - np.array([b.max(), b.min()])) / step)
        whole = step * np.arange(lowest, highest + 1)  # below them, B cannot matter
        weight = np.exp(tilt * (whole[:, None] - mean) * (b - b.mean()))
        share = (weight * (b <= count - whole[:, None])).sum(1) / weight.sum(1)
        share[0] = 1.0
        # sum over a of P(A = a) share_a, by parts
        falls = np.maximum(share - np.append(share[1:], 0.0), 0.0)
        logs = [
            log_whole_tail(torch.tensor((mean - value) / float(law.std), dtype=torch.float64))
            + math.log(fall)
            for value, fall in zip(whole, falls, strict=True)
            if value >= 0 and fall > 0
        ]
        if not logs:  # fewer than any labelling has
            logs = [torch.tensor(-math.inf, dtype=torch.float64)]
        log_all = log_choose(self.whole.n, self.n_x)
        return torch.logsumexp(torch.stack(logs), 0).clamp(-log_all, 0.0)


def frozen_of(weights: PairWeights, n_x: int) -> Frozen | None:
    """None where no weights are near 1 or more, or most, or where the rest smears all steps."""
    n = weights.n
    if not isinstance(weights, DenseWeights) or not FEW < n <= MOST_POINTS:
        return None
    W = weights.matrix.detach().numpy()
    whole = np.rint(W)
    i, j = np.nonzero(np.triu(whole))
    edges = EdgeList(np.arange(n), i, j, whole[i, j])
    if not edges.step or len(i) > n * n / 8:
        return None
    rest, sizes = W - whole, (n_x, n - n_x)
    smears = label_moments(DenseWeights(torch.from_numpy(rest)), *sizes, third=False).law(CROSS)
    steps = label_moments(edges, *sizes, third=False).law(CROSS)
    # where it is hot all deviations are small, and few weights are whole
    if not smears.std <= SMEARED * min(edges.step, float(steps.std)) or not steps.std > 0:
        return None
    return Frozen(edges, sparse.csr_array(np.where(np.abs(rest) > LOOSE, rest, 0.0)), n_x)
