"""How surprising is a statistic? Logarithms of p-values, differentiable where they are smooth."""

from __future__ import annotations

import math

import torch

from crossedge.null.forests import log_choose
from crossedge.null.frozen import CROSS
from crossedge.null.structure import Structure
from crossedge.numerics.saddlepoint import log_five_cumulant_tail
from crossedge.numerics.tails import log_four_moment_tail, log_normal_tail, log_pearson3_tails
from crossedge.statistics import ChiSquare, LargerOfTwo, Linear, Statistic
from crossedge.statistics.edge_counts import zscore
from crossedge.statistics.label_moments import (
    Form,
    LabelMoments,
    cross_count,
    is_cross_count,
)

SMOOTH = ("normal", "pearson3")
ROUNDING = 1e-6  # of a step
LOG_RARE = math.log(0.25)  # p-values below this are not left to laws


def log_tail(null: str, z: torch.Tensor, skewness: torch.Tensor) -> torch.Tensor:
    """The logarithm of P(Z >= z), for a variable of mean 0 and variance 1."""
    return log_normal_tail(z) if null == "normal" else log_pearson3_tails(z, skewness)


def log_form_tail(
    null: str,
    z: torch.Tensor,
    moments: LabelMoments,
    form: Form,
    sign: int = 1,
    structure: Structure | None = None,
) -> torch.Tensor:
    """The logarithm of P(Z >= z), for the z-score Z of sign times a form of the within-sums.

    For "pearson3", one that moves in steps is taken half a step nearer to its mean, as a continuous
    one would have to be to have as much in its tail. With a structure, tails are not left to laws
    where p is small, or where these are known to be unsure.
    """
    if null == "normal":
        return log_normal_tail(z)
    if structure is None or not moments.law(form).std > 0:
        return _log_cumulant_tail(z, moments, form, sign)
    if structure.is_exact(moments, form, sign) or not structure.can_tilt:
        return _log_law_tail(z, moments, form, sign, structure)
    if structure.is_sure(moments, form) and _log_cumulant_tail(z, moments, form, sign) >= LOG_RARE:
        tail = _log_law_tail(z, moments, form, sign, structure)
        if tail >= LOG_RARE:
            return tail
    margin = max(moments.rounding(form), moments.step(form) / 2) / float(moments.law(form).std)
    tilted = structure.tilted_labellings(moments, form, sign)
    log_p, reached = tilted.log_tail(float(z) - margin)
    if reached < float(z) - margin:  # how much less there is beyond, the law tells
        ends = z, z.new_tensor(reached)
        logs = [float(_log_law_tail(end, moments, form, sign, structure)) for end in ends]
        log_p += logs[0] - logs[1]
    return z.new_tensor(min(log_p, 0.0))


def _log_law_tail(
    z: torch.Tensor, moments: LabelMoments, form: Form, sign: int, structure: Structure | None
) -> torch.Tensor:
    """The tail by a law, without tilted labellings."""
    tail = None
    if structure is not None and structure.frozen is not None and is_cross_count(form, sign):
        frozen, of_whole = structure.frozen, structure.of_whole

        def log_whole_tail(z: torch.Tensor) -> torch.Tensor:
            return _log_law_tail(z, frozen.moments, CROSS, -1, of_whole)

        tail = frozen.log_tail(cross_count(z, moments, form, sign), log_whole_tail)
    elif structure is not None:
        tail = structure.log_tail(z, moments, form, sign)
    return _log_cumulant_tail(z, moments, form, sign) if tail is None else tail


def _log_cumulant_tail(
    z: torch.Tensor, moments: LabelMoments, form: Form, sign: int
) -> torch.Tensor:
    """The tail by as many moments as are known."""
    law, excess, fifth = moments.law(form), moments.excess(form), moments.fifth_cumulant(form)
    step = moments.step(form) / torch.where(law.std > 0, law.std, 1.0)
    z, skewness = z - step / 2, sign * law.skewness
    if excess is None:
        return log_pearson3_tails(z, skewness)
    if fifth is None:
        return log_four_moment_tail(z, skewness, excess)
    return log_five_cumulant_tail(z, skewness, excess, sign * fifth, step)


