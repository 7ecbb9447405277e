"""The monitor: a reference, then batches, and an alarm at a rate that is controlled.

Let bag_t be the rows of the reference and of all batches up to t, without their order. If the
stream is exchangeable, then given bag_t and all that comes later, every choice of the newest rows
among the bag is equally likely. The p-value p_t compares the newest rows as they are with random
choices, so it is uniform given bag_t and the future. Later p-values depend on bag_t and the future
only. Hence p_1, p_2, ... are independent and uniform (a batch version of the conformal test
martingales of Vovk, Gammerman and Shafer).

Two random choices keep this, because they look neither at values nor at which rows are new: the
rows of the past that take part in a test are drawn anew for each batch, and if the memory is full,
the rows that are forgotten are drawn from the whole bag. A memory that favours old rows would not.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from crossedge.adaptive import Scorer
from crossedge.data.columns import Column, check_scale, left_out_lines
from crossedge.data.distances import (
    Distance,
    Distances,
    callable_distances,
    check_norm,
    point_distances,
)
from crossedge.data.samples import Samples
from crossedge.monitoring.changes import changed_columns
from crossedge.monitoring.evidence import advance, begin, likely_start, log_evidence, rule_of
from crossedge.monitoring.ranks import batch_pvalue
from crossedge.monitoring.rows import read_reference, scale_of
from crossedge.monitoring.state import MonitorState
from crossedge.parts import DEFAULT_STATISTICS, Part, Views, all_parts, sparse_parts
from crossedge.runtime.calls import run_usual
from crossedge.runtime.counts import count_of
from crossedge.runtime.randomness import Rng, check_rng, random_key
from crossedge.runtime.types import Ints
from crossedge.statistics import statistic_named
from crossedge.summaries import Shown
from crossedge.weights import Weights
from crossedge.weights.choice import weights_of_points

FEWEST_OF_PAST, PAST_PER_ROW = 500, 5  # rows of the past that meet a batch: at least, and per row
LARGEST_LOG = 700.0  # beyond it, the evidence is more than a float can hold


class Monitor(Shown):
    """Watch a stream of batches for a change of distribution.

    Each batch is compared with everything before it, and the evidence of all batches is added up
    such that the rate of false alarms holds however long the monitor runs.

    Parameters
    ----------
    reference : array, tensor, list or frame
        Rows from before any change, as in `two_sample`.
    weights : Weights or sequence of Weights, optional
        As in `two_sample`. By default the test of each batch is adaptive over graphs of 4, 16 and
        64 nearest neighbours and the energy distance.
    false_alarm_rate : float, optional
        The probability of ever raising an alarm if nothing changes; 0.01 by default.
    run_length : float, optional
        Instead of a rate: if nothing changes, the mean number of batches until an alarm is at
        least this, and an alarm within t batches has a probability of at most t / run_length. Use
        it for a monitor that runs for ever, since a late change is found sooner.
    distance : float or callable, optional
        As in `two_sample`.
    scale : {"robust", "std", "rank", "none"}, optional
        As in `two_sample`: by the batch and all that came before it together.
    max_points : int, optional
        The most rows that take part in the test of one batch. Of the past, five times as many as
        in the batch and at least 500 take part, drawn anew each time.
    memory : int, optional
        The most rows that are kept; if there are more, random ones are forgotten.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness.

    Attributes
    ----------
    alarm : bool
        Whether there has been an alarm since the beginning or the last `reset`.
    history : tuple of MonitorState
        The states after all batches.
    columns : tuple of Column
        For frames, what was done to each column at the last update.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the reference has less than two rows, or an argument is out of range.

    See Also
    --------
    two_sample : The test of two samples.

    Notes
    -----
    The proof, and how fast changes are found, is in docs/monitoring.md. It covers one period
    between resets. Rows must be independent of
    each other: a column that counts time changes with every batch, so leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> rng = np.random.default_rng(0)
    >>> monitor = ce.Monitor(rng.normal(size=(500, 3)), rng=0)
    >>> for shift in (0, 0, 0, 1, 1):
    ...     state = monitor.update(rng.normal(size=(50, 3)) + [shift, 0, 0])
    >>> state.alarm, state.since
    (True, 4)
    """

    _width = 9

    def __init__(
        self,
        reference: Any,
        weights: Weights | Sequence[Weights] | None = None,
        *,
        false_alarm_rate: float | None = None,
        run_length: float | None = None,
        distance: Distance = 2.0,
        scale: str | None = None,
        max_points: int = 2000,
        memory: int = 100_000,
        rng: Rng = None,
    ) -> None:
        self.rule = rule_of(false_alarm_rate, run_length)
        several = weights_of_points(weights)
        self.weights: Weights | tuple[Weights, ...] | None = None
        if several is not None:
            self.weights = weights if isinstance(weights, Weights) else tuple(several)
        check_scale(scale)
        if not callable(distance):
            check_norm(distance, "p >= 1 for l_p, or a callable")
        check_rng(rng)
        self.distance = distance
        self.max_points = count_of(max_points, "max_points", 4)
        self.memory = count_of(memory, "memory", 4)
        self.scale = scale_of(reference, scale)
        self._rows, self._reader = read_reference(reference, self.scale)
        if len(self._rows) < 2:
            raise ValueError("reference has 1 row: give at least 2")
        self._fingerprint = self._rows.fingerprint()
        self._batch_of: Ints = np.zeros(len(self._rows), np.int64)
        self._key = int(random_key(rng))
        self.history: tuple[MonitorState, ...] = ()
        self.columns: tuple[Column, ...] = ()
        self._first = 1  # the first batch since the last reset
        self._log_sums = begin()
        self._said: set[str] = set()
        self._forget(self._source(0))
        self._warn(left_out_lines(self._reader.left_out))

    @property
    def alarm(self) -> bool:
        """Whether there has been an alarm since the beginning or the last `reset`."""
        return len(self.history) >= self._first and self.history[-1].alarm

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns of the reference that are used; None for an array."""
        return self._reader.names

    def update(self, batch: Any, name: str | None = None) -> MonitorState:
        """Compare one more batch with everything before it.

        Parameters
        ----------
        batch : array, tensor, list or frame
            Rows with the columns of the reference.
        name : str, optional
            A name for the batch, which its state keeps.

        Returns
        -------
        MonitorState

        Raises
        ------
        TypeError, ValueError
            If the batch does not fit the reference. The monitor is then as it was before.
        """
        new = self._reader.read(batch)
        number = len(self.history) + 1
        source = self._source(number)

        def work() -> tuple[float, Any, Any]:
            n_past = len(self._rows)
            rows = self._rows.with_more(new)
            made = rows.encoded(n_past, self.scale, look=number == 1)
            chosen, past = self._choose(n_past, len(new), source)
            in_past = np.arange(len(chosen)) < past
            samples = Samples(made.points[chosen], in_past)
            given = self.weights if isinstance(self.weights, tuple) else (self.weights,)
            dense = any(one is not None and one.peak_matrices > 0 for one in given)
            views = Views(self._distances(samples), dense=dense)
            scorer = Scorer(self._parts(views), samples, views)
            return batch_pvalue(scorer, len(chosen), past, source), rows, made

        pvalue, self._rows, made = run_usual(work)
        self.columns = (*made.columns, *self._reader.left_out)
        self._batch_of = np.append(self._batch_of, np.full(len(new), number))
        since_first = number - self._first + 1
        self._log_sums = advance(self._log_sums, since_first, pvalue, self.rule)
        log = min(log_evidence(self._log_sums, since_first, self.rule), LARGEST_LOG)
        state = MonitorState(
            batch=number,
            size=len(new),
            pvalue=pvalue,
            evidence=math.exp(log),
            threshold=self.rule.threshold,
            alarm=self.alarm or math.exp(log) >= self.rule.threshold,
            name=name,
        )
        if state.alarm:
            state = self._described(state)
        self.history = (*self.history, state)
        self._forget(source)
        self._warn(made.cautions)
        return state

    def reset(self, adopt: bool = False) -> None:
        """Begin anew after an alarm, or at any time.

        The rate of false alarms is proved for one period between resets. Which rows stay after an
        alarm depends on the batches that raised it, so in the next period it is approximate.

        Parameters
        ----------
        adopt : bool, optional
            If true, the batches since the change become the reference: the new state is accepted.
            Otherwise they are forgotten, as if what had changed were mended. Without an alarm, all
            rows become the reference.

        Raises
        ------
        ValueError
            If fewer than two rows would be left.
        """
        if self.alarm and (since := self.history[-1].since) is not None:
            kept = (self._batch_of >= since) == adopt
            if kept.sum() < 2:
                raise ValueError(
                    f"reset would leave {int(kept.sum())} rows as the reference: make a new Monitor"
                )
            self._rows = self._rows.take(np.flatnonzero(kept))
        self._batch_of = np.zeros(len(self._rows), np.int64)
        self._first = len(self.history) + 1
        self._log_sums = begin()

    def save(self, path: str | Path) -> None:
        """Save the monitor to a file (.npz, without pickles), from which `load` goes on.

        Parameters
        ----------
        path : str or Path
            The file. It is replaced at once, so that it is whole at any time.

        Raises
        ------
        TypeError
            If the distance is a function, or the weights are not of this library.
        """
        from crossedge.monitoring.storage import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Monitor:
        """Return a monitor as it was saved. It goes on bit for bit as if it had not stopped.

        Parameters
        ----------
        path : str or Path
            The file that `save` wrote.

        Returns
        -------
        Monitor

        Raises
        ------
        ValueError
            If the file is damaged or is no monitor.
        """
        from crossedge.monitoring.storage import load

        found: Monitor = load(cls, Path(path))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the settings and all states as plain values, which JSON can hold.

        Returns
        -------
        dict
        """
        return {
            "alarm": self.alarm,
            "threshold": self.rule.threshold,
            "false_alarm_rate": self.rule.false_alarm_rate,
            "run_length": self.rule.run_length,
            "scale": self.scale,
            "rows": len(self._rows),
            "history": [state.to_dict() for state in self.history],
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the evidence and the p-values of all batches, and the threshold.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        Axes
        """
        # plots is a room further down, and it needs matplotlib: it is imported where it is used
        return import_module("crossedge.plots").plot_monitor(self.history, ax)

    @property
    def _title(self) -> str:
        return "monitor"

    def _facts(self) -> list[tuple[str, str]]:
        rule = self.rule
        aim = (
            f"an alarm in {rule.run_length:g} batches or more on average, if nothing changes"
            if rule.run_length is not None
            else f"an alarm ever with probability {rule.false_alarm_rate:g}, if nothing changes"
        )
        facts = [("rule", aim), ("rows", f"{len(self._rows):,} kept")]
        batches = f"{len(self.history):,}"
        if not self.history:
            return [*facts, ("batches", batches)]
        last = self.history[-1]
        return [
            *facts,
            ("batches", f"{batches}, the last with p-value {last.pvalue:.4g}"),
            ("evidence", f"{last.evidence:.4g} of {last.threshold:.4g}"),
            ("answer", last.words if self.alarm else "no change is established"),
        ]

    def _source(self, number: int) -> np.random.Generator:
        """Return the randomness of one batch, which depends on the key and its number only."""
        return np.random.default_rng([self._key, number])

    def _choose(self, n_past: int, n_new: int, source: np.random.Generator) -> tuple[Ints, int]:
        """Return random rows of the past, then of the batch, and the number of the former."""
        wanted = max(FEWEST_OF_PAST, PAST_PER_ROW * n_new)
        batch = min(n_new, max(self.max_points - min(wanted, n_past), self.max_points // 2))
        past = min(n_past, wanted, self.max_points - batch)
        old = np.sort(source.permutation(n_past)[:past])
        new = n_past + np.sort(source.permutation(n_new)[:batch])
        return np.concatenate([old, new]), past

    def _distances(self, samples: Samples) -> Distances:
        if callable(self.distance):
            return callable_distances(samples.values, self.distance)
        return point_distances(samples.values, float(self.distance))

    def _parts(self, views: Views) -> list[Part]:
        if self.weights is None:
            return sparse_parts(views, DEFAULT_STATISTICS)
        if isinstance(self.weights, tuple):
            return all_parts(self.weights, DEFAULT_STATISTICS)
        return [Part(self.weights, statistic_named(self.weights.default_statistic), 1.0)]

    def _described(self, state: MonitorState) -> MonitorState:
        """Return the state of an alarm with when and where the change was."""
        recent = self.history[self._first - 1 :]
        if self.alarm and recent[-1].since is not None:  # an alarm that stands keeps its place
            since = recent[-1].since
        else:
            pvalues = np.array([*(each.pvalue for each in recent), state.pvalue])
            since = self._first + likely_start(pvalues)
        columns = changed_columns(self._rows, self._batch_of >= since)
        name = state.name if since == state.batch else self.history[since - 1].name
        return replace(state, since=since, since_name=name, columns=columns)

    def _forget(self, source: np.random.Generator) -> None:
        """Keep at most `memory` rows, each as likely as any other."""
        if len(self._rows) > self.memory:
            kept = np.sort(source.permutation(len(self._rows))[: self.memory])
            self._rows, self._batch_of = self._rows.take(kept), self._batch_of[kept]

    def _warn(self, cautions: Any) -> None:
        """Warn of each kind of caution once."""
        for caution in cautions:
            kind = re.sub(r"[\d,.]+", "", caution)
            if kind not in self._said:
                self._said.add(kind)
                warnings.warn(caution, UserWarning, stacklevel=3)
