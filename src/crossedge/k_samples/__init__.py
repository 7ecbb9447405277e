"""Several samples: one test of the whole, and one of each pair."""

from crossedge.k_samples.result import KSampleResult, SamplePair
from crossedge.k_samples.verb import k_sample

__all__ = ["KSampleResult", "SamplePair", "k_sample"]
