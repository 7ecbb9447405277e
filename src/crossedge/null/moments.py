"""Exact moments of the within-sums under random labelling, any n_x and n_y.

With labels s = +-1 and pair weights W, let R be the sum of W_uv s_u s_v over pairs and L that of
deg_u s_u over points. A product of such sums is a sum over tuples of pairs and points, and the mean
of a tuple depends only on how many points occur in it an odd number of times. Row effects,
W_uv = V_uv + a_u + a_v, add to R a multiple of L and a constant. They are taken out first, so that
V has row sums 0, as the degrees have sum 0 once they are centred: nearly all sums over tuples then
vanish, and no large ones are left to cancel, however far away a point may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import perm
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from crossedge.null.cumulants import fifth_cumulants
from crossedge.statistics.label_moments import LabelMoments, mean_label_product
from crossedge.threads import in_threads
from crossedge.weights import DenseWeights, EdgeList, PairWeights

SMALL = 512  # points of a graph that is a matrix
ROWS = 128  # for each thread, of a matrix that has no gradient
PARTS, LEAST = 4, 64  # blocks of rows, and how many rows they have at least
FOURTH, FIFTH = 4000, 2000  # points, up to which the fourth moment and fifth cumulant are computed


@dataclass(frozen=True)
class CentredSums:
    """Sums of the weights without row effects, V, and of the centred degrees of W."""

    total: torch.Tensor  # m of W itself
    squares: torch.Tensor  # sum of V^2 over pairs
    cubes: torch.Tensor  # sum of V^3 over pairs
    triangles: torch.Tensor  # tr V^3
    degree2: torch.Tensor  # sum of squared degrees
    degree3: torch.Tensor  # sum of cubed degrees
    degree_squares: torch.Tensor  # sum over points of degree times the row sum of V^2
    degree_degree: torch.Tensor  # deg' V deg


@dataclass(frozen=True)
class FourthSums:
    """Sums over all maps of graphs of four edges to the points, for centred weights W'.

    Graphs with an edge of its own as a component are missing: W' sums to 0.
    """

    squares: torch.Tensor  # of W'^2 over pairs
    degree2: torch.Tensor  # of squared degrees
    path: torch.Tensor  # four edges in a row
    fork: torch.Tensor  # two edges and a path of two from one point
    double_and_path: torch.Tensor  # an edge twice, and a path of two from one end
    triangle_and_edge: torch.Tensor
    edge_double_edge: torch.Tensor  # in a row, the middle one twice
    double_and_two: torch.Tensor  # an edge twice and two others, all from one point
    triangle_one_double: torch.Tensor
    triple_and_edge: torch.Tensor
    square: torch.Tensor  # a cycle of four
    two_double: torch.Tensor  # two edges with a common end, both twice
    star: torch.Tensor
    fourfold: torch.Tensor  # one edge four times


def centred_sums(weights: PairWeights, *, third: bool = True) -> CentredSums:
    """All differentiable in a matrix; without the third powers, only what a variance needs."""
    if isinstance(weights, EdgeList):
        return _of_edges(weights)
    return _of_matrix(weights) if third else _variances_of_matrix(weights)


def without_row_effects(W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """V, and the centred degrees of W."""
    n = len(W)
    V = (W - W.sum() / (n * (n - 1))).fill_diagonal_(0.0)
    degree = V.sum(1)
    degree = degree - degree.mean()
    if n > 2:
        for _ in range(2):  # the second time for what rounding left
            rows = V.sum(1)
            effect = (rows - rows.sum() / (2 * n - 2)) / (n - 2)
            V = V.sub_(effect).sub_(effect[:, None]).fill_diagonal_(0.0)
    return V, degree


def _of_matrix(weights: DenseWeights) -> CentredSums:
    """Only the triangles cost more than a pass."""
    V, degree = without_row_effects(weights.matrix)
    squared = V * V
    squares = squared.sum(1)
    return CentredSums(
        total=weights.matrix.sum() / 2,
        squares=squares.sum() / 2,
        cubes=(squared * V).sum() / 2,
        triangles=_triangles(V),
        degree2=(degree**2).sum(),
        degree3=(degree**3).sum(),
        degree_squares=(degree * squares).sum(),
        degree_degree=degree @ (V @ degree),
    )


def _variances_of_matrix(weights: DenseWeights) -> CentredSums:
    sums = _SecondSums.apply(weights.matrix)  # type: ignore[no-untyped-call]
    unknown = torch.full_like(sums[0].detach(), torch.nan)
    return CentredSums(sums[0], sums[1], unknown, unknown, sums[2], unknown, unknown, unknown)


class _SecondSums(torch.autograd.Function):
    """The total, the sum of V^2 over pairs and that of squared degrees, of a symmetric W.

    Taking out row effects is a projection, so the gradient of the second is V itself: no tape of
    matrices is kept. A training step is made of little else.
    """

    @staticmethod
    def forward(W: torch.Tensor) -> tuple[torch.Tensor, ...]:
        V, degree = without_row_effects(W)
        flat = V.reshape(-1)
        return W.sum() / 2, (flat @ flat) / 2, degree @ degree, V, degree

    @staticmethod
    def setup_context(ctx: Any, _: Any, output: tuple[torch.Tensor, ...]) -> None:
        *_, V, degree = output
        ctx.mark_non_differentiable(V, degree)
        ctx.save_for_backward(V, degree)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, total: torch.Tensor, squares: torch.Tensor, degree2: torch.Tensor, *_: Any
    ) -> torch.Tensor:
        V, degree = ctx.saved_tensors
        rows = total / 2 + 2 * degree2 * degree
        return torch.addcmul(rows[:, None], V, squares).fill_diagonal_(0.0)


def _triangles(W: torch.Tensor) -> torch.Tensor:
    """The trace of W^3. Blocks of W^2 below the diagonal count twice, those above not at all."""
    if not W.requires_grad:
        V = W.numpy()

        def of_rows(first: int) -> float:
            rows, last = V[first : first + ROWS], first + ROWS
            terms = (rows @ V[:, :last]) * rows[:, :last]
            return float(2 * terms[:, :first].sum() + terms[:, first:].sum())

        return W.new_tensor(sum(in_threads(of_rows, range(0, len(V), ROWS))))
    total = W.new_zeros(())
    size = max(-(-len(W) // PARTS), LEAST)
    for first in range(0, len(W), size):
        rows = W[first : first + size]
        own, before = slice(first, first + size), slice(0, first)
        total = total + ((rows @ W[:, own]) * rows[:, own]).sum()
        if first:
            total = total + 2 * ((rows @ W[:, before]) * rows[:, before]).sum()
    return total


def _of_edges(graph: EdgeList) -> CentredSums:
    """First for W' = W less its mean, then without the row effects a = deg / (n - 2)."""
    n, sizes = graph.n, graph.sizes
    c = graph.total / (n * (n - 1) / 2)
    centred = graph.weight - c
    unjoined = n - 1 - graph.row_sums(np.ones_like(centred))  # pairs of weight 0, so of W' = -c
    degree = graph.row_sums(centred) - c * unjoined
    squares = graph.row_sums(centred**2) + c**2 * unjoined
    cubes = graph.row_sums(centred**3) - c**3 * unjoined
    onward = graph.row_sums(graph.weight, degree) + c * degree  # W' deg: the degrees sum to 0
    # tr (W - c (J - I))^3, with (J - I)^2 = (n - 2) J + I
    triangles = (
        closed_triangles(graph)
        - 3 * c * (sizes @ (graph.degree**2 - graph.row_sums(graph.weight**2)))
        + 6 * c**2 * (n - 2) * graph.total
        - c**3 * perm(n, 3)
    )
    d2, d3 = float(sizes @ degree**2), float(sizes @ degree**3)
    ds, dwd = float(sizes @ (degree * squares)), float(sizes @ (degree * onward))
    r = 1 / (n - 2) if n > 2 else 0.0
    values = (
        graph.total,
        (sizes @ squares) / 2 - d2 * r,
        (sizes @ cubes) / 2 - 3 * ds * r + 3 * (d3 + dwd) * r**2 - (n - 4) * d3 * r**3,
        triangles
        - 6 * (dwd - ds) * r
        + 3 * ((n - 4) * dwd - 4 * d3) * r**2
        - (16 - 6 * n) * d3 * r**3,
        d2,
        d3,
        ds - 2 * (d3 + dwd) * r + (n - 4) * d3 * r**2,
        dwd + 2 * d3 * r,
    )
    return CentredSums(*(torch.tensor(float(value), dtype=torch.float64) for value in values))


