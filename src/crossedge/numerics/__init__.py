"""The hard inner loops: plain functions on arrays."""
