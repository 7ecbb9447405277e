"""The smooth laws that a statistic may have over all labellings.

Each is a short description. `crossedge.null.pvalues` computes its tails and
`crossedge.null.laws` its moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossedge.statistics.label_moments import Form, LabelMoments

Nulls = tuple[str, ...]
BOTH: Nulls = ("normal", "pearson3")


@dataclass(frozen=True)
class Linear:
    """The law of a form a R + b L of the within-sums, whose moments are exact.

    The statistic is that form plus a constant.
    """

    form: Callable[[LabelMoments], Form]

    nulls: ClassVar[Nulls] = BOTH


@dataclass(frozen=True)
class ChiSquare:
    """A chi-square law for a sum of two parts, one for each z-score of `edge_counts.zscores`.

    A part whose z-score cannot vary is 0. Every other part adds its degrees of freedom: one if it
    is the square of a z-score that the null takes for normal, two if it is minus twice the
    logarithm of a p-value by that null.
    """

    degrees: Literal[1, 2]  # of each part
    null: Literal["normal", "pearson3"]

    def __post_init__(self) -> None:
        if self.degrees not in (1, 2):
            raise ValueError(f"degrees={self.degrees} is not supported: give 1 or 2")

    @property
    def nulls(self) -> Nulls:
        return (self.null,)


@dataclass(frozen=True)
class LargerOfTwo:
    """The law of the larger of the first z-score of `edge_counts.zscores` and the second's size."""

    nulls: ClassVar[Nulls] = BOTH


SmoothLaw = Linear | ChiSquare | LargerOfTwo