def label_moments(
    weights: PairWeights, n_x: int, n_y: int, *, third: bool = True, fourth: bool = False
) -> LabelMoments:
    """All joint moments of T and L up to the third (variance of R: the paper's theorem 3).

    Without the third, those of a matrix are NaN, and much is saved. The fourth moments of T and R,
    and with them the fifth cumulants, need the full matrix: if they are asked for, and not for very
    large graphs. e1 ... e6 are the means of products of so many distinct labels.
    """
    e1, e2, e3, e4, e5, e6 = (mean_label_product(k, n_x, n_y) for k in range(1, 7))
    given, unit = weights, unit_of(weights)
    if not isinstance(weights, EdgeList) and unit != 1:
        weights = DenseWeights(weights.matrix / unit)
    s = centred_sums(weights, third=third)
    if not bool(torch.isfinite(s.total.detach())):
        raise ValueError("the weights add up to more than a float can hold: rescale the points")
    fifth, fourth = fourth and weights.n <= FIFTH, fourth and weights.n <= FOURTH
    # a statistic that cannot vary, as on regular graphs with n_x = 1, leaves rounding errors
    noise = 1e-13 * s.squares.detach() + (1e-13 * s.total.detach()) ** 2
    tttt = fourth_moment(weights, n_x, n_y) if fourth else None
    return LabelMoments(
        n_x=n_x,
        n_y=n_y,
        total=unit * s.total,
        tt=(1 - 2 * e2 + e4) * s.squares,
        ll=(1 - e2) * s.degree2,
        ttt=(1 - 3 * e2 + 3 * e4 - e6) * s.triangles + 4 * (e2 - 2 * e4 + e6) * s.cubes,
        ttl=-2 * (e1 - 2 * e3 + e5) * s.degree_squares,
        tll=(1 - 2 * e2 + e4) * s.degree_degree,
        lll=2 * (e3 - e1) * s.degree3,
        noise=noise,
        tttt=tttt,
        rrrr=fourth_moment(weights, n_x, n_y, row_effects=True) if fourth and n_x != n_y else tttt,
        fifth=fifth_cumulants(*without_row_effects(weights.dense()), n_x, n_y) if fifth else None,
        unit=unit,
        step_r=2 * given.step,
        step_l=2 * given.degree_step,
    )


