"""Differences of means of a kernel: as linear in (R_x, R_y) as the edge counts.

With xx, yy and xy the means of W over the pairs inside x, inside y and between them, all are
xx + yy - 2 xy. The unbiased one is, but for a constant and a factor, the weighted edge count.
"""

from __future__ import annotations

import torch

from crossedge.statistics.label_moments import Form, LabelMoments

FLOOR = 1e-8  # of the mean square of W: what a variance is at least, so that one can divide by it


def mmd(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """The unbiased estimate of MMD squared (Gretton and co-authors, 2012, lemma 6).

    A sample of one point has no pairs: its own mean is left out.
    """
    return _discrepancy(x, y, moments, *_distinct_pairs(moments))


def energy(x: torch.Tensor, y: torch.Tensor, moments: LabelMoments) -> torch.Tensor:
    """The squared energy distance, for W of minus the distances: means over all pairs, a point and
    itself among them (Szekely and Rizzo, 2004).
    """
    return _discrepancy(x, y, moments, *_all_pairs(moments))


def mmd_form(moments: LabelMoments) -> Form:
    return _form(moments, *_distinct_pairs(moments))


def energy_form(moments: LabelMoments) -> Form:
    return _form(moments, *_all_pairs(moments))


def mmd_deviation(W: torch.Tensor, in_x: torch.Tensor) -> torch.Tensor:
    """Estimate the standard deviation of `mmd` over fresh samples, once for each labelling.

    Labels are (n, labellings) of 0 and 1, and the estimates (labellings,).

    To first order, MMD squared is a mean over x plus a mean over y of what each point contributes
    (Sutherland and co-authors, 2017): its variance is four times the variances of those means.
    """
    unit = W.detach().abs().max()  # powers of W itself might leave the range
    if not unit > 0:
        return 0 * W.sum() + torch.zeros(in_x.shape[1], dtype=W.dtype, device=W.device)
    W = W / unit
    n_x = in_x.sum(0)
    n_y = len(in_x) - n_x
    to_x = W @ in_x
    to_y = W.sum(1, keepdim=True) - to_x
    of_x = to_x / (n_x - 1).clamp(min=1) - to_y / n_y
    of_y = to_y / (n_y - 1).clamp(min=1) - to_x / n_x
    spread = _variance(of_x, in_x) / n_x + _variance(of_y, 1 - in_x) / n_y
    least = FLOOR * (W**2).mean().detach() * (1 / n_x + 1 / n_y)
    return 2 * unit * torch.sqrt(spread + least)


def _variance(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    count = chosen.sum(0)
    mean = (values * chosen).sum(0) / count
    return ((values - mean) ** 2 * chosen).sum(0) / count


def _distinct_pairs(moments: LabelMoments) -> tuple[float, float]:
    """One over the number of ordered pairs inside each sample."""
    n_x, n_y = moments.n_x, moments.n_y
    return 1 / max(n_x * (n_x - 1), 1), 1 / max(n_y * (n_y - 1), 1)


def _all_pairs(moments: LabelMoments) -> tuple[float, float]:
    return moments.n_x**-2, moments.n_y**-2


def _discrepancy(
    x: torch.Tensor, y: torch.Tensor, moments: LabelMoments, per_x: float, per_y: float
) -> torch.Tensor:
    crossing = moments.total - x - y
    return 2 * (per_x * x + per_y * y - crossing / (moments.n_x * moments.n_y))


def _form(moments: LabelMoments, per_x: float, per_y: float) -> Form:
    """R_x + R_y is R / 2, and R_x - R_y is L / 2, but for constants."""
    between = 1 / (moments.n_x * moments.n_y)
    return Form((per_x + per_y) / 2 + between, (per_x - per_y) / 2)
