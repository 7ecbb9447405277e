"""Moments of the within-sums over all labellings: what statistics must know of the null."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, perm
from typing import NamedTuple

import torch


def mean_label_product(k: int, n_x: int, n_y: int) -> float:
    """E[s_1 ... s_k] of k distinct points, in exact arithmetic; 0 where there are not so many."""
    n = n_x + n_y
    if k > n:
        return 0.0
    signed = sum((-1) ** j * comb(k, j) * perm(n_y, j) * perm(n_x, k - j) for j in range(k + 1))
    return float(Fraction(signed, perm(n, k)))


class Form(NamedTuple):
    """a R + b L, a linear function of the within-sums."""

    a: float
    b: float


class Law(NamedTuple):
    """Moments of a form over all labellings; the last two are 0 where it cannot vary."""

    mean: torch.Tensor
    std: torch.Tensor
    skewness: torch.Tensor


@dataclass(frozen=True)
class LabelMoments:
    """Moments over all labellings s = +-1, n_x of them +1, as float64 scalars.

    R is the sum of W_uv s_u s_v over pairs, and L that of deg_u s_u over points, so that
    R_x = (m + R + L) / 4 and R_y = (m + R - L) / 4. But for a constant, R = T + c L with
    c = (n_x - n_y) / (n - 2), where T is the same sum for weights without row effects: those that
    W - a_u - a_v leaves if all its degrees are made 0. T and L are not correlated. Second and
    higher moments are about the mean, of T / unit and L / unit.
    """

    n_x: int
    n_y: int
    total: torch.Tensor  # m
    tt: torch.Tensor
    ll: torch.Tensor
    ttt: torch.Tensor
    ttl: torch.Tensor
    tll: torch.Tensor
    lll: torch.Tensor
    noise: torch.Tensor  # variances up to this are rounding errors
    tttt: torch.Tensor | None = None  # if it was asked for
    rrrr: torch.Tensor | None = None
    fifth: torch.Tensor | None = None  # (6,): joint cumulants of T and L, that of T alone first
    unit: float = 1.0  # of the weights; not 1 only where powers of them would leave the range
    step_r: float = 0.0  # R moves in multiples of this
    step_l: float = 0.0

    @property
    def slope(self) -> float:
        """The slope c of R in L."""
        n = self.n_x + self.n_y
        return (self.n_x - self.n_y) / (n - 2) if n > 2 else 0.0

    def in_t_and_l(self, form: Form) -> Form:
        """Rewrite a R + b L as a form of T and L."""
        b = form.b + form.a * self.slope
        return Form(form.a, b if abs(b) > 1e-12 * abs(form.b) else 0.0)

    @property
    def mean_r(self) -> torch.Tensor:
        return mean_label_product(2, self.n_x, self.n_y) * self.total

    @property
    def mean_l(self) -> torch.Tensor:
        return 2 * mean_label_product(1, self.n_x, self.n_y) * self.total

    def law(self, form: Form) -> Law:
        mean = form.a * self.mean_r + form.b * self.mean_l
        a, b = self.in_t_and_l(form)
        variance = a**2 * self.tt + b**2 * self.ll
        varies = variance.detach() > (a**2 + b**2) * self.noise
        safe = torch.where(varies, variance, 1.0)
        third = (
            a**3 * self.ttt + 3 * a**2 * b * self.ttl + 3 * a * b**2 * self.tll + b**3 * self.lll
        )
        zero = torch.zeros_like(safe)
        return Law(
            mean,
            torch.where(varies, self.unit * torch.sqrt(safe), zero),
            torch.where(varies, third / safe**1.5, zero),
        )

    def step(self, form: Form) -> float:
        """The step in which a form of R alone or of L alone moves; 0 if there is none."""
        if form.a and form.b:
            return 0.0
        return abs(form.a) * self.step_r + abs(form.b) * self.step_l

    def rounding(self, form: Form) -> float:
        """The largest difference of two values of a form that are equal but for rounding."""
        noise = 2e-14 * abs(float(self.total)) * (abs(form.a) + abs(form.b))
        return max(1e-8 * float(self.law(form).std), noise)

    def excess(self, form: Form) -> torch.Tensor | None:
        """The excess kurtosis of a form in T or in R alone; None if that moment is not known."""
        a, b = self.in_t_and_l(form)
        fourth = self.tttt if b == 0 else self.rrrr if form.b == 0 else None
        if fourth is None:
            return None
        variance = self.tt + (b / a) ** 2 * self.ll
        varies = variance.detach() > self.noise
        return torch.where(varies, fourth / torch.where(varies, variance, 1.0) ** 2 - 3, 0.0)

    def fifth_cumulant(self, form: Form) -> torch.Tensor | None:
        """The fifth cumulant of a form over its standard deviation; None if it is not known."""
        if self.fifth is None:
            return None
        a, b = self.in_t_and_l(form)
        variance = a**2 * self.tt + b**2 * self.ll
        varies = variance.detach() > (a**2 + b**2) * self.noise
        powers = self.fifth.new_tensor([a ** (5 - k) * b**k for k in range(6)])
        total = (powers * self.fifth).sum()
        return torch.where(varies, total / torch.where(varies, variance, 1.0) ** 2.5, 0.0)

    @property
    def difference(self) -> Form:
        """The form of R_x - R_y."""
        return Form(0.0, 0.5)

    @property
    def weighted(self) -> Form:
        """The part of q R_x + p R_y that varies, p = (n_x - 1) / (n - 2) and q = 1 - p.

        It is not correlated with the difference, whatever the weights.
        """
        n = self.n_x + self.n_y
        p = (self.n_x - 1) / (n - 2) if n > 2 else 0.5
        return Form(0.25, (1 - 2 * p) / 4)


def is_cross_count(form: Form, sign: int) -> bool:
    """Whether sign times a form falls with the weight of crossing edges and with nothing else."""
    return form.b == 0 and sign * form.a > 0


def cross_count(z: torch.Tensor, moments: LabelMoments, form: Form, sign: int) -> float:
    """The weight (m - R) / 2 of crossing edges at this z-score of sign times such a form."""
    law = moments.law(form)
    return float(moments.total - (law.mean + sign * z * law.std) / form.a) / 2