def unit_of(weights: PairWeights) -> float:
    """Fourth powers of weights, summed, must be in range; those of graphs always are."""
    if isinstance(weights, EdgeList):
        return 1.0
    low, high = torch.aminmax(weights.matrix.detach())
    largest = max(-float(low), float(high))
    return largest if largest > 0 and not 1e-60 < largest < 1e60 else 1.0


def fourth_moment(
    weights: PairWeights, n_x: int, n_y: int, *, row_effects: bool = False
) -> torch.Tensor:
    """The fourth central moment of T, or with row effects that of R, from a full matrix.

    R^4 is a sum over eight ends of edges. Those that fall on one point form a block, and a sum over
    distinct points is one over all points less the coincidences: a block of size 1, 2, 3, 4 brings

        t,   1 - t^2,   2 t^3 - 2 t,   8 t^2 - 6 t^4 - 2,

    where t^k in the product of all blocks stands for the mean of a product of k distinct labels.
    The number before each term counts the ways to pair the ends into that graph.
    """
    e = [mean_label_product(k, n_x, n_y) for k in range(9)]
    factor = {1: [0, 1], 2: [1, 0, -1], 3: [0, -2, 0, 2], 4: [-2, 0, 8, 0, -6]}

    def mean(*blocks: int) -> float:
        product = np.ones(1)
        for size in blocks:
            product = np.convolve(product, factor[size])
        return float(sum(c * e[k] for k, c in enumerate(product)))

    s = fourth_sums(weights, row_effects=row_effects)
    pairs, degree2 = 2 * s.squares, s.degree2
    return (
        192 * mean(1, 2, 2, 2, 1) * s.path
        + 192 * mean(3, 1, 1, 2, 1) * s.fork
        + 192 * mean(2, 3, 2, 1) * s.double_and_path
        + 192 * mean(3, 2, 2, 1) * s.triangle_and_edge
        + 96 * mean(1, 3, 3, 1) * s.edge_double_edge
        + 96 * mean(4, 2, 1, 1) * s.double_and_two
        + 96 * mean(3, 3, 2) * s.triangle_one_double
        + 64 * mean(4, 3, 1) * s.triple_and_edge
        + 48 * mean(2, 2, 2, 2) * s.square
        + 12 * mean(2, 2, 2, 2) * pairs**2
        + 48 * mean(2, 1, 1, 2, 1, 1) * degree2**2
        + 48 * mean(2, 2, 2, 1, 1) * pairs * degree2
        + 48 * mean(4, 2, 2) * s.two_double
        + 16 * mean(4, 1, 1, 1, 1) * s.star
        + 8 * mean(4, 4) * s.fourfold
    ) / 16


