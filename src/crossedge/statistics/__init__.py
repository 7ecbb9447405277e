"""Test statistics as functions of the within-sums (R_x, R_y), one small function for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from crossedge.moments import Form as Form
from crossedge.moments import LabelMoments as LabelMoments
from crossedge.runtime.arrays import namespace
from crossedge.runtime.types import Array
from crossedge.statistics import edge_counts as counts
from crossedge.statistics import mean_discrepancies as means
from crossedge.statistics.laws import ChiSquare as ChiSquare
from crossedge.statistics.laws import LargerOfTwo as LargerOfTwo
from crossedge.statistics.laws import Law
from crossedge.statistics.laws import Linear as Linear

if TYPE_CHECKING:
    from crossedge.weights import Weights

Value = Callable[[Array, Array, LabelMoments], Array]  # R_x, R_y, moments -> the statistic
UNKNOWN_ROUNDING = 1e-8  # relative: values of a statistic without a law that are closer are equal


class WithinSums(NamedTuple):
    """The sums of W over the pairs inside each sample, with one entry for each labelling."""

    x: Array  # R_x
    y: Array  # R_y
    deviation: Array | None = None  # `mmd_deviation`, if the statistic is studentized


@dataclass(frozen=True)
class Statistic:
    """A test statistic as a function of the within-sums.

    Large values are evidence against equality; small ones if `small_rejects`. A statistic without a
    law has permutation p-values only, and values closer than 1e-8 (1 + |value|) count as equal.
    """

    name: str  # as in `two_sample`
    title: str  # as in a summary
    value: Value
    law: Law | None = None
    small_rejects: bool = False
    studentized: bool = False  # divided by its standard deviation over fresh samples
    made_for: str = ""  # the only weights for which it has a meaning, in Python; "" for any

    @property
    def sign(self) -> int:
        """The sign that makes large values evidence against equality."""
        return -1 if self.small_rejects else 1

    @property
    def form(self) -> Callable[[LabelMoments], Form] | None:
        """The linear form a R + b L of the statistic, up to a constant; None if not linear."""
        return self.law.form if isinstance(self.law, Linear) else None

    @property
    def nulls(self) -> tuple[str, ...]:
        """The names of the nulls of the statistic, other than "permutation"."""
        return () if self.law is None else self.law.nulls

    def check_weights(self, weights: Weights) -> None:
        """Raise ValueError if the statistic has no meaning for these weights."""
        if self.made_for and weights.default_statistic != self.name:
            raise ValueError(
                f"statistic={self.name!r} does not go with {weights!r}: "
                f"choose {weights.default_statistic!r}, or weights={self.made_for}"
            )

    def of(self, within: WithinSums, moments: LabelMoments) -> Array:
        """Return the value on each labelling; a studentized statistic is 0 if its deviation is."""
        value = self.value(within.x, within.y, moments)
        if within.deviation is None:
            return value
        xp, varies = namespace(value), within.deviation > 0  # 0 only if all weights are 0
        return xp.where(varies, value / xp.where(varies, within.deviation, 1.0), 0.0 * value)

    def rounding(self, moments: LabelMoments, observed: float) -> float:
        """Return the tolerance within which two values count as equal, because of rounding."""
        if self.law is None:
            return UNKNOWN_ROUNDING * (1 + abs(observed))
        return self.law.rounding(moments, observed)


STATISTICS = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "cross",
            "cross-edge count",
            counts.cross,
            Linear(counts.cross_form),
            small_rejects=True,
        ),
        Statistic("weighted", "weighted edge count", counts.weighted, Linear(counts.weighted_form)),
        Statistic(
            "generalized", "generalized edge count", counts.generalized, ChiSquare(1, "normal")
        ),
        Statistic("max", "max-type edge count", counts.largest, LargerOfTwo()),
        Statistic(
            "fisher",
            "edge counts combined by Fisher's rule",
            counts.fisher,
            ChiSquare(2, "pearson3"),
        ),
        Statistic("mmd", "unbiased squared MMD", means.mmd, Linear(means.mmd_form)),
        Statistic("mmd_ratio", "squared MMD over its deviation", means.mmd, studentized=True),
        Statistic(
            "energy",
            "squared energy distance",
            means.energy,
            Linear(means.energy_form),
            made_for="ce.EnergyKernel()",
        ),
    )
}


def statistic_named(name: object) -> Statistic:
    """Return the statistic of this name, or raise ValueError that lists all names."""
    if not isinstance(name, str) or name not in STATISTICS:
        known = ", ".join(repr(known) for known in STATISTICS)
        raise ValueError(f"statistic={name!r} is unknown: choose from {known}")
    return STATISTICS[name]
