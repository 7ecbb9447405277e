"""Exact moments of the within-sums over all labellings."""

from crossedge.moments.blocked import BlockMoments as BlockMoments
from crossedge.moments.blocked import evened as evened
from crossedge.moments.label_moments import Form as Form
from crossedge.moments.label_moments import LabelMoments as LabelMoments
