"""(R_x, R_y) -> statistic, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from crossedge.statistics.edge_counts import cross, fisher, generalized, largest, weighted
from crossedge.statistics.label_moments import Form
from crossedge.statistics.label_moments import LabelMoments as LabelMoments
from crossedge.statistics.mean_discrepancies import energy, energy_form, mmd, mmd_form

Value = Callable[[torch.Tensor, torch.Tensor, LabelMoments], torch.Tensor]


class WithinSums(NamedTuple):
    """What labels make of W, one entry for each labelling."""

    x: torch.Tensor  # R_x
    y: torch.Tensor  # R_y
    deviation: torch.Tensor | None = None  # `mmd_deviation`, for a studentized statistic


@dataclass(frozen=True)
class Statistic:
    """A test statistic as a function of the within-sums, large or small where samples differ."""

    name: str
    title: str
    value: Value
    small_rejects: bool = False
    form: Callable[[LabelMoments], Form] | None = None  # if it is linear, but for a constant
    studentized: bool = False  # divided by its standard deviation under the alternative

    @property
    def sign(self) -> int:
        """Of the statistic as evidence against equality."""
        return -1 if self.small_rejects else 1

    def of(self, within: WithinSums, moments: LabelMoments) -> torch.Tensor:
        value = self.value(within.x, within.y, moments)
        if within.deviation is None:
            return value
        varies = within.deviation > 0  # it is 0 only where all weights are
        return torch.where(varies, value / torch.where(varies, within.deviation, 1.0), 0.0 * value)


def _cross_form(_: LabelMoments) -> Form:
    return Form(-0.5, 0.0)


def _weighted_form(moments: LabelMoments) -> Form:
    return moments.weighted


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic("cross", "cross-edge count", cross, True, _cross_form),
        Statistic("weighted", "weighted edge count", weighted, False, _weighted_form),
        Statistic("generalized", "generalized edge count", generalized),
        Statistic("max", "max-type edge count", largest),
        Statistic("fisher", "edge counts combined by Fisher's rule", fisher),
        Statistic("mmd", "unbiased squared MMD", mmd, False, mmd_form),
        Statistic("mmd_ratio", "squared MMD over its deviation", mmd, studentized=True),
        Statistic("energy", "squared energy distance", energy, False, energy_form),
    )
}


def statistic_named(name: object) -> Statistic:
    if not isinstance(name, str) or name not in STATISTICS:
        known = ", ".join(repr(known) for known in STATISTICS)
        raise ValueError(f"statistic={name!r} is unknown: choose from {known}")
    return STATISTICS[name]
