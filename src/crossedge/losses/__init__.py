"""Two-sample tests as differentiable losses. This package needs torch."""

from crossedge.losses.module import TwoSampleLoss as TwoSampleLoss
