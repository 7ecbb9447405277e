"""Two-sample tests as differentiable losses. This package needs torch."""

from crossedge.losses.gather import gather as gather
from crossedge.losses.module import TwoSampleLoss as TwoSampleLoss
