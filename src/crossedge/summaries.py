"""What results have in common: they print as a summary, show as a table and turn into JSON."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from crossedge.html import html_table


class Shown(ABC):
    """Base class of what prints as a title and lines of a name and a value."""

    _width: ClassVar[int] = 10  # of the names, in characters

    @property
    @abstractmethod
    def _title(self) -> str:
        """The first line of the summary."""

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of a name and a value."""

    def __repr__(self) -> str:
        lines = [f"  {name:<{self._width}} {value}" for name, value in self._facts()]
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        """Return the summary as a table for notebooks."""
        return html_table(self._title, self._facts())


class Summary(Shown):
    """Base class of results with plain facts."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold."""

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        indent : int, optional
            Spaces by which each level is indented; by default all is on one line.

        Returns
        -------
        str
        """
        return as_json(self.to_dict(), indent)


class SummaryWithNull(Shown):
    """Base class of results that have a null distribution, which their facts may leave out."""

    @abstractmethod
    def to_dict(self, null_distribution: bool = False) -> dict[str, Any]:
        """Return all facts as plain values, which JSON can hold."""

    def to_json(self, null_distribution: bool = False, indent: int | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        null_distribution : bool, optional
            Whether to include the values of the statistic on relabelled samples.
        indent : int, optional
            Spaces by which each level is indented; by default all is on one line.

        Returns
        -------
        str
        """
        return as_json(self.to_dict(null_distribution), indent)


def as_json(facts: dict[str, Any], indent: int | None) -> str:
    """Return plain values as JSON, with text as it is."""
    return json.dumps(facts, indent=indent, allow_nan=False, ensure_ascii=False)


def plain_values(value: Any) -> Any:
    """Return facts as values of Python's own types, with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: plain_values(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain_values(value.tolist())
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
