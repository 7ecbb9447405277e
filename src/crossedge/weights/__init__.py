"""Distances -> pair weights, one family per file."""

from crossedge.weights.dense import DenseWeights as DenseWeights
from crossedge.weights.edge_list import EdgeList as EdgeList
from crossedge.weights.family import GraphWeights as GraphWeights
from crossedge.weights.nearest_neighbours import NearestNeighbours as NearestNeighbours
from crossedge.weights.sampling import sample_edges as sample_edges
from crossedge.weights.spanning_tree import SpanningTree as SpanningTree

PairWeights = EdgeList | DenseWeights
