"""Where two samples differ: points, columns and regions, all from one set of labellings."""

from crossedge.witnesses.result import ColumnWitness, PointWitness, Region, Witness
from crossedge.witnesses.verb import witness

__all__ = ["ColumnWitness", "PointWitness", "Region", "Witness", "witness"]
