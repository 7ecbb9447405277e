"""The result of a two-sample test."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crossedge.data.columns import Column, printable, share_compared
from crossedge.statistics import STATISTICS
from crossedge.summaries import SummaryWithNull, plain_values
from crossedge.weights import Weights

SHOWN_NAMES = 5  # of columns that were left out
LEAST_GAP = 1e-9  # relative: values on labellings that are closer are equal
LOG_LEAST = -700.0  # below this log p, the p-value is close to the smallest float: print log p too


class Member(NamedTuple):
    """One part of an adaptive test: some weights with one statistic.

    Attributes
    ----------
    weights : Weights
        The weights of this part.
    statistic : str
        Its statistic, as `two_sample` names it.
    evidence : float
        Minus the logarithm of its p-value by a smooth law ("pearson3", but chi-square for
        "generalized" and "fisher"). The adaptive statistic is a soft maximum of these.
    pvalue : float
        Its permutation p-value, by the same labellings as the whole test. It is not corrected for
        the number of parts.
    view : str
        What the points were mapped to: "whitened", "ranks", "squared ranks", or "" for the points
        as they are.
    """

    weights: Weights
    statistic: str
    evidence: float
    pvalue: float
    view: str = ""

    @property
    def name(self) -> str:
        """The weights in words, and of what they are."""
        of_view = f" of {self.view}" + (" points" if self.view == "whitened" else "")
        return self.weights.name + (of_view if self.view else "")


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(SummaryWithNull):
    """The result of `two_sample`, which prints as a summary.

    Attributes
    ----------
    statistic : float
        The statistic of the samples as given. For "cross", small values are evidence against
        equality; for all others, large values are.
    pvalue : float
        The probability of a value at least as extreme if both distributions are equal. Never 0.
    log_pvalue : float
        The natural logarithm of the p-value, accurate also where `pvalue` would underflow.
    zscore : float
        How many standard deviations the statistic lies above its mean under the null; 0 if the
        statistic cannot vary.
    null_mean, null_std, null_skewness : float
        Moments of the statistic over all labellings of the pooled sample. They are exact for
        "cross", "weighted", "mmd" and "energy"; for other statistics they are the moments of the
        drawn values or of the law. With blocks, the skewness is that of 2,048 labellings, and above
        4,000 points all three are.
    null_distribution : array or None
        (n_resamples,) values of the statistic on relabelled samples; None if a law was used.
    n_x, n_y : int
        The sizes of the samples.
    weights : Weights or tuple of Weights
        The weights of the test; a tuple for an adaptive test.
    statistic_name : str
        The statistic, as `two_sample` names it; "adaptive" for an adaptive test.
    null : str
        The null, as `two_sample` names it.
    law : str
        How the p-value was found, in words. For null="tail" it says which law answered.
    n_resamples : int
        The number of labellings visited; 0 if the p-value comes from a law.
    exact : bool
        Whether the p-value is exact: over all labellings, without an approximation.
    method : str
        The weights, the statistic and the law, in words.
    members : tuple of Member
        The parts of an adaptive test, each with `.weights`, `.statistic`, `.evidence` and an
        uncorrected `.pvalue`. Empty for a single test.
    strongest : Member or None
        The member with the most evidence; None for a single test.
    left_out : float
        A bound on the share of the weight of the complete graph that lies on pairs which
        `neighbours` or `rank` leaves out. It is 0 for all other weights. What is left out costs
        power at most: the p-value is as valid as that of the complete graph.
    standard_error : float
        The standard error of "cross" that random projections add; 0 for weights that are exact.
    columns : tuple of Column
        For frames and files, what was done to each column: `.name`, `.kind`, `.treatment`,
        `.outputs` (the coordinates that it became, none if it was left out) and `.missing`.
    design : str or None
        Which labels were exchanged, in words, if `blocks` were given. None if all were.
    level : float or None
        With early_stopping at a level, that level: the p-value is an upper bound then, hardly ever
        below the level, which only answers whether it is. None otherwise.

    See Also
    --------
    two_sample : The test that returns it.
    crossedge.plots.plot_null : Draw the null distribution and the observed statistic.
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
    weights: Weights | tuple[Weights, ...]
    statistic_name: str
    null: str
    law: str
    n_resamples: int
    exact: bool
    members: tuple[Member, ...] = ()
    left_out: float = 0.0
    standard_error: float = 0.0
    columns: tuple[Column, ...] = ()
    design: str | None = None
    level: float | None = None

    @property
    def method(self) -> str:
        """The weights, the statistic and the law, in words."""
        if isinstance(self.weights, tuple):
            count = len(self.members)
            return f"adaptive over {count} test{'s' if count != 1 else ''}, {self.law}"
        return f"{self.weights.name}, {self.statistic_title}, {self.law}"

    @property
    def statistic_title(self) -> str:
        """The statistic in words."""
        if isinstance(self.weights, tuple):
            return "soft maximum of the evidence"
        return STATISTICS[self.statistic_name].title

    @property
    def verdict(self) -> str:
        """The answer in one line of words."""
        compared = share_compared(self.columns)
        note = f"; {compared}" if compared else ""
        grades = [(1e-3, "very strong"), (1e-2, "strong"), (5e-2, "some")]
        p = f"p = {self.pvalue:.4g}"
        if self.level is not None:
            grades = [(self.level, "")]
            p = f"p at most {self.pvalue:.4g}; stopped at level {self.level:g}"
        found = [word for level, word in grades if self.pvalue <= level]
        if found:
            return f"{found[0]} evidence that the samples differ ({p}){note}".lstrip()
        return (
            f"no evidence that the samples differ ({p}), "
            f"which is no proof that they are equal{note}"
        )

    @property
    def least_pvalue(self) -> float:
        """The smallest p-value that all labellings could give; 0 if a law or a bet answered."""
        values = self.null_distribution
        if values is None or self.level is not None:
            return 0.0
        if not self.exact:
            return 1 / (self.n_resamples + 1)
        small = self.statistic_name in STATISTICS and STATISTICS[self.statistic_name].small_rejects
        extreme = -values if small else values
        tolerance = LEAST_GAP * (1 + float(np.abs(values).max()))
        return float((extreme >= extreme.max() - tolerance).mean())

    @property
    def strongest(self) -> Member | None:
        """The member of an adaptive test with the most evidence; None for a single test."""
        return max(self.members, key=lambda member: member.evidence, default=None)

    def to_dict(self, null_distribution: bool = False) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold.

        Weights are given by name, and numbers that are not finite are None.

        Parameters
        ----------
        null_distribution : bool, optional
            Whether to include the values of the statistic on relabelled samples, as a list.

        Returns
        -------
        dict
        """
        families = self.weights if isinstance(self.weights, tuple) else (self.weights,)
        names = [each.name for each in families]
        facts: dict[str, Any] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("null_distribution", "weights", "members", "columns")
        }
        facts |= {
            "method": self.method,
            "weights": names if isinstance(self.weights, tuple) else names[0],
            "members": [each._asdict() | {"weights": each.weights.name} for each in self.members],
            "columns": [asdict(column) | {"outputs": [*column.outputs]} for column in self.columns],
        }
        if null_distribution:
            values = self.null_distribution
            facts["null_distribution"] = None if values is None else values.tolist()
        plain: dict[str, Any] = plain_values(facts)
        return plain

    def plot(self, ax: Any = None) -> Any:
        """Draw the null distribution and the observed statistic, by `plots.plot_null`.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        Axes
        """
        # plots is a room further down, and it needs matplotlib: it is imported where it is used
        return import_module("crossedge.plots").plot_null(self, ax=ax)

    def _approximations(self) -> list[tuple[str, str]]:
        """Return rows on what was left out or estimated."""
        rows = []
        if self.standard_error:
            error = f"weights by random projections: statistic ± {self.standard_error:.2g}"
            rows.append(("estimated", error))
        if 0 < self.left_out < 1:
            rows.append(("left out", f"at most {self.left_out:.2g} of the weight"))
        elif self.left_out:
            rows.append(("left out", "not known: the bound on the weight is no use here"))
        return rows

    @property
    def _title(self) -> str:
        return f"two-sample test: {self.method}"

    def _facts(self) -> list[tuple[str, str]]:
        lead = self.strongest
        equal = f"if the distributions are equal: {self.null_mean:.6g} ± {self.null_std:.4g}"
        bound = "" if self.level is None else f"an answer at level {self.level:g}: at most "
        log_p = f"  (log {self.log_pvalue:.4g})" if self.log_pvalue < LOG_LEAST else ""
        return [
            ("samples", f"{self.n_x:,} and {self.n_y:,} points"),
            *([("blocks", self.design)] if self.design else []),
            ("statistic", f"{self.statistic:.6g}  ({equal})"),
            ("z-score", f"{self.zscore:.3g}"),
            ("p-value", f"{bound}{self.pvalue:.4g}{log_p}"),
            *([("carried by", f"{lead.name}, {lead.statistic}")] if lead else []),
            *self._approximations(),
            *self._columns_in_words(),
        ]

    def _columns_in_words(self) -> list[tuple[str, str]]:
        """Return a row that counts the columns of each kind, and one on those left out."""
        if not self.columns:
            return []
        kept = [column for column in self.columns if column.outputs]
        kinds = Counter(column.kind for column in kept)
        plural = {"category": "categories"}
        counts = ", ".join(
            f"{count} {kind if count == 1 else plural.get(kind, kind + 's')}"
            for kind, count in kinds.items()
        )
        width = sum(len(column.outputs) for column in kept)
        missing = sum(column.missing for column in kept)
        shape = f"{counts}, as points in {width} dimension{'s' if width > 1 else ''}"
        rows = [("columns", shape + (f", {missing:,} missing values" if missing else ""))]
        gone = [printable(column.name) for column in self.columns if not column.outputs]
        more = f" and {len(gone) - SHOWN_NAMES} more" if len(gone) > SHOWN_NAMES else ""
        if gone:
            rows.append(("", f"without {', '.join(gone[:SHOWN_NAMES])}{more}"))
        return rows
