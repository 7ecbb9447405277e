"""Labellings of the pooled sample: drawing them, and summing weights inside them."""