def smooth_pvalue(
    statistic: Statistic,
    null: str,
    x: torch.Tensor,
    y: torch.Tensor,
    moments: LabelMoments,
    structure: Structure | None = None,
) -> torch.Tensor:
    """The logarithm of p, by the normal, chi-square or gamma law with the exact moments.

    It is 0 where nothing varies. With a structure, it has no gradient where that is used.
    """
    if isinstance(statistic.law, Linear):
        form, sign = statistic.law.form(moments), statistic.sign
        z = sign * zscore(x, y, moments, form)
        tail = log_form_tail(null, z, moments, form, sign, structure)
        if structure is not None:
            tail = tail.clamp(min=_log_least(moments, form.b == 0))
        return torch.where(moments.law(form).std > 0, tail, torch.zeros_like(tail))
    if isinstance(statistic.law, ChiSquare):
        forms = moments.weighted, moments.difference
        varies = sum(bool(moments.law(form).std > 0) for form in forms)
        return _log_chi_square_tail(statistic.value(x, y, moments), varies * statistic.law.degrees)
    if isinstance(statistic.law, LargerOfTwo):
        return _log_larger_tail(statistic.value(x, y, moments), null, x, y, moments, structure)
    raise ValueError(_no_law(statistic, null, "null"))


def _log_larger_tail(
    value: torch.Tensor,
    null: str,
    x: torch.Tensor,
    y: torch.Tensor,
    moments: LabelMoments,
    structure: Structure | None,
) -> torch.Tensor:
    """The logarithm of P(the weighted count's z-score or the difference's size is as large)."""
    forms = moments.weighted, moments.difference
    varies = [bool(moments.law(form).std > 0) for form in forms]

    def log_above(form: Form, side: int) -> torch.Tensor:
        """The logarithm of P(side times the z-score is as large), from the first such step on."""
        law, evidence = moments.law(form), value
        step = moments.step(form) / float(law.std.detach()) if null == "pearson3" else 0.0
        if step:
            own = side * zscore(x, y, moments, form)
            evidence = own + step * torch.ceil((value - own) / step - ROUNDING)
        if structure is not None:
            return log_form_tail(null, evidence, moments, form, side, structure)
        return log_tail(null, evidence - step / 2, side * law.skewness)

    logs = []
    if varies[0]:
        logs.append(log_above(forms[0], 1))
    if varies[1]:
        both = torch.logaddexp(log_above(forms[1], 1), log_above(forms[1], -1))
        logs.append(both.clamp(max=0.0))
    if not logs:
        return 0 * value
    if len(logs) == 1:
        return logs[0]
    if structure is not None and structure.can_tilt:
        share = structure.share_of_both(float(value), moments)
        either = torch.logaddexp(*logs)
        either = either + torch.log1p(-share / torch.exp(either)) if share else either
        return either.clamp(_log_least(moments, True), 0.0)
    # they are nearly independent
    rest = torch.log1p(-torch.exp(logs[0]).clamp(max=1 - 1e-16))
    return torch.logaddexp(logs[0], logs[1] + rest).clamp(max=0.0)


def _log_least(moments: LabelMoments, mirrored: bool) -> float:
    """The logarithm of the least p-value: one labelling, or two if its mirror image ties."""
    ways = 2 if mirrored and moments.n_x == moments.n_y else 1
    return math.log(ways) - log_choose(moments.n_x + moments.n_y, moments.n_x)


def check_law(statistic: Statistic, law: object, argument: str) -> None:
    """Raise ValueError if this is a smooth law that the statistic does not have."""
    if law in SMOOTH and law not in statistic.nulls:
        raise ValueError(_no_law(statistic, law, argument))


def _no_law(statistic: Statistic, law: object, argument: str) -> str:
    refusal = f"{argument}={law!r} does not go with statistic={statistic.name!r}"
    if not statistic.nulls:
        return f"{refusal}, whose law under equality is not known: leave {argument} out"
    other = f"{argument}={statistic.nulls[-1]!r}"
    return f"{refusal}, which has no such law: choose {other}, or leave {argument} out"


def check_null(statistic: Statistic | None, null: object) -> str:
    """Return the name of a null that goes with the statistic, or raise ValueError."""
    if not isinstance(null, str) or null not in ("permutation", *SMOOTH):
        raise ValueError(
            f"null={null!r} is unknown: choose from 'permutation', 'normal', 'pearson3'"
        )
    if statistic is not None:
        check_law(statistic, null, "null")
    return null


def _log_chi_square_tail(value: torch.Tensor, degrees: int) -> torch.Tensor:
    """The logarithm of P(X >= value), for 0, 1, 2 or 4 degrees of freedom."""
    if degrees == 0:
        return 0 * value
    if degrees == 2:
        return -value / 2
    if degrees == 4:
        return torch.log1p(value / 2) - value / 2
    positive = value > 0
    root = torch.sqrt(torch.where(positive, value, 1.0))
    tail = math.log(2) + log_normal_tail(root)
    return torch.where(positive, tail, torch.zeros_like(value))
