"""Autograd functions for what is computed without a tape. This package needs torch."""
