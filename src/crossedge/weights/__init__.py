"""Pair weights W from distances, one family per file."""

from crossedge.weights.dense import DenseWeights as DenseWeights
from crossedge.weights.edge_list import EdgeList as EdgeList
from crossedge.weights.family import PairWeights as PairWeights
from crossedge.weights.family import Weights as Weights
from crossedge.weights.graph import Graph as Graph
from crossedge.weights.graphs import GraphWeights as GraphWeights
from crossedge.weights.kernels import EnergyKernel as EnergyKernel
from crossedge.weights.kernels import GaussianKernel as GaussianKernel
from crossedge.weights.kernels import InverseMultiquadricKernel as InverseMultiquadricKernel
from crossedge.weights.kernels import KernelWeights as KernelWeights
from crossedge.weights.kernels import LaplaceKernel as LaplaceKernel
from crossedge.weights.low_rank import LowRankWeights as LowRankWeights
from crossedge.weights.moment_kernels import LinearKernel as LinearKernel
from crossedge.weights.moment_kernels import QuadraticKernel as QuadraticKernel
from crossedge.weights.nearest_neighbours import NearestNeighbours as NearestNeighbours
from crossedge.weights.sampling import sample_edges as sample_edges
from crossedge.weights.spanning_tree import SpanningTree as SpanningTree
from crossedge.weights.streamed import StreamedWeights as StreamedWeights
