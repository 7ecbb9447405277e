"""One family of weights, one statistic, one null."""

from __future__ import annotations

import math
import sys

from crossedge.distances import Distances
from crossedge.null.laws import asymptotic_law, exact_law, rounding, sample_law
from crossedge.null.moments import label_moments
from crossedge.null.permutations import labellings_up_to, observe, permute
from crossedge.null.pvalues import smooth_pvalue
from crossedge.null.structure import structure_of
from crossedge.randomness import Rng
from crossedge.result import TwoSampleResult
from crossedge.samples import Samples
from crossedge.statistics import ChiSquare, Statistic
from crossedge.weights import Weights

LISTED, WORK = 1_000_000, 4e10  # labellings that "pearson3" visits one and all; times n^2
LOG_IN_REACH = math.log(1e-6)  # of tilted labellings, if any labelling is as extreme


def single_test(
    weights: Weights,
    statistic: Statistic,
    null: str,
    samples: Samples,
    distances: Distances,
    n_resamples: int,
    rng: Rng,
    early_stopping: int | None,
    brief: bool = False,
) -> TwoSampleResult:
    """If it is to be brief, null_skewness may be NaN where the p-value does not depend on it."""
    pairs = weights.pairs(distances)
    if null == "pearson3":
        listed = int(min(LISTED, WORK / pairs.n**2))
        if labellings_up_to(pairs.n, min(samples.n_x, samples.n_y), listed):
            null, n_resamples = "permutation", listed  # a law has nothing to add
    sizes, structure, exact = (samples.n_x, samples.n_y), None, False
    if null == "pearson3" and not isinstance(statistic.law, ChiSquare):
        structure = structure_of(pairs, samples.n_x)
        if statistic.form is not None:
            second = label_moments(pairs, *sizes, third=False)
            exact = structure.is_exact(second, statistic.form(second), statistic.sign)
    moments = label_moments(
        pairs,
        *sizes,
        third=not (brief and null == "permutation" and statistic.form is not None),
        fourth=null == "pearson3" and not exact,
    )
    within = observe(pairs, samples.in_x, statistic.studentized)
    observed = float(statistic.of(within, moments))
    law = exact_law(statistic, moments)
    drawn = None
    if null == "permutation":
        # values that are equal but for rounding must count as equal
        tolerance = rounding(statistic, moments, observed)
        limit = statistic.sign * observed - tolerance
        stop = None if early_stopping is None else (early_stopping, limit)
        drawn = permute(pairs, statistic, moments, n_resamples, rng, stop)
        pvalue = drawn.pvalue(observed, statistic.sign, tolerance)
        log_pvalue = math.log(pvalue)
        if law is None and drawn.stopped and statistic.law is not None:
            law = asymptotic_law(statistic, "normal", moments)
        law = law or sample_law(drawn.values)
        count = f"{len(drawn.values):,}"
        how = f"all {count} labellings" if drawn.exact else f"{count} random labellings"
        how += ", stopped early" if drawn.stopped else ""
    else:
        log_pvalue = float(smooth_pvalue(statistic, null, within.x, within.y, moments, structure))
        pvalue = max(math.exp(log_pvalue), sys.float_info.min)
        law = law or asymptotic_law(statistic, null, moments)
        law_name = "chi-square" if isinstance(statistic.law, ChiSquare) else null
        how = f"{law_name} approximation"
        if structure is not None and structure.tilted:
            short = any(labellings.fell_short for labellings in structure.tilted.values())
            how = f"{null} by tilted labellings"
            how += ", extrapolated" if short and log_pvalue < LOG_IN_REACH else ""
        how = "exact distribution over all labellings" if exact else how
    unit = 1.0 if statistic.form is None else pairs.unit
    mean, std, skewness = unit * float(law.mean), unit * float(law.std), float(law.skewness)
    values = None if drawn is None else drawn.values
    if values is not None and unit != 1:
        values = unit * values
        values.setflags(write=False)
    observed *= unit
    return TwoSampleResult(
        statistic=observed,
        pvalue=pvalue,
        log_pvalue=log_pvalue,
        zscore=(observed - mean) / std if std else 0.0,
        null_mean=mean,
        null_std=std,
        null_skewness=skewness,
        null_distribution=values,
        n_x=samples.n_x,
        n_y=samples.n_y,
        method=f"{weights.name}, {statistic.title}, {how}",
    )
