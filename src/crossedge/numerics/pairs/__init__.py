"""Compiled loops between points and weights, and between weights and the sums of a loss."""
