"""Rules that end a permutation test before all labellings are visited, with valid p-values.

A rule sees which labellings, in their order, are at least as extreme as the samples. If both
distributions are equal, the samples and the labellings are exchangeable, so the number L of extreme
ones among the first t is uniform on 0, ..., t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import bdtrc

from crossedge.runtime.types import Bools, Floats

SHARE_OF_LEVEL = 0.9  # bets are on p-values below this share of the level
# Wealth below this share of the level is given up. Of tests whose p-value over all labellings is
# 0.03 or 0.04, at level 0.05, 0.3% and 4% are, of 0.1 none is decided otherwise but 0.5%.
GIVEN_UP = 0.1


class Rule(Protocol):
    """When to stop, and the p-value of a test that may stop."""

    def end(self, extreme: Bools) -> int | None:
        """Return the number of labellings at which the test ends, or None if it goes on."""
        ...

    def pvalue(self, extreme: Bools) -> float:
        """Return the p-value after these labellings."""
        ...


@dataclass(frozen=True)
class All:
    """Visit all labellings: b of B are extreme, and the p-value is (1 + b) / (1 + B)."""

    def end(self, extreme: Bools) -> int | None:  # noqa: ARG002
        return None

    def pvalue(self, extreme: Bools) -> float:
        return (1 + int(extreme.sum())) / (1 + len(extreme))


@dataclass(frozen=True)
class AtCount(All):
    """Stop at so many extreme labellings: the p-value is their share (Besag and Clifford, 1991)."""

    count: int

    def end(self, extreme: Bools) -> int | None:
        places = np.flatnonzero(extreme)
        return int(places[self.count - 1]) + 1 if len(places) >= self.count else None

    def pvalue(self, extreme: Bools) -> float:
        found = int(extreme.sum())
        return found / len(extreme) if found >= self.count else super().pvalue(extreme)


@dataclass(frozen=True)
class AtLevel:
    """Stop where a bet has won or lost at a level (Fischer and Ramdas, 2024).

    The bet is that the p-value is uniform on (0, c). Its wealth is the probability of L under the
    bet in units of 1 / (t + 1), that of equal distributions:

        wealth_t = (t + 1) / c * integral from 0 to c of binomial(L; t, p) dp
                 = P(Binomial(t + 1, c) > L) / c.

    If both distributions are equal it is a martingale, so it ever reaches 1 / a with probability a
    at most, and the smallest 1 / wealth so far is a p-value at whatever labelling one stops. Ties
    count as extreme, which only lowers the wealth. The test stops where the wealth is 1 / level, or
    so low that it hardly ever recovers. It often misses p-values between 0.8 and 1 times the level,
    the more of them the fewer labellings there are.
    """

    level: float

    @property
    def fewest(self) -> int:
        """The fewest labellings, none of them extreme, at which the wealth is 1 / level."""
        c = SHARE_OF_LEVEL * self.level
        return math.ceil(math.log1p(-SHARE_OF_LEVEL) / math.log1p(-c)) - 1

    def wealth(self, extreme: Bools) -> Floats:
        """Return the wealth after each labelling."""
        c = SHARE_OF_LEVEL * self.level
        visited = np.arange(1, len(extreme) + 1)
        found: Floats = bdtrc(np.cumsum(extreme), visited + 1, c) / c
        return found

    def end(self, extreme: Bools) -> int | None:
        wealth = self.wealth(extreme)
        places = np.flatnonzero((wealth >= 1 / self.level) | (wealth < GIVEN_UP * self.level))
        return int(places[0]) + 1 if len(places) else None

    def pvalue(self, extreme: Bools) -> float:
        return float(min(1.0, 1 / self.wealth(extreme).max(initial=1.0)))


VISIT_ALL = All()


def rule_of(early_stopping: float | None) -> Rule:
    """Return the rule that `two_sample` means: a number of labellings, a level, or no rule."""
    if early_stopping is None:
        return VISIT_ALL
    return AtCount(early_stopping) if isinstance(early_stopping, int) else AtLevel(early_stopping)
