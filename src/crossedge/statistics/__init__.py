"""(R_x, R_y) -> statistic, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from crossedge.statistics.edge_counts import (
    cross,
    cross_form,
    fisher,
    generalized,
    largest,
    weighted,
    weighted_form,
)
from crossedge.statistics.label_moments import Form
from crossedge.statistics.label_moments import LabelMoments as LabelMoments
from crossedge.statistics.mean_discrepancies import energy, energy_form, mmd, mmd_form
from crossedge.statistics.smooth_laws import ChiSquare as ChiSquare
from crossedge.statistics.smooth_laws import LargerOfTwo as LargerOfTwo
from crossedge.statistics.smooth_laws import Linear as Linear
from crossedge.statistics.smooth_laws import Nulls, SmoothLaw

if TYPE_CHECKING:
    from crossedge.weights import Weights

Value = Callable[[torch.Tensor, torch.Tensor, LabelMoments], torch.Tensor]


class WithinSums(NamedTuple):
    """The sums of W inside each sample, with one entry for each labelling."""

    x: torch.Tensor  # R_x
    y: torch.Tensor  # R_y
    deviation: torch.Tensor | None = None  # `mmd_deviation`, for a studentized statistic


@dataclass(frozen=True)
class Statistic:
    """A test statistic as a function of the within-sums.

    It is large where samples differ, or small if `small_rejects`. Without a law, its p-values come
    from labellings only, and values closer than 1e-8 (1 + |value|) count as equal.
    """

    name: str
    title: str
    value: Value
    law: SmoothLaw | None = None
    small_rejects: bool = False
    studentized: bool = False  # divided by its standard deviation under the alternative
    order: int = 2  # of the highest label moments that the value depends on
    made_for: str = ""  # the only weights that give it a meaning, as the user writes them

    @property
    def sign(self) -> int:
        """The sign that makes large values evidence against equality."""
        return -1 if self.small_rejects else 1

    @property
    def form(self) -> Callable[[LabelMoments], Form] | None:
        """The form that the statistic is, up to a constant; None if it is not linear."""
        return self.law.form if isinstance(self.law, Linear) else None

    @property
    def nulls(self) -> Nulls:
        """The smooth nulls that the statistic has a law for, the most accurate last."""
        return () if self.law is None else self.law.nulls

    def check_weights(self, weights: Weights) -> None:
        """Raise ValueError if the statistic has no meaning for these weights."""
        if self.made_for and weights.default_statistic != self.name:
            raise ValueError(
                f"statistic={self.name!r} does not go with {weights!r}: "
                f"choose {weights.default_statistic!r}, or weights={self.made_for}"
            )

    def of(self, within: WithinSums, moments: LabelMoments) -> torch.Tensor:
        """Return the value on each labelling; 0 where a studentized one has no deviation."""
        value = self.value(within.x, within.y, moments)
        if within.deviation is None:
            return value
        varies = within.deviation > 0  # it is 0 only where all weights are
        return torch.where(varies, value / torch.where(varies, within.deviation, 1.0), 0.0 * value)


ENERGY = "ce.EnergyKernel()"

STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic("cross", "cross-edge count", cross, Linear(cross_form), small_rejects=True),
        Statistic("weighted", "weighted edge count", weighted, Linear(weighted_form)),
        Statistic("generalized", "generalized edge count", generalized, ChiSquare(1, "normal")),
        Statistic("max", "max-type edge count", largest, LargerOfTwo()),
        Statistic(
            "fisher",
            "edge counts combined by Fisher's rule",
            fisher,
            ChiSquare(2, "pearson3"),
            order=3,
        ),
        Statistic("mmd", "unbiased squared MMD", mmd, Linear(mmd_form)),
        Statistic("mmd_ratio", "squared MMD over its deviation", mmd, studentized=True),
        Statistic(
            "energy", "squared energy distance", energy, Linear(energy_form), made_for=ENERGY
        ),
    )
}


def statistic_named(name: object) -> Statistic:
    """Return the statistic of this name, or raise ValueError with the names that exist."""
    if not isinstance(name, str) or name not in STATISTICS:
        known = ", ".join(repr(known) for known in STATISTICS)
        raise ValueError(f"statistic={name!r} is unknown: choose from {known}")
    return STATISTICS[name]
