"""Power studies: draw samples, test them and count rejections at every point of a grid."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from crossedge.runtime.counts import count_of
from crossedge.runtime.randomness import Rng, random_key
from crossedge.runtime.types import Floats
from crossedge.studies.candidates import check_candidates
from crossedge.studies.folder import Answer, StudyFolder, fingerprint
from crossedge.studies.grid import Cell, Grid, Point, cells_of, check_all_taken, check_grid
from crossedge.studies.picture import draw_study
from crossedge.studies.sampling import Sampler, check_samplers
from crossedge.studies.workers import Work, finished, need, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE = 0.95  # of intervals for the power
LEVEL_TOLERANCE = 1e-12  # for rounding: a p-value of 20 / 400 must reject at level 0.05


def power_study(
    samplers: Sampler | Sequence[Sampler],
    tests: Mapping[str, Any],
    *,
    grid: Grid | None = None,
    repetitions: SupportsIndex = 300,
    level: float = 0.05,
    n_resamples: int = 399,
    rng: Rng = 0,
    jobs: int = 1,
    dask: Any = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> PowerStudy:
    """Estimate how often tests reject, against alternatives that you sample.

    All tests see the same samples and the same labellings, so that differences between tests are
    known more precisely than their powers. The numbers depend only on the arguments up to `rng`,
    neither on the workers nor on interruptions.

    Parameters
    ----------
    samplers : function, or a pair of functions
        A function of a numpy Generator, and of values of the grid by name, that returns two samples
        (x, y); or two such functions that return one sample each.
    tests : dict
        Tests by name. A test is weights; a list of weights, for the adaptive test over them; None,
        for the default adaptive test; a dictionary of arguments of `two_sample`, in which "weights"
        may be a function of values of the grid, as {"weights": lambda d: ce.SpanningTree(d**0.5)};
        or a function of x, y, a numpy Generator, and of values of the grid by name, that returns a
        p-value or an object with a `pvalue`.
    grid : dict of lists, or list of dicts, optional
        Values for the samplers and tests: lists in all combinations, or one dictionary for each
        point. By default there is one point, without values.
    repetitions : int
        Number of pairs of samples at every point.
    level : float
        Significance level: a test rejects if its p-value is at most this.
    n_resamples : int
        Number of labellings, for tests that do not set it themselves. Choose it so that
        (1 + n_resamples) times the level is a whole number, else tests reject a little less often
        than the level allows.
    rng : int, numpy Generator or torch Generator
        Source of randomness.
    jobs : int
        Number of worker processes; -1 for one on every core.
    dask : str or distributed.Client, optional
        Dask cluster that does the work instead, or the address of its scheduler.
    folder : path, optional
        Folder in which to save finished work, after every 25 repetitions at a point. The same call
        continues from there, however it was stopped. It may then ask for more points and more
        repetitions.
    progress : bool
        Whether to show a progress bar, on a terminal.

    Returns
    -------
    PowerStudy
        The powers as a table, `.frame`; `.plot()`, `.difference(test, other)` and `.pvalues`.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or if the folder holds another study. Errors of samplers and tests
        name the point of the grid at which they occurred.
    ConnectionError
        If the Dask cluster does not answer or has no worker.
    ChildProcessError
        If workers die again and again.
    ModuleNotFoundError
        If an optional package is missing.

    See Also
    --------
    two_sample : The test that is studied.

    Examples
    --------
    >>> import crossedge as ce
    >>> study = ce.power_study(
    ...     lambda rng, shift: (rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + shift),
    ...     {"tree": ce.SpanningTree(), "energy": ce.EnergyKernel()},
    ...     grid={"shift": [0.0, 1.0]},
    ...     repetitions=50,
    ... )
    >>> study.frame[["shift", "test", "power", "standard_error"]].round(2)
       shift    test  power  standard_error
    0    0.0    tree   0.00            0.00
    1    0.0  energy   0.02            0.02
    2    1.0    tree   0.52            0.07
    3    1.0  energy   0.96            0.03
    """
    drawing = check_samplers(samplers)
    candidates = check_candidates(tests, n_resamples)
    points = check_grid(grid)
    count = count_of(repetitions, "repetitions")
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level={level!r} is not between 0 and 1: give one such as 0.05")
    if isinstance(jobs, bool) or not isinstance(jobs, Integral) or (jobs < 1 and jobs != -1):
        raise ValueError(f"jobs={jobs!r} is no number of processes: give 1 or more, or -1")
    if dask is not None and jobs != 1:
        raise ValueError(f"jobs={jobs} does not go with dask, which has workers: leave one out")
    takers = [*drawing, *(one for each in candidates for one in each.depends_on)]
    check_all_taken(points[0], takers)
    need("pandas", "the frame")  # fail before the work, not after it
    work = Work(drawing, candidates, points, int(random_key(rng)))
    kept = None if folder is None else StudyFolder(folder, _made_of(work))
    pvalues = {each.name: np.full((len(points), count), np.nan) for each in candidates}

    def enter(cell: Cell, answer: Answer) -> None:
        for name, some in answer.items():
            pvalues[name][cell.point, cell.first : cell.last] = some

    cells, left = cells_of(points, count), []
    for cell in cells:
        known = kept.load(cell, points[cell.point]) if kept else None
        if known is None:
            left.append(cell)
        else:
            enter(cell, known)
    done = len(cells) - len(left)
    try:
        with progress_bar(progress, len(cells), done) as advance:
            for cell, answer in finished(work, left, int(jobs), dask):
                if kept:
                    kept.keep(cell, points[cell.point], answer)
                enter(cell, answer)
                done += 1
                advance()
    except KeyboardInterrupt:
        remedy = f"kept in {kept.path}: the same call goes on from there" if kept else "lost"
        remedy += "" if kept else ": give a folder to keep them"
        raise KeyboardInterrupt(f"{done} of {len(cells)} cells are done, and {remedy}") from None
    return PowerStudy(points, pvalues, float(level))


@dataclass(frozen=True, eq=False, repr=False)
class PowerStudy:
    """Result of `power_study`.

    Attributes
    ----------
    points : list of dict
        Points of the grid.
    pvalues : dict of arrays
        p-values by the name of the test, of shape (points, repetitions).
    level : float
        Significance level.
    frame : pandas.DataFrame
        One row for each point and test, with the values of the grid, `test`, `power`,
        `standard_error`, `lower` and `upper` (Wilson's interval of 95% confidence), `repetitions`
        and `level`.

    See Also
    --------
    power_study : Run a study.
    """

    points: list[Point]
    pvalues: dict[str, Floats]
    level: float

    @cached_property
    def frame(self) -> Any:
        """Table of powers with one row for each point and test."""
        rows = []
        for place, point in enumerate(self.points):
            for name, values in self.pvalues.items():
                rejected = values[place] <= self.level + LEVEL_TOLERANCE
                power, count = float(rejected.mean()), len(rejected)
                lower, upper = wilson(int(rejected.sum()), count, CONFIDENCE)
                rows.append(
                    {
                        **point,
                        "test": name,
                        "power": power,
                        "standard_error": math.sqrt(power * (1 - power) / count),
                        "lower": lower,
                        "upper": upper,
                        "repetitions": count,
                        "level": self.level,
                    }
                )
        return need("pandas", "the frame").DataFrame(rows)

    def difference(self, test: str, other: str) -> Any:
        """Return how much more power one test has than another.

        Both saw the same samples, so the standard error is that of the paired difference, usually
        smaller than from the two powers alone.

        Parameters
        ----------
        test, other : str
            Names of two tests of the study.

        Returns
        -------
        pandas.DataFrame
            One row for each point, with the values of the grid, `test`, `versus`, `difference` and
            `standard_error`.

        Raises
        ------
        ValueError
            If the study has no test of that name.
        """
        rows = []
        for place, point in enumerate(self.points):
            one, two = (
                (self._of(name)[place] <= self.level + LEVEL_TOLERANCE).astype(float)
                for name in (test, other)
            )
            error = float((one - two).std() / math.sqrt(len(one)))
            rows.append(
                {
                    **point,
                    "test": test,
                    "versus": other,
                    "difference": float((one - two).mean()),
                    "standard_error": error,
                }
            )
        return need("pandas", "the frame").DataFrame(rows)

    def plot(self, x: str | None = None, tests: Sequence[str] | None = None) -> Figure:
        """Plot power curves with bands of 95% confidence.

        There is one panel for each combination of the values other than x.

        Parameters
        ----------
        x : str, optional
            Name in the grid along the horizontal axis; by default the one with the most numbers.
        tests : sequence of str, optional
            Names of the tests to draw, in order; by default all.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ValueError
            If the study has no grid, or no such name or test.
        """
        x = self._axis() if x is None else x
        if x not in self.points[0]:
            names = ", ".join(self.points[0]) or "no names at all"
            raise ValueError(f"x={x!r} is not in the grid, which has {names}")
        for name in tests or ():
            self._of(name)
        return draw_study(self.frame, x, self.points, tests)

    def _of(self, test: str) -> Floats:
        """Return the p-values of a test, or raise ValueError."""
        if test not in self.pvalues:
            raise ValueError(f"{test!r} is no test of this study: it has {', '.join(self.pvalues)}")
        return self.pvalues[test]

    def _axis(self) -> str:
        """Return the name in the grid with the most distinct numbers."""
        values = {
            name: {point[name] for point in self.points if isinstance(point[name], int | float)}
            for name in self.points[0]
        }
        if not values:
            raise ValueError("this study has no grid, and so no axis: look at its frame")
        return max(values, key=lambda name: len(values[name]))

    def __repr__(self) -> str:
        repetitions = next(iter(self.pvalues.values())).shape[1]
        head = f"power at level {self.level:g}, {repetitions} repetitions"
        return f"{head}\n{self.frame.drop(columns=['repetitions', 'level']).to_string(index=False)}"


def wilson(rejected: int, count: int, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a proportion, accurate near 0 and 1 too (Wilson, 1927)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, shrink = rejected / count, 1 + z**2 / count
    middle = (share + z**2 / (2 * count)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _made_of(work: Work) -> dict[str, Any]:
    """Return what must be equal for two studies to share a folder."""
    return {
        "crossedge": importlib.import_module("crossedge").__version__,
        "samplers": fingerprint(work.samplers),
        "tests": {
            each.name: fingerprint([each.function, each.options]) for each in work.candidates
        },
        "rng": work.key,
    }
