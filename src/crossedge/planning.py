"""How many rows a test needs, from two pilot samples.

Subsamples of the pilot, drawn without replacement, show how the power of the test grows up to half
the size of the pilot. Nothing is drawn twice: copies would be each other's nearest neighbours. If
the smallest of them find the difference too often to tell, they are halved further. The curve

    power(N) = Phi(evidence (N / n)^growth - z),   z the quantile of the level, n rows in the pilot,

is fitted and continued, 1/2 <= growth <= 1. The evidence for a fixed difference grows like the root
of N once it is large, and like N while a kernel test is weak; the subsamples choose between.

Two errors make the interval. The subsamples are few: L(evidence, growth) is their likelihood. And
the pilot is one of many: its evidence is off by a normal error, whose standard deviation s is about
1.5 as long as the evidence is below 2.5. In larger pilots the error of the effect falls like the
root of n, relatively, while the evidence e grows like n^growth, so that s is
1.5 (e / 2.5)^(1 - 1 / (2 growth)). The interval has the N of all (evidence + error, growth) with

    2 log(max L / L(evidence, growth)) + (error / s)^2 <= 1.96^2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from crossedge.data.columns import check_scale
from crossedge.data.distances import BlockDistance, distances_of
from crossedge.data.samples import Samples, pool, random_rows
from crossedge.null import Law
from crossedge.runtime.calls import run_usual
from crossedge.runtime.interrupts import checkpoint
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Floats
from crossedge.summaries import Summary, plain_values
from crossedge.verbs import CheckedTest, checked_test
from crossedge.weights import Graph, Weights

FEWEST_ROWS = 10  # of each pilot
SMALLEST = 5  # rows of the smaller part of a subsample
LARGEST = 3000  # rows of a subsample
LARGEST_SHARE = 0.5  # of the pilot: larger subsamples are too much alike
SIZES = 5  # of subsamples, each half of the next
INFORMATIVE = 0.6  # power to which the smallest subsamples are brought, by halving them further
SUBSAMPLES = 100  # of each size
ENOUGH = 0.98  # power from which larger subsamples have nothing to tell
LEAST_EVIDENCE = 1.0  # standard deviations, of the whole pilot: with less nothing can be planned
GROWTHS = np.linspace(0.5, 1.0, 11)
EVIDENCES = np.concatenate([np.linspace(0, 10, 801), np.geomspace(10, 200, 161)[1:]])  # of a size
NORMAL = 1.959963984540054  # half a 95% interval, in standard deviations
# The standard deviation of the evidence of a pilot: 1.3 to 2 under differences, and not 1. The
# number was chosen on two families of benchmarks/planning.py, which measures it on all four.
PILOT_ERROR = 1.5
USUAL_EVIDENCE = 2.5  # that of 80% power at the level 0.05: pilots about there gave the number


@dataclass(frozen=True, repr=False)
class Plan(Summary):
    """How many rows a test needs, which prints as a summary.

    Attributes
    ----------
    n_x, n_y : int or None
        The rows of each sample, in the proportion of the pilots. None if the pilots show too little
        of a difference to plan by.
    interval : pair
        The total number of rows at the ends of a 95% interval; None for an end without a bound.
        There is none below five rows of a sample, since nothing smaller was looked at.
    power, level : float
        What is wanted.
    pilot : pair of int
        The rows of the pilots.
    evidence : float
        The mean evidence of a test of pilots of this size, in standard deviations, estimated from
        all subsamples.
    growth : float
        The power of the number of rows with which the evidence grows, from 1/2 to 1.
    curve : tuple
        Pairs of a total number of rows and the share of subsamples of this size that were found
        different.

    See Also
    --------
    plan : The function that returns it.
    """

    n_x: int | None
    n_y: int | None
    interval: tuple[int | None, int | None]
    power: float
    level: float
    pilot: tuple[int, int]
    evidence: float
    growth: float
    curve: tuple[tuple[int, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        facts |= {"interval": [*self.interval], "pilot": [*self.pilot]}
        facts["curve"] = [[*each] for each in self.curve]
        plain: dict[str, Any] = plain_values(facts)
        return plain

    def power_at(self, rows: float) -> float:
        """Return the power with so many rows of both samples together, by the fitted curve."""
        from scipy.special import ndtr, ndtri

        evidence = self.evidence * (rows / sum(self.pilot)) ** self.growth
        return float(ndtr(evidence - ndtri(1 - self.level)))

    def plot(self, ax: Any = None) -> Any:
        """Draw how the power grows, by `plots.plot_plan`, and return the axes."""
        # plots is a room further down, and it needs matplotlib: it is imported where it is used
        return import_module("crossedge.plots").plot_plan(self, ax=ax)

    @property
    def _title(self) -> str:
        return f"rows for {self.power:.4g} power at level {self.level:g}"

    def _facts(self) -> list[tuple[str, str]]:
        rows = [("pilot", f"{self.pilot[0]:,} and {self.pilot[1]:,} rows")]
        if self.n_x is None or self.n_y is None:
            said = "no difference in the pilot: planning needs an assumed difference"
            rows.append(("needed", said))
        else:
            low, high = self.interval
            most = "no bound" if high is None else f"{high:,}"
            ends = f"up to {most}" if low is None else f"{low:,} to {most}"
            rows.append(("needed", f"{self.n_x:,} and {self.n_y:,} rows"))
            rows.append(("in all", f"{self.n_x + self.n_y:,}, 95% interval {ends}"))
            if self.n_x > self.pilot[0]:
                rows.append(("", "which is beyond the pilot, by extrapolation"))
        shown = ", ".join(f"{found:.0%} at {size:,}" for size, found in self.curve)
        return [*rows, ("subsamples", f"{shown} rows in all are found different")]


def plan(
    x: Any,
    y: Any,
    weights: Weights | Sequence[Weights] | None = None,
    *,
    power: float = 0.8,
    level: float = 0.05,
    statistic: str | None = None,
    null: str | Law = "permutation",
    distance: float | BlockDistance = 2.0,
    scale: str | None = None,
    rng: Rng = None,
    n_subsamples: SupportsIndex = SUBSAMPLES,
) -> Plan:
    """Estimate from two pilot samples how many rows a test needs to find their difference.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The pilots, as in `two_sample`, of at least ten points each.
    weights, statistic, null, distance, scale : optional
        The test that is planned, as in `two_sample`.
    power : float, optional
        The probability with which the difference shall be found.
    level : float, optional
        The level of the test.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.
    n_subsamples : int, optional
        Subsamples of each size.

    Returns
    -------
    Plan
        The number of rows, with an interval. Printing it shows a summary.

    Raises
    ------
    TypeError, ValueError
        If the samples or the choices are invalid, as for `two_sample`, or a number is out of range.

    Warns
    -----
    UserWarning
        For frames, as in `two_sample`.

    See Also
    --------
    power_study : The power of tests where distributions can be drawn from.

    Notes
    -----
    The answer is as good as the pilots are: with evidence of two standard deviations the number of
    rows is known to a factor of several, and the interval says so. It holds for differences like
    that of the pilots, not for others. docs/planning.md compares plans with the truth.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 1)), rng.normal(size=(100, 1)) + 1
    >>> found = ce.plan(x, y, ce.EnergyKernel(), rng=0)
    >>> found.n_x == found.n_y < 100
    True
    """
    for name, value in (("power", power), ("level", level)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            raise TypeError(f"{name}={value!r} is no number: give one between 0 and 1")
        if not 0 < value < 1:
            raise ValueError(f"{name}={value} is out of range: give a number between 0 and 1")
    if power <= level:
        raise ValueError(f"power={power} is at most the level {level}, which no test is below")
    if isinstance(distance, str) or isinstance(weights, Graph):
        given = "distance='precomputed'" if isinstance(distance, str) else "a Graph"
        raise ValueError(f"{given} has no points, and planning draws some of them: give points")
    check_rng(rng)
    check_scale(scale)
    count = int(n_subsamples)
    if count < 20:
        raise ValueError(f"n_subsamples={count} is too small: give at least 20")
    resamples = max(199, math.ceil(10 / level) - 1)
    test = checked_test(weights, statistic=statistic, null=null, n_resamples=resamples, brief=True)

    def run() -> tuple[Plan, tuple[str, ...]]:
        samples = pool(x, y, scale)
        n_x, n_y = samples.n_x, samples.n_y
        if min(n_x, n_y) < FEWEST_ROWS:
            raise ValueError(
                f"the pilots have {n_x} and {n_y} rows: give at least {FEWEST_ROWS} of each"
            )
        source = np.random.default_rng(int(random_key(rng)))
        enough = min(INFORMATIVE, float(power))
        curve = tuple(_curve(samples, test, distance, float(level), enough, count, source))
        fit = fitted(curve, n_x + n_y, float(level), count)
        return _planned(fit, curve, (n_x, n_y), float(power), float(level)), samples.cautions

    found, cautions = run_usual(run)
    for caution in cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return found


class Fit(NamedTuple):
    """Curves of power, Phi(evidence (N / pilot)^growth - z), and the most likely one of them."""

    evidence: float
    growth: float
    evidences: Floats  # (growths, evidences) of all curves
    drops: Floats  # of the same shape: twice the log likelihood, less than that of the best


def _curve(
    samples: Samples,
    test: CheckedTest,
    distance: float | BlockDistance,
    level: float,
    enough: float,
    count: int,
    source: np.random.Generator,
) -> list[tuple[int, float]]:
    """Return the power at several sizes of subsamples, the smallest first."""
    n = len(samples.in_x)
    largest = min(LARGEST_SHARE * n, LARGEST)
    least = SMALLEST * n / min(samples.n_x, samples.n_y)

    def power(size: int) -> float:
        rejected = 0
        for _ in range(count):
            checkpoint()
            some = samples.rows(random_rows(samples, size, source))
            if np.ptp(some.values, axis=0).any():  # points that are all equal differ in nothing
                own = test(some, distances_of(some, distance), source)
                rejected += own.pvalue <= level
        return rejected / count

    floor = min(math.ceil(least), n)
    sizes = [round(largest / 2**step) for step in reversed(range(SIZES))]
    smallest, *larger = [each for each in sizes if each >= least] or [floor]
    found = [(smallest, power(smallest))]
    while found[0][1] > enough and found[0][0] > floor:
        smaller = max(found[0][0] // 2, floor)
        found.insert(0, (smaller, power(smaller)))
    for size in larger:
        if found[-1][1] >= ENOUGH:
            break
        found.append((size, power(size)))
    return found


def fitted(curve: Sequence[tuple[int, float]], n: int, level: float, count: int) -> Fit:
    """Return the curve of power under which the subsamples are the most likely, and all others."""
    from scipy.special import ndtr, ndtri

    sizes = np.array([size for size, _ in curve], np.float64)
    hits = np.array([found for _, found in curve]) * count
    z, middle = float(ndtri(1 - level)), float(np.exp(np.log(sizes).mean()))
    shares = (sizes / middle) ** GROWTHS[:, None, None]  # evidence is that of a middle size here
    power = ndtr(EVIDENCES[:, None] * shares - z).clip(1e-9, 1 - 1e-9)
    likely = (hits * np.log(power) + (count - hits) * np.log1p(-power)).sum(-1)
    best = int((likely >= likely.max() - 1e-9).argmax())  # of several, the least growth
    evidences = EVIDENCES * (n / middle) ** GROWTHS[:, None]
    return Fit(
        evidence=float(evidences.flat[best]),
        growth=float(GROWTHS[best // len(EVIDENCES)]),
        evidences=evidences,
        drops=2 * (likely.max() - likely),
    )


def _planned(fit: Fit, curve: Any, pilot: tuple[int, int], power: float, level: float) -> Plan:
    from scipy.special import ndtri

    wanted = float(ndtri(power) + ndtri(1 - level))
    n = sum(pilot)
    least = SMALLEST * n / min(pilot)  # nothing smaller was looked at

    def needed(evidence: Any, growth: Any) -> Any:
        """Return the total number of rows, as a fraction."""
        with np.errstate(divide="ignore", over="ignore"):
            return n * (wanted / np.maximum(evidence, 0.0)) ** (1 / growth)

    def rows(exact: float) -> tuple[int, int] | None:
        n_x, n_y = (math.ceil(min(exact, 1e12) * own / n - 1e-9) for own in pilot)
        return (n_x, n_y) if exact < 1e12 else None

    beyond = np.maximum(fit.evidences / USUAL_EVIDENCE, 1.0) ** (1 - 0.5 / GROWTHS[:, None])
    error = PILOT_ERROR * beyond * np.sqrt(np.maximum(NORMAL**2 - fit.drops, 0.0))
    likely = fit.drops <= NORMAL**2
    ends = [needed(fit.evidences + side * error, GROWTHS[:, None])[likely] for side in (1, -1)]
    fewest, most = float(ends[0].min()), float(ends[1].max())
    low, high = (
        None if found is None else sum(found)
        for found in (rows(fewest) if fewest >= least else None, rows(max(most, least)))
    )
    exact = max(float(needed(fit.evidence, fit.growth)), least)
    n_x, n_y = (fit.evidence >= LEAST_EVIDENCE and rows(exact)) or (None, None)
    return Plan(
        n_x=n_x,
        n_y=n_y,
        interval=(low, high),
        power=power,
        level=level,
        pilot=pilot,
        evidence=fit.evidence,
        growth=fit.growth,
        curve=tuple(curve),
    )
