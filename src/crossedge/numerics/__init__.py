"""The inner loops of the library: plain functions on arrays."""

SMALL = 512  # points: up to this size numpy builds a graph sooner than a loop could be compiled
