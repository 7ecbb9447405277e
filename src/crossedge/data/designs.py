"""Designs: which labels may be exchanged if the distributions are equal.

A design groups the pooled rows into units, whose rows share one label, and the units into strata.
Labels are exchanged between units of a stratum only, and strata are independent. Pairs are strata
of two rows, one of each sample. Free exchange is one stratum of single rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crossedge.data.samples import is_frame
from crossedge.runtime.arrays import is_tensor
from crossedge.runtime.types import Bools, Floats, Ints

SHOWN_COLUMNS = 5  # in a message
HINT = "give 'pairs', ce.Strata(labels) or ce.Clusters(labels)"


@dataclass(frozen=True, eq=False)
class Strata:
    """Rows whose labels are exchanged within strata only, such as days, sites or batches.

    Parameters
    ----------
    labels : array, pair of arrays or str
        The stratum of each row, numbers or texts: one for each pooled row, x first, or a pair of
        arrays, for x and for y. For frames, also the name of a column, which is then no coordinate.

    See Also
    --------
    Clusters : Rows that share their label.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> day = rng.integers(5, size=60)
    >>> x, y = rng.normal(size=30) + 9 * day[:30], rng.normal(size=30) + 9 * day[30:]
    >>> ce.two_sample(x, y, blocks=ce.Strata(day), rng=0).design
    'labels are exchanged within 5 strata'
    """

    labels: Any


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows that share their label: whole clusters, subjects or trajectories are relabelled.

    Parameters
    ----------
    labels : array, pair of arrays or str
        The cluster of each row, as for `Strata`. The rows of a cluster must be of one sample.
    strata : array, pair of arrays or str, optional
        The stratum of each row, if clusters are exchanged within strata only.

    See Also
    --------
    Strata : Rows that are exchanged within strata.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> mouse = np.repeat(np.arange(12), 10)  # ten cells of each of twelve mice
    >>> cells = rng.normal(size=120) + rng.normal(size=12)[mouse]
    >>> found = ce.two_sample(cells[:60], cells[60:], blocks=ce.Clusters(mouse), rng=0)
    >>> found.design, found.law
    ('whole clusters are relabelled, 6 and 6', 'all 924 labellings')
    """

    labels: Any
    strata: Any = None


Blocks = Literal["pairs"] | Strata | Clusters


@dataclass(frozen=True, eq=False)
class Design:
    """Units of rows in strata, and how many units of a stratum have each label."""

    unit: Ints  # (n,): the unit of each pooled row
    stratum: Ints  # (units,): the stratum of each unit
    counts: (
        Ints  # (strata, samples): the number of units of each sample, the same in all labellings
    )
    words: str = ""  # for a summary

    @cached_property
    def rows(self) -> Ints:
        """The number of rows of each unit."""
        found: Ints = np.bincount(self.unit)
        return found

    @cached_property
    def sizes(self) -> Ints:
        """The number of units of each stratum."""
        found: Ints = self.counts.sum(1)
        return found

    @cached_property
    def mean_rows(self) -> Floats:
        """The mean number of rows of each sample over all labellings, (samples,)."""
        rows = np.bincount(self.stratum, self.rows, len(self.counts))
        found: Floats = (rows / self.sizes) @ self.counts
        return found

    @cached_property
    def is_even(self) -> bool:
        """Whether all labellings have the same numbers of rows in each sample."""
        order = np.argsort(self.stratum, kind="stable")
        stratum, rows = self.stratum[order], self.rows[order]
        return not ((np.diff(stratum) == 0) & (np.diff(rows) != 0)).any()

    @cached_property
    def is_free(self) -> Bools:
        """Whether any labels of each stratum can be exchanged, (strata,)."""
        found: Bools = (self.counts > 0).sum(1) > 1
        return found


def part_of(design: Design, rows: Ints, samples: Sequence[int]) -> Design:
    """Return the design of these rows, which are all rows of these samples."""
    units, unit = np.unique(design.unit[rows], return_inverse=True)
    strata, stratum = np.unique(design.stratum[units], return_inverse=True)
    return Design(unit, stratum, design.counts[strata][:, list(samples)], design.words)


def free_design(sample: Ints) -> Design:
    """Return the design in which all rows are exchangeable; `sample` has the sample of each row."""
    n = len(sample)
    return Design(np.arange(n), np.zeros(n, np.int64), np.bincount(sample)[None])


def design_of(blocks: Blocks, sample: Ints) -> Design:
    """Return the checked design of pooled rows, given the number of the sample of each."""
    sizes, n = np.bincount(sample), len(sample)
    if isinstance(blocks, str):
        _check_pairs(sizes)
        places = [np.flatnonzero(sample == each) for each in range(len(sizes))]
        stratum = np.empty(n, np.int64)
        for place in places:
            stratum[place] = np.arange(len(place))
        counts = np.ones((int(sizes[0]), len(sizes)), np.int64)
        what = "pairs" if len(sizes) == 2 else "matched rows"
        words = f"labels are exchanged within {sizes[0]:,} {what}"
        return Design(np.arange(n), stratum, counts, words)
    if isinstance(blocks, Strata):
        stratum = _numbered(blocks.labels, sample, "strata")[0]
        counts = _counts(stratum, sample)
        words = f"labels are exchanged within {_strata(counts)}"
        return Design(np.arange(n), stratum, counts, words)
    unit, names = _numbered(blocks.labels, sample, "clusters")
    first = np.unique(unit, return_index=True)[1]
    _check_shared(sample, unit, first, names, "rows of two samples", "its rows must share a label")
    stratum = np.zeros(len(first), np.int64)
    within = ""
    if blocks.strata is not None:
        of_rows = _numbered(blocks.strata, sample, "strata")[0]
        _check_shared(of_rows, unit, first, names, "rows of two strata", "a cluster is in one")
        stratum = of_rows[first]
    counts = _counts(stratum, sample[first])
    if blocks.strata is not None:
        within = f", within {_strata(counts)}"
    *most, last = (f"{count:,}" for count in counts.sum(0))
    words = f"whole clusters are relabelled, {', '.join(most)} and {last}{within}"
    return Design(unit, stratum, counts, words)


