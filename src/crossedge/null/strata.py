"""The null of points that fall into few kinds: exact in how many of each kind are in x.

Where W has blocks, as for clusters far apart, or where one point decides, a hub or a far outlier,
the statistic is nearly a function of how many points of each block are in x. Its null is then in
lumps, which no number of moments describes. Given these counts, labels are independent from kind to
kind; the first three moments of a T + b L are known, and the rest is nearly a gamma law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from scipy.special import gammaln

from crossedge.null.kinds import MOST_KINDS, Floats, Ints, counts_of, kinds_of
from crossedge.null.moments import unit_of, without_row_effects
from crossedge.statistics.label_moments import Form, mean_label_product
from crossedge.weights import PairWeights

MOST_POINTS = 2000


@dataclass(frozen=True)
class Strata:
    """All counts that are possible, and moments of a T + b L given each: see `LabelMoments`."""

    log_probability: Floats
    mean: Floats
    variance: Floats
    third: Floats  # about the mean


class Stratifications:
    """Of the same points, for each form by the kinds that explain the most of it."""

    def __init__(self, weights: PairWeights, n_x: int) -> None:
        self.weights, self.n_x = weights, n_x
        self.found = dict[tuple[Form, float], Strata | None]()

    @cached_property
    def parts(self) -> tuple[Floats, Floats]:
        """The weights without row effects, and the degrees."""
        W = self.weights.dense().detach() / unit_of(self.weights)
        V, degree = without_row_effects(W)
        return V.numpy(), degree.numpy()

    @cached_property
    def has_few_kinds(self) -> bool:
        """Whether so few rows of the weights differ that kinds of points may decide."""
        V, degree = self.parts
        size = np.abs(V).sum(1) + np.abs(degree)
        size = np.sort(size) / max(size.max(), np.finfo(float).tiny)
        return 1 + int((np.diff(size) > 1e-9).sum()) <= MOST_KINDS

    def of(self, form: Form, least: float) -> Strata | None:
        """None where the variance of the mean is below the least that is worth the while."""
        if (form, least) not in self.found:
            given = [
                (kind, counts_of(np.bincount(kind), self.n_x))
                for kind in kinds_of(*self.parts, form, self.n_x)
            ]
            explained = [self._explained(form, *one) for one in given]
            best = int(np.argmax(explained)) if given else 0
            self.found[form, least] = (
                stratified(*self.parts, *given[best], form)
                if given and explained[best] >= least
                else None
            )
        return self.found[form, least]

    def _explained(self, form: Form, kind: Ints, counts: Ints) -> float:
        """The variance of the mean."""
        probability = np.exp(_log_probability(kind, counts))
        mean = _mean(*self.parts, kind, counts, form)
        return float(probability @ (mean - probability @ mean) ** 2)


def strata_of(weights: PairWeights, n_x: int) -> Stratifications | None:
    return Stratifications(weights, n_x) if 3 <= weights.n <= MOST_POINTS else None


def stratified(V: Floats, degree: Floats, kind: Ints, counts: Ints, form: Form) -> Strata:
    """The moments given the counts.

    With labels s_u = m_c + e_u, where m_c is the mean label of u's kind c, sums of e over a kind
    are 0. So row effects inside a block of V vanish, but for those of a kind with itself, which
    add to what is linear in e, since e^2 = 1 - m^2 - 2 m e. What is left is f'e + e'Qe / 2, where f
    adds up to 0 in each kind and Q in the rows of each block; its moments are sums over kinds, each
    as in `label_moments`, and over pairs and triples of kinds.
    """
    a, b = form
    sizes = np.bincount(kind)
    belongs = np.eye(len(sizes))[kind]
    mean_label = 2 * counts / sizes - 1
    to_kinds = V @ belongs
    rows = to_kinds - belongs @ (belongs.T @ to_kinds / sizes[:, None])
    rows *= np.where(belongs > 0, np.where(sizes > 2, sizes / np.maximum(sizes - 2, 1), 0.0), 1.0)
    f = a * (mean_label @ rows.T) + b * (degree - belongs @ (belongs.T @ degree / sizes))
    Q = _without_block_effects(V, kind, to_kinds / sizes)
    inside = Q * (kind[:, None] == kind)
    factors = [_factors(int(size))[counts[:, c]] for c, size in enumerate(sizes)]
    two, three, pairs, triangles, cubes, mixed = np.moveaxis(np.stack(factors, 1), 2, 0)

    squares, own_squares = belongs.T @ Q**2, (inside**2).sum(1)
    more = pairs - two**2  # inside a kind, where labels are not independent
    variance = (two[:, kind] * f**2).sum(1) + a**2 / 2 * (
        (two @ (squares @ belongs) * two).sum(1) + more @ (belongs.T @ own_squares)
    )
    scaled = two[:, kind] * f
    f_f_f = (three[:, kind] * f**3).sum(1)
    f_f_q = ((scaled @ Q) * scaled).sum(1) + (more[:, kind] * (f @ inside) * f).sum(1)
    f_q_q = (two @ squares * three[:, kind] * f).sum(1)
    f_q_q += ((mixed - three * two)[:, kind] * f) @ own_squares
    q_q_q = (three @ (belongs.T @ (Q - inside) ** 3 @ belongs) * three).sum(1) / 2
    q_q_q += cubes @ (belongs.T @ (inside**3).sum(1)) / 2
    closed = _closed_walks(Q, belongs)
    q_q_q += np.einsum("sc,sd,scd->s", two, two, np.tensordot(two, closed, 1))
    own = np.arange(len(sizes))
    twice = closed[own, own]
    q_q_q += (triangles - two**3) @ twice[own, own]
    q_q_q += 3 * (more @ (twice - np.diag(twice[own, own])) * two).sum(1)
    return Strata(
        log_probability=_log_probability(kind, counts),
        mean=_mean(V, degree, kind, counts, form),
        variance=np.maximum(variance, 0.0),
        third=f_f_f + 3 * a * f_f_q + 3 * a**2 * f_q_q + a**3 * q_q_q,
    )


def _log_probability(kind: Ints, counts: Ints) -> Floats:
    sizes, n, n_x = np.bincount(kind), len(kind), counts[0].sum()
    log_ways = (gammaln(sizes + 1) - gammaln(counts + 1) - gammaln(sizes - counts + 1)).sum(1)
    log_all = gammaln(n + 1) - gammaln(n_x + 1) - gammaln(n - n_x + 1)
    found: Floats = log_ways - log_all
    return found


def _mean(V: Floats, degree: Floats, kind: Ints, counts: Ints, form: Form) -> Floats:
    sizes = np.bincount(kind)
    belongs = np.eye(len(sizes))[kind]
    blocks = belongs.T @ V @ belongs
    m = 2 * counts / sizes - 1
    apart = (1 - m**2) / np.maximum(sizes - 1, 1)  # minus the covariance of two labels of a kind
    of_t = (m @ blocks * m).sum(1) / 2 - apart @ np.diag(blocks) / 2
    found: Floats = form.a * of_t + form.b * (m @ (belongs.T @ degree))
    return found


def _without_block_effects(V: Floats, kind: Ints, row_means: Floats) -> Floats:
    """Blocks with rows and columns of sum 0, those of a kind with itself with a zero diagonal.

    The means are those of each row over each kind.
    """
    block_means = np.stack([row_means[kind == c].mean(0) for c in range(row_means.shape[1])])
    effects = row_means[:, kind]
    Q: Floats = V - effects - effects.T + block_means[np.ix_(kind, kind)]
    for c, size in enumerate(np.bincount(kind)):
        own = np.ix_(kind == c, kind == c)
        block = torch.from_numpy(V[own])
        Q[own] = without_row_effects(block)[0].numpy() if size > 3 else 0.0
    return Q


def _closed_walks(Q: Floats, belongs: Floats) -> Floats:
    """(kinds, kinds, kinds): sums of Q_uv Q_vw Q_wu over points of such kinds."""
    kinds = belongs.T > 0
    return np.stack([belongs.T @ (Q * (Q[:, k] @ Q[k])) @ belongs for k in kinds])


@lru_cache(maxsize=1024)
def _factors(size: int) -> Floats:
    """(counts, 6): of sums over a kind, as in `label_moments`, for each count of a kind."""
    return np.array([_factors_of(count, size - count) for count in range(size + 1)])


def _factors_of(n_x: int, n_y: int) -> tuple[float, ...]:
    e1, e2, e3, e4, e5, e6 = (mean_label_product(k, n_x, n_y) for k in range(1, 7))
    return (
        1 - e2,
        2 * (e3 - e1),
        1 - 2 * e2 + e4,
        1 - 3 * e2 + 3 * e4 - e6,
        4 * (e2 - 2 * e4 + e6),
        -2 * (e1 - 2 * e3 + e5),
    )
