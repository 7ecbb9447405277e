"""One page about two samples, to be sent round: the verdict, how large, where, and how."""

from crossedge.reports.verb import Report, report

__all__ = ["Report", "report"]