def check_blocks(blocks: object) -> None:
    """Raise TypeError or ValueError unless this is a way to name blocks."""
    if isinstance(blocks, type):
        raise TypeError(f"blocks is a class: give an instance, as ce.{blocks.__name__}(labels)")
    if isinstance(blocks, str):
        if blocks != "pairs":
            raise ValueError(f"blocks={blocks!r} is unknown: {HINT}")
    elif blocks is not None and not isinstance(blocks, Strata | Clusters):
        raise TypeError(f"blocks is of type {type(blocks).__name__}: {HINT}")


def _check_pairs(sizes: Ints) -> None:
    """Raise ValueError unless samples whose rows are paired are of one size."""
    if len(set(sizes.tolist())) > 1:
        found = " and ".join(map(str, sizes))
        raise ValueError(
            f"blocks='pairs' pairs the rows in order, but the samples have {found}: "
            "give as many rows of each, or name the pairs by ce.Strata(labels)"
        )


def taken_out(samples: Sequence[Any], blocks: Blocks) -> tuple[list[Any], Blocks]:
    """Return the samples without the columns that the blocks name, and blocks with their labels."""
    if isinstance(blocks, str):
        return list(samples), blocks
    names = [name for name in vars(blocks).values() if isinstance(name, str)]
    if not names:
        return list(samples), blocks
    for each in samples:
        if not is_frame(each):
            raise TypeError(
                f"blocks names the column {names[0]!r}, and a sample is no frame: "
                "give the labels themselves"
            )
    found = {
        field: tuple(_column(each, name) for each in samples) if isinstance(name, str) else name
        for field, name in vars(blocks).items()
    }
    rest = []
    for each in samples:
        others = [name for name in each.columns if name not in names]
        rest.append(each.with_columns(others) if hasattr(each, "named") else each[others])
    return rest, type(blocks)(**found)


def _column(frame: Any, name: str) -> Any:
    if name not in list(frame.columns):
        known = ", ".join(map(str, frame.columns[:SHOWN_COLUMNS]))
        more = ", ..." * (len(frame.columns) > SHOWN_COLUMNS)
        raise ValueError(
            f"blocks names the column {name!r}, which a sample lacks: it has {known}{more}"
        )
    return frame[name]


def _numbered(labels: Any, sample: Ints, what: str) -> tuple[Ints, list[Any]]:
    """Return a number for the label of each pooled row, and the label of each number."""
    sizes = np.bincount(sample)
    parts = [labels]
    if isinstance(labels, tuple | list) and len(labels) == len(sizes):
        several = all(np.ndim(_plain(each)) for each in labels)
        parts = list(labels) if several else parts
    vectors = [_plain(part) for part in parts]
    for vector in vectors:
        if vector.ndim != 1:
            raise ValueError(
                f"the labels of {what} have shape {vector.shape}: give one label for each row"
            )
    given = [len(vector) for vector in vectors]
    wanted = sizes.tolist() if len(parts) > 1 else [len(sample)]
    if given != wanted:
        raise ValueError(
            f"there are {' and '.join(map(str, given))} labels of {what} for "
            f"{' and '.join(map(str, wanted))} rows: give one for each"
        )
    if len(parts) > 1:
        together = np.empty(len(sample), object)
        for place, vector in enumerate(vectors):
            together[sample == place] = vector
    else:
        together = vectors[0].astype(object)
    numbers: dict[Any, int] = {}
    found = np.empty(len(sample), np.int64)
    for row, label in enumerate(together.tolist()):
        if _is_missing(label):
            raise ValueError(f"the labels of {what} are missing in row {row}: drop such rows")
        found[row] = numbers.setdefault(label, len(numbers))
    return found, list(numbers)


def _plain(labels: Any) -> Any:
    return np.asarray(labels.detach().cpu() if is_tensor(labels) else labels)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA
        return True


def _check_shared(
    of_rows: Ints, unit: Ints, first: Ints, names: list[Any], found: str, rule: str
) -> None:
    """Raise ValueError unless all rows of a unit have the same value."""
    differs = np.flatnonzero(of_rows != of_rows[first][unit])
    if len(differs):
        name = names[unit[differs[0]]]
        raise ValueError(
            f"cluster {name!r} has {found}: {rule}; name clusters apart, or use ce.Strata"
        )


def _counts(stratum: Ints, sample: Ints) -> Ints:
    counts = np.zeros((int(stratum.max()) + 1, int(sample.max()) + 1), np.int64)
    np.add.at(counts, (stratum, sample), 1)
    return counts


def _strata(counts: Ints) -> str:
    """Return the number of strata in words, and how many of them hold one sample only."""
    alone = int(((counts > 0).sum(1) == 1).sum())
    text = f"{len(counts):,} strat{'um' if len(counts) == 1 else 'a'}"
    return text + (f", {alone:,} of them with one sample only" if alone else "")
