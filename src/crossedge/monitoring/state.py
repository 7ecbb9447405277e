"""What a monitor says after each batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from importlib import import_module
from typing import Any

from crossedge.data.columns import printable
from crossedge.monitoring.changes import ColumnChange
from crossedge.summaries import Summary, plain_values

SHOWN = 3  # columns in the words after an alarm


@dataclass(frozen=True, repr=False)
class MonitorState(Summary):
    """The answer of `Monitor.update`, which prints as a summary.

    Attributes
    ----------
    batch : int
        The number of the batch, from 1 on. It goes on after `Monitor.reset`.
    size : int
        The number of rows in the batch.
    pvalue : float
        The p-value of this batch against all that came before. If nothing changes, the p-values of
        all batches are independent and uniform.
    evidence : float
        The evidence of all batches together. There is an alarm if it reaches the threshold.
    threshold : float
        One over the false-alarm rate, or the run length.
    alarm : bool
        Whether the evidence has reached the threshold, with this batch or with an earlier one.
    since : int or None
        The batch with which the change began, as estimated; None without an alarm.
    columns : tuple of ColumnChange
        After an alarm, the columns that changed most: `.name`, `.change`, `.is_clear`, `.words`.
    name : str or None
        The name that the caller gave to the batch, such as that of a file.
    since_name : str or None
        The name of the batch with which the change began, if it has one.
    words : str
        The answer in one sentence.
    """

    _width = 9

    batch: int
    size: int
    pvalue: float
    evidence: float
    threshold: float
    alarm: bool
    since: int | None = None
    columns: tuple[ColumnChange, ...] = ()
    name: str | None = None
    since_name: str | None = None

    @property
    def words(self) -> str:
        """The answer in one sentence."""
        if not self.alarm:
            return "no change is established"
        clear = [each for each in self.columns if each.is_clear][:SHOWN]
        if clear:
            where = "most in " + "; ".join(f"{printable(c.name)} ({c.words})" for c in clear)
        elif len(self.columns) > 1:
            where = "in no column clearly, so perhaps in how columns go together"
        else:
            where = "small, but lasting"
        name = "" if self.since_name is None else f" ({printable(self.since_name)})"
        return f"ALARM: the data has changed since about batch {self.since}{name}, {where}"

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold.

        Returns
        -------
        dict
        """
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        facts |= {"columns": [asdict(each) for each in self.columns], "words": self.words}
        plain: dict[str, Any] = plain_values(facts)
        return plain

    def plot(self, ax: Any = None) -> Any:
        """Draw the columns that changed most after an alarm, by `plots.plot_changes`.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        Axes
        """
        # plots is a room further down, and it needs matplotlib: it is imported where it is used
        return import_module("crossedge.plots").plot_changes(self, ax=ax)

    @property
    def _title(self) -> str:
        return "state of a monitor"

    def _facts(self) -> list[tuple[str, str]]:
        name = "" if self.name is None else f", {printable(self.name)}"
        return [
            ("batch", f"{self.batch}{name}, {self.size:,} rows"),
            ("p-value", f"{self.pvalue:.4g}"),
            ("evidence", f"{self.evidence:.4g} of {self.threshold:.4g}"),
            ("answer", self.words),
        ]
