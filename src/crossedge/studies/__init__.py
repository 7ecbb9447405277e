"""How much power has which test, against what: studies of one's own."""

from crossedge.studies.study import PowerStudy as PowerStudy
from crossedge.studies.study import power_study as power_study