def fourth_sums(weights: PairWeights, *, row_effects: bool) -> FourthSums:
    W = weights.dense()
    n = len(W)
    centred = (W - W.sum() / (n * (n - 1))).fill_diagonal_(0.0)
    if not row_effects:
        centred, _ = without_row_effects(W)
    squared, walks = centred * centred, centred @ centred
    degree, squares, cubes = centred.sum(1), squared.sum(1), (squared * centred).sum(1)
    onward = centred @ degree
    return FourthSums(
        squares=squares.sum() / 2,
        degree2=(degree**2).sum(),
        path=(onward**2).sum(),
        fork=(degree**2 * onward).sum(),
        double_and_path=(squares * onward).sum(),
        triangle_and_edge=(degree * (walks * centred).sum(1)).sum(),
        edge_double_edge=degree @ (squared @ degree),
        double_and_two=(squares * degree**2).sum(),
        triangle_one_double=(squared * walks).sum(),
        triple_and_edge=(cubes * degree).sum(),
        square=(walks**2).sum(),
        two_double=(squares**2).sum(),
        star=(degree**4).sum(),
        fourfold=(squared**2).sum(),
    )


def closed_triangles(graph: EdgeList) -> float:
    """The trace of W^3: the weight of all closed walks over three distinct points."""
    atoms, inside = len(graph.sizes), graph.i == graph.j
    if atoms <= SMALL or len(graph.i) > atoms**2 / 32:  # a product of matrices is as fast
        matrix = np.zeros((atoms, atoms))
        matrix[graph.i, graph.j] = matrix[graph.j, graph.i] = graph.weight
        matrix *= np.sqrt(graph.sizes) * np.sqrt(graph.sizes)[:, None]
        walks = float(_triangles(torch.from_numpy(matrix)))
    else:
        i = np.concatenate([graph.i, graph.j[~inside]])
        j = np.concatenate([graph.j, graph.i[~inside]])
        weight = np.concatenate([graph.weight, graph.weight[~inside]])
        order = np.argsort(i, kind="stable")
        start = np.searchsorted(i[order], np.arange(atoms + 1))
        from crossedge.numerics.closed_walks import closed_walks

        walks = closed_walks(start, j[order], weight[order], graph.sizes)
    # walks that stay inside an atom may return to the same point: take those out
    own = np.zeros(atoms)
    own[graph.i[inside]] = graph.weight[inside]
    row2 = graph.row_sums(graph.weight**2)
    return float(walks - graph.sizes @ (3 * own * row2 + own**3))
