"""Two-sample tests on neighbourhood graphs: do these samples come from the same distribution?"""

from crossedge.divergences import divergence as divergence
from crossedge.losses import TwoSampleLoss as TwoSampleLoss
from crossedge.null.normality import normality as normality
from crossedge.result import TwoSampleResult as TwoSampleResult
from crossedge.studies import PowerStudy as PowerStudy
from crossedge.studies import power_study as power_study
from crossedge.two_sample import two_sample as two_sample
from crossedge.weights import EnergyKernel as EnergyKernel
from crossedge.weights import GaussianKernel as GaussianKernel
from crossedge.weights import GraphWeights as GraphWeights
from crossedge.weights import InverseMultiquadricKernel as InverseMultiquadricKernel
from crossedge.weights import KernelWeights as KernelWeights
from crossedge.weights import LaplaceKernel as LaplaceKernel
from crossedge.weights import NearestNeighbours as NearestNeighbours
from crossedge.weights import SpanningTree as SpanningTree
from crossedge.weights import Weights as Weights
from crossedge.weights import sample_edges as sample_edges

__version__ = "0.1.0"
__all__ = [
    "EnergyKernel",
    "GaussianKernel",
    "GraphWeights",
    "InverseMultiquadricKernel",
    "KernelWeights",
    "LaplaceKernel",
    "NearestNeighbours",
    "PowerStudy",
    "SpanningTree",
    "TwoSampleLoss",
    "TwoSampleResult",
    "Weights",
    "divergence",
    "normality",
    "power_study",
    "sample_edges",
    "two_sample",
]
