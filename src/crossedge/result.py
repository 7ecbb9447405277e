"""The answer of a two-sample test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.weights import Weights

LOG_LEAST = -700.0  # below, the p-value itself is the least that a float can be


class Member(NamedTuple):
    """What one pair of weights and a statistic found, as a part of an adaptive test.

    Attributes
    ----------
    weights : Weights
    statistic : str
    evidence : float
        What it brings to the whole: minus the logarithm of its p-value by the smooth law
        ("pearson3"; for "generalized", chi-square).
    pvalue : float
        By the same labellings as the whole, as if it were the only test.
    """

    weights: Weights
    statistic: str
    evidence: float
    pvalue: float


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """The answer of `two_sample`.

    Attributes
    ----------
    statistic : float
        The value on the samples as given. For "cross" a small value speaks against equality.
    pvalue : float
        The probability, were the labels exchangeable, of a value at least as extreme. Never 0.
    log_pvalue : float
        Its natural logarithm, also where the p-value itself is below the range of floats.
    zscore : float
        How many standard deviations the statistic lies above its mean under the null; 0 where it
        cannot vary.
    null_mean, null_std, null_skewness : float
        Moments of the statistic over all labellings of the pooled sample; exact for "cross",
        "weighted", "mmd" and "energy", else those of the values drawn, or of the law that the null
        takes.
    null_distribution : array or None
        (labellings,) values of the statistic on relabelled samples, if the null is "permutation".
    n_x, n_y : int
        The sizes of the samples.
    method : str
        What was done, in words.
    members : tuple
        Of an adaptive test: `.weights`, `.statistic`, `.evidence` and `.pvalue` of each part, as if
        it were alone. The p-value of the whole pays for their number.
    strongest : Member or None
        The one with the most evidence.
    """

    statistic: float
    pvalue: float
    log_pvalue: float
    zscore: float
    null_mean: float
    null_std: float
    null_skewness: float
    null_distribution: npt.NDArray[np.float64] | None
    n_x: int
    n_y: int
    method: str
    members: tuple[Member, ...] = ()

    @property
    def strongest(self) -> Member | None:
        """The member of an adaptive test that brought the most evidence."""
        return max(self.members, key=lambda member: member.evidence, default=None)

    def __repr__(self) -> str:
        lead = self.strongest
        return "\n".join(
            [
                f"two-sample test: {self.method}",
                f"  samples    {self.n_x:,} and {self.n_y:,} points",
                f"  statistic  {self.statistic:.6g}"
                f"  (if the distributions are equal: {self.null_mean:.6g} ± {self.null_std:.4g})",
                f"  z-score    {self.zscore:.3g}",
                f"  p-value    {self.pvalue:.4g}"
                + (f"  (log {self.log_pvalue:.4g})" if self.log_pvalue < LOG_LEAST else ""),
            ]
            + ([f"  carried by {lead.weights.name}, {lead.statistic}"] if lead else [])
        )
