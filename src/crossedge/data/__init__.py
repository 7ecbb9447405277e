"""Input: check and pool samples in any common form, and compute distances between points."""
