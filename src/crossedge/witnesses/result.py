"""The answer of `witness`: points, columns and regions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from crossedge.data.columns import short_name
from crossedge.runtime.types import Bools, Floats
from crossedge.summaries import Summary, plain_values

SHOWN_COLUMNS = 5  # in a summary


@dataclass(frozen=True, eq=False)
class PointWitness:
    """How far the mix of each point's neighbourhood departs from chance, the points of x first.

    Attributes
    ----------
    excess : array
        (n,) departures of the share of y in the neighbourhood from its share in the pooled sample,
        over the largest possible: 1 if all neighbours are from y, -1 if all are from x.
    pvalues : array
        (n,) shares of the scores of all points on all labellings that are at least as large.
    adjusted : array
        (n,) p-values adjusted for the false discovery rate, and at least the global p-value.
    significant : array
        (n,) booleans: whether `adjusted` is at most the level, and the excess is one of the point
        and does not only reach in from elsewhere, as far as smaller neighbourhoods tell.
    """

    excess: Floats
    pvalues: Floats
    adjusted: Floats
    significant: Bools


@dataclass(frozen=True)
class ColumnWitness:
    """The test of one column, and what leaving it out does to the whole.

    Attributes
    ----------
    name, kind : str
        The column, and what it holds: "number", "date", "boolean" or "category".
    pvalue : float
        The permutation p-value of this column alone.
    adjusted : float
        The p-value adjusted for the family-wise error rate over all columns, and at least the
        global p-value.
    significant : bool
        Whether `adjusted` is at most the level.
    pvalue_without : float
        The p-value of the energy test of all other columns together; 1 if there are none.
    share : float
        The share of the z-score of the energy test that is lost without the column. It is negative
        if the column only adds noise, and NaN if the whole has no evidence.
    description : str
        What differs, such as "mean 41.2 -> 49.8".
    """

    name: str
    kind: str
    pvalue: float
    adjusted: float
    significant: bool
    pvalue_without: float
    share: float
    description: str


@dataclass(frozen=True)
class Region:
    """A region with different shares of the two samples.

    Attributes
    ----------
    description : str
        The region in the columns' own terms, and how many times as many rows of y it holds.
    share_x, share_y : float
        The shares of the samples in the region.
    n_x, n_y : int
        The numbers of rows.
    ratio : float
        share_y / share_x; infinite if no row of x is there.
    pvalue : float
        Adjusted for all candidates, and at least the global p-value.
    where, times : str
        The two halves of the description.
    """

    description: str
    share_x: float
    share_y: float
    n_x: int
    n_y: int
    ratio: float
    pvalue: float
    where: str = ""
    times: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Summary):
    """Where two samples differ, which prints as a summary.

    Attributes
    ----------
    pvalue : float
        The global p-value, of the smallest of the p-values in `parts`. Unless it is at most the
        level, nothing is significant.
    parts : dict
        The p-values of the parts: "whole" (the test of the pooled sample), "points", "columns" and
        "regions" (the largest score of each).
    level : float
        The level at which points, columns and regions are significant.
    points : PointWitness
        The points, in the order of `rows`.
    columns : tuple of ColumnWitness
        All columns, the strongest first.
    regions : tuple of Region
        The significant regions, the strongest first.
    n_x, n_y : int
        The numbers of points that were taken.
    rows : array
        (n,) which rows of the pooled samples were taken, x first.
    n_resamples : int
        The number of labellings.
    conjunctions : bool
        Whether regions in two columns were scanned; they are not in very wide tables.
    coordinates : array or None
        (n, d) the points, for a map; None if there are only distances.
    in_x : array
        (n,) booleans: which points are from x.
    n_given : int
        The number of rows that were given, of which at most `max_points` were taken.
    names : pair of str
        What the samples are called.

    See Also
    --------
    witness : The function that returns it.
    """

    pvalue: float
    parts: dict[str, float]
    level: float
    points: PointWitness
    columns: tuple[ColumnWitness, ...]
    regions: tuple[Region, ...]
    n_x: int
    n_y: int
    rows: Any
    n_resamples: int
    conjunctions: bool
    coordinates: Floats | None
    in_x: Bools
    n_given: int = 0
    names: tuple[str, str] = ("x", "y")

    @property
    def _title(self) -> str:
        return "where the samples differ"

    def _facts(self) -> list[tuple[str, str]]:
        chosen = self.points.significant
        few = "" if len(chosen) == self.n_given else f", drawn from {self.n_given:,}"
        x, y = (short_name(name) for name in self.names)
        sizes = f"{self.n_x:,} and {self.n_y:,} points"
        if self.names != ("x", "y"):
            sizes = f"{self.n_x:,} points of {x} and {self.n_y:,} of {y}"
        lines = [
            ("samples", f"{sizes}{few}"),
            ("p-value", f"{self.pvalue:.4g}  ({self.n_resamples:,} labellings)"),
        ]
        if self.pvalue > self.level:
            return [*lines, ("found", f"nothing at level {self.level:g}")]
        more = int((chosen & (self.points.excess > 0)).sum())
        less = int(chosen.sum()) - more
        seen = [f"{count:,} where {name} is" for count, name in ((more, y), (less, x)) if count]
        said = "no single one stands out"
        if seen:
            said = ", ".join([f"{seen[0]} over-represented", *seen[1:]])
        lines.append(("points", said))
        found = [column for column in self.columns if column.significant]
        for column in found[:SHOWN_COLUMNS]:
            text = f"{short_name(column.name)}: {column.description} (p = {column.adjusted:.3g})"
            lines.append(("column", text))
        if len(found) > SHOWN_COLUMNS:
            lines.append(("", f"and {len(found) - SHOWN_COLUMNS} more columns"))
        lines += [("region", f"{r.description} (p = {r.pvalue:.3g})") for r in self.regions]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold; infinity and NaN are None.

        Returns
        -------
        dict
        """
        facts = {
            "pvalue": self.pvalue,
            "parts": dict(self.parts),
            "names": [*self.names],
            "level": self.level,
            "n_x": self.n_x,
            "n_y": self.n_y,
            "n_given": self.n_given,
            "n_resamples": self.n_resamples,
            "conjunctions": self.conjunctions,
            "rows": self.rows,
            "points": asdict(self.points),
            "columns": [asdict(column) for column in self.columns],
            "regions": [asdict(region) for region in self.regions],
        }
        found: dict[str, Any] = plain_values(facts)
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw a map of the points, coloured by their excess, by `plots.plot_witness`.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        Axes
        """
        # plots is a room further down, and it needs matplotlib: it is imported where it is used
        return import_module("crossedge.plots").plot_witness(self, ax=ax)
