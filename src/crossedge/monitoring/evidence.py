"""Evidence of a change from independent uniform p-values, one for each batch.

A bet e(p) = s p^(s - 1), with s in (0, 1], has mean 1 under a uniform p: it wins where p is small,
most for small s. The product of the bets since batch j is a test martingale that looks for
a change at j. Nobody knows j or s, so all are mixed, with weights that are fixed in advance:

- With a false-alarm rate a, the change begins at j with weight 1 / (j (j + 1)). The mixture, the
  parts that have not begun counted as 1, is a test martingale that begins at 1, so it ever
  reaches 1 / a with a probability of at most a (Ville, 1939).
- With a run length L, all j have weight 1 (Shiryaev and Roberts). The sum less the number of
  batches is a martingale, so the mean number of batches until the sum reaches L is at least L, and
  the probability of an alarm within t batches is at most t / L (Doob). See Shin, Ramdas and
  Rinaldo, "E-detectors", 2022.

Both are sums over s of S_t = (S_{t-1} + w_t) e(p_t), which takes a few operations for each batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from crossedge.runtime.types import Floats

RATE = 0.01  # of false alarms, by default
# The bets from cautious ones, which add up small but lasting effects, to bold ones.
SHARPNESS = (0.85, 0.7, 0.5, 0.35, 0.2, 0.1)
LOG_SHARPNESS = np.log(SHARPNESS)


def log_bets(pvalues: Floats) -> Floats:
    """Return the logarithms of all bets, (batches, bets)."""
    bets: Floats = LOG_SHARPNESS + (np.array(SHARPNESS) - 1) * np.log(pvalues)[:, None]
    return bets


@dataclass(frozen=True)
class Rule:
    """When to raise an alarm: by the rate of false alarms for ever, or by the run length."""

    false_alarm_rate: float | None = None
    run_length: float | None = None

    @property
    def threshold(self) -> float:
        """The evidence from which on there is an alarm."""
        if self.run_length is not None:
            return self.run_length
        assert self.false_alarm_rate is not None
        return 1 / self.false_alarm_rate

    def log_weight(self, batch: int) -> float:
        """Return the logarithm of the weight of a change that begins with this batch."""
        return 0.0 if self.run_length is not None else -float(np.log(batch * (batch + 1.0)))

    def not_begun(self, batch: int) -> float:
        """Return the total weight of all changes that begin after this batch."""
        return 0.0 if self.run_length is not None else 1 / (batch + 1)


def rule_of(rate: Any, length: Any) -> Rule:
    """Return the rule of a rate of false alarms or of a run length, or raise ValueError."""
    if rate is not None and length is not None:
        raise ValueError("false_alarm_rate and run_length are both given: leave one of them out")
    if length is not None:
        if isinstance(length, bool) or not (
            isinstance(length, Real) and 1 < float(length) < math.inf
        ):
            raise ValueError(f"run_length={length!r} is not supported: give a number above 1")
        return Rule(run_length=float(length))
    rate = RATE if rate is None else rate
    if isinstance(rate, bool) or not (isinstance(rate, Real) and 0 < float(rate) < 1):
        raise ValueError(f"false_alarm_rate={rate!r} is not supported: give one from 0 to 1")
    return Rule(false_alarm_rate=float(rate))


def begin() -> Floats:
    """Return the logarithms of S for each bet, before the first batch."""
    return np.full(len(SHARPNESS), -np.inf)


def advance(log_sums: Floats, batch: int, pvalue: float, rule: Rule) -> Floats:
    """Return the logarithms of S for each bet after one more batch."""
    bets = log_bets(np.array([pvalue]))[0]
    advanced: Floats = np.logaddexp(log_sums, rule.log_weight(batch)) + bets
    return advanced


def log_evidence(log_sums: Floats, batch: int, rule: Rule) -> float:
    """Return the logarithm of the evidence, to be compared with that of the threshold."""
    begun = float(np.logaddexp.reduce(log_sums)) - float(np.log(len(SHARPNESS)))
    left = rule.not_begun(batch)
    return float(np.logaddexp(begun, np.log(left))) if left else begun


def likely_start(pvalues: Floats) -> int:
    """Return the place of the p-value since when the bets have won the most."""
    later = np.cumsum(log_bets(pvalues)[::-1], axis=0)[::-1]
    won = np.logaddexp.reduce(later, axis=1)
    return int(np.argmax(won))
