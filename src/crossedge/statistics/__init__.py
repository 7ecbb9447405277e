"""(R_x, R_y) -> statistic, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from crossedge.statistics.edge_counts import cross, generalized, largest, weighted
from crossedge.statistics.label_moments import Form
from crossedge.statistics.label_moments import LabelMoments as LabelMoments

Value = Callable[[torch.Tensor, torch.Tensor, LabelMoments], torch.Tensor]


@dataclass(frozen=True)
class Statistic:
    """A test statistic as a function of the within-sums, large or small where samples differ."""

    name: str
    title: str
    value: Value
    small_rejects: bool = False
    form: Callable[[LabelMoments], Form] | None = None  # if it is linear, but for a constant

    @property
    def sign(self) -> int:
        """Of the statistic as evidence against equality."""
        return -1 if self.small_rejects else 1


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
    )
}


def statistic_named(name: object) -> Statistic:
    if not isinstance(name, str) or name not in STATISTICS:
        known = ", ".join(repr(known) for known in STATISTICS)
        raise ValueError(f"statistic={name!r} is unknown: choose from {known}")
    return STATISTICS[name]
