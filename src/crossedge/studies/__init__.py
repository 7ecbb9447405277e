"""Power studies: how often tests reject, against alternatives that the user supplies."""

from crossedge.studies.study import PowerStudy as PowerStudy
from crossedge.studies.study import power_study as power_study
