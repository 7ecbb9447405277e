"""The tail of a law of which five cumulants are known, by its cumulant generating function."""

from __future__ import annotations

import math

import torch

from crossedge.numerics.tails import (
    NODE_WEIGHTS,
    NODES,
    log_four_moment_tail,
    log_normal_tail,
    log_pearson3_tail,
    log_sum_tail,
)

NARROW, WIDE = 0.3, 0.8  # between these z, five cumulants take over from three
SMALL, LARGE = 1.5, 3.0  # terms in log K'', between which four moments take over from five
FAR = 6.0  # tilts, and
MUCH = 3.0  # logarithms of variances, beyond which five cumulants say nothing
HALVINGS, STEPS = 16, 3  # of bisection, and of Newton's method after it


def log_five_cumulant_tail(
    z: torch.Tensor,
    skewness: torch.Tensor,
    excess: torch.Tensor,
    fifth: torch.Tensor,
    step: torch.Tensor | float = 0.0,
) -> torch.Tensor:
    """The logarithm of P(X >= z), for a law of mean 0, variance 1 and these cumulants.

    The variance of the law tilted by e^(sX) is K''(s), K the cumulant generating function. It is
    positive, so its logarithm is developed, about that of a gamma law with skewness g:

        log K''(s) = -2 log(1 - g s / 2) + (x - 3/2 g^2) s^2 / 2 + (y - 3 g x + 3/2 g^3) s^3 / 6,

    x the excess and y the fifth cumulant (for g < 0: g s + (x - g^2) s^2 / 2 + (y - 3 g x + 2 g^3)
    s^3 / 6, since a gamma law turned round would end). K is then convex and K'(s) = z has a
    solution for all z. The tail is that of a normal law at w + log(u / w) / w, w^2 = 2 (s z - K)
    and u = s K''^(1/2) (Lugannani and Rice, in the form of Barndorff-Nielsen); what this errs for a
    gamma law is taken off. Near the centre, it is the gamma law; far out, where the terms in s^2
    and s^3 are not small, that of four moments.

    A variable that moves in steps has less in its tail, by h / sinh(h), h = s step / 2, than a
    smooth one of the same cumulants from half a step before (Daniels, 1987); z is that place.
    """
    z, g, x, y = (value.double() for value in (z, skewness, excess, fifth))
    none = 0 * (z + g + x + y)
    z, g, x, y, width = z + none, g + none, x + none, y + none, step + none
    four = log_four_moment_tail(z, g, x)
    used = z > NARROW
    z, g, x, y, width = (torch.where(used, value, 1.0) for value in (z, g, x, y, width))
    tail, tilt, size = _log_tail(z, g, x, y)
    up = g.clamp(min=0.0)
    error = log_pearson3_tail(z, up) - log_sum_tail(z, up, torch.ones_like(up))
    share = _smooth_step((z - NARROW) / (WIDE - NARROW)) * _smooth_step(
        (LARGE - size) / (LARGE - SMALL)
    )
    five = (
        (1 - share) * four
        + share * (tail + torch.where(g > 0, error, 0.0))
        - _log_sinh_ratio(tilt * width / 2)
    )
    return torch.where(used, five, four)


def _log_tail(
    z: torch.Tensor, g: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Also the tilt s, and the size of the terms in its square and cube.

    With q = -2/g log(1 - g s / 2), integrals over s become smooth ones over q: K''(s) = e^(g q + c)
    and ds = e^(-g q / 2) dq, with c the rest of log K''.
    """
    pole, first = torch.where(g > 0, g, 0.0), torch.where(g > 0, 0.0, g)
    second = x - torch.where(g > 0, 1.5 * g**2, g**2)
    third = y - 3 * g * x + torch.where(g > 0, 1.5 * g**3, 2 * g**3)

    def rest(s: torch.Tensor) -> torch.Tensor:
        s = _up_to(s, FAR)
        more = (first[..., None] + (second[..., None] / 2 + third[..., None] / 6 * s) * s) * s
        return _up_to(more, MUCH)

    def integrals(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """s, K' and K."""
        t = q[..., None] * (NODES.to(q.device) + 1) / 2
        s, at = q * _ratio(-pole * q / 2), t * _ratio(-pole[..., None] * t / 2)
        part = torch.exp(pole[..., None] * t / 2 + rest(at)) * NODE_WEIGHTS.to(q.device)
        part = part * q[..., None] / 2
        return s, part.sum(-1), ((s[..., None] - at) * part).sum(-1)

    def newton(q: torch.Tensor) -> torch.Tensor:
        s, slope, _ = integrals(q)
        return q - (slope - z) / torch.exp(pole * q / 2 + rest(s[..., None])[..., 0]).detach()

    with torch.no_grad():
        low = torch.zeros_like(z)
        # K' is at least e^-MUCH times that of the gamma law
        high = 1.01 * math.exp(MUCH) * z / _ratio_log(pole * math.exp(MUCH) * z / 2)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            over = integrals(middle)[1] > z
            low, high = torch.where(over, low, middle), torch.where(over, middle, high)
        q = (low + high) / 2
        for _ in range(STEPS):
            q = torch.minimum(torch.maximum(newton(q), low), high)
    q = newton(q)  # once more, for the derivatives
    s, _, K = integrals(q)
    log_variance = pole * q + rest(s[..., None])[..., 0]
    w = torch.sqrt(2 * (s * z - K))
    size = (first.abs() + (second.abs() / 2 + third.abs() / 6 * s) * s) * s
    return log_normal_tail(w + (torch.log(s / w) + log_variance / 2) / w), s, size


def _smooth_step(part: torch.Tensor) -> torch.Tensor:
    """From 0 to 1 as the part is."""
    part = part.clamp(0, 1)
    return part * part * (3 - 2 * part)


def _up_to(value: torch.Tensor, limit: float) -> torch.Tensor:
    """The value where it is small, and no more than the limit where it is large."""
    value = value.clamp(-1e9, 1e9)
    return value / (1 + (value / limit) ** 8) ** 0.125


def _ratio(v: torch.Tensor) -> torch.Tensor:
    """(e^v - 1) / v."""
    small = v.abs() < 1e-3
    safe = torch.where(small, 1.0, v)
    return torch.where(small, 1 + v / 2 * (1 + v / 3 * (1 + v / 4)), torch.expm1(safe) / safe)


def _ratio_log(v: torch.Tensor) -> torch.Tensor:
    """The ratio of v >= 0 to log(1 + v)."""
    small = v < 1e-6
    safe = torch.where(small, 1.0, v)
    return torch.where(small, 1 + v / 2, safe / torch.log1p(safe))


def _log_sinh_ratio(h: torch.Tensor) -> torch.Tensor:
    """log(sinh(h) / h), for h >= 0."""
    small = h < 1e-2
    safe = torch.where(small, 1.0, h)
    large = safe + torch.log(-torch.expm1(-2 * safe) / (2 * safe))
    return torch.where(small, h * h / 6 * (1 - h * h / 30), large)
