"""Drift: a stream of batches watched for a change, at a rate of false alarms that is controlled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossedge.monitoring.changes import ColumnChange
from crossedge.monitoring.monitor import Monitor
from crossedge.monitoring.state import MonitorState
from crossedge.runtime.lazy import lazy_attribute

if TYPE_CHECKING:
    from crossedge.monitoring.detector import DriftDetector as DriftDetector

__all__ = ["ColumnChange", "Monitor", "MonitorState"]


def __getattr__(name: str) -> Any:  # scikit-learn is imported where the estimator is used
    return lazy_attribute({"DriftDetector": "crossedge.monitoring.detector"}, __name__, name)
