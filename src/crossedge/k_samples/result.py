"""The result of a test of several samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from crossedge.data.columns import Column, printable
from crossedge.result import Member
from crossedge.runtime.types import Floats
from crossedge.summaries import SummaryWithNull, plain_values
from crossedge.weights import Weights


class SamplePair(NamedTuple):
    """Two of the samples.

    Attributes
    ----------
    a, b : str
        The names of the samples.
    crossing : float
        The weight of the edges between them, in the graph of all samples.
    mean, std : float
        Its mean and standard deviation if all samples have one distribution.
    zscore : float
        How many standard deviations `crossing` lies above its mean: negative if the samples avoid
        each other.
    pvalue : float
        The p-value of the adaptive test of these two samples, whose labels alone are exchanged.
    adjusted : float
        The p-value adjusted for the family-wise error rate over all pairs, and at least that of the
        whole test.
    """

    a: str
    b: str
    crossing: float
    mean: float
    std: float
    zscore: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False, repr=False)
class KSampleResult(SummaryWithNull):
    """The result of `k_sample`, which prints as a summary.

    Attributes
    ----------
    pvalue, log_pvalue : float
        The p-value of the whole test, that all samples have one distribution. Never 0.
    statistic : float
        The soft maximum of the evidence of all members.
    zscore, null_mean, null_std : float
        The same in standard deviations above its mean on relabelled samples, and these two.
    null_distribution : array
        (n_resamples,) values of the statistic on relabelled samples.
    names : tuple of str
        The names of the samples: keys, or places in the list.
    sizes : tuple of int
        The numbers of their points.
    pairs : tuple of SamplePair
        All pairs of samples, in order: `.a`, `.b`, `.crossing`, `.mean`, `.std`, `.zscore`,
        `.pvalue` and `.adjusted`.
    covariance : array
        (pairs, pairs) covariances of the crossing counts if all samples have one distribution.
        They are exact, as the means are; with blocks they are those of 2,048 labellings.
    counted : Member
        The member whose crossing edges are counted: the strongest one that is a graph, or the
        strongest if none is.
    weights : tuple of Weights
        All weights of the test.
    members : tuple of Member
        The parts of the test, with their evidence and uncorrected p-values.
    law : str
        How the p-value was found, in words.
    n_resamples : int
        The number of labellings visited.
    exact : bool
        Whether these are all labellings.
    columns : tuple of Column
        For frames, what was done to each column.
    design : str or None
        Which labels were exchanged, in words, if `blocks` were given.

    See Also
    --------
    k_sample : The test that returns it.
    """

    statistic: float
    pvalue: float
    log_pvalue: float
    zscore: float
    null_mean: float
    null_std: float
    null_distribution: Floats
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    pairs: tuple[SamplePair, ...]
    covariance: Floats
    counted: Member
    weights: tuple[Weights, ...]
    members: tuple[Member, ...]
    law: str
    n_resamples: int
    exact: bool
    columns: tuple[Column, ...] = ()
    design: str | None = None

    @property
    def method(self) -> str:
        """The test and the law, in words."""
        return f"adaptive over {len(self.members)} tests, {self.law}"

    @property
    def strongest(self) -> Member:
        """The member with the most evidence."""
        return max(self.members, key=lambda member: member.evidence)

    def to_dict(self, null_distribution: bool = False) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold.

        Parameters
        ----------
        null_distribution : bool, optional
            Whether to include the values of the statistic on relabelled samples, as a list.

        Returns
        -------
        dict
        """
        facts: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        if not null_distribution:
            del facts["null_distribution"]
        facts |= {
            "method": self.method,
            "names": [*self.names],
            "sizes": [*self.sizes],
            "pairs": [pair._asdict() for pair in self.pairs],
            "counted": self.counted.name,
            "weights": [each.name for each in self.weights],
            "members": [each._asdict() | {"weights": each.weights.name} for each in self.members],
            "columns": [asdict(column) | {"outputs": [*column.outputs]} for column in self.columns],
        }
        plain: dict[str, Any] = plain_values(facts)
        return plain

    @property
    def _title(self) -> str:
        return f"{len(self.names)}-sample test: {self.method}"

    def _facts(self) -> list[tuple[str, str]]:
        sizes = ", ".join(
            f"{printable(name)} ({size:,} points)"
            for name, size in zip(self.names, self.sizes, strict=True)
        )
        lead = self.strongest
        equal = f"if the distributions are equal: {self.null_mean:.6g} ± {self.null_std:.4g}"
        rows = [
            ("samples", sizes),
            *([("blocks", self.design)] if self.design else []),
            ("statistic", f"{self.statistic:.6g}  ({equal})"),
            ("p-value", f"{self.pvalue:.4g}"),
            ("carried by", f"{lead.name}, {lead.statistic}"),
        ]
        rows += [
            (
                "pair",
                f"{printable(pair.a)} and {printable(pair.b)}: p = {pair.pvalue:.4g}, adjusted "
                f"{pair.adjusted:.4g}; {pair.crossing:.6g} edges cross where {pair.mean:.6g} ± "
                f"{pair.std:.3g} would",
            )
            for pair in self.pairs
        ]
        return rows
